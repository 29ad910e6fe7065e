/* test_state.c: states of every stage, user data, what a handler says of itself, and
 * calls that go on after their return; on every API minor.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/host.h>
#include <stdatomic.h>

#include "check.h"
#include "frame.h"

/* ---- a handler that does the job which the test gives it in each stage ---- */

typedef jaxc_status job_t(jaxc_context *context);
static job_t *jobs[4];
static int destroyed[4]; /* states, by the type's number */

#define DESTROY(n) static void destroy_##n(void *state) { destroyed[n]++; free(state); }
DESTROY(0) DESTROY(1) DESTROY(2)
static jaxc_state_type types[3] = {JAXC_STATE_TYPE("test.instantiate", destroy_0),
                                   JAXC_STATE_TYPE("test.prepare", destroy_1),
                                   JAXC_STATE_TYPE("test.initialize", destroy_2)};

typedef struct {
  const jaxc_abi_attrs *all;
} keep_call;
static const jaxc_field keep_fields[] = {JAXC_ALL_ATTRIBUTES(keep_call, all)};
static jaxc_status keep(jaxc_context *context, const void *data) {
  job_t *const job = jobs[jaxc_context_stage(context)];
  (void)data;
  return job == NULL ? JAXC_OK : job(context);
}
JAXC_HANDLER(Keep, keep_call, keep_fields, .execute = keep, .instantiate = keep,
             .prepare = keep, .initialize = keep, .instantiate_state = &types[0],
             .prepare_state = &types[1], .initialize_state = &types[2], .minor = 1);

typedef struct {
  jaxc_host_options options;
  jaxc_host *host;
  jaxc_host_call *call;
  jaxc_message message;
} site_t;

static void site_open(site_t *site) {
  const jaxc_abi_bundle handlers = {Keep, Keep, Keep, Keep};
  site->options.struct_size = sizeof site->options;
  CHECK_INT(jaxc_host_create(&site->options, &site->host, &site->message), JAXC_OK);
  CHECK_INT(jaxc_host_call_create(site->host, &handlers, &site->call, &site->message),
            JAXC_OK);
}

/* Types begin unregistered, as in a new process. */
static void site_begin(site_t *site, int minor, int profile) {
  *site = (site_t){.options = {.minor = minor, .profile = profile}};
  memset(destroyed, 0, sizeof destroyed);
  for (int i = 0; i < 3; i++) types[i].id.type_id = 0;
  site_open(site);
}

static void site_end(site_t *site) {
  jaxc_host_call_destroy(site->call);
  CHECK_INT(jaxc_host_leaks(site->host, &site->message), JAXC_OK);
  jaxc_host_destroy(site->host);
}

#define CHECK_RUNS(site) \
  CHECK_TEXT(jaxc_host_call_run((site)->call, &(site)->message) == JAXC_OK \
                 ? "" : (site)->message.text, "")
#define CHECK_REFUSED(site, code, expected)                                        \
  do {                                                                             \
    CHECK_INT(jaxc_host_call_run((site)->call, &(site)->message), code);           \
    CHECK_TEXT((site)->message.text, expected);                                    \
  } while (0)
/* Runtimes up to 0.3 do not tell the code of an error of theirs. */
#define RUNTIME_CODE(minor, code) ((minor) >= 4 ? (code) : JAXC_UNKNOWN)
#define EVERY_MINOR(minor) for (int minor = 1; minor <= JAXC_ABI_MINOR_KNOWN; minor++)
#define EVERY_PROFILE(p) for (int p = JAXC_HOST_CPU; p <= JAXC_HOST_GPU; p++)

/* ---- states ---- */

static int next_number;
static int numbers_seen[3]; /* in the states, by stage */

/* Sets a state of `type` with a number of its own; frees it when it is not taken. */
static jaxc_status set(jaxc_context *context, jaxc_state_type *type) {
  int *const state = malloc(sizeof *state);
  jaxc_status status;
  CHECK(state != NULL);
  *state = ++next_number;
  status = jaxc_state_set(context, type, state);
  if (status != JAXC_OK) free(state);
  return status;
}
static jaxc_status set_own(jaxc_context *context) {
  return set(context, &types[jaxc_context_stage(context)]);
}
static jaxc_status get(jaxc_context *context, int stage) {
  void *state = NULL;
  JAXC_TRY(jaxc_state_get(context, &types[stage], stage, &state));
  numbers_seen[stage] = *(const int *)state;
  return JAXC_OK;
}
static jaxc_status get_instantiate(jaxc_context *context) { return get(context, 0); }
static jaxc_status get_prepare(jaxc_context *context) { return get(context, 1); }
static jaxc_status get_initialize(jaxc_context *context) { return get(context, 2); }
static jaxc_status get_as(jaxc_context *context, int type, int stage) {
  void *state;
  return jaxc_state_get(context, &types[type], stage, &state);
}
static jaxc_status get_execute(jaxc_context *context) { return get_as(context, 0, 3); }
static jaxc_status get_another(jaxc_context *context) { return get_as(context, 2, 0); }
static jaxc_status get_all(jaxc_context *context) {
  for (int stage = 0; stage < 3; stage++) JAXC_TRY(get(context, stage));
  return JAXC_OK;
}

TEST(the_state_of_instantiate_serves_all_runs_and_is_destroyed_once) {
  site_t site;
  jobs[JAXC_STAGE_INSTANTIATE] = set_own;
  jobs[JAXC_STAGE_EXECUTE] = get_instantiate;
  EVERY_MINOR(minor) EVERY_PROFILE(profile) {
    site_begin(&site, minor, profile);
    next_number = 100;
    for (int i = 0; i < 3; i++) {
      CHECK_RUNS(&site);
      CHECK_INT(numbers_seen[0], 101);
    }
    CHECK_INT(destroyed[0], 0);
    site_end(&site);
    CHECK_INT(destroyed[0], 1);
  }
}

TEST(states_of_prepare_and_initialize_are_of_one_run) {
  site_t site;
  jobs[0] = jobs[1] = jobs[2] = set_own;
  jobs[JAXC_STAGE_EXECUTE] = get_all;
  for (int minor = 3; minor <= JAXC_ABI_MINOR_KNOWN; minor++) {
    site_begin(&site, minor, JAXC_HOST_GPU);
    next_number = 0;
    for (int i = 0; i < 3; i++) {
      CHECK_RUNS(&site);
      CHECK_INT(numbers_seen[0], 1);
      CHECK_INT(numbers_seen[1], 2 + 2 * i);
      CHECK_INT(numbers_seen[2], 3 + 2 * i);
      CHECK_INT(destroyed[1], i + 1);
      CHECK_INT(destroyed[2], i + 1);
    }
    site_end(&site);
    CHECK_INT(destroyed[0], 1);
    CHECK_INT(destroyed[1], 3);
    CHECK_INT(destroyed[2], 3);
  }
}

TEST(states_of_prepare_and_initialize_need_the_third_minor) {
  static const char *const names[] = {"", "prepare", "initialize"};
  for (int minor = 1; minor < 3; minor++) for (int i = 0; i < 4; i++) {
    const int stage = 1 + i % 2;
    site_t site;
    char text[100];
    memset(jobs, 0, sizeof jobs);
    if (i < 2) jobs[stage] = set_own;
    if (i >= 2) jobs[3] = stage == 1 ? get_prepare : get_initialize;
    site_begin(&site, minor, JAXC_HOST_GPU);
    snprintf(text, sizeof text,
             "Keep: a state of %s needs XLA FFI API 0.3, the runtime has 0.%d",
             names[stage], minor);
    CHECK_REFUSED(&site, JAXC_UNIMPLEMENTED, text);
    site_end(&site);
  }
}

static void check_cpu_has_none(int thread_count) {
  jobs[JAXC_STAGE_EXECUTE] = get_prepare;
  for (int minor = 3; minor <= JAXC_ABI_MINOR_KNOWN; minor++) {
    site_t site = {.options = {.minor = minor, .thread_count = thread_count}};
    site_open(&site);
    CHECK_REFUSED(
        &site, JAXC_FAILED_PRECONDITION,
        "Keep: there is no state of prepare on a CPU, where that stage does not run");
    site_end(&site);
  }
}

TEST(a_cpu_has_no_state_of_prepare) { check_cpu_has_none(2); }

/* Such a runtime has no threads to count, as a GPU has none. */
TEST(a_cpu_without_a_pool_has_no_state_of_prepare) {
  check_cpu_has_none(JAXC_HOST_NO_POOL);
}

TEST(instantiate_has_no_state_of_a_later_stage) {
  for (int minor = 3; minor <= JAXC_ABI_MINOR_KNOWN; minor++) EVERY_PROFILE(profile) {
    site_t site;
    jobs[JAXC_STAGE_INSTANTIATE] = get_initialize;
    site_begin(&site, minor, profile);
    CHECK_REFUSED(&site, JAXC_FAILED_PRECONDITION,
                  profile == JAXC_HOST_CPU
                      ? "Keep: there is no state of initialize on a CPU, where that "
                        "stage does not run"
                      : "Keep: there is no state of initialize before that stage");
    site_end(&site);
  }
}

static jaxc_status set_twice(jaxc_context *context) {
  JAXC_TRY(set_own(context));
  return set_own(context);
}

TEST(a_state_is_set_once) {
  site_t site;
  char text[200];
  jobs[JAXC_STAGE_INSTANTIATE] = set_twice;
  EVERY_MINOR(minor) EVERY_PROFILE(profile) {
    site_begin(&site, minor, profile);
    CHECK_INT(jaxc_host_call_run(site.call, &site.message),
              RUNTIME_CODE(minor, JAXC_FAILED_PRECONDITION));
    snprintf(text, sizeof text, "Keep: state: State is already set with a type id %lld",
             (long long)types[0].id.type_id);
    CHECK_TEXT(site.message.text, text);
    site_end(&site);
    CHECK_INT(destroyed[0], 1);
  }
}

TEST(a_state_that_was_never_set_is_not_found) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = get_instantiate;
  EVERY_MINOR(minor) EVERY_PROFILE(profile) {
    site_begin(&site, minor, profile);
    CHECK_REFUSED(&site, RUNTIME_CODE(minor, JAXC_NOT_FOUND),
                  "Keep: state: State is not set");
    site_end(&site);
  }
}

TEST(a_state_of_another_type_is_refused) {
  site_t site;
  char text[200];
  jobs[JAXC_STAGE_INSTANTIATE] = set_own;
  jobs[JAXC_STAGE_EXECUTE] = get_another;
  EVERY_MINOR(minor) EVERY_PROFILE(profile) {
    site_begin(&site, minor, profile);
    CHECK_INT(jaxc_host_call_run(site.call, &site.message),
              RUNTIME_CODE(minor, JAXC_INVALID_ARGUMENT));
    snprintf(text, sizeof text,
             "Keep: state: Set state type id %lld does not match the requested one %lld",
             (long long)types[0].id.type_id, (long long)types[2].id.type_id);
    CHECK_TEXT(site.message.text, text);
    site_end(&site);
    CHECK_INT(destroyed[0], 1);
    CHECK_INT(destroyed[2], 0);
  }
}

static jaxc_status set_null(jaxc_context *context) {
  return jaxc_state_set(context, &types[0], NULL);
}
static jaxc_status set_in_execute(jaxc_context *context) { return set(context, types); }

TEST(a_null_state_is_refused) {
  site_t site;
  jobs[JAXC_STAGE_INSTANTIATE] = set_null;
  EVERY_MINOR(minor) {
    site_begin(&site, minor, JAXC_HOST_CPU);
    CHECK_REFUSED(&site, RUNTIME_CODE(minor, JAXC_INVALID_ARGUMENT),
                  "Keep: state: State must be not null");
    site_end(&site);
    CHECK_INT(destroyed[0], 0);
  }
}

TEST(execute_has_no_state) {
  job_t *const both[] = {set_in_execute, get_execute};
  EVERY_MINOR(minor) EVERY_PROFILE(profile) for (int i = 0; i < 2; i++) {
    site_t site;
    jobs[JAXC_STAGE_EXECUTE] = both[i];
    site_begin(&site, minor, profile);
    CHECK_REFUSED(
        &site, JAXC_FAILED_PRECONDITION,
        "Keep: instantiate, prepare and initialize have a state, not stage 3");
    site_end(&site);
  }
}

static jaxc_status set_and_fail(jaxc_context *context) {
  JAXC_TRY(set_own(context));
  return jaxc_fail(context, JAXC_ABORTED, "gave up");
}

TEST(states_are_destroyed_once_when_a_stage_fails) {
  for (int minor = 3; minor <= JAXC_ABI_MINOR_KNOWN; minor++) {
    for (int stage = 0; stage < 3; stage++) {
      site_t site;
      for (int i = 0; i < 3; i++) jobs[i] = i == stage ? set_and_fail : set_own;
      site_begin(&site, minor, JAXC_HOST_GPU);
      CHECK_REFUSED(&site, JAXC_ABORTED, "Keep: gave up");
      site_end(&site);
      for (int i = 0; i < 3; i++) CHECK_INT(destroyed[i], i <= stage);
    }
  }
}

TEST(one_type_serves_two_runtimes) {
  jobs[JAXC_STAGE_INSTANTIATE] = set_own;
  jobs[JAXC_STAGE_EXECUTE] = get_instantiate;
  EVERY_MINOR(minor) {
    site_t first, second = {.options = {.minor = minor}};
    site_begin(&first, minor, JAXC_HOST_CPU);
    site_open(&second); /* the types have the first one's numbers */
    CHECK_RUNS(&first);
    CHECK_RUNS(&second);
    CHECK(types[0].id.type_id != 0 && types[0].id.type_id != types[1].id.type_id);
    site_end(&first);
    CHECK_INT(destroyed[0], 1);
    CHECK_RUNS(&second);
    site_end(&second);
    CHECK_INT(destroyed[0], 2);
  }
}

/* ---- user data ---- */

static void *user_seen;
static jaxc_status take_user_data(jaxc_context *context) {
  return jaxc_context_user_data(context, &types[2], &user_seen);
}

/* API 0.1 has no metadata query to do that in. */
static jaxc_status register_type(jaxc_context *context) {
  return jaxci_state_register(context->frame->api, &types[2], &context->message);
}

TEST(user_data_arrives_in_initialize_and_execute) {
  EVERY_MINOR(minor) for (int stage = 2; stage <= 3; stage++) {
    int object = 4;
    int64_t type_id;
    site_t site;
    memset(jobs, 0, sizeof jobs);
    jobs[JAXC_STAGE_INSTANTIATE] = minor == 1 ? register_type : NULL;
    jobs[stage] = take_user_data;
    user_seen = NULL;
    site_begin(&site, minor, stage == 3 && minor % 2 ? JAXC_HOST_CPU : JAXC_HOST_GPU);
    CHECK_INT(jaxc_host_call_instantiate(site.call, &site.message), JAXC_OK);
    CHECK_INT(jaxc_host_type_id(site.host, "test.initialize", &type_id, &site.message),
              JAXC_OK);
    CHECK_INT(type_id, types[2].id.type_id);
    CHECK_INT(jaxc_host_add_user_data(site.host, type_id, &object, &site.message),
              JAXC_OK);
    CHECK_RUNS(&site);
    CHECK(user_seen == &object);
    site_end(&site);
    CHECK_INT(destroyed[2], 0); /* it stays the caller's */
  }
}

TEST(user_data_that_nobody_attached_is_refused) {
  site_t site;
  char text[200];
  jobs[JAXC_STAGE_EXECUTE] = take_user_data;
  EVERY_MINOR(minor) {
    site_begin(&site, minor, JAXC_HOST_CPU);
    snprintf(text, sizeof text, "Keep: user data: User data with type id %lld not found "
             "in execution context", (long long)types[2].id.type_id);
    CHECK_REFUSED(&site, RUNTIME_CODE(minor, JAXC_NOT_FOUND), text);
    site_end(&site);
  }
}

TEST(user_data_is_not_asked_for_before_initialize) {
  for (int stage = 0; stage < 2; stage++) {
    site_t site;
    jobs[0] = stage == 0 ? take_user_data : NULL;
    jobs[1] = take_user_data;
    site_begin(&site, 5, JAXC_HOST_GPU);
    CHECK_REFUSED(
        &site, JAXC_FAILED_PRECONDITION,
        "Keep: user data belongs to an execution: ask in initialize or execute");
    site_end(&site);
  }
}

/* ---- what a handler says of itself ---- */

static jaxc_status nothing(jaxc_context *context, const void *data) {
  (void)data;
  return jaxc_fail(context, JAXC_INTERNAL, "was called");
}
JAXC_HANDLER(Plain, keep_call, keep_fields, .execute = nothing);
JAXC_HANDLER(Newer, keep_call, keep_fields, .execute = nothing, .minor = 4,
             .traits = JAXC_TRAIT_COMMAND_BUFFER, .instantiate_state = &types[0]);

/* A table of that minor. */
static const jaxc_abi_api *table(int minor) {
  static jaxc_abi_api api;
  api = frame_api;
  api.api_version.minor_version = minor;
  return &api;
}

/* Asks a handler for its metadata; the error's text. With surplus > 0, nodes of unknown
 * types are before and after. */
static const char *query(jaxc_abi_handler *handler, const jaxc_abi_api *api, int surplus,
                         jaxc_abi_metadata *metadata) {
  frame_t f;
  jaxc_abi_metadata_extension node = {{sizeof node, JAXC_ABI_EXTENSION_METADATA, NULL},
                                      metadata};
  jaxc_abi_extension before = {sizeof before, 99, &node.base};
  jaxc_abi_extension after = {sizeof after, -4, NULL};
  frame_begin(&f);
  f.frame.api = api;
  f.frame.extension_start = surplus > 0 ? &before : &node.base;
  if (surplus > 0) node.base.next = &after;
  metadata->struct_size = 36; /* in every version, whatever the struct's size is */
  return frame_call(&f, handler);
}

TEST(a_handler_says_its_version_and_traits) {
  jaxc_abi_metadata metadata;
  for (int surplus = 0; surplus < 2; surplus++) {
    memset(&metadata, 0xff, sizeof metadata);
    CHECK_TEXT(query(Plain, table(5), surplus, &metadata), "");
    CHECK_INT(metadata.api_version.major_version, 0);
    CHECK_INT(metadata.api_version.minor_version, 1);
    CHECK_INT(metadata.traits, 0);
    CHECK_INT(metadata.state_type_id, 0);
    CHECK_TEXT(query(Newer, table(5), surplus, &metadata), "");
    CHECK_INT(metadata.api_version.minor_version, 4);
    CHECK_INT(metadata.traits, JAXC_TRAIT_COMMAND_BUFFER);
    CHECK_INT(metadata.state_type_id, 41);
  }
}

/* The first version's struct ends before the type's number; a sanitizer sees the end of
 * the memory, and the pattern is seen without one. Its query may come without a table. */
TEST(the_first_minor_gets_no_state_type) {
  const jaxc_abi_api *const tables[2] = {table(1), NULL};
  for (int i = 0; i < 2; i++) {
    jaxc_abi_metadata whole;
    void *volatile memory = malloc(40); /* the compiler knows not how much it is */
    jaxc_abi_metadata *const exact = memory;
    CHECK(exact != NULL);
    CHECK_TEXT(query(Newer, tables[i], 0, exact), "");
    CHECK_INT(exact->traits, JAXC_TRAIT_COMMAND_BUFFER);
    CHECK_INT(exact->api_version.minor_version, 4);
    free(exact);
    memset(&whole, 0x5c, sizeof whole);
    CHECK_TEXT(query(Newer, tables[i], 1, &whole), "");
    CHECK_INT(whole.state_type_id, 0x5c5c5c5c5c5c5c5c);
  }
}

TEST(types_of_all_states_are_registered) {
  jaxc_abi_metadata metadata;
  CHECK_TEXT(query(Keep, table(3), 0, &metadata), "");
  for (int i = 0; i < 3; i++) CHECK_INT(types[i].id.type_id, 41 + i);
  CHECK_INT(metadata.state_type_id, 41);
}

TEST(unknown_extensions_alone_are_a_call) {
  frame_t f;
  jaxc_abi_extension node = {sizeof node, 99, NULL};
  frame_begin(&f);
  f.frame.extension_start = &node;
  CHECK_TEXT(frame_call(&f, Plain), "Plain: was called");
}

TEST(a_type_that_the_runtime_refuses_fails_the_query) {
  jaxc_abi_api api = frame_api;
  jaxc_abi_metadata metadata;
  api.type_register = NULL;
  CHECK_TEXT(query(Keep, &api, 0, &metadata),
             "Keep: the runtime cannot register type 'test.instantiate'");
  CHECK_INT(frame_error.code, JAXC_UNIMPLEMENTED);
}

/* ---- futures ---- */

static jaxc_future future; /* of the call that runs */
static atomic_int work_done;
static jaxc_status finish_status;

static void finish(void *data) {
  (void)data;
  atomic_store(&work_done, 1);
  jaxc_future_finish(&future, finish_status, "the disk is full");
}
static jaxc_status begin(jaxc_context *context) {
  return jaxc_future_begin(context, &future);
}
static jaxc_status finish_at_once(jaxc_context *context) {
  JAXC_TRY(begin(context));
  finish(NULL);
  return JAXC_OK;
}
static jaxc_status finish_later(jaxc_context *context) {
  JAXC_TRY(begin(context));
  return jaxc_context_schedule(context, finish, NULL);
}
static jaxc_status begin_twice(jaxc_context *context) {
  JAXC_TRY(begin(context));
  return begin(context);
}
static jaxc_status begin_and_fail(jaxc_context *context) {
  JAXC_TRY(begin(context));
  return jaxc_fail(context, JAXC_DATA_LOSS, "lost %d rows", 3);
}

TEST(a_future_finishes_at_once_or_later) {
  EVERY_MINOR(minor) for (int i = 0; i < 3; i++) {
    site_t site = {.options = {.minor = minor, .thread_count = 2}};
    jobs[JAXC_STAGE_EXECUTE] = i == 0 ? finish_later : finish_at_once;
    if (i == 2) site.options.profile = JAXC_HOST_GPU;
    site_open(&site);
    atomic_store(&work_done, 0);
    CHECK_RUNS(&site);
    CHECK_INT(atomic_load(&work_done), 1);
    CHECK_RUNS(&site); /* a second future, since it is a second call */
    site_end(&site);
  }
}

TEST(the_error_of_a_future_is_the_calls) {
  finish_status = JAXC_UNAVAILABLE;
  EVERY_MINOR(minor) for (int i = 0; i < 2; i++) {
    site_t site = {.options = {.minor = minor, .thread_count = 2}};
    jobs[JAXC_STAGE_EXECUTE] = i == 0 ? finish_later : finish_at_once;
    site_open(&site);
    CHECK_REFUSED(&site, JAXC_UNAVAILABLE, "Keep: the disk is full");
    site_end(&site);
  }
}

TEST(a_future_is_begun_once) {
  EVERY_MINOR(minor) {
    site_t site;
    jobs[JAXC_STAGE_EXECUTE] = begin_twice;
    site_begin(&site, minor, JAXC_HOST_CPU);
    CHECK_REFUSED(&site, JAXC_FAILED_PRECONDITION,
                  "Keep: a future is made once a call, in execute, by a handler");
    site_end(&site);
  }
}

TEST(a_future_is_begun_in_execute_alone) {
  for (int stage = 0; stage < 3; stage++) {
    site_t site;
    memset(jobs, 0, sizeof jobs);
    jobs[stage] = begin;
    site_begin(&site, 5, JAXC_HOST_GPU);
    CHECK_REFUSED(&site, JAXC_FAILED_PRECONDITION,
                  "Keep: a future is made once a call, in execute, by a handler");
    site_end(&site);
  }
}

TEST(an_error_while_a_future_is_pending_goes_into_the_future) {
  frame_t f;
  jobs[JAXC_STAGE_EXECUTE] = begin_and_fail;
  frame_begin(&f);
  CHECK(Keep(&f.frame) == NULL);
  CHECK(f.frame.future == &frame_future && frame_future.error == &frame_error);
  CHECK_TEXT(frame_error.text, "Keep: lost 3 rows");
  CHECK_INT(frame_error.code, JAXC_DATA_LOSS);
  EVERY_MINOR(minor) {
    site_t site;
    site_begin(&site, minor, JAXC_HOST_CPU);
    CHECK_REFUSED(&site, JAXC_DATA_LOSS, "Keep: lost 3 rows");
    site_end(&site);
  }
}

TEST(an_error_without_memory_still_ends_the_future) {
  EVERY_MINOR(minor) {
    site_t site = {.options = {.minor = minor, .faults = {.fail_error = 1}}};
    jobs[JAXC_STAGE_EXECUTE] = begin_and_fail;
    site_open(&site);
    CHECK_INT(jaxc_host_call_run(site.call, &site.message), JAXC_RESOURCE_EXHAUSTED);
    site_end(&site);
  }
}

/* Runtimes need not clear what they do not count as the frame. */
TEST(what_a_frame_has_beyond_its_end_is_no_future) {
  frame_t f;
  jobs[JAXC_STAGE_EXECUTE] = finish_at_once;
  for (int i = 0; i < 3; i++) {
    frame_begin(&f);
    f.frame.future = (jaxc_abi_future *)(void *)&f;
    if (i == 1) frame_argument(&f, JAXC_F32, NULL, 0); /* a call that is refused */
    if (i == 2) f.frame.struct_size--;                 /* and one of a damaged frame */
    CHECK_INT(Keep(&f.frame) != NULL, i > 0);
  }
  CHECK_INT(frame_future.available, 1);
}

TEST_MAIN
