/* test_error.c: statuses, messages and their way to the runtime. */
#include "check.h"
#include "frame.h"

TEST(a_message_holds_formatted_text) {
  jaxc_message message;
  CHECK_INT(JAXC_FAIL(&message, JAXC_NOT_FOUND, "n is %d, not %s", 3, "4"), JAXC_NOT_FOUND);
  CHECK_TEXT(message.text, "n is 3, not 4");
}

TEST(a_long_message_is_cut_and_terminated) {
  jaxc_message message;
  char text[4000];
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = '\0';
  CHECK_INT(JAXC_FAIL(&message, JAXC_INTERNAL, "%s", text), JAXC_INTERNAL);
  CHECK_INT(strlen(message.text), sizeof message.text - 1);
}

TEST(no_message_is_allowed) {
  CHECK_INT(JAXC_FAIL(NULL, JAXC_ABORTED, "lost %d", 1), JAXC_ABORTED);
}

static jaxc_status forward(jaxc_status status) {
  JAXC_TRY(status);
  return JAXC_CANCELLED;
}

TEST(try_returns_what_is_not_ok) {
  CHECK_INT(forward(JAXC_DATA_LOSS), JAXC_DATA_LOSS);
  CHECK_INT(forward(JAXC_OK), JAXC_CANCELLED);
}

TEST(an_error_carries_code_and_text) {
  CHECK(jaxc_error_create(&frame_api, JAXC_OUT_OF_RANGE, "far") == &frame_error);
  CHECK_INT(frame_error.code, JAXC_OUT_OF_RANGE);
  CHECK_TEXT(frame_error.text, "far");
}

static size_t seen_size;
static jaxc_abi_error *see_size(jaxc_abi_error_create_args *args) {
  seen_size = args->struct_size;
  return NULL;
}

TEST(error_arguments_have_the_size_that_xla_counts) {
  jaxc_abi_api api = frame_api;
  api.error_create = see_size;
  CHECK(jaxc_error_create(&api, JAXC_UNKNOWN, "") == NULL);
  CHECK_INT(seen_size, 28);
}

TEST(a_table_without_the_slot_is_not_called) {
  jaxc_abi_api api = frame_api;
  api.struct_size = offsetof(jaxc_abi_api, error_create);
  CHECK(jaxc_error_create(&api, JAXC_UNKNOWN, "lost") == NULL);
  CHECK(jaxc_error_create(NULL, JAXC_UNKNOWN, "lost") == NULL);
}

TEST_MAIN
