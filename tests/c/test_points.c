/* test_points.c: the points of a grid in the runtime's threads, in one row and in many.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "test_rows_common.h"

/* ---- a grid with everything, over i < n and j < 2 * m - 3 ---- */

static const jaxc_bound_step steps_n[] = {{JAXC_BOUND_DIM, 0}};
static const jaxc_bound_step steps_m[] = {{JAXC_BOUND_DIM, 1}};
static const jaxc_bound_step steps_j[] = {
    {JAXC_BOUND_CONSTANT, 2}, {JAXC_BOUND_DIM, 1},      {JAXC_BOUND_MULTIPLY, 0},
    {JAXC_BOUND_CONSTANT, 3}, {JAXC_BOUND_SUBTRACT, 0}};
static const jaxc_bound bound_n[] = {{"n", steps_n, 1, 0}};
static const jaxc_bound bound_j[] = {{"2 * m - 3", steps_j, 5, -1}};
static const jaxc_bound bound_m[] = {{"m", steps_m, 1, 1}};
static const jaxc_dim dims_nm[] = {{"n", 0, INT32_MAX, 0}, {"m", 0, INT32_MAX, 0}};
enum { J, N, X, M, I, W, TOTAL, Z, OWN, PARAMETERS };
static const jaxc_solve_step solve_nm[] = {{0, X, 0}, {1, W, 0}};

static int64_t to_fail = -1; /* number of the point, of all rows, that stops */
static const int32_t *total_base; /* by which a row is known */
static int64_t points_of_row;
static _Atomic int64_t last_point;
static int waits_for_other; /* point 0 does, until another thread has called a point */

/* Each row has sums of x[i] * w[j / 2] + 1, and z[i] more by the number of j. */
static int sum_rows(const long long *dims, char *const *data, const long long *strides,
                    long long count, jaxc_fault *fault) {
  const int64_t range_j = 2 * dims[1] - 3;
  long long range[2];
  memcpy(range, data[I], sizeof range);
  CHECK(memcmp(range, data[J], sizeof range) == 0);
  CHECK_INT(strides[I] | strides[J] | strides[OWN], 0);
  CHECK(range[0] >= 0 && range[1] <= points_of_row);
  for (long long row = 0; row < count; row++) {
    const int32_t *x = (const int32_t *)(const void *)(data[X] + row * strides[X]);
    const int32_t *w = (const int32_t *)(const void *)(data[W] + row * strides[W]);
    int32_t *total = (int32_t *)(void *)(data[TOTAL] + row * strides[TOTAL]);
    int32_t *z = (int32_t *)(void *)(data[Z] + row * strides[Z]);
    int32_t *own = (int32_t *)(void *)data[OWN];
    const int64_t before = (total - total_base) * points_of_row;
    CHECK_INT((uintptr_t)own % 64, 0);
    for (long long point = range[0]; point < range[1]; point++) {
      const int64_t i = point / range_j, j = point % range_j;
      const int64_t number = before + point;
      *own = (int32_t)number;
      called[number]++;
      rows_called++;
      if (number == to_fail) {
        fault->row = row;
        fault->status = 4;
        return 1;
      }
      while (waits_for_other && number == 0 && rows_called == 1) sched_yield();
      __atomic_fetch_add(&z[i], 1, __ATOMIC_RELAXED);
      if (number % 31 == 0) sched_yield();
      CHECK_INT(*own, number); /* no other thread has this memory */
      __atomic_fetch_add(total, x[i] * w[j / 2] + 1, __ATOMIC_RELAXED);
      last_point = number;
    }
  }
  return 0;
}

static const jaxc_parameter sum_parameters[] = {
    {"j", "int j", JAXC_ROLE_INDEX, JAXC_S32, 1, 1, bound_j, 0},
    {"n", "int n", JAXC_ROLE_DIM, 0, 0, 0, NULL, 0},
    {"x", "const int x[n]", JAXC_ROLE_INPUT, JAXC_S32, 1, -1, bound_n, 0},
    {"m", "int m", JAXC_ROLE_DIM, 0, 0, 1, NULL, 0},
    {"i", "signed char i", JAXC_ROLE_INDEX, JAXC_S8, 1, 0, bound_n, 0},
    {"w", "const int w[m]", JAXC_ROLE_INPUT, JAXC_S32, 1, -1, bound_m, 0},
    {"total", "int *total", JAXC_ROLE_OUTPUT, JAXC_S32, 0, -1, NULL, JAXC_PARAMETER_ZERO},
    {"z", "int z[n]", JAXC_ROLE_INOUT, JAXC_S32, 1, -1, bound_n, 0},
    {"own", "int own[m]", JAXC_ROLE_SCRATCH, JAXC_S32, 1, -1, bound_m, 0}};
static jaxc_function sum_function = {
    .struct_size = sizeof(jaxc_function),
    .name = "sum",
    .flags = JAXC_FUNCTION_ZERO,
    .argument_count = 3,
    .result_count = 2,
    .parameter_count = PARAMETERS,
    .dim_count = 2,
    .solve_count = 2,
    .parameters = sum_parameters,
    .dims = dims_nm,
    .solve = solve_nm,
    .rows = sum_rows,
};
static jaxc_abi_error *sum(jaxc_abi_call_frame *frame) {
  return jaxc_batch_handle(frame, &sum_function);
}

/* ---- calls of it ---- */

typedef struct {
  int64_t rows; /* 0: no leading axis */
  int64_t n, m;
  int z_is_shared;
} shape_t;

static int32_t value(int64_t i) { return (int32_t)(i * 7919 % 23) - 11; }

static jaxc_host_call *new_call(jaxc_host *host, const shape_t *s, int is_aliased) {
  const jaxc_abi_bundle handlers = {.execute = sum};
  const int64_t x_dims[2] = {s->rows, s->n}, z_dims[2] = {s->z_is_shared ? 1 : s->rows, s->n};
  const int is_effect = (sum_function.flags & JAXC_FUNCTION_EFFECT) != 0;
  const int32_t axes = s->rows > 0;
  jaxc_host_call *call;
  int32_t *data[3];
  size_t bytes[3];
  CHECK_INT(jaxc_host_call_create(host, &handlers, &call, &message), JAXC_OK);
  if (is_effect) {
    CHECK_INT(jaxc_host_call_argument(call, JAXC_TOKEN, 0, NULL, NULL, &message), JAXC_OK);
    CHECK_INT(jaxc_host_call_result(call, JAXC_TOKEN, 0, NULL, NULL, &message), JAXC_OK);
  }
  CHECK_INT(jaxc_host_call_argument(call, JAXC_S32, 1 + axes, x_dims + 1 - axes, NULL,
                                    &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_argument(call, JAXC_S32, 1, &s->m, NULL, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_argument(call, JAXC_S32, 1 + axes, z_dims + 1 - axes, NULL,
                                    &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_result(call, JAXC_S32, axes, x_dims, NULL, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_result(call, JAXC_S32, 1 + axes, x_dims + 1 - axes, NULL,
                                  &message), JAXC_OK);
  if (is_aliased) CHECK_INT(jaxc_host_call_alias(call, 2, 1, &message), JAXC_OK);
  for (int32_t k = 0; k < 3; k++) {
    data[k] = jaxc_host_call_argument_data(call, k + is_effect, &bytes[k]);
    for (size_t i = 0; i < bytes[k] / 4; i++) data[k][i] = value((int64_t)i + 100 * k);
  }
  total_base = jaxc_host_call_result_data(call, is_effect, NULL);
  points_of_row = 2 * s->m - 3 < 0 ? 0 : s->n * (2 * s->m - 3);
  rows_called = 0;
  last_point = -1;
  memset((void *)called, 0, sizeof called);
  return call;
}

static void check_results(jaxc_host_call *call, const shape_t *s) {
  const int64_t rows = s->rows > 0 ? s->rows : 1, range_j = 2 * s->m - 3;
  const int is_effect = (sum_function.flags & JAXC_FUNCTION_EFFECT) != 0;
  const int32_t *const z = jaxc_host_call_result_data(call, 1 + is_effect, NULL);
  CHECK(rows * points_of_row <= MOST_ROWS);
  CHECK_INT(rows_called, rows * points_of_row);
  for (int64_t k = 0; k < rows * points_of_row; k++) CHECK_INT(called[k], 1);
  for (int64_t row = 0; row < rows; row++) {
    int32_t expected = 0;
    for (int64_t i = 0; i < s->n; i++) {
      const int64_t from = s->z_is_shared ? i : row * s->n + i;
      for (int64_t j = 0; j < range_j; j++) {
        expected += value(row * s->n + i) * value(j / 2 + 100) + 1;
      }
      CHECK_INT(z[row * s->n + i],
                value(from + 200) + (range_j > 0 ? (int32_t)range_j : 0));
    }
    CHECK_INT(total_base[row], expected);
  }
}

static void run_shape(jaxc_host *host, const shape_t *s, int is_aliased) {
  jaxc_host_call *const call = new_call(host, s, is_aliased);
  if (jaxc_host_call_run(call, &message) != JAXC_OK) CHECK_TEXT(message.text, "");
  check_results(call, s);
  if (jaxc_host_call_check(call, &message) != JAXC_OK) CHECK_TEXT(message.text, "");
  jaxc_host_call_destroy(call);
}

static const shape_t shapes[] = {
    {0, 5, 3, 0},   {0, 1, 2, 0},   {0, 100, 400, 0}, {1, 1, 30000, 0}, {1, 127, 2, 1},
    {2, 3, 5, 1},   {3, 10, 50, 0}, {17, 7, 4, 1},    {40, 2, 3, 0},    {255, 3, 9, 1},
    {256, 3, 9, 0}, {700, 5, 6, 1}, {3, 0, 5, 0},     {3, 5, 1, 1},     {2, 4, 0, 0},
};

TEST(every_point_is_called_once_for_every_pool) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    for (size_t p = 0; p < POOLS; p++) {
      jaxc_host *const host = make_pool(pools[p]);
      for (size_t k = 0; k < sizeof splits / sizeof *splits; k++) {
        splits[k]();
        run_shape(host, &shapes[i], 0);
        if (!shapes[i].z_is_shared && shapes[i].n > 0) run_shape(host, &shapes[i], 1);
      }
      host_end(host);
    }
  }
}

TEST(the_points_of_one_row_are_called_by_several_threads) {
  static const shape_t one = {0, 100, 400, 0};
  jaxc_host *const host = make_pool(4);
  split_all();
  waits_for_other = 1;
  run_shape(host, &one, 0);
  CHECK_INT(made, 1);
  host_end(host);
}

TEST(a_few_points_allocate_nothing) {
  static const shape_t few = {0, 4, 8, 0};
  jaxc_host *const host = make_pool(4);
  parallel_bytes = piece_bytes = INT64_MAX;
  parallel_ns = 1e18; /* however long this machine takes */
  allocations_left = 0;
  run_shape(host, &few, 0);
  CHECK_INT(made, 0);
  host_end(host);
}

TEST(without_memory_for_threads_the_calling_thread_calls_all_points) {
  static const shape_t one = {0, 100, 400, 0};
  jaxc_host *const host = make_pool(4);
  split_all();
  allocations_left = 0;
  run_shape(host, &one, 0);
  CHECK_INT(made, 1);
  host_end(host);
}

/* ---- failures ---- */

TEST(the_row_of_the_first_failing_point_is_told) {
  static const shape_t few_rows = {9, 20, 30, 1}, many_rows = {300, 5, 6, 1};
  unsigned seed = 1;
  for (int repetition = 0; repetition < 60; repetition++) {
    const shape_t *const s = repetition % 3 == 0 ? &many_rows : &few_rows;
    jaxc_host *const host = make_pool(1 + repetition % 4);
    jaxc_host_call *const call = new_call(host, s, 0);
    char expected[128];
    splits[repetition % 2]();
    to_fail = rand_r(&seed) % (s->rows * points_of_row);
    snprintf(expected, sizeof expected,
             "sum: returned status 4 (batch row %d of %d); 0 is success",
             (int)(to_fail / points_of_row), (int)s->rows);
    CHECK_INT(jaxc_host_call_run(call, &message), JAXC_UNKNOWN);
    CHECK_TEXT(message.text, expected);
    for (int64_t k = 0; k <= to_fail; k++) CHECK_INT(called[k], 1);
    for (int64_t k = to_fail; k < s->rows * points_of_row; k++) CHECK(called[k] <= 1);
    jaxc_host_call_destroy(call);
    host_end(host);
  }
}

static void check_refusal(const shape_t *s, const char *expected) {
  jaxc_host *const host = make_pool(2);
  jaxc_host_call *const call = new_call(host, s, 0);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, expected);
  CHECK_INT(rows_called, 0);
  jaxc_host_call_destroy(call);
  host_end(host);
}

TEST(a_range_above_the_index_s_type_is_an_error) {
  static const shape_t wide = {2, 128, 3, 0};
  check_refusal(&wide, "sum: the range of index 'i' is n = 128, above the largest value of "
                       "its C type (C: signed char i), 127");
}

TEST(a_range_without_a_value_is_an_error) {
  static const jaxc_bound_step by_zero[] = {
      {JAXC_BOUND_CONSTANT, 1}, {JAXC_BOUND_CONSTANT, 0}, {JAXC_BOUND_DIVIDE, 0}};
  static const jaxc_bound bound[] = {{"1 / 0", by_zero, 3, -1}};
  static const shape_t shape = {2, 3, 3, 0};
  static jaxc_parameter parameters[PARAMETERS];
  memcpy(parameters, sum_parameters, sizeof parameters);
  parameters[J].bounds = bound;
  sum_function.parameters = parameters;
  check_refusal(&shape,
                "sum: the range of index 'j' (j < 1 / 0) has no value for these dimensions");
  parameters[J].rank = 0;
  check_refusal(&shape,
                "sum: the range of index 'j' (j < ?) has no value for these dimensions");
}

TEST(more_points_than_an_int64_counts_are_an_error) {
  static const jaxc_bound_step huge[] = {{JAXC_BOUND_CONSTANT, INT64_MAX / 2}};
  static const jaxc_bound bound[] = {{"huge", huge, 1, -1}};
  static const shape_t shape = {2, 3, 3, 0};
  static jaxc_parameter parameters[PARAMETERS];
  memcpy(parameters, sum_parameters, sizeof parameters);
  parameters[J].bounds = bound;
  parameters[J].dtype = JAXC_U64;
  sum_function.parameters = parameters;
  check_refusal(&shape, "sum: the grid has more points than an int64 counts");
}

/* ---- in order ---- */

static pthread_t caller;
static int in_order(const long long *dims, char *const *data, const long long *strides,
                    long long count, jaxc_fault *fault) {
  const int64_t before = last_point;
  CHECK(pthread_equal(caller, pthread_self()));
  CHECK_INT(sum_rows(dims, data, strides, count, fault), 0);
  CHECK_INT(last_point, before + count * points_of_row);
  return 0;
}
static void check_in_order(uint32_t flags, int tokens) {
  jaxc_host *const host = make_pool(4);
  split_all();
  sum_function.rows = in_order;
  sum_function.flags = flags | JAXC_FUNCTION_ZERO;
  sum_function.argument_count += tokens;
  sum_function.result_count += tokens;
  caller = pthread_self();
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (shapes[i].n > 0) run_shape(host, &shapes[i], 0);
  }
  host_end(host);
}
TEST(points_of_a_serial_function_come_in_order_in_the_calling_thread) {
  check_in_order(JAXC_FUNCTION_SERIAL, 0);
}
TEST(points_with_effects_come_in_order_in_the_calling_thread) {
  check_in_order(JAXC_FUNCTION_EFFECT, 1);
}

/* ---- large results, cleared by all threads ---- */

static const jaxc_bound_step steps_big[] = {{JAXC_BOUND_CONSTANT, 1000003}};
static const jaxc_bound bound_big[] = {{"1000003", steps_big, 1, -1}};
static int mark_rows(const long long *dims, char *const *data, const long long *strides,
                     long long count, jaxc_fault *fault) {
  long long range[2];
  (void)dims;
  (void)fault;
  memcpy(range, data[0], sizeof range);
  for (long long row = 0; row < count; row++) {
    signed char *const y = (signed char *)(data[2] + row * strides[2]);
    const signed char x = *(const signed char *)(data[1] + row * strides[1]);
    for (long long i = range[0]; i < range[1]; i++) {
      __atomic_fetch_add(&y[i * 7 % 1000003], x, __ATOMIC_RELAXED);
    }
  }
  return 0;
}
static const jaxc_parameter mark_parameters[] = {
    {"i", "int i", JAXC_ROLE_INDEX, JAXC_S32, 1, 0, bound_big, 0},
    {"x", "signed char x", JAXC_ROLE_INPUT, JAXC_S8, 0, -1, NULL, 0},
    {"y", "signed char y[1000003]", JAXC_ROLE_OUTPUT, JAXC_S8, 1, -1, bound_big,
     JAXC_PARAMETER_ZERO}};
static const jaxc_function mark_function = {
    .struct_size = sizeof(jaxc_function),
    .name = "mark",
    .flags = JAXC_FUNCTION_ZERO,
    .argument_count = 1,
    .result_count = 1,
    .parameter_count = 3,
    .parameters = mark_parameters,
    .rows = mark_rows,
};
static jaxc_abi_error *mark(jaxc_abi_call_frame *frame) {
  return jaxc_batch_handle(frame, &mark_function);
}

TEST(a_large_result_is_cleared_before_any_point) {
  static const int64_t dims[2] = {3, 1000003};
  const jaxc_abi_bundle handlers = {.execute = mark};
  for (size_t p = 0; p < POOLS; p++) {
    jaxc_host *const host = make_pool(pools[p]);
    jaxc_host_call *call;
    signed char *y;
    split_all();
    CHECK_INT(jaxc_host_call_create(host, &handlers, &call, &message), JAXC_OK);
    CHECK_INT(jaxc_host_call_argument(call, JAXC_S8, 1, dims, NULL, &message), JAXC_OK);
    CHECK_INT(jaxc_host_call_result(call, JAXC_S8, 2, dims, NULL, &message), JAXC_OK);
    memcpy(jaxc_host_call_argument_data(call, 0, NULL), "\1\2\3", 3);
    y = jaxc_host_call_result_data(call, 0, NULL);
    memset(y, 0x55, 3 * 1000003);
    CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
    for (int64_t i = 0; i < 3 * 1000003; i++) CHECK_INT(y[i], 1 + i / 1000003);
    jaxc_host_call_destroy(call);
    host_end(host);
  }
}

TEST_MAIN
