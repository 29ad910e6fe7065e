/* test_host_state.c: types, states of each stage in both layouts, and user data. */
#include "test_host_common.h"

#define CPU JAXC_HOST_CPU
#define GPU JAXC_HOST_GPU

static int destroyed;
static void destroy(void *object) { destroyed += *(int *)object; }

static int one = 1, ten = 10;
static jaxc_abi_type_id type;
static int asked_stage = JAXC_STAGE_INSTANTIATE;
static size_t asked_size = 48;

static jaxc_abi_error *set_state_of(jaxc_abi_call_frame *frame, void *object) {
  jaxc_abi_state_args args;
  memset(&args, 0, sizeof args);
  args.struct_size = asked_size;
  args.context = frame->context;
  if (frame->api->api_version.minor_version >= 3 && asked_size != 40) {
    args.u.staged.stage = asked_stage;
    args.u.staged.type_id = &type;
    args.u.staged.state = object;
  } else {
    args.u.single.type_id = &type;
    args.u.single.state = object;
    if (asked_size >= 48) args.u.single.deleter = destroy;
  }
  return frame->api->state_set(&args);
}

static jaxc_abi_error *get_state_of(jaxc_abi_call_frame *frame, void **out) {
  jaxc_abi_state_args args;
  const int is_staged = frame->api->api_version.minor_version >= 3 && asked_size != 40;
  jaxc_abi_error *error;
  memset(&args, 0, sizeof args);
  args.struct_size = is_staged ? 48 : 40;
  args.context = frame->context;
  if (is_staged) {
    args.u.staged.stage = asked_stage;
    args.u.staged.type_id = &type;
  } else {
    args.u.single.type_id = &type;
  }
  error = frame->api->state_get(&args);
  *out = is_staged ? args.u.staged.state : args.u.single.state;
  return error;
}

static jaxc_host *begin(int minor, int profile) {
  jaxc_host *const host = make_host(minor, profile);
  destroyed = 0;
  type.type_id = 0;
  CHECK_INT(jaxc_host_add_type(host, "t", &type.type_id, destroy, &message), JAXC_OK);
  return host;
}

static jaxc_abi_error *set_one(jaxc_abi_call_frame *frame) {
  return set_state_of(frame, &one);
}
static jaxc_abi_error *set_null(jaxc_abi_call_frame *frame) {
  return set_state_of(frame, NULL);
}
static jaxc_abi_error *set_twice(jaxc_abi_call_frame *frame) {
  CHECK(set_state_of(frame, &one) == NULL);
  return set_state_of(frame, &ten);
}
static jaxc_abi_error *get_any(jaxc_abi_call_frame *frame) {
  void *object = NULL;
  return get_state_of(frame, &object);
}
static jaxc_abi_error *set_then_get(jaxc_abi_call_frame *frame) {
  void *object = NULL;
  if (frame->stage == JAXC_STAGE_INSTANTIATE) return set_state_of(frame, &one);
  CHECK(get_state_of(frame, &object) == NULL);
  CHECK(object == &one);
  return NULL;
}

TEST(the_state_of_instantiate_lives_as_long_as_the_call) {
  for (int minor = 1; minor <= 5; minor++) {
    for (int profile = 0; profile <= 1; profile++) {
      jaxc_host *const host = begin(minor, profile);
      jaxc_host_call *const call = make_call(host);
      act = set_then_get;
      only_stage = -1;
      CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
      CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
      CHECK_INT(destroyed, 0);
      jaxc_host_call_destroy(call);
      CHECK_INT(destroyed, 1);
      end(host, NULL);
    }
  }
}

TEST(the_size_of_the_old_layout_is_taken_as_that_later) {
  for (int minor = 2; minor <= 5; minor++) {
    jaxc_host *const host = begin(minor, CPU);
    asked_size = 40;
    expect(host, -1, set_then_get, JAXC_OK, NULL);
    CHECK_INT(destroyed, 1);
    end(host, NULL);
  }
}

static jaxc_abi_error *states_of_execution(jaxc_abi_call_frame *frame) {
  void *object = NULL;
  if (frame->stage == JAXC_STAGE_INSTANTIATE) return NULL;
  asked_stage = JAXC_STAGE_PREPARE;
  if (frame->stage == JAXC_STAGE_PREPARE) return set_state_of(frame, &one);
  CHECK(get_state_of(frame, &object) == NULL);
  CHECK(object == &one);
  asked_stage = JAXC_STAGE_INITIALIZE;
  if (frame->stage == JAXC_STAGE_INITIALIZE) return set_state_of(frame, &ten);
  CHECK(get_state_of(frame, &object) == NULL);
  CHECK(object == &ten);
  return NULL;
}

TEST(states_of_prepare_and_initialize_live_as_long_as_the_execution) {
  for (int minor = 3; minor <= 5; minor++) {
    jaxc_host *const host = begin(minor, GPU);
    jaxc_host_call *const call = make_call(host);
    act = states_of_execution;
    only_stage = -1;
    CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
    CHECK_INT(destroyed, 11);
    CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
    CHECK_INT(destroyed, 22);
    end(host, call);
    CHECK_INT(destroyed, 22);
  }
}

TEST(states_where_there_are_none_are_refused) {
  jaxc_host *host = begin(5, CPU);
  asked_stage = JAXC_STAGE_PREPARE;
  expect(host, JAXC_STAGE_EXECUTE, set_one, JAXC_FAILED_PRECONDITION,
         "there is no state of prepare on a CPU; XLA crashes here");
  asked_stage = JAXC_STAGE_EXECUTE;
  expect(host, JAXC_STAGE_EXECUTE, get_any, JAXC_FAILED_PRECONDITION,
         "Execution stage doesn't have a state (stage 3); XLA crashes here");
  end(host, NULL);
  host = begin(5, GPU);
  asked_stage = JAXC_STAGE_INITIALIZE;
  expect(host, JAXC_STAGE_INSTANTIATE, set_one, JAXC_FAILED_PRECONDITION,
         "there is no state of initialize in instantiate; XLA crashes here");
  CHECK_INT(destroyed, 0);
  end(host, NULL);
}

TEST(states_are_refused_in_xlas_words) {
  for (int minor = 1; minor <= 5; minor++) {
    jaxc_host *const host = begin(minor, CPU);
    char text[128];
    expect(host, JAXC_STAGE_EXECUTE, get_any, JAXC_NOT_FOUND, "State is not set");
    expect(host, JAXC_STAGE_INSTANTIATE, set_null, JAXC_INVALID_ARGUMENT,
           "State must be not null");
    snprintf(text, sizeof text, "State is already set with a type id %lld",
             (long long)type.type_id);
    expect(host, JAXC_STAGE_INSTANTIATE, set_twice, JAXC_FAILED_PRECONDITION, text);
    CHECK_INT(destroyed, 1);
    end(host, NULL);
  }
}

static jaxc_abi_error *get_other(jaxc_abi_call_frame *frame) {
  if (frame->stage == JAXC_STAGE_INSTANTIATE) return set_state_of(frame, &one);
  type.type_id = 5;
  return get_any(frame);
}

TEST(a_state_of_another_type_is_refused) {
  jaxc_host *const host = begin(5, CPU);
  char text[128];
  snprintf(text, sizeof text, "Set state type id %lld does not match the requested one 5",
           (long long)type.type_id);
  expect(host, -1, get_other, JAXC_INVALID_ARGUMENT, text);
  end(host, NULL);
}

TEST(a_state_needs_a_registered_type_with_a_deleter) {
  for (int minor = 2; minor <= 5; minor++) {
    jaxc_host *const host = begin(minor, CPU);
    type.type_id = 77;
    expect(host, JAXC_STAGE_INSTANTIATE, set_one, JAXC_INTERNAL,
           "Type id 77 is not registered with a static registry");
    type.type_id = 0;
    CHECK_INT(jaxc_host_add_type(host, "bare", &type.type_id, NULL, &message), JAXC_OK);
    expect(host, JAXC_STAGE_INSTANTIATE, set_one, JAXC_INVALID_ARGUMENT,
           "Type info must have a deleter");
    end(host, NULL);
  }
}

TEST(a_state_of_a_failed_instantiate_is_destroyed) {
  jaxc_host *const host = begin(5, CPU);
  jaxc_host_call *const call = make_call(host);
  act = set_twice;
  only_stage = JAXC_STAGE_INSTANTIATE;
  CHECK_INT(jaxc_host_call_instantiate(call, &message), JAXC_FAILED_PRECONDITION);
  CHECK_INT(destroyed, 1);
  end(host, call);
  CHECK_INT(destroyed, 1);
}

/* ---- types ---- */

static jaxc_abi_type_id registered;
static const jaxc_abi_type_info info = {24, NULL, destroy};
static const jaxc_abi_type_info *given_info = &info;
static const char *given_name = "lib.plan";
static jaxc_abi_error *register_type(jaxc_abi_call_frame *frame) {
  jaxc_abi_type_register_args args = {40, NULL, {given_name, 8}, &registered, given_info};
  return frame->api->type_register(&args);
}

TEST(a_type_is_registered_once_and_known_by_its_id) {
  for (int minor = 1; minor <= 5; minor++) {
    jaxc_host *const host = make_host(minor, CPU);
    char text[128];
    int64_t id = 0;
    registered.type_id = 0;
    CHECK_INT(jaxc_host_type_id(host, "lib.plan", &id, &message), JAXC_NOT_FOUND);
    CHECK_TEXT(message.text, "no type is registered as 'lib.plan'");
    expect(host, JAXC_STAGE_EXECUTE, register_type, JAXC_OK, NULL);
    CHECK(registered.type_id > 0);
    CHECK_INT(jaxc_host_type_id(host, "lib.plan", &id, &message), JAXC_OK);
    CHECK_INT(id, registered.type_id);
    expect(host, JAXC_STAGE_EXECUTE, register_type, JAXC_OK, NULL); /* the same id */
    registered.type_id = 0;
    snprintf(text, sizeof text,
             "Type name lib.plan already registered with type id %lld", (long long)id);
    expect(host, JAXC_STAGE_EXECUTE, register_type, JAXC_INTERNAL, text);
    registered.type_id = 5;
    snprintf(text, sizeof text,
             "Type name lib.plan already registered with type id %lld vs 5)",
             (long long)id);
    expect(host, JAXC_STAGE_EXECUTE, register_type, JAXC_INTERNAL, text);
    end(host, NULL);
  }
}

TEST(a_type_has_the_same_id_in_each_host) {
  int64_t first = 0, second = 0;
  jaxc_host *const a = make_host(0, CPU);
  jaxc_host *const b = make_host(0, CPU);
  CHECK_INT(jaxc_host_add_type(a, "x", &first, NULL, &message), JAXC_OK);
  CHECK_INT(jaxc_host_add_type(b, "y", &second, NULL, &message), JAXC_OK);
  CHECK(first != second);
  CHECK_INT(jaxc_host_add_type(b, "x", &first, NULL, &message), JAXC_OK);
  end(a, NULL);
  end(b, NULL);
}

TEST(a_type_without_info_or_name_is_refused) {
  jaxc_host *const host = make_host(3, CPU);
  given_info = NULL;
  expect(host, JAXC_STAGE_EXECUTE, register_type, JAXC_INVALID_ARGUMENT,
         "the type's info is NULL; XLA crashes here");
  given_info = &info;
  given_name = NULL;
  expect(host, JAXC_STAGE_EXECUTE, register_type, JAXC_INVALID_ARGUMENT,
         "a type's name or id is NULL; XLA crashes here");
  CHECK_INT(jaxc_host_add_type(host, NULL, &type.type_id, NULL, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "a type's name is NULL");
  end(host, NULL);
}

/* ---- user data ---- */

static void *seen_data;
static jaxc_abi_error *ask_data(jaxc_abi_call_frame *frame) {
  jaxc_abi_user_data_args args = {sizeof args, NULL, frame->context, &type, NULL};
  jaxc_abi_error *const error = frame->api->user_data(&args);
  seen_data = args.data;
  return error;
}

TEST(user_data_reaches_executions) {
  for (int minor = 1; minor <= 5; minor++) {
    for (int profile = 0; profile <= 1; profile++) {
      jaxc_host *const host = begin(minor, profile);
      char text[128];
      snprintf(text, sizeof text,
               "User data with type id %lld not found in execution context",
               (long long)type.type_id);
      expect(host, JAXC_STAGE_EXECUTE, ask_data, JAXC_NOT_FOUND, text);
      CHECK_INT(jaxc_host_add_user_data(host, type.type_id, &ten, &message), JAXC_OK);
      expect(host, JAXC_STAGE_EXECUTE, ask_data, JAXC_OK, NULL);
      CHECK(seen_data == &ten);
      expect(host, JAXC_STAGE_INSTANTIATE, ask_data, JAXC_FAILED_PRECONDITION,
             "user data is asked for in stage 0, which has no execution context; XLA "
             "crashes here");
      end(host, NULL);
    }
  }
}

TEST(user_data_is_there_once_a_type) {
  jaxc_host *const host = begin(0, GPU);
  CHECK_INT(jaxc_host_add_user_data(host, 8, &ten, &message), JAXC_OK);
  CHECK_INT(jaxc_host_add_user_data(host, 8, &one, &message), JAXC_ALREADY_EXISTS);
  CHECK_TEXT(message.text,
             "User data with type id 8 already exists in execution context");
  CHECK_INT(jaxc_host_add_user_data(host, 0, &one, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "user data has type id 0, which is no type");
  CHECK_INT(jaxc_host_add_user_data(host, 9, NULL, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "user data is NULL");
  expect(host, JAXC_STAGE_PREPARE, ask_data, JAXC_FAILED_PRECONDITION, NULL);
  end(host, NULL);
}

TEST_MAIN
