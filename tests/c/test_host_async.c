/* test_host_async.c: the thread pool, futures, and frames that are looked at too late. */
#include <jaxc/handler.h>
#include <pthread.h>
#include <stdatomic.h>

#include "test_host_common.h"

static jaxc_host *pool_host(int thread_count, int flush) {
  jaxc_host_options options = {.struct_size = sizeof options};
  options.thread_count = thread_count;
  options.flush_denormals = flush;
  options.timeout_s = 1;
  return make_host_as(&options);
}

/* ---- the pool ---- */

static _Atomic int tasks_done;
static pthread_t first_thread;
static _Atomic int in_caller;
static volatile float tiny = 1e-39f; /* subnormal */
static _Atomic int flushed;

static void task(void *data) {
  (void)data;
  if (tiny * 0.5f == 0) atomic_fetch_add(&flushed, 1);
  if (pthread_equal(pthread_self(), first_thread)) atomic_fetch_add(&in_caller, 1);
  atomic_fetch_add(&tasks_done, 1);
}

static int64_t seen_threads;
static jaxc_abi_error *use_pool(jaxc_abi_call_frame *frame) {
  jaxc_abi_thread_count_args count = {sizeof count, NULL, frame->context, &seen_threads};
  jaxc_abi_schedule_args args = {sizeof args, NULL, frame->context, task, NULL};
  jaxc_abi_error *error = frame->api->thread_count(&count);
  if (error != NULL) return error;
  first_thread = pthread_self();
  for (int i = 0; i < 50; i++) {
    error = frame->api->schedule(&args);
    if (error != NULL) return error;
  }
  return NULL;
}

static void check_pool(int thread_count, int flush, int64_t threads, int is_inline) {
  jaxc_host *const host = pool_host(thread_count, flush);
  atomic_store(&tasks_done, 0);
  atomic_store(&in_caller, 0);
  atomic_store(&flushed, 0);
  expect(host, JAXC_STAGE_EXECUTE, use_pool, JAXC_OK, NULL);
  CHECK_INT(seen_threads, threads);
  if (is_inline) CHECK_INT(atomic_load(&tasks_done), 50);
  end(host, NULL); /* after all tasks */
  CHECK_INT(atomic_load(&tasks_done), 50);
  CHECK_INT(atomic_load(&in_caller), is_inline ? 50 : 0);
  CHECK_INT(atomic_load(&flushed), flush ? 50 : 0);
}

TEST(tasks_run_in_pools_of_each_size) {
  check_pool(0, 0, 0, 1);
  check_pool(JAXC_HOST_INLINE, 0, 1, 1);
  check_pool(1, 0, 1, 0);
  check_pool(4, 0, 4, 0);
}

TEST(denormals_are_flushed_in_tasks_too) {
  check_pool(0, 1, 0, 1);
  check_pool(4, 1, 4, 0);
}

static int done_in_handler;
static jaxc_abi_error *use_late_pool(jaxc_abi_call_frame *frame) {
  jaxc_abi_error *const error = use_pool(frame);
  done_in_handler = atomic_load(&tasks_done);
  return error;
}

static void check_late(int flush) {
  jaxc_host *const host = pool_host(JAXC_HOST_LATE, flush);
  atomic_store(&tasks_done, 0);
  atomic_store(&in_caller, 0);
  atomic_store(&flushed, 0);
  expect(host, JAXC_STAGE_EXECUTE, use_late_pool, JAXC_OK, NULL);
  CHECK_INT(seen_threads, 1);
  CHECK_INT(done_in_handler, 0);
  CHECK_INT(atomic_load(&tasks_done), 50);
  CHECK_INT(atomic_load(&in_caller), 50);
  CHECK_INT(atomic_load(&flushed), flush ? 50 : 0);
  CHECK(tiny * 0.5f != 0);
  end(host, NULL);
}

TEST(late_tasks_run_after_the_handler_in_its_thread) { check_late(0); }
TEST(denormals_are_flushed_in_late_tasks_too) { check_late(1); }

static jaxc_abi_error *fail_after_use(jaxc_abi_call_frame *frame) {
  jaxc_abi_error *const error = use_pool(frame);
  return error != NULL ? error : jaxc_error_create(frame->api, JAXC_ABORTED, "stop");
}

TEST(late_tasks_of_a_handler_that_fails_run_too) {
  jaxc_host *const host = pool_host(JAXC_HOST_LATE, 0);
  expect(host, JAXC_STAGE_EXECUTE, fail_after_use, JAXC_ABORTED, "stop");
  CHECK_INT(atomic_load(&tasks_done), 50);
  end(host, NULL);
}

TEST(a_pool_that_is_not_there_is_refused_in_xlas_words) {
  static const char none[] = "No intra-op thread pool available on this platform";
  jaxc_host *host = pool_host(JAXC_HOST_NO_POOL, 0);
  expect(host, JAXC_STAGE_EXECUTE, use_pool, JAXC_UNIMPLEMENTED, none);
  end(host, NULL);
  host = pool_host(4, 0);
  expect(host, JAXC_STAGE_INSTANTIATE, use_pool, JAXC_UNIMPLEMENTED, none);
  end(host, NULL);
  host = make_host(0, JAXC_HOST_GPU);
  expect(host, JAXC_STAGE_EXECUTE, use_pool, JAXC_UNIMPLEMENTED,
         "XLA FFI CPU context is not available");
  end(host, NULL);
}

/* ---- futures ---- */

/* What a thread of the handler finishes. */
static const jaxc_abi_api *api;
static jaxc_abi_future *future;
static jaxc_abi_call_frame *late_frame;
static jaxc_abi_context *late_context;
static pthread_t worker;

static jaxc_abi_error *begin_future(jaxc_abi_call_frame *frame) {
  jaxc_abi_future_create_args args = {16, NULL, NULL};
  jaxc_abi_error *const error = frame->api->future_create(&args);
  if (error != NULL) return error;
  api = frame->api;
  future = args.future;
  frame->future = args.future;
  return NULL;
}

static jaxc_abi_error *set_available(void) {
  jaxc_abi_future_available_args args = {sizeof args, NULL, future};
  return api->future_available(&args);
}

static jaxc_abi_error *set_failed(jaxc_abi_error *error) {
  jaxc_abi_future_error_args args = {sizeof args, NULL, future, error};
  return api->future_error(&args);
}

static jaxc_abi_error *finish_at_once(jaxc_abi_call_frame *frame) {
  CHECK(begin_future(frame) == NULL);
  return set_available();
}

/* Until the host says that the handler has returned. */
static void wait_for_return(void) {
  const jaxc_abi_call_frame with_api = {.api = api};
  for (;;) {
    jaxc_abi_run_id_args args = {sizeof args, NULL, late_context, 0};
    jaxc_abi_error *const error = api->run_id(&args);
    if (error == NULL) continue;
    drop(&with_api, error);
    return;
  }
}

static void *finish_later(void *unused) {
  (void)unused;
  wait_for_return();
  CHECK(set_available() == NULL);
  return NULL;
}

static void *fail_later(void *unused) {
  (void)unused;
  wait_for_return();
  CHECK(set_failed(jaxc_error_create(api, JAXC_UNAVAILABLE, "lost the device")) == NULL);
  return NULL;
}

static int32_t late_stage;
static int64_t late_size;
static void *read_frame_later(void *unused) {
  (void)unused;
  wait_for_return();
  late_stage = late_frame->stage;
  late_size = late_frame->args.size;
  CHECK(set_available() == NULL);
  return NULL;
}

static void *(*thread_work)(void *unused);
static jaxc_abi_error *start_thread(jaxc_abi_call_frame *frame) {
  CHECK(begin_future(frame) == NULL);
  late_frame = frame;
  late_context = frame->context;
  CHECK_INT(pthread_create(&worker, NULL, thread_work, NULL), 0);
  return NULL;
}

static void expect_thread(void *(*work)(void *), int status, const char *text) {
  for (int minor = 1; minor <= 5; minor++) {
    for (int profile = 0; profile <= 1; profile++) {
      jaxc_host *const host = make_host(minor, profile);
      thread_work = work;
      expect(host, JAXC_STAGE_EXECUTE, start_thread, status, text);
      CHECK_INT(pthread_join(worker, NULL), 0);
      end(host, NULL);
    }
  }
}

TEST(a_future_is_finished_before_the_handler_returns) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  expect(host, JAXC_STAGE_EXECUTE, finish_at_once, JAXC_OK, NULL);
  end(host, NULL);
}

TEST(a_future_is_finished_later_by_another_thread) {
  expect_thread(finish_later, JAXC_OK, NULL);
}

TEST(a_future_that_fails_gives_its_error) {
  expect_thread(fail_later, JAXC_UNAVAILABLE, "lost the device");
}

TEST(a_frame_that_is_read_after_the_handler_returned_is_poisoned) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  thread_work = read_frame_later;
  expect(host, JAXC_STAGE_EXECUTE, start_thread, JAXC_OK, NULL);
  CHECK_INT(pthread_join(worker, NULL), 0);
  CHECK_INT(late_stage, (int32_t)0xDDDDDDDD);
  CHECK(late_size < 0);
  end(host, NULL);
}

static jaxc_abi_error *refuse_null_and_ok(jaxc_abi_call_frame *frame) {
  jaxc_abi_error *refusal;
  jaxc_abi_error *const fine = jaxc_error_create(frame->api, JAXC_OK, "");
  CHECK(begin_future(frame) == NULL);
  refusal = set_failed(NULL);
  CHECK(refusal != NULL);
  drop(frame, refusal);
  refusal = set_failed(fine);
  CHECK(refusal != NULL);
  drop(frame, fine); /* still ours */
  CHECK(set_available() == NULL);
  frame->future = NULL; /* so that the error may be returned */
  return refusal;
}

TEST(a_future_takes_no_null_or_ok_error) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  expect(host, JAXC_STAGE_EXECUTE, refuse_null_and_ok, JAXC_INVALID_ARGUMENT,
         "Error must not be null or OK");
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_DATA_LOSS);
  CHECK_TEXT(message.text, "left behind: 1 future finished but not handed over");
  jaxc_host_destroy(host);
}

static jaxc_abi_error *finish_twice(jaxc_abi_call_frame *frame) {
  jaxc_abi_error *refusal, *mine;
  CHECK(begin_future(frame) == NULL);
  CHECK(set_available() == NULL);
  mine = jaxc_error_create(frame->api, JAXC_ABORTED, "");
  refusal = set_failed(mine);
  CHECK(refusal != NULL);
  drop(frame, mine); /* taken only on success */
  drop(frame, refusal);
  refusal = set_available();
  CHECK(refusal != NULL);
  drop(frame, refusal);
  return NULL;
}

TEST(a_future_is_finished_once) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  jaxc_abi_error_details_args details = {sizeof details, NULL, NULL, NULL, 0};
  jaxc_abi_call_frame frame = {.api = jaxc_host_api(host)};
  expect(host, JAXC_STAGE_EXECUTE, finish_twice, JAXC_OK, NULL);
  details.error = set_available(); /* of a call that has ended */
  CHECK(details.error != NULL);
  api->error_details(&details);
  CHECK_TEXT(details.message,
             "the future is none, or its call has ended; XLA crashes here");
  drop(&frame, details.error);
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_DATA_LOSS);
  CHECK_TEXT(message.text, "1 future finished twice"); /* however often */
  jaxc_host_destroy(host);
}

static jaxc_abi_error *leave_and_finish_twice(jaxc_abi_call_frame *frame) {
  jaxc_abi_error *const error = finish_twice(frame);
  (void)jaxc_error_create(frame->api, JAXC_ABORTED, "");
  return error;
}

TEST(futures_that_are_finished_twice_come_after_what_is_left_behind) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  expect(host, JAXC_STAGE_EXECUTE, leave_and_finish_twice, JAXC_OK, NULL);
  expect(host, JAXC_STAGE_EXECUTE, leave_and_finish_twice, JAXC_OK, NULL);
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_DATA_LOSS);
  CHECK_TEXT(message.text, "left behind: 2 errors neither returned nor destroyed; 2 "
                           "futures finished twice");
  jaxc_host_destroy(host);
}

TEST(a_future_that_is_finished_again_is_counted_for_its_own_host) {
  jaxc_host *const other = make_host(0, JAXC_HOST_CPU);
  jaxc_host *host = make_host(0, JAXC_HOST_CPU);
  const jaxc_abi_call_frame with_api = {.api = jaxc_host_api(other)};
  jaxc_abi_future *first;
  jaxc_abi_error *refusal;
  expect(host, JAXC_STAGE_EXECUTE, finish_at_once, JAXC_OK, NULL);
  first = future;
  expect(other, JAXC_STAGE_EXECUTE, finish_at_once, JAXC_OK, NULL);
  CHECK(future != first); /* though the first one has ended */
  jaxc_host_destroy(host);
  api = jaxc_host_api(other);
  future = first; /* of a host that has ended */
  refusal = set_available();
  CHECK(refusal != NULL);
  drop(&with_api, refusal);
  end(other, NULL);
}

TEST(a_host_keeps_few_of_the_futures_that_have_ended) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  const jaxc_abi_call_frame with_api = {.api = jaxc_host_api(host)};
  jaxc_abi_future *futures[66];
  for (int i = 0; i < 66; i++) {
    expect(host, JAXC_STAGE_EXECUTE, finish_at_once, JAXC_OK, NULL);
    futures[i] = future;
  }
  for (int i = 0; i < 66; i++) {
    jaxc_abi_error *refusal;
    future = futures[i];
    refusal = set_available();
    CHECK(refusal != NULL);
    drop(&with_api, refusal);
  }
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_DATA_LOSS);
  CHECK_TEXT(message.text, "64 futures finished twice");
  jaxc_host_destroy(host);
}

static jaxc_abi_error *both(jaxc_abi_call_frame *frame) {
  CHECK(begin_future(frame) == NULL);
  return jaxc_error_create(frame->api, JAXC_ABORTED, "stop");
}

TEST(a_future_and_an_error_exclude_each_other) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  expect(host, JAXC_STAGE_EXECUTE, both, JAXC_FAILED_PRECONDITION,
         "the handler returned both a future and an error: stop");
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_DATA_LOSS);
  CHECK(set_available() == NULL);
  end(host, NULL);
}

static jaxc_abi_error *wrong_future(jaxc_abi_call_frame *frame) {
  frame->future = (jaxc_abi_future *)(void *)frame;
  return NULL;
}

TEST(a_pointer_that_is_no_future_is_not_followed) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  expect(host, JAXC_STAGE_EXECUTE, wrong_future, JAXC_FAILED_PRECONDITION,
         "the handler put a pointer into the frame that is no future of the runtime, or "
         "one that it has handed over before");
  end(host, NULL);
}

TEST(a_future_that_is_never_finished_is_given_up) {
  jaxc_host *const host = pool_host(0, 0);
  jaxc_host_call *const call = make_call(host);
  const int64_t dims = 4;
  char *y;
  CHECK_INT(jaxc_host_call_result(call, JAXC_F32, 1, &dims, NULL, &message), JAXC_OK);
  y = (char *)jaxc_host_call_result_data(call, 0, NULL);
  act = begin_future;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_DEADLINE_EXCEEDED);
  CHECK_TEXT(message.text, "the handler's future was not finished within 1 second");
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_DATA_LOSS);
  CHECK_TEXT(message.text, "left behind: 1 future not finished");
  jaxc_host_call_destroy(call);
  y[3] = 1; /* its work goes on in memory that is still there */
  CHECK(set_available() == NULL);
  end(host, NULL);
}

static void finish_in_task(void *data) {
  (void)data;
  CHECK(set_available() == NULL);
}
static jaxc_abi_error *finish_by_task(jaxc_abi_call_frame *frame) {
  jaxc_abi_schedule_args args = {sizeof args, NULL, frame->context, finish_in_task, NULL};
  CHECK(begin_future(frame) == NULL);
  return frame->api->schedule(&args);
}

TEST(a_late_task_finishes_the_future_of_its_call) {
  jaxc_host *const host = pool_host(JAXC_HOST_LATE, 0);
  expect(host, JAXC_STAGE_EXECUTE, finish_by_task, JAXC_OK, NULL);
  end(host, NULL);
}

static jaxc_abi_error *schedule_again_error;
static void schedule_again(void *data) {
  jaxc_abi_schedule_args args = {sizeof args, NULL, late_context, task, NULL};
  (void)data;
  schedule_again_error = api->schedule(&args);
}
static jaxc_abi_error *schedule_twice(jaxc_abi_call_frame *frame) {
  jaxc_abi_schedule_args args = {sizeof args, NULL, frame->context, schedule_again, NULL};
  api = frame->api;
  late_context = frame->context;
  return frame->api->schedule(&args);
}

TEST(a_late_task_has_no_context_to_schedule_more) {
  jaxc_host *const host = pool_host(JAXC_HOST_LATE, 0);
  jaxc_abi_error_details_args details = {sizeof details, NULL, NULL, NULL, 0};
  const jaxc_abi_call_frame with_api = {.api = jaxc_host_api(host)};
  expect(host, JAXC_STAGE_EXECUTE, schedule_twice, JAXC_OK, NULL);
  details.error = schedule_again_error;
  CHECK(details.error != NULL);
  api->error_details(&details);
  CHECK_TEXT(details.message,
             "the context is of a handler that has returned; XLA crashes here");
  drop(&with_api, details.error);
  end(host, NULL);
}

TEST(a_future_may_outlive_its_host) {
  jaxc_host *const host = pool_host(0, 0);
  static jaxc_abi_api kept;
  expect(host, JAXC_STAGE_EXECUTE, begin_future, JAXC_DEADLINE_EXCEEDED, NULL);
  kept = *api;
  api = &kept;
  jaxc_host_destroy(host);
  CHECK(set_available() == NULL);
}

/* ---- threads of the handler, in which no host is known ---- */

static jaxc_abi_error *made;
static void *make_future(void *unused) {
  jaxc_abi_future_create_args args = {16, NULL, NULL};
  (void)unused;
  CHECK(api->future_create(&args) == NULL);
  future = args.future;
  return NULL;
}
static void *make_error(void *unused) {
  (void)unused;
  made = jaxc_error_create(api, JAXC_ABORTED, "from afar");
  return NULL;
}
static void *register_type(void *unused) {
  static const jaxc_abi_type_info info = {24, NULL, NULL};
  jaxc_abi_type_id id = {0};
  jaxc_abi_type_register_args args = {40, NULL, {"t", 1}, &id, &info};
  (void)unused;
  made = api->type_register(&args);
  return NULL;
}

static jaxc_abi_error *run_thread(jaxc_abi_call_frame *frame) {
  api = frame->api;
  made = NULL;
  future = NULL;
  CHECK_INT(pthread_create(&worker, NULL, thread_work, NULL), 0);
  CHECK_INT(pthread_join(worker, NULL), 0);
  frame->future = future;
  if (future != NULL) {
    thread_work = finish_later;
    late_context = frame->context;
    CHECK_INT(pthread_create(&worker, NULL, thread_work, NULL), 0);
  }
  return made;
}

TEST(a_future_made_in_the_handlers_own_thread_is_waited_for) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  thread_work = make_future;
  expect(host, JAXC_STAGE_EXECUTE, run_thread, JAXC_OK, NULL);
  CHECK_INT(pthread_join(worker, NULL), 0);
  end(host, NULL);
}

TEST(an_error_made_in_the_handlers_own_thread_is_returned) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  thread_work = make_error;
  expect(host, JAXC_STAGE_EXECUTE, run_thread, JAXC_ABORTED, "from afar");
  end(host, NULL);
}

TEST(a_type_is_not_registered_in_the_handlers_own_thread) {
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  thread_work = register_type;
  expect(host, JAXC_STAGE_EXECUTE, run_thread, JAXC_FAILED_PRECONDITION,
         "a type is registered in a thread in which the host runs no handler");
  end(host, NULL);
}

/* ---- a handler of handler.h that goes on ---- */

typedef struct {
  JAXC_VIEW(float) y;
} fill_call;
static const jaxc_field fill_fields[] = {JAXC_RESULT(fill_call, y, 1)};
static struct {
  jaxc_future future;
  float *y;
  int64_t count;
} going_on;

static void *fill_later(void *unused) {
  (void)unused;
  for (int64_t i = 0; i < going_on.count; i++) going_on.y[i] = 5;
  jaxc_future_finish(&going_on.future, JAXC_OK, NULL);
  return NULL;
}

static jaxc_status fill(jaxc_context *context, const void *data) {
  const fill_call *const c = (const fill_call *)data;
  JAXC_TRY(jaxc_future_begin(context, &going_on.future));
  going_on.y = c->y.data;
  going_on.count = c->y.count;
  if (pthread_create(&worker, NULL, fill_later, NULL) != 0) {
    return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no thread");
  }
  return JAXC_OK;
}
JAXC_HANDLER(Fill, fill_call, fill_fields, .execute = fill);

static jaxc_status fail_after_begin(jaxc_context *context, const void *data) {
  (void)data;
  JAXC_TRY(jaxc_future_begin(context, &going_on.future));
  return jaxc_fail(context, JAXC_ABORTED, "stop");
}
JAXC_HANDLER(FailAfterBegin, fill_call, fill_fields, .execute = fail_after_begin);

TEST(a_future_that_is_finished_after_its_error_was_returned_is_counted) {
  const jaxc_abi_bundle handlers = {.execute = FailAfterBegin};
  const int64_t dims = 1;
  jaxc_host *const host = make_host(0, JAXC_HOST_CPU);
  jaxc_host_call *call;
  CHECK_INT(jaxc_host_call_create(host, &handlers, &call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_result(call, JAXC_F32, 1, &dims, NULL, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_ABORTED);
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_OK);
  jaxc_future_finish(&going_on.future, JAXC_OK, NULL);
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_DATA_LOSS);
  CHECK_TEXT(message.text, "1 future finished twice");
  jaxc_host_call_destroy(call);
  jaxc_host_destroy(host);
}

TEST(results_are_ready_when_the_future_is) {
  const jaxc_abi_bundle handlers = {.execute = Fill};
  const int64_t dims = 100;
  for (int minor = 1; minor <= 5; minor++) {
    jaxc_host *const host = make_host(minor, JAXC_HOST_CPU);
    jaxc_host_call *call;
    CHECK_INT(jaxc_host_call_create(host, &handlers, &call, &message), JAXC_OK);
    CHECK_INT(jaxc_host_call_result(call, JAXC_F32, 1, &dims, NULL, &message), JAXC_OK);
    CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
    CHECK(((float *)jaxc_host_call_result_data(call, 0, NULL))[99] == 5);
    CHECK_INT(pthread_join(worker, NULL), 0);
    end(host, call);
  }
}

TEST_MAIN
