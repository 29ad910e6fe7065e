/* test_host_probe.c: what handlers and other functions answer to a query for metadata. */
#include <unistd.h>

#include "../../src/host/parts.h"
#include "test_host_common.h"

static jaxc_host_metadata metadata;

static jaxc_abi_error *handler(jaxc_abi_call_frame *frame) {
  jaxc_abi_metadata *const asked = jaxc_call_metadata(frame);
  if (asked == NULL) return NULL;
  asked->api_version.major_version = 0;
  asked->api_version.minor_version = announced_minor;
  asked->traits = JAXC_TRAIT_COMMAND_BUFFER;
  if (frame->api != NULL && frame->api->api_version.minor_version >= 2) {
    asked->state_type_id = 42;
  }
  return NULL;
}

TEST(metadata_are_those_of_the_handler) {
  for (int minor = 1; minor <= 5; minor++) {
    jaxc_host *const host = make_host(minor, JAXC_HOST_CPU);
    CHECK_INT(jaxc_host_probe(host, handler, &metadata, &message), JAXC_OK);
    CHECK_INT(metadata.major_version, 0);
    CHECK_INT(metadata.minor_version, 1);
    CHECK_INT(metadata.traits, JAXC_TRAIT_COMMAND_BUFFER);
    CHECK_INT(metadata.state_type_id, minor >= 2 ? 42 : 0);
    end(host, NULL);
  }
}

static jaxc_abi_error *see_query(jaxc_abi_call_frame *frame) {
  const jaxc_abi_metadata *const asked = jaxc_call_metadata(frame);
  CHECK(asked != NULL);
  CHECK_INT(frame->struct_size, 168);
  CHECK(frame->context == NULL);
  CHECK_INT(frame->stage, JAXC_STAGE_EXECUTE);
  CHECK_INT(frame->extension_start->type, JAXC_ABI_EXTENSION_METADATA);
  CHECK_INT(frame->extension_start->struct_size, 32);
  CHECK_INT(asked->struct_size, 36);
  CHECK_INT(asked->api_version.struct_size, 24);
  CHECK_INT(frame->args.struct_size, 40);
  CHECK_INT(frame->results.struct_size, 40);
  CHECK_INT(frame->attrs.struct_size, 48);
  CHECK_INT(frame->args.size + frame->results.size + frame->attrs.size, 0);
  CHECK(frame->future == NULL);
  return handler(frame);
}

TEST(the_query_is_a_frame_without_context_and_operands) {
  jaxc_host *const host = make_host(0, JAXC_HOST_GPU);
  CHECK_INT(jaxc_host_probe(host, see_query, &metadata, &message), JAXC_OK);
  end(host, NULL);
}

static int has_table;
static jaxc_abi_error *see_table(jaxc_abi_call_frame *frame) {
  has_table = frame->api != NULL;
  return handler(frame);
}

TEST(the_query_of_api_1_has_no_table) {
  for (int minor = 1; minor <= 5; minor++) {
    jaxc_host *const host = make_host(minor, JAXC_HOST_CPU);
    CHECK_INT(jaxc_host_probe(host, see_table, &metadata, &message), JAXC_OK);
    CHECK_INT(has_table, minor >= 2);
    end(host, NULL);
  }
}

TEST(a_handler_of_another_version_is_refused_naming_both) {
  for (int minor = 1; minor <= 5; minor++) {
    jaxc_host *const host = make_host(minor, JAXC_HOST_CPU);
    const jaxc_abi_bundle handlers = {.execute = handler};
    jaxc_host_call *call;
    char text[256];
    announced_minor = minor;
    CHECK_INT(jaxc_host_probe(host, handler, &metadata, &message), JAXC_OK);
    announced_minor = minor + 1;
    CHECK_INT(jaxc_host_probe(host, handler, &metadata, &message), JAXC_INVALID_ARGUMENT);
    snprintf(text, sizeof text,
             "the handler's API version (0.%d) is incompatible with the framework's API "
             "version (0.%d). Minimum supported API version is (0.1).",
             minor + 1, minor);
    CHECK_TEXT(message.text, text);
    CHECK_INT(metadata.minor_version, minor + 1); /* what it answered all the same */
    CHECK_INT(jaxc_host_call_create(host, &handlers, &call, &message),
              JAXC_INVALID_ARGUMENT);
    CHECK(call == NULL);
    announced_minor = 0;
    CHECK_INT(jaxc_host_probe(host, handler, &metadata, &message), JAXC_INVALID_ARGUMENT);
    end(host, NULL);
  }
}

static jaxc_abi_error *answers_nothing(jaxc_abi_call_frame *frame) {
  (void)frame;
  return NULL;
}

static const char unanswered[] =
    "the function does not answer the query for metadata: it is no handler of XLA FFI 0.1 "
    "or later";

TEST(a_handler_that_does_not_answer_is_refused) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  CHECK_INT(jaxc_host_probe(host, answers_nothing, &metadata, &message),
            JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text, unanswered);
  CHECK_INT(jaxc_host_probe(host, NULL, &metadata, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "the handler is NULL");
  end(host, NULL);
}

static jaxc_abi_error *answers_with_error(jaxc_abi_call_frame *frame) {
  return jaxc_error_create(frame->api, JAXC_INTERNAL, "no type");
}

TEST(the_error_of_a_query_comes_back) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  CHECK_INT(jaxc_host_probe(host, answers_with_error, &metadata, &message), JAXC_INTERNAL);
  CHECK_TEXT(message.text, "no type");
  end(host, NULL);
}

/* Through char, since the sanitizers would stop at what is tested. */
static jaxc_abi_error *writes_state_id(jaxc_abi_call_frame *frame) {
  jaxc_abi_metadata *const asked = jaxc_call_metadata(frame);
  asked->api_version.major_version = 0;
  asked->api_version.minor_version = 1;
  ((char *)asked)[40] = 1;
  return NULL;
}

TEST(a_state_type_that_is_written_on_api_1_is_found) {
  jaxc_host *host = make_host(1, JAXC_HOST_CPU);
  CHECK_INT(jaxc_host_probe(host, writes_state_id, &metadata, &message),
            JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text,
             "the handler wrote outside the metadata, 0 bytes behind their end: "
             "state_type_id is not there before API 0.2");
  end(host, NULL);
  host = make_host(2, JAXC_HOST_CPU);
  CHECK_INT(jaxc_host_probe(host, writes_state_id, &metadata, &message), JAXC_OK);
  end(host, NULL);
}

static jaxc_abi_error *newer_writes_state_id(jaxc_abi_call_frame *frame) {
  (void)writes_state_id(frame);
  jaxc_call_metadata(frame)->api_version.minor_version = 2;
  return NULL;
}

TEST(the_version_of_a_newer_handler_says_more_than_what_it_wrote) {
  jaxc_host *const host = make_host(1, JAXC_HOST_CPU);
  CHECK_INT(jaxc_host_probe(host, newer_writes_state_id, &metadata, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK(strstr(message.text, "(0.2) is incompatible") != NULL);
  end(host, NULL);
}

static jaxc_abi_error *asks_stream(jaxc_abi_call_frame *frame) {
  jaxc_abi_stream_args args = {sizeof args, NULL, frame->context, NULL};
  return frame->api->stream(&args);
}

TEST(a_query_has_no_context_to_ask) {
  jaxc_host *const host = make_host(0, JAXC_HOST_GPU);
  CHECK_INT(jaxc_host_probe(host, asks_stream, &metadata, &message),
            JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text,
             "the context is NULL, as in a query for metadata; XLA crashes here");
  end(host, NULL);
}

/* ---- apart ---- */

/* Called as a handler, with another type: that is what is tested, and what the function
 * sanitizer of newer compilers would stop at. */
static int add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
static jaxc_abi_handler *as_handler(void (*function)(void)) {
  union {
    void (*function)(void);
    jaxc_abi_handler *handler;
  } same;
  same.function = function;
  return same.handler;
}
static void crash(void) { abort(); }
static void never(void) {
  for (;;) pause();
}
static void leave(void) { exit(0); }

static jaxc_abi_error *writes_to_null(jaxc_abi_call_frame *frame) {
  int *volatile nowhere = NULL;
  (void)frame;
  *(volatile int *)nowhere = 1;
  return NULL;
}

static jaxc_status probe_apart(void (*function)(void), int limit_ms) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  const jaxc_status status =
      jaxci_probe_apart(host, as_handler(function), limit_ms, &metadata, &message);
  end(host, NULL);
  return status;
}

TEST(a_handler_answers_in_a_process_of_its_own) {
  jaxc_host *const host = make_host(3, JAXC_HOST_CPU);
  CHECK_INT(jaxc_host_probe_apart(host, handler, &metadata, &message), JAXC_OK);
  CHECK_INT(metadata.minor_version, 1);
  CHECK_INT(metadata.state_type_id, 42);
  announced_minor = 4;
  CHECK_INT(jaxc_host_probe_apart(host, handler, &metadata, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK(strstr(message.text, "(0.4) is incompatible") != NULL);
  end(host, NULL);
}

TEST(a_function_that_adds_is_no_handler) {
  CHECK_INT(probe_apart((void (*)(void))add, 10000), JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text, unanswered);
}

TEST(a_function_that_crashes_is_no_handler) {
  CHECK_INT(probe_apart(crash, 10000), JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text, "the function crashed with signal 6 when it was asked for "
                           "metadata: it is no handler");
}

TEST(a_function_that_faults_is_no_handler) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  CHECK_INT(jaxc_host_probe_apart(host, writes_to_null, &metadata, &message),
            JAXC_FAILED_PRECONDITION);
  CHECK(strstr(message.text, "it is no handler") != NULL);
  end(host, NULL);
}

TEST(a_function_that_never_returns_is_no_handler) {
  CHECK_INT(probe_apart(never, 100), JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text, "the function did not answer the query for metadata within 100 "
                           "ms: it is no handler");
}

TEST(a_function_that_exits_is_no_handler) {
  CHECK_INT(probe_apart(leave, 10000), JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text, "the function ended its process when it was asked for "
                           "metadata: it is no handler");
}

TEST_MAIN
