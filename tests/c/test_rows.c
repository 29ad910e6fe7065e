/* test_rows.c: rows in the runtime's threads: what they compute, and what each thread has
 * of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "test_rows_common.h"

static const jaxc_bound_step steps_n[] = {{JAXC_BOUND_DIM, 0}};
static const jaxc_bound_step steps_twice[] = {
    {JAXC_BOUND_CONSTANT, 2}, {JAXC_BOUND_DIM, 0}, {JAXC_BOUND_MULTIPLY, 0}};
static const jaxc_bound bound_n[] = {{"n", steps_n, 1, 0}};
static const jaxc_bound bound_twice[] = {{"2 * n", steps_twice, 3, -1}};
static const jaxc_dim dim_n[] = {{"n", 0, INT32_MAX, 0}};
static const jaxc_solve_step solve_n[] = {{0, 1, 0}};

/* ---- a function with everything ---- */

static const float *result_base; /* of y, by which a row is known */
static const char *const text_sent = "seven..";

JAXC_NOINLINE static void row_values(int n, const float *x, float a, int mode,
                                     const char *text, float *z, float *y) {
  float sum = (float)mode + (float)strlen(text);
  for (int i = 0; i < n; i++) {
    sum = sum * 0.75f + x[i] * a;
    y[i] = sum + z[i];
    z[i] = z[i] * 1.5f + a;
  }
}

enum { N, X, A, Z, Y, MODE, TEXT, W, CONTEXT };

/* Memory of its own: a pattern stays until the row ends. */
static void use_scratch(char *scratch, size_t bytes, int64_t row, int pass) {
  CHECK_INT((uintptr_t)scratch % 64, 0);
  for (size_t i = 0; i < bytes; i++) {
    const char pattern = (char)(row * 7 + (int64_t)i);
    if (pass == 0) scratch[i] = pattern;
    CHECK(scratch[i] == pattern);
  }
}

static int mixed_rows(const long long *dims, char *const *data, const long long *strides,
                      long long count, jaxc_fault *fault) {
  const int n = (int)dims[0];
  const size_t bytes = 2 * (size_t)n * sizeof(double);
  int mode;
  const char *text;
  (void)fault;
  memcpy(&mode, data[MODE], sizeof mode);
  memcpy(&text, data[TEXT], sizeof text);
  CHECK_TEXT(text, text_sent);
  CHECK_INT(strides[MODE] | strides[TEXT] | strides[W], 0);
  for (long long row = 0; row < count; row++) {
    const float *x = (const float *)(const void *)(data[X] + row * strides[X]);
    const float a = *(const float *)(const void *)(data[A] + row * strides[A]);
    float *z = (float *)(void *)(data[Z] + row * strides[Z]);
    float *y = (float *)(void *)(data[Y] + row * strides[Y]);
    const int64_t number = n == 0 || result_base == NULL ? 0 : (y - result_base) / n;
    use_scratch(data[W], bytes, number, 0);
    row_values(n, x, a, mode, text, z, y);
    rows_called++;
    called[number]++;
    use_scratch(data[W], bytes, number, 1);
  }
  return 0;
}

/* The same, with memory and a loop of the row's own. */
typedef struct {
  char *to;
  const char *from;
} copy_job;
static void copy_piece(void *data, int64_t begin, int64_t end) {
  const copy_job *const job = (const copy_job *)data;
  memcpy(job->to + begin, job->from + begin, (size_t)(end - begin));
}
static int mixed_rows_with_context(const long long *dims, char *const *data,
                                   const long long *strides, long long count,
                                   jaxc_fault *fault) {
  jaxc_context *const context = (jaxc_context *)(void *)data[CONTEXT];
  const size_t bytes = 2 * (size_t)dims[0] * sizeof(double);
  void *memory;
  copy_job job;
  CHECK_INT(count, 1); /* its memory is the row's */
  CHECK_INT(strides[CONTEXT], 0);
  CHECK_INT(jaxc_context_host_memory(context, bytes, &memory), JAXC_OK);
  use_scratch((char *)memory, bytes, (int64_t)(uintptr_t)data[Y], 0);
  job.to = data[W];
  job.from = (const char *)memory;
  jaxc_parallel_for(context, (int64_t)bytes, 5, copy_piece, &job);
  CHECK(bytes == 0 || memcmp(data[W], memory, bytes) == 0);
  return mixed_rows(dims, data, strides, count, fault);
}

static const jaxc_parameter mixed_parameters[] = {
    {"n", "int n", JAXC_ROLE_DIM, 0, 0, 0, NULL, 0},
    {"x", "const float x[n]", JAXC_ROLE_INPUT, JAXC_F32, 1, -1, bound_n, 0},
    {"a", "float a", JAXC_ROLE_INPUT, JAXC_F32, 0, -1, NULL, 0},
    {"z", "float z[n]", JAXC_ROLE_INOUT, JAXC_F32, 1, -1, bound_n, 0},
    {"y", "float y[n]", JAXC_ROLE_OUTPUT, JAXC_F32, 1, -1, bound_n, 0},
    {"mode", "int mode", JAXC_ROLE_STATIC, JAXC_S32, 0, -1, NULL, 0},
    {"text", "const char *text", JAXC_ROLE_STATIC, JAXC_STRING, 0, -1, NULL, 0},
    {"w", "double w[2 * n]", JAXC_ROLE_SCRATCH, JAXC_F64, 1, -1, bound_twice, 0},
    {"context", "jaxc_context *context", JAXC_ROLE_CONTEXT, 0, 0, -1, NULL, 0}};

/* For most tests without its context. */
static jaxc_function mixed_function = {
    .struct_size = sizeof(jaxc_function),
    .name = "mixed",
    .argument_count = 3,
    .result_count = 2,
    .attribute_count = 2,
    .parameter_count = 8,
    .dim_count = 1,
    .solve_count = 1,
    .parameters = mixed_parameters,
    .dims = dim_n,
    .solve = solve_n,
    .rows = mixed_rows,
};
static jaxc_abi_error *mixed(jaxc_abi_call_frame *frame) {
  return jaxc_batch_handle(frame, &mixed_function);
}

static void take_context(void) {
  mixed_function.parameter_count = 9;
  mixed_function.rows = mixed_rows_with_context;
}

/* ---- calls of it, against a plain loop ---- */

/* Leading axes of a call; bit i of a mask: the operand has axis i at full size. */
typedef struct {
  int axes;
  int64_t full[5];
  int x, a, z;
  int n;
} shape_t;

static int64_t shape_dims(const shape_t *s, int mask, int64_t *dims) {
  int64_t count = 1;
  for (int i = 0; i < s->axes; i++) {
    dims[i] = mask >> i & 1 ? s->full[i] : 1;
    count *= dims[i];
  }
  return count;
}

/* Number of the operand's row that row `row` of the call reads. */
static int64_t shape_place(const shape_t *s, int mask, int64_t row) {
  int64_t place = 0, step = 1;
  for (int axis = s->axes - 1; axis >= 0; axis--) {
    const int64_t index = row % s->full[axis];
    row /= s->full[axis];
    if ((mask >> axis & 1) == 0) continue;
    place += index * step;
    step *= s->full[axis];
  }
  return place;
}

static float value(int64_t i) { return (float)((i * 2654435761) % 1000) * 0.01f - 4; }

static float *new_values(int64_t count, int64_t from) {
  float *const values = malloc((size_t)(count + 1) * sizeof *values);
  CHECK(values != NULL);
  for (int64_t i = 0; i < count; i++) values[i] = value(from + i);
  return values;
}

/* What one call has: x, a, z as they are given, y and z as they must come out. */
typedef struct {
  shape_t shape;
  int64_t rows;
  int64_t counts[3]; /* rows of x, a, z */
  float *x, *a, *z, *y_expected, *z_expected;
} case_t;

static void case_begin(case_t *c, const shape_t *shape) {
  int64_t dims[6];
  const size_t n = (size_t)shape->n;
  c->shape = *shape;
  c->counts[0] = shape_dims(shape, shape->x, dims);
  c->counts[1] = shape_dims(shape, shape->a, dims);
  c->counts[2] = shape_dims(shape, shape->z, dims);
  c->rows = shape_dims(shape, -1, dims);
  CHECK(c->rows <= MOST_ROWS);
  c->x = new_values(c->counts[0] * shape->n, 0);
  c->a = new_values(c->counts[1], 100);
  c->z = new_values(c->counts[2] * shape->n, 200);
  c->y_expected = new_values(c->rows * shape->n, 0);
  c->z_expected = new_values(c->rows * shape->n, 0);
  for (int64_t row = 0; row < c->rows; row++) {
    float *const z = c->z_expected + row * shape->n;
    const float *const from = c->z + shape_place(shape, shape->z, row) * shape->n;
    if (n != 0) memcpy(z, from, n * sizeof *z);
    row_values(shape->n, c->x + shape_place(shape, shape->x, row) * shape->n,
               c->a[shape_place(shape, shape->a, row)], 3, text_sent, z,
               c->y_expected + row * shape->n);
  }
}

static void case_end(case_t *c) {
  free(c->x);
  free(c->a);
  free(c->z);
  free(c->y_expected);
  free(c->z_expected);
}

static void add_operand(jaxc_host_call *call, const case_t *c, int is_result, int mask,
                        int rank, const float *from) {
  int64_t dims[6];
  int64_t count = shape_dims(&c->shape, mask, dims);
  dims[c->shape.axes] = c->shape.n;
  if (rank == 1) count *= c->shape.n;
  if (is_result) {
    CHECK_INT(jaxc_host_call_result(call, JAXC_F32, c->shape.axes + rank, dims, NULL,
                                    &message),
              JAXC_OK);
    return;
  }
  CHECK_INT(jaxc_host_call_argument(call, JAXC_F32, c->shape.axes + rank, dims, NULL,
                                    &message),
            JAXC_OK);
  for (int32_t i = 0; i < 3; i++) {
    void *const data = jaxc_host_call_argument_data(call, 2 - i, NULL);
    if (data == NULL) continue; /* the last one that there is */
    memcpy(data, from, (size_t)count * sizeof *from);
    return;
  }
}

static jaxc_host_call *case_call(jaxc_host *host, const case_t *c, int is_aliased) {
  const jaxc_abi_bundle handlers = {.execute = mixed};
  const int32_t mode = 3;
  jaxc_host_call *call;
  jaxc_host_attrs *attrs;
  CHECK_INT(jaxc_host_call_create(host, &handlers, &call, &message), JAXC_OK);
  attrs = jaxc_host_call_attrs(call);
  CHECK_INT(jaxc_host_attrs_scalar(attrs, "mode", JAXC_S32, &mode, &message), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_string(attrs, "text", text_sent, strlen(text_sent), &message),
            JAXC_OK);
  add_operand(call, c, 0, c->shape.x, 1, c->x);
  add_operand(call, c, 0, c->shape.a, 0, c->a);
  add_operand(call, c, 0, c->shape.z, 1, c->z);
  add_operand(call, c, 1, -1, 1, NULL);
  add_operand(call, c, 1, -1, 1, NULL);
  if (is_aliased) CHECK_INT(jaxc_host_call_alias(call, 2, 0, &message), JAXC_OK);
  return call;
}

/* One call: every row once, every bit as the plain loop has it. */
static void case_run(jaxc_host *host, const case_t *c, int is_aliased) {
  jaxc_host_call *const call = case_call(host, c, is_aliased);
  const float *const z = jaxc_host_call_result_data(call, 0, NULL);
  const size_t bytes = (size_t)(c->rows * c->shape.n) * sizeof *z;
  result_base = jaxc_host_call_result_data(call, 1, NULL);
  rows_called = 0;
  for (int64_t row = 0; row < c->rows; row++) called[row] = 0;
  if (jaxc_host_call_run(call, &message) != JAXC_OK) CHECK_TEXT(message.text, "");
  CHECK_INT(rows_called, c->rows);
  for (int64_t row = 0; c->shape.n > 0 && row < c->rows; row++) CHECK_INT(called[row], 1);
  CHECK(bytes == 0 || memcmp(result_base, c->y_expected, bytes) == 0);
  CHECK(bytes == 0 || memcmp(z, c->z_expected, bytes) == 0);
  if (jaxc_host_call_check(call, &message) != JAXC_OK) CHECK_TEXT(message.text, "");
  jaxc_host_call_destroy(call);
}

/* A shape with all pools and thresholds, and with an alias where there can be one. */
static void check_shape(const shape_t *shape) {
  const int all = (1 << shape->axes) - 1;
  case_t c;
  case_begin(&c, shape);
  for (size_t i = 0; i < POOLS; i++) {
    jaxc_host *const host = make_pool(pools[i]);
    for (size_t k = 0; k < sizeof splits / sizeof *splits; k++) {
      splits[k]();
      case_run(host, &c, 0);
      if ((shape->z & all) == all && c.rows * shape->n > 0) case_run(host, &c, 1);
    }
    host_end(host);
  }
  case_end(&c);
}

static const shape_t shapes[] = {
    {1, {1}, 1, 1, 1, 3},
    {1, {2}, 1, 0, 1, 3},
    {1, {257}, 1, 1, 0, 2},
    {2, {1, 1}, 3, 3, 3, 5},
    {2, {30, 31}, 1, 2, 3, 3},
    {2, {30, 31}, 2, 1, 0, 1},
    {3, {7, 1, 11}, 5, 4, 7, 4},
    {3, {7, 5, 11}, 2, 5, 5, 2},
    {5, {2, 3, 4, 5, 6}, 21, 10, 31, 1},
    {5, {2, 3, 1, 5, 6}, 9, 22, 18, 2},
    {2, {40, 1}, 3, 1, 3, 300}, /* scratch that is allocated */
    {2, {3, 0}, 3, 3, 3, 2},    /* no rows */
    {2, {0, 3}, 1, 2, 1, 2},
    {2, {9, 4}, 3, 0, 3, 0},    /* rows without elements */
};

TEST(results_are_those_of_a_plain_loop_for_every_pool) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_shape(&shapes[i]);
}

TEST(results_with_a_context_are_those_of_a_plain_loop_for_every_pool) {
  take_context();
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_shape(&shapes[i]);
}

TEST(a_hundred_thousand_rows_are_called_once_each) {
  static const shape_t many = {3, {10, 100, 100}, 5, 2, 7, 1};
  case_t c;
  case_begin(&c, &many);
  for (int threads = 1; threads <= 4; threads *= 2) {
    jaxc_host *const host = make_pool(threads);
    for (int k = 0; k < 2; k++) {
      splits[2 * k]();
      case_run(host, &c, k);
    }
    host_end(host);
  }
  case_end(&c);
}

TEST(every_number_of_rows_from_one_is_right) {
  split_all();
  for (int64_t rows = 1; rows < 70; rows++) {
    const shape_t shape = {1, {rows}, 1, (int)rows & 1, 1, 2};
    jaxc_host *const host = make_pool(4);
    case_t c;
    case_begin(&c, &shape);
    case_run(host, &c, 0);
    case_end(&c);
    host_end(host);
  }
}

/* ---- several handlers at once ---- */

typedef struct {
  jaxc_host_call *call;
  const case_t *c;
} shared_t;

static void *run_on_own_memory(void *data) {
  const shared_t *const s = (const shared_t *)data;
  const case_t *const c = s->c;
  const size_t bytes = (size_t)(c->rows * c->shape.n) * sizeof(float);
  float *const y = malloc(bytes), *const z = malloc(bytes);
  void *const arguments[3] = {c->x, c->a, c->z}, *const results[2] = {z, y};
  jaxc_message own;
  CHECK(y != NULL && z != NULL);
  for (int i = 0; i < 10; i++) {
    memset(y, 0xEE, bytes);
    CHECK_INT(jaxc_host_call_run_on(s->call, arguments, results, &own), JAXC_OK);
    CHECK(memcmp(y, c->y_expected, bytes) == 0);
    CHECK(memcmp(z, c->z_expected, bytes) == 0);
  }
  free(y);
  free(z);
  return NULL;
}

TEST(four_threads_call_handlers_with_rows_at_once) {
  static const shape_t shape = {2, {30, 31}, 1, 2, 3, 3};
  case_t c;
  case_begin(&c, &shape);
  split_all();
  result_base = NULL; /* each has its own */
  for (size_t i = 0; i < POOLS; i++) {
    jaxc_host *const host = make_pool(pools[i]);
    shared_t shared = {case_call(host, &c, 0), &c};
    pthread_t threads[4];
    CHECK_INT(jaxc_host_call_instantiate(shared.call, &message), JAXC_OK);
    for (int k = 0; k < 4; k++) {
      CHECK_INT(pthread_create(&threads[k], NULL, run_on_own_memory, &shared), 0);
    }
    for (int k = 0; k < 4; k++) CHECK_INT(pthread_join(threads[k], NULL), 0);
    jaxc_host_call_destroy(shared.call);
    host_end(host);
  }
  case_end(&c);
}

/* ---- memory ---- */

static const shape_t small_scratch = {1, {400}, 1, 1, 1, 3};
static const shape_t large_scratch = {1, {400}, 1, 1, 1, 300};

/* One call with a pool of four in which so many allocations succeed. */
static void run_with_memory(const shape_t *shape, int allocations) {
  jaxc_host *const host = make_pool(4);
  case_t c;
  case_begin(&c, shape);
  made = 0;
  allocations_left = allocations;
  case_run(host, &c, 0);
  case_end(&c);
  host_end(host);
}

TEST(a_few_rows_allocate_nothing) {
  static const shape_t few = {1, {20}, 1, 1, 1, 3};
  parallel_bytes = piece_bytes = INT64_MAX;
  parallel_ns = 1e18; /* however long this machine takes */
  run_with_memory(&few, 0);
  CHECK_INT(made, 0);
}

TEST(rows_for_all_threads_allocate_one_block) {
  split_all();
  run_with_memory(&small_scratch, 1000);
  CHECK_INT(made, 1);
}

TEST(without_memory_for_threads_the_calling_thread_does_all) {
  split_all();
  run_with_memory(&small_scratch, 0);
  CHECK_INT(made, 1);
}

TEST(threads_without_memory_for_scratch_leave_the_rows_to_the_others) {
  split_all();
  for (int left = 1; left < 6; left++) run_with_memory(&large_scratch, left);
}

TEST(the_calling_thread_without_memory_for_scratch_is_an_error) {
  jaxc_host *const host = make_pool(4);
  jaxc_host_call *call;
  case_t c;
  split_all();
  case_begin(&c, &large_scratch);
  call = case_call(host, &c, 0);
  allocations_left = 0;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_RESOURCE_EXHAUSTED);
  CHECK_TEXT(message.text, "mixed: no memory for 4864 bytes of scratch");
  CHECK_INT(rows_called, 0);
  jaxc_host_call_destroy(call);
  case_end(&c);
  host_end(host);
}

TEST_MAIN
