/* test_host_faults.c: what goes wrong on purpose, and that the host comes back clean from
 * every allocation that fails. Leaks are seen by the address sanitizer. */
#include <jaxc/handler.h>

#include "test_host_common.h"

/* ---- each allocation in turn ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  const jaxc_abi_attrs *plan;
} copy_call;
static const jaxc_field copy_fields[] = {
    JAXC_ARGUMENT(copy_call, x, JAXC_AT_LEAST(0)),
    JAXC_RESULT(copy_call, y, JAXC_AT_LEAST(0)),
    JAXC_ATTRIBUTE(copy_call, plan),
    JAXC_ALL_ATTRIBUTES(copy_call, plan),
};
static void destroy(void *object) { free(object); }
static jaxc_state_type plan_type = JAXC_STATE_TYPE("faults.plan", destroy);

static jaxc_status instantiate(jaxc_context *context, const void *data) {
  void *const plan = malloc(1);
  jaxc_status status;
  (void)data;
  if (plan == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no plan");
  status = jaxc_state_set(context, &plan_type, plan);
  if (status != JAXC_OK) free(plan);
  return status;
}

static void nothing(void *data) { (void)data; }

static jaxc_status copy(jaxc_context *context, const void *data) {
  const copy_call *const c = (const copy_call *)data;
  jaxc_future future;
  void *memory;
  int64_t threads;
  if (jaxc_context_thread_count(context, &threads) == JAXC_OK) {
    JAXC_TRY(jaxc_context_schedule(context, nothing, NULL));
  } else {
    JAXC_TRY(jaxc_context_device_memory(context, 32, &memory));
    memset(memory, 0, 32);
  }
  memcpy(c->y.data, c->x.data, (size_t)c->x.count * sizeof *c->x.data);
  JAXC_TRY(jaxc_future_begin(context, &future));
  jaxc_future_finish(&future, JAXC_OK, NULL);
  return JAXC_OK;
}
JAXC_HANDLER(Copy, copy_call, copy_fields, .execute = copy, .instantiate = instantiate,
             .instantiate_state = &plan_type, .minor = 2);

static jaxc_status add_attributes(jaxc_host_call *call) {
  jaxc_host_attrs *const attrs = jaxc_host_call_attrs(call);
  const int32_t values[3] = {1, 2, 3};
  jaxc_host_attrs *inner;
  JAXC_TRY(jaxc_host_attrs_scalar(attrs, "a", JAXC_S32, values, &message));
  JAXC_TRY(jaxc_host_attrs_array(attrs, "b", JAXC_S32, 3, values, &message));
  JAXC_TRY(jaxc_host_attrs_string(attrs, "c", "text", 4, &message));
  JAXC_TRY(jaxc_host_attrs_dictionary(attrs, "plan", &inner, &message));
  for (int i = 0; i < 6; i++) {
    const char name[2] = {(char)('a' + i), '\0'};
    JAXC_TRY(jaxc_host_attrs_scalar(inner, name, JAXC_S32, values, &message));
  }
  return JAXC_OK;
}

static jaxc_status use_call(jaxc_host_call *call) {
  const int64_t dims[2] = {3, 5};
  JAXC_TRY(jaxc_host_call_argument(call, JAXC_F32, 2, dims, NULL, &message));
  JAXC_TRY(jaxc_host_call_result(call, JAXC_F32, 2, dims, NULL, &message));
  JAXC_TRY(add_attributes(call));
  JAXC_TRY(jaxc_host_call_instantiate(call, &message));
  JAXC_TRY(jaxc_host_call_run(call, &message));
  JAXC_TRY(jaxc_host_call_run(call, &message));
  return jaxc_host_call_check(call, &message);
}

static jaxc_status use_host(jaxc_host *host) {
  static const jaxc_abi_context_extension extension = {32, {200, 0, 1}, NULL};
  static int data;
  const jaxc_abi_bundle handlers = {.execute = Copy, .instantiate = Copy};
  jaxc_host_call *call;
  jaxc_status status;
  int64_t id = 0;
  JAXC_TRY(jaxc_host_add_user_data(host, 7, &data, &message));
  JAXC_TRY(jaxc_host_add_extension(host, &extension, &message));
  JAXC_TRY(jaxc_host_add_type(host, "faults.other", &id, NULL, &message));
  JAXC_TRY(jaxc_host_call_create(host, &handlers, &call, &message));
  status = use_call(call);
  jaxc_host_call_destroy(call);
  return status;
}

static int uses_exact_memory;

/* Allocations that a whole use takes; each of them fails in turn. */
static void step(int profile, int thread_count) {
  jaxc_host_options options = {.struct_size = sizeof options};
  int64_t failures = 0;
  int64_t count;
  options.profile = profile;
  options.thread_count = thread_count;
  options.faults.unknown_extensions = 1;
  options.exact_memory = uses_exact_memory;
  for (int64_t k = 1;; k++) {
    jaxc_host *host;
    jaxc_status status;
    options.faults.fail_allocation = k;
    plan_type.id.type_id = 0;
    message.text[0] = '\0';
    status = jaxc_host_create(&options, &host, &message);
    if (status != JAXC_OK) {
      CHECK_INT(status, JAXC_RESOURCE_EXHAUSTED);
      CHECK(host == NULL);
      failures++;
      continue;
    }
    status = use_host(host);
    count = jaxc_host_allocation_count(host);
    CHECK_INT(jaxc_host_leaks(host, NULL), JAXC_OK);
    jaxc_host_destroy(host);
    if (count < k) {
      CHECK_INT(status, JAXC_OK);
      break;
    }
    if (status != JAXC_OK) {
      /* What the handler makes of a refusal is its own. */
      CHECK(status == JAXC_RESOURCE_EXHAUSTED || status == JAXC_INTERNAL);
      failures++;
    }
  }
  CHECK(failures > 40);
}

TEST(each_allocation_may_fail_on_a_cpu) { step(JAXC_HOST_CPU, 0); }
TEST(each_allocation_may_fail_with_a_pool) { step(JAXC_HOST_CPU, 2); }
TEST(each_allocation_may_fail_on_a_gpu) { step(JAXC_HOST_GPU, 0); }

/* ---- each request of the handler in turn ---- */

/* Only what the handler asks for fails; the host itself comes through. */
static int64_t step_requests(int profile, int thread_count) {
  jaxc_host_options options = {.struct_size = sizeof options};
  options.profile = profile;
  options.thread_count = thread_count;
  for (int64_t k = 1;; k++) {
    jaxc_host *host;
    jaxc_status status;
    int64_t count;
    options.faults.fail_request = k;
    plan_type.id.type_id = 0;
    message.text[0] = '\0';
    CHECK_INT(jaxc_host_create(&options, &host, &message), JAXC_OK);
    status = use_host(host);
    count = jaxc_host_request_count(host);
    CHECK_INT(jaxc_host_leaks(host, NULL), JAXC_OK);
    jaxc_host_destroy(host);
    if (count < k) {
      CHECK_INT(status, JAXC_OK);
      return k - 1;
    }
    CHECK(status == JAXC_RESOURCE_EXHAUSTED);
  }
}

TEST(each_request_of_a_handler_may_fail) {
  /* The type by each of two stages, and a state; in each of two runs a task on a CPU or
   * memory on a GPU, and a future. */
  CHECK_INT(step_requests(JAXC_HOST_CPU, 0), 7);
  CHECK_INT(step_requests(JAXC_HOST_CPU, 2), 7);
  CHECK_INT(step_requests(JAXC_HOST_CPU, JAXC_HOST_LATE), 7);
  CHECK_INT(step_requests(JAXC_HOST_GPU, 0), 7);
}

static jaxc_abi_error *ask_memory(jaxc_abi_call_frame *frame) {
  jaxc_abi_memory_allocate_args args = {sizeof args, NULL, frame->context, 40, 1, NULL};
  return frame->api->memory_allocate(&args);
}
static jaxc_abi_error *ask_future(jaxc_abi_call_frame *frame) {
  jaxc_abi_future_create_args args = {16, NULL, NULL};
  return frame->api->future_create(&args);
}
static jaxc_abi_error *ask_task(jaxc_abi_call_frame *frame) {
  jaxc_abi_schedule_args args = {sizeof args, NULL, frame->context, nothing, NULL};
  return frame->api->schedule(&args);
}
static jaxc_abi_type_id other_id;
static jaxc_abi_error *ask_type(jaxc_abi_call_frame *frame) {
  static const jaxc_abi_type_info info = {24, NULL, destroy};
  jaxc_abi_type_register_args args = {40, NULL, {"faults.t", 8}, &other_id, &info};
  return frame->api->type_register(&args);
}
static jaxc_abi_error *ask_state(jaxc_abi_call_frame *frame) {
  static int state;
  jaxc_abi_state_args args = {JAXC_ABI_STATE_SIZE, NULL, frame->context, {{0, 0, 0}}};
  jaxc_abi_error *const error = ask_type(frame);
  if (error != NULL) return error;
  args.u.staged.stage = JAXC_STAGE_INSTANTIATE;
  args.u.staged.type_id = &other_id;
  args.u.staged.state = &state;
  return frame->api->state_set(&args);
}
static jaxc_abi_error *ask_error(jaxc_abi_call_frame *frame) {
  return jaxc_error_create(frame->api, JAXC_ABORTED, "stop");
}

static void check_request(int profile, int64_t k, action *ask, const char *text) {
  jaxc_host_options options = {.struct_size = sizeof options};
  jaxc_host *host;
  options.profile = profile;
  options.faults.fail_request = k;
  host = make_host_as(&options);
  expect(host, JAXC_STAGE_EXECUTE, ask, JAXC_RESOURCE_EXHAUSTED, text);
  CHECK_INT(jaxc_host_request_count(host), k);
  end(host, NULL);
}

TEST(a_request_that_fails_says_what_there_is_no_memory_for) {
  check_request(JAXC_HOST_GPU, 1, ask_memory, "no device memory for 40 bytes");
  check_request(JAXC_HOST_CPU, 1, ask_future, "no memory for a future");
  check_request(JAXC_HOST_CPU, 1, ask_task, "no memory for a task of the pool");
  check_request(JAXC_HOST_CPU, 1, ask_type, "no memory for a type");
  check_request(JAXC_HOST_CPU, 2, ask_state, "no memory for a state");
  check_request(JAXC_HOST_CPU, 1, ask_error, "");
}

/* ---- errors that there is no memory for ---- */

static jaxc_abi_error *make_error(jaxc_abi_call_frame *frame) {
  return jaxc_error_create(frame->api, JAXC_ABORTED, "stop");
}

TEST(an_error_that_fails_is_the_shared_one_without_text) {
  jaxc_host_options options = {.struct_size = sizeof options};
  jaxc_host *host;
  options.faults.fail_error = 2;
  host = make_host_as(&options);
  expect(host, JAXC_STAGE_EXECUTE, make_error, JAXC_ABORTED, "stop");
  expect(host, JAXC_STAGE_EXECUTE, make_error, JAXC_RESOURCE_EXHAUSTED, "");
  expect(host, JAXC_STAGE_EXECUTE, make_error, JAXC_ABORTED, "stop");
  CHECK_INT(jaxc_host_error_count(host), 3);
  end(host, NULL);
}

static jaxc_abi_error *use_shared_error(jaxc_abi_call_frame *frame) {
  jaxc_abi_error *const error = jaxc_error_create(frame->api, JAXC_ABORTED, "stop");
  drop(frame, error);
  drop(frame, error);
  return error;
}

TEST(the_shared_error_can_be_destroyed_and_returned_again) {
  jaxc_host_options options = {.struct_size = sizeof options};
  jaxc_host *host;
  options.faults.fail_error = 1;
  host = make_host_as(&options);
  expect(host, JAXC_STAGE_EXECUTE, use_shared_error, JAXC_RESOURCE_EXHAUSTED, "");
  end(host, NULL);
}

/* ---- sizes, chains and alignment ---- */

static jaxc_abi_error *see_sizes(jaxc_abi_call_frame *frame) {
  CHECK_INT(frame->struct_size, 160);
  CHECK_INT(frame->api->struct_size, 200);
  return NULL;
}

TEST(a_frame_and_a_table_may_say_that_they_are_short) {
  jaxc_host_options options = {.struct_size = sizeof options};
  const jaxc_abi_bundle handlers = {.execute = Copy};
  jaxc_host *host;
  jaxc_host_call *call;
  options.faults.short_frame = 8;
  options.faults.short_table = 8;
  host = make_host_as(&options);
  expect(host, JAXC_STAGE_EXECUTE, see_sizes, JAXC_OK, NULL);
  CHECK_INT(stage_calls[JAXC_STAGE_EXECUTE], 1);
  CHECK_INT(jaxc_host_call_create(host, &handlers, &call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "Copy: the call frame has 160 bytes, expected at least 168");
  end(host, call);
}

static int chain_length(const jaxc_abi_extension *node) {
  int length = 0;
  for (; node != NULL; node = node->next) {
    CHECK_INT(node->struct_size, node->type == JAXC_ABI_EXTENSION_METADATA ? 32 : 24);
    length++;
  }
  return length;
}

static int query_length, query_place;
static jaxc_abi_error *see_chains(jaxc_abi_call_frame *frame) {
  const jaxc_abi_extension *node = frame->extension_start;
  if (jaxc_call_answer_metadata(frame, 0)) {
    query_length = chain_length(node);
    for (query_place = 0; node->type != JAXC_ABI_EXTENSION_METADATA; query_place++) {
      node = node->next;
    }
    return NULL;
  }
  CHECK_INT(chain_length(frame->extension_start), 3);
  CHECK_INT(chain_length(frame->api->extension_start), 3);
  CHECK_INT(chain_length(frame->args.extension_start), 3);
  CHECK_INT(chain_length(frame->results.extension_start), 3);
  CHECK_INT(chain_length(frame->attrs.extension_start), 3);
  CHECK_INT(chain_length(((jaxc_abi_buffer *)frame->args.data[0])->extension_start), 3);
  return NULL;
}

TEST(unknown_extensions_lie_before_and_behind_the_query) {
  jaxc_host_options options = {.struct_size = sizeof options};
  const jaxc_abi_bundle handlers = {.execute = see_chains};
  jaxc_host *host;
  jaxc_host_call *call;
  options.faults.unknown_extensions = 3;
  host = make_host_as(&options);
  CHECK_INT(jaxc_host_call_create(host, &handlers, &call, &message), JAXC_OK);
  CHECK_INT(query_length, 7);
  CHECK_INT(query_place, 3);
  CHECK_INT(jaxc_host_call_argument(call, JAXC_F32, 0, NULL, NULL, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  end(host, call);
}

static jaxc_abi_error *write_result(jaxc_abi_call_frame *frame) {
  ((char *)((jaxc_abi_buffer *)frame->results.data[0])->data)[0] = 1;
  return NULL;
}

TEST(arguments_may_miss_their_alignment) {
  jaxc_host_options options = {.struct_size = sizeof options};
  const int64_t dims = 9;
  jaxc_host *host;
  jaxc_host_call *call;
  options.faults.misalignment = 4;
  host = make_host_as(&options);
  call = make_call(host);
  CHECK_INT(jaxc_host_call_argument(call, JAXC_F64, 1, &dims, NULL, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_result(call, JAXC_F64, 1, &dims, NULL, &message), JAXC_OK);
  CHECK_INT((uintptr_t)jaxc_host_call_argument_data(call, 0, NULL) % 64, 4);
  CHECK_INT((uintptr_t)jaxc_host_call_result_data(call, 0, NULL) % 64, 0);
  act = write_result;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK);
  end(host, call);
}

TEST(guards_and_poison_have_the_bytes_of_the_options) {
  jaxc_host_options options = {.struct_size = sizeof options};
  const int64_t dims = 4;
  jaxc_host *host;
  jaxc_host_call *call;
  unsigned char *y;
  options.guard_byte = 0x11;
  options.poison_byte = 0x22;
  host = make_host_as(&options);
  call = make_call(host);
  CHECK_INT(jaxc_host_call_result(call, JAXC_U8, 1, &dims, NULL, &message), JAXC_OK);
  y = (unsigned char *)jaxc_host_call_result_data(call, 0, NULL);
  CHECK_INT(y[-1], 0x11);
  CHECK_INT(y[0], 0x22);
  CHECK_INT(y[3], 0x22);
  CHECK_INT(y[4], 0x11);
  end(host, call);
}

/* ---- memory that ends where the operand does ---- */

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#endif
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

static void check_end(const unsigned char *data, size_t bytes) {
#ifdef HAS_ASAN
  for (size_t i = 0; i < bytes; i++) CHECK(!__asan_address_is_poisoned(data + i));
  CHECK(__asan_address_is_poisoned(data + bytes));
#else
  (void)data, (void)bytes; /* scripts/sanitize.py looks; tests/run asks valgrind */
#endif
}

static void check_exact(size_t misalignment, int64_t size) {
  jaxc_host_options options = {.struct_size = sizeof options};
  jaxc_host *host;
  jaxc_host_call *call;
  unsigned char *x, *y;
  options.exact_memory = 1;
  options.faults.misalignment = misalignment;
  host = make_host_as(&options);
  call = make_call(host);
  CHECK_INT(jaxc_host_call_argument(call, JAXC_U8, 1, &size, NULL, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_result(call, JAXC_U8, 1, &size, NULL, &message), JAXC_OK);
  x = (unsigned char *)jaxc_host_call_argument_data(call, 0, NULL);
  y = (unsigned char *)jaxc_host_call_result_data(call, 0, NULL);
  CHECK_INT((uintptr_t)x % 64, misalignment);
  CHECK_INT((uintptr_t)y % 64, 0);
  for (int64_t i = 0; i < size; i++) CHECK(x[i] == 0 && y[i] == 0xCB);
  check_end(x, (size_t)size);
  check_end(y, (size_t)size);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_check(call, &message), size < 8 ? JAXC_OK : JAXC_DATA_LOSS);
  end(host, call);
}

TEST(exact_memory_ends_where_the_operand_does) {
  check_exact(0, 64);
  check_exact(0, 13);
  check_exact(0, 1);
  check_exact(0, 0);
  check_exact(4, 13);
  check_exact(4, 0);
}

TEST(each_allocation_may_fail_with_exact_memory) {
  uses_exact_memory = 1;
  step(JAXC_HOST_CPU, 0);
}

TEST_MAIN
