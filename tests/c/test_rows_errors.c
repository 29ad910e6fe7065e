/* test_rows_errors.c: which row's error is told, tasks that start late, and rows that stay
 * in order in one thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "test_rows_common.h"

/* ---- a function that stops where its input is not zero ---- */

static enum { AS_STATUS, AS_TEXT, AS_CONTEXT } told;
static const int32_t *check_base; /* of x */
static void (*before_row)(int64_t row);

static int check_rows(const long long *dims, char *const *data, const long long *strides,
                      long long count, jaxc_fault *fault) {
  (void)dims;
  for (long long row = 0; row < count; row++) {
    const int32_t *x = (const int32_t *)(const void *)(data[0] + row * strides[0]);
    const int64_t number = x - check_base;
    rows_called++;
    called[number]++;
    if (before_row != NULL) before_row(number);
    memcpy(data[1] + row * strides[1], x, sizeof *x);
    if (*x == 0) continue;
    fault->row = row;
    if (told == AS_STATUS) fault->status = *x;
    if (told == AS_TEXT) fault->text = *x == 7 ? "x is seven" : "x is another";
    if (told == AS_CONTEXT) {
      fault->status = jaxc_fail((jaxc_context *)(void *)data[2], JAXC_OUT_OF_RANGE,
                                "x is %d", (int)*x);
    }
    return 1;
  }
  return 0;
}
static const jaxc_parameter check_parameters[] = {
    {"x", "int x", JAXC_ROLE_INPUT, JAXC_S32, 0, -1, NULL, 0},
    {"return", "int check", JAXC_ROLE_OUTPUT, JAXC_S32, 0, -1, NULL, 0},
    {"context", "jaxc_context *context", JAXC_ROLE_CONTEXT, 0, 0, -1, NULL, 0}};
static jaxc_function check_function = {
    .struct_size = sizeof(jaxc_function),
    .name = "check",
    .argument_count = 1,
    .result_count = 1,
    .parameter_count = 2,
    .parameters = check_parameters,
    .rows = check_rows,
};

/* Threads of the pool that wait until the handler has returned. */
static int to_block;
static _Atomic int blocked, is_open;
static void wait_for_gate(void *data) {
  (void)data;
  blocked++;
  while (!is_open) sched_yield();
}
static jaxc_abi_error *check(jaxc_abi_call_frame *frame) {
  for (int i = 0; frame->extension_start == NULL && i < to_block; i++) {
    jaxc_abi_schedule_args args = {sizeof args, NULL, frame->context, wait_for_gate,
                                   NULL};
    CHECK(frame->api->schedule(&args) == NULL);
  }
  while (frame->extension_start == NULL && blocked < to_block) sched_yield();
  return jaxc_batch_handle(frame, &check_function);
}

static int32_t check_x[MOST_ROWS], check_y[MOST_ROWS];

/* Calls it on so many rows of check_x; its error goes to `message`. */
static jaxc_status run_check(jaxc_host *host, int64_t rows) {
  const jaxc_abi_bundle handlers = {.execute = check};
  const int is_effect = (check_function.flags & JAXC_FUNCTION_EFFECT) != 0;
  jaxc_host_call *call;
  jaxc_status status;
  check_base = check_x;
  rows_called = 0;
  for (int64_t row = 0; row < rows; row++) called[row] = 0;
  message.text[0] = '\0';
  status = jaxc_host_call_create(host, &handlers, &call, &message);
  if (status == JAXC_OK && is_effect) {
    status = jaxc_host_call_argument(call, JAXC_TOKEN, 0, NULL, NULL, &message);
    CHECK_INT(jaxc_host_call_result(call, JAXC_TOKEN, 0, NULL, NULL, &message), JAXC_OK);
  }
  if (status != JAXC_OK) CHECK_TEXT(message.text, "");
  status = jaxc_host_call_argument(call, JAXC_S32, 1, &rows, check_x, &message);
  CHECK_INT(status, JAXC_OK);
  CHECK_INT(jaxc_host_call_result(call, JAXC_S32, 1, &rows, check_y, &message), JAXC_OK);
  status = jaxc_host_call_run(call, &message);
  jaxc_host_call_destroy(call);
  return status;
}

static void yield_sometimes(int64_t row) {
  if (row % 17 == 0) sched_yield();
}

TEST(the_first_failing_row_is_told_whichever_thread_sees_it) {
  unsigned seed = 1;
  before_row = yield_sometimes;
  for (int repetition = 0; repetition < 200; repetition++) {
    const int64_t rows = 2 + rand_r(&seed) % 999;
    int64_t first = rows;
    char expected[128];
    memset(check_x, 0, sizeof check_x);
    for (int fails = 1 + rand_r(&seed) % 20; fails > 0; fails--) {
      const int64_t row = rand_r(&seed) % rows;
      check_x[row] = 1 + (int32_t)row;
      if (row < first) first = row;
    }
    snprintf(expected, sizeof expected,
             "check: returned status %d (batch row %d of %d); 0 is success",
             (int)first + 1, (int)first, (int)rows);
    for (int threads = 1; threads <= 4; threads *= 2) {
      jaxc_host *const host = make_pool(threads);
      splits[repetition % 2]();
      CHECK_INT(run_check(host, rows), JAXC_UNKNOWN);
      CHECK_TEXT(message.text, expected);
      for (int64_t row = 0; row <= first; row++) CHECK_INT(called[row], 1);
      for (int64_t row = first; row < rows; row++) CHECK(called[row] <= 1);
      host_end(host);
    }
  }
}

TEST(the_text_of_the_first_failing_row_is_told) {
  jaxc_host *const host = make_pool(4);
  split_all();
  told = AS_TEXT;
  for (int i = 0; i < 50; i++) {
    check_x[500] = 7;
    check_x[501] = check_x[800] = check_x[999] = 8;
    CHECK_INT(run_check(host, 1000), JAXC_UNKNOWN);
    CHECK_TEXT(message.text, "check: x is seven (batch row 500 of 1000)");
  }
  host_end(host);
}

TEST(status_and_text_of_a_context_are_told) {
  jaxc_host *const host = make_pool(4);
  split_all();
  told = AS_CONTEXT;
  check_function.parameter_count = 3;
  for (int i = 0; i < 50; i++) {
    check_x[500] = 7;
    check_x[501] = check_x[800] = check_x[999] = 8;
    CHECK_INT(run_check(host, 1000), JAXC_OUT_OF_RANGE);
    CHECK_TEXT(message.text, "check: x is 7 (batch row 500 of 1000)");
  }
  host_end(host);
}

/* The first row of any other piece waits until row 10 has failed and told the others. */
static _Atomic int64_t pieces_behind;
static void wait_for_failure(int64_t row) {
  struct timespec some = {0, 50000000};
  if (row == 0 || called[row - 1] != 0) return;
  pieces_behind++;
  while (called[10] == 0) sched_yield();
  nanosleep(&some, NULL);
}
TEST(rows_far_behind_a_failing_row_are_not_begun) {
  jaxc_host *const host = make_pool(4);
  split_all();
  check_x[10] = 5;
  before_row = wait_for_failure;
  CHECK_INT(run_check(host, MOST_ROWS), JAXC_UNKNOWN);
  CHECK_TEXT(message.text,
             "check: returned status 5 (batch row 10 of 100000); 0 is success");
  CHECK(pieces_behind <= 3); /* one for each other thread */
  CHECK(rows_called <= 11 + 3 * MOST_ROWS / 32);
  host_end(host);
}

/* ---- tasks that start when the handler has returned ---- */

/* Overwrites the stack below, where the rows' crew was. */
static void spoil_stack(void) {
  volatile unsigned char gone[131072];
  for (size_t i = 0; i < sizeof gone; i++) gone[i] = 0xDB;
}
static void run_on_blocked_pool(int expected) {
  for (int threads = 2; threads <= 4; threads += 2) {
    jaxc_host *const host = make_pool(threads);
    split_all();
    to_block = threads;
    blocked = is_open = 0;
    CHECK_INT(run_check(host, 1000), expected);
    spoil_stack();
    rows_called = 0;
    is_open = 1;
    host_end(host); /* the tasks run */
    CHECK_INT(rows_called, 0);
  }
}
TEST(a_task_that_comes_after_the_last_row_does_nothing) { run_on_blocked_pool(JAXC_OK); }
TEST(a_task_that_comes_after_a_failure_does_nothing) {
  check_x[3] = 1; /* most rows are not begun */
  run_on_blocked_pool(JAXC_UNKNOWN);
}

/* ---- in order ---- */

static pthread_t caller;
static void follow(int64_t row) {
  CHECK(pthread_equal(caller, pthread_self()));
  CHECK_INT(rows_called, row + 1);
}
static void check_in_order(uint32_t flags, int tokens) {
  jaxc_host *const host = make_pool(4);
  split_all();
  check_function.flags = flags;
  check_function.argument_count = check_function.result_count = 1 + tokens;
  caller = pthread_self();
  before_row = follow;
  CHECK_INT(run_check(host, 5000), JAXC_OK);
  CHECK_INT(rows_called, 5000);
  check_x[4000] = check_x[4500] = 9;
  CHECK_INT(run_check(host, 5000), JAXC_UNKNOWN);
  CHECK_INT(rows_called, 4001); /* none behind the one that failed */
  host_end(host);
  CHECK_INT(made, 0);
}
TEST(rows_of_a_serial_function_come_in_order_in_the_calling_thread) {
  check_in_order(JAXC_FUNCTION_SERIAL, 0);
}
TEST(rows_with_effects_come_in_order_in_the_calling_thread) {
  check_in_order(JAXC_FUNCTION_EFFECT, 1);
}

TEST_MAIN
