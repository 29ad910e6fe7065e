/* fuzz_batch.c: batch.h on descriptions and calls that are right, against a plain loop.
 *
 * Any shapes that broadcast, inouts with and without the operand's memory, scratch,
 * static values, strings, tokens, a kernel that stops. What must hold: each row sees what
 * index arithmetic says, in row-major order where one thread works; every byte of every
 * result is written once and by its row, nothing else is; scratch is aligned and nobody
 * else's.
 *
 * The last byte of an input chooses the pool: none, tasks that run where they are
 * scheduled, tasks that run when the handler has returned, or up to three threads. Rows
 * then go to all of them, however few they are, and the first that stops is told. It also
 * chooses whether there is a grid, of which each point writes its share of a row's bytes,
 * and whether outputs are cleared first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* As soon as there is a pool, and in pieces as small as they get. */
#define JAXCI_PARALLEL_BYTES ((int64_t)1)
#define JAXCI_PIECE_BYTES ((int64_t)1)

static int memory_fails;
static void *maybe_malloc(size_t size) { return memory_fails ? NULL : malloc(size); }
#define malloc maybe_malloc
#include <jaxc/batch.h>
#undef malloc

#include "fake_runtime.h"

#define MAX_PARAMETERS 9 /* the last two are only indices of a grid */
#define MAX_INDICES 2
#define MAX_DIMS 3
#define MAX_LEADING 5
#define GUARD 64
#define GUARD_BYTE 0x5A

typedef struct {
  int64_t leading; /* axes of its own */
  int64_t dims[MAX_LEADING + 2];
  size_t row_bytes;
  size_t bytes;
  unsigned char *data;
} array;

/* All of one call. */
static struct {
  jaxc_function function;
  jaxc_dim dims[MAX_DIMS];
  long long values[MAX_DIMS];
  jaxc_parameter parameters[MAX_PARAMETERS];
  int64_t leading;
  int64_t full[MAX_LEADING];
  int64_t rows;
  int64_t points; /* of the grid; 1 where there is none */
  int has_grid;
  array operands[MAX_PARAMETERS];
  array results[MAX_PARAMETERS];
  unsigned char *expected[MAX_PARAMETERS];
  unsigned char *written[MAX_PARAMETERS]; /* times, by byte of a result */
  unsigned char *kept[MAX_PARAMETERS];    /* operands as they were */
  unsigned char values_of[MAX_PARAMETERS][16];
  jaxc_abi_span strings[MAX_PARAMETERS];
  _Atomic int64_t rows_called;
  int64_t stop_row;  /* -1: none */
  int64_t stop_step; /* further rows that stop; 0: none */
  int32_t row_slot;  /* a result by whose place a row is known; -1: none has bytes */
} c;

/* ---- the pool ---- */

enum { NO_POOL, INLINE_POOL, LATE_POOL, FIRST_THREADS };
#define MAX_TASKS 16

static struct {
  int kind, thread_count, is_ending, queued, taken;
  pthread_t threads[3];
  pthread_mutex_t lock;
  pthread_cond_t changed;
  jaxc_abi_task *tasks[MAX_TASKS];
  void *data[MAX_TASKS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Runs what is queued; waits for more until the pool ends. */
static void *pool_work(void *unused) {
  (void)unused;
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    if (pool.taken < pool.queued) {
      const int task = pool.taken++;
      pthread_mutex_unlock(&pool.lock);
      pool.tasks[task](pool.data[task]);
      pthread_mutex_lock(&pool.lock);
    } else if (pool.is_ending) {
      break;
    } else {
      pthread_cond_wait(&pool.changed, &pool.lock);
    }
  }
  pthread_mutex_unlock(&pool.lock);
  return NULL;
}

static jaxc_abi_error *pool_schedule(jaxc_abi_schedule_args *args) {
  jaxc_abi_error *const error = fuzz_error_maybe("no pool");
  FUZZ_CHECK(args->struct_size >= 40);
  if (error != NULL) return error;
  if (pool.kind == INLINE_POOL) {
    args->task(args->data);
    return NULL;
  }
  pthread_mutex_lock(&pool.lock);
  FUZZ_CHECK(pool.queued < MAX_TASKS);
  pool.tasks[pool.queued] = args->task;
  pool.data[pool.queued++] = args->data;
  pthread_cond_signal(&pool.changed);
  pthread_mutex_unlock(&pool.lock);
  return NULL;
}

static jaxc_abi_error *pool_threads(jaxc_abi_thread_count_args *args) {
  FUZZ_CHECK(args->struct_size >= 32);
  *args->thread_count = pool.kind >= FIRST_THREADS ? pool.thread_count + 1 : 4;
  return fuzz_error_maybe("no pool");
}

/* Where rows are not known from each other, nobody could say which one stopped. */
static void pool_begin(uint8_t choice) {
  pool.kind = c.row_slot < 0 ? NO_POOL : choice % 6;
  pool.thread_count = pool.is_ending = pool.queued = pool.taken = 0;
  if (pool.kind == NO_POOL) return;
  if (fuzz_runtime.api->struct_size >= 152) {
    fuzz_runtime.api->schedule = pool_schedule;
    fuzz_runtime.api->thread_count = pool_threads;
  }
  while (pool.kind >= FIRST_THREADS && pool.thread_count <= pool.kind - FIRST_THREADS) {
    pthread_t *const thread = &pool.threads[pool.thread_count++];
    if (pthread_create(thread, NULL, pool_work, NULL) != 0) exit(2);
  }
}

/* After the handler has returned: what was not begun runs now. */
static void pool_end(void) {
  const int64_t before = c.rows_called;
  pthread_mutex_lock(&pool.lock);
  pool.is_ending = 1;
  pthread_cond_broadcast(&pool.changed);
  pthread_mutex_unlock(&pool.lock);
  for (int i = 0; i < pool.thread_count; i++) pthread_join(pool.threads[i], NULL);
  (void)pool_work(NULL);
  FUZZ_CHECK(c.rows_called == before);
}

static int is_in_order(void) {
  return pool.kind == NO_POOL || (c.function.flags & JAXC_FUNCTION_EFFECT) != 0;
}

static int has_operand(int32_t k) {
  return c.parameters[k].role == JAXC_ROLE_INPUT ||
         c.parameters[k].role == JAXC_ROLE_INOUT;
}
static int has_result(int32_t k) {
  return c.parameters[k].role == JAXC_ROLE_OUTPUT ||
         c.parameters[k].role == JAXC_ROLE_INOUT;
}

/* ---- what a row computes ---- */

static uint64_t mix(uint64_t hash, const void *data, size_t size) {
  const unsigned char *const bytes = data;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
  return hash;
}

static unsigned char result_byte(uint64_t hash, int32_t k, size_t at) {
  return (unsigned char)((hash >> at % 8 * 8) + at + (size_t)k);
}

/* What does not depend on the row. */
static uint64_t hash_begin(void) {
  uint64_t hash = mix(7, c.values, (size_t)c.function.dim_count * sizeof *c.values);
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    if (c.parameters[k].role != JAXC_ROLE_STATIC) continue;
    if (c.parameters[k].dtype == JAXC_STRING) {
      hash = mix(hash, c.strings[k].ptr, c.strings[k].len);
    } else {
      hash = mix(hash, c.values_of[k], jaxc_dtype_size(c.parameters[k].dtype));
    }
  }
  return hash;
}

/* Place of a row in an array. */
static size_t row_offset(const array *a, int64_t row) {
  size_t offset = 0, step = a->row_bytes;
  for (int64_t axis = c.leading - 1; axis >= 0; axis--) {
    const int64_t index = row % c.full[axis];
    const int64_t own = axis - (c.leading - a->leading);
    row /= c.full[axis];
    if (own < 0) continue;
    if (a->dims[own] != 1) offset += (size_t)index * step;
    step *= (size_t)a->dims[own];
  }
  return offset;
}

/* Whether the results are a function of this operand. The points of a grid may change the
 * operand of an inout while others begin: it is added to instead. */
static int is_hashed(int32_t k) {
  return has_operand(k) && !(c.has_grid && has_result(k));
}

/* The plain loop. */
static void compute_expected(void) {
  for (int64_t row = 0; row < c.rows; row++) {
    uint64_t hash = hash_begin();
    for (int32_t k = 0; k < c.function.parameter_count; k++) {
      const array *const a = &c.operands[k];
      if (is_hashed(k)) hash = mix(hash, c.kept[k] + row_offset(a, row), a->row_bytes);
    }
    for (int32_t k = 0; k < c.function.parameter_count; k++) {
      const array *const a = &c.results[k];
      for (size_t i = 0; has_result(k) && i < a->row_bytes; i++) {
        unsigned char *const out = &c.expected[k][row_offset(a, row) + i];
        *out = c.points > 0 ? result_byte(hash, k, i) : 0;
        if (c.has_grid && has_operand(k)) {
          *out = (unsigned char)(*out + c.kept[k][row_offset(&c.operands[k], row) + i]);
        }
      }
    }
  }
}

/* ---- the kernel ---- */

static size_t core_count(int32_t k) {
  size_t count = 1;
  for (int32_t axis = 0; axis < c.parameters[k].rank; axis++) {
    int64_t size = 0;
    FUZZ_CHECK(jaxc_bound_value(&c.parameters[k].bounds[axis], c.values, &size));
    count *= (size_t)size;
  }
  return count;
}

/* Writes all scratch memory, then looks whether all is still there. */
static void use_scratch(char *const *data, const long long *strides) {
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t k = 0; k < c.function.parameter_count; k++) {
      const size_t bytes = core_count(k) * jaxc_dtype_size(c.parameters[k].dtype);
      if (c.parameters[k].role != JAXC_ROLE_SCRATCH) continue;
      FUZZ_CHECK((uintptr_t)data[k] % 64 == 0 && strides[k] == 0);
      if (pass == 0) memset(data[k], k + 1, bytes);
      FUZZ_CHECK(fuzz_is_filled(data[k], k + 1, bytes));
    }
  }
}

static void check_static(int32_t k, const char *data) {
  if (c.parameters[k].dtype == JAXC_STRING) {
    const char *text;
    memcpy(&text, data, sizeof text);
    FUZZ_CHECK(c.strings[k].len == 0 ||
               memcmp(text, c.strings[k].ptr, c.strings[k].len) == 0);
    FUZZ_CHECK(text[c.strings[k].len] == '\0');
  } else {
    FUZZ_CHECK(memcmp(data, c.values_of[k], jaxc_dtype_size(c.parameters[k].dtype)) == 0);
  }
}

/* Number of the row that the kernel is called for. */
static int64_t find_row(char *const *data, const long long *strides, long long row) {
  const array *const a = &c.results[c.row_slot < 0 ? 0 : c.row_slot];
  int64_t offset;
  if (c.row_slot < 0) return c.rows_called;
  offset = data[c.row_slot] + row * strides[c.row_slot] - (char *)a->data;
  FUZZ_CHECK(offset >= 0 && offset % (int64_t)a->row_bytes == 0);
  offset /= (int64_t)a->row_bytes;
  FUZZ_CHECK(offset < c.rows && (!is_in_order() || offset == c.rows_called));
  return offset;
}

/* The points that are to be called of each row. */
static void read_range(char *const *data, const long long *strides, long long *range) {
  range[0] = 0;
  range[1] = 1;
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    if (c.parameters[k].role != JAXC_ROLE_INDEX) continue;
    memcpy(range, data[k], 2 * sizeof *range);
    FUZZ_CHECK(strides[k] == 0);
    FUZZ_CHECK(range[0] >= 0 && range[0] <= range[1] && range[1] <= c.points);
    FUZZ_CHECK(!is_in_order() || (range[0] == 0 && range[1] == c.points));
  }
}

/* What a result must hold before a point writes to it. */
static unsigned char begin_byte(int32_t k, int64_t number, size_t i, unsigned char found) {
  if (c.has_grid && has_operand(k)) {
    FUZZ_CHECK(found == c.kept[k][row_offset(&c.operands[k], number) + i]);
    return found;
  }
  FUZZ_CHECK((c.parameters[k].flags & JAXC_PARAMETER_ZERO) == 0 || found == 0);
  return 0;
}

static void call_row(char *const *data, const long long *strides, long long row,
                     int64_t number) {
  long long range[2];
  uint64_t hash = hash_begin();
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    const array *const a = has_result(k) ? &c.results[k] : &c.operands[k];
    if (c.parameters[k].role == JAXC_ROLE_STATIC) check_static(k, data[k]);
    if (is_hashed(k)) hash = mix(hash, data[k] + row * strides[k], a->row_bytes);
  }
  use_scratch(data, strides);
  read_range(data, strides, range);
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    const array *const a = &c.results[k];
    unsigned char *const out = (unsigned char *)data[k] + row * strides[k];
    if (!has_result(k) || a->row_bytes == 0) continue;
    FUZZ_CHECK(out == a->data + row_offset(a, number));
    for (size_t i = 0; i < a->row_bytes; i++) {
      const int64_t point = c.points == 0 ? 0 : (int64_t)i % c.points;
      if (point < range[0] || point >= range[1]) continue;
      out[i] = (unsigned char)(result_byte(hash, k, i) + begin_byte(k, number, i, out[i]));
      c.written[k][out - a->data + (ptrdiff_t)i]++;
    }
  }
}

static int stops(int64_t row) {
  if (c.stop_row < 0 || row < c.stop_row) return 0;
  return row == c.stop_row || (c.stop_step > 0 && (row - c.stop_row) % c.stop_step == 0);
}

static int rows(const long long *dims, char *const *data, const long long *strides,
                long long count, jaxc_fault *fault) {
  FUZZ_CHECK(memcmp(dims, c.values, (size_t)c.function.dim_count * sizeof *dims) == 0);
  FUZZ_CHECK(count > 0 && count <= c.rows);
  for (long long row = 0; row < count; row++) {
    const int64_t number = find_row(data, strides, row);
    if (stops(number)) {
      fault->row = row;
      fault->status = 42 + number - c.stop_row;
      return 1;
    }
    call_row(data, strides, row, number);
    c.rows_called++;
  }
  return 0;
}

/* ---- a description ---- */

/* "n", "n + 1" or "3". */
static jaxc_bound make_bound(fuzz_input *in) {
  jaxc_bound_step *const steps = fuzz_new(in, 3 * sizeof *steps);
  jaxc_bound bound = {"a bound", steps, 1, -1};
  const int32_t dim = (int32_t)fuzz_byte(in) % MAX_DIMS;
  steps[0].code = JAXC_BOUND_CONSTANT;
  steps[0].argument = fuzz_between(in, 0, 3);
  if (dim >= c.function.dim_count) return bound;
  steps[0].code = JAXC_BOUND_DIM;
  steps[0].argument = dim;
  if (fuzz_chance(in, 4)) {
    steps[1].argument = fuzz_between(in, 0, 2);
    steps[2].code = JAXC_BOUND_ADD;
    bound.step_count = 3;
  } else {
    bound.dim = dim;
  }
  return bound;
}

static void make_parameter(fuzz_input *in, int32_t k, int clears) {
  static const int32_t dtypes[] = {JAXC_F32, JAXC_U8, JAXC_S16, JAXC_F64, JAXC_C128,
                                   JAXC_U64};
  jaxc_parameter *const p = &c.parameters[k];
  jaxc_bound *const bounds = fuzz_new(in, 2 * sizeof *bounds);
  static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
  p->name = names[k];
  p->declaration = "float p[n]";
  p->role = (int32_t)fuzz_between(in, JAXC_ROLE_INPUT, JAXC_ROLE_STATIC);
  p->dtype = dtypes[fuzz_byte(in) % 6];
  if (p->role == JAXC_ROLE_OUTPUT && clears) p->flags = JAXC_PARAMETER_ZERO;
  if (p->role == JAXC_ROLE_STATIC) {
    if (p->dtype == JAXC_C128) p->dtype = JAXC_STRING;
    c.function.attribute_count++;
  } else {
    p->rank = (int32_t)fuzz_between(in, 0, 2);
  }
  p->dim = -1;
  p->bounds = bounds;
  for (int32_t i = 0; i < p->rank; i++) bounds[i] = make_bound(in);
  c.function.argument_count += has_operand(k);
  c.function.result_count += has_result(k);
}

/* Adds the indices of a grid. */
static void make_grid(fuzz_input *in) {
  static const int32_t dtypes[] = {JAXC_S32, JAXC_U8, JAXC_S64, JAXC_U64};
  static const char *const names[] = {"i", "j"};
  const int32_t count = (int32_t)fuzz_between(in, 1, MAX_INDICES);
  for (int32_t place = 0; place < count; place++) {
    jaxc_parameter *const p = &c.parameters[c.function.parameter_count++];
    jaxc_bound *const bound = fuzz_new(in, sizeof *bound);
    *bound = make_bound(in);
    p->name = names[place];
    p->declaration = "int i";
    p->role = JAXC_ROLE_INDEX;
    p->dtype = dtypes[fuzz_byte(in) % 4];
    p->rank = 1;
    p->dim = place;
    p->bounds = bound;
  }
  c.has_grid = 1;
}

static void count_points(void) {
  c.points = 1;
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    if (c.parameters[k].role == JAXC_ROLE_INDEX) c.points *= (int64_t)core_count(k);
  }
}

/* A dimension that no input has as it is must be sent. */
static void make_dims(fuzz_input *in) {
  static const char *const names[] = {"n", "m", "k"};
  for (int32_t i = 0; i < c.function.dim_count; i++) {
    c.dims[i].name = names[i];
    c.dims[i].maximum = 100;
    c.dims[i].is_static = 1;
    c.values[i] = fuzz_between(in, 0, 4);
  }
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    for (int32_t axis = 0; has_operand(k) && axis < c.parameters[k].rank; axis++) {
      const int32_t dim = c.parameters[k].bounds[axis].dim;
      if (dim >= 0) c.dims[dim].is_static = 0;
    }
  }
  for (int32_t i = 0; i < c.function.dim_count; i++) {
    c.function.attribute_count += c.dims[i].is_static;
  }
}

/* ---- a call ---- */

static void make_array(fuzz_input *in, int32_t k, int is_result, array *out) {
  const jaxc_parameter *const p = &c.parameters[k];
  out->leading = is_result ? c.leading : fuzz_between(in, 0, c.leading);
  out->row_bytes = core_count(k) * jaxc_dtype_size(p->dtype);
  out->bytes = out->row_bytes;
  for (int64_t i = 0; i < out->leading; i++) {
    const int64_t full = c.full[c.leading - out->leading + i];
    out->dims[i] = !is_result && fuzz_chance(in, 4) ? 1 : full;
    out->bytes *= (size_t)out->dims[i];
  }
  for (int32_t axis = 0; axis < p->rank; axis++) {
    (void)jaxc_bound_value(&p->bounds[axis], c.values, &out->dims[out->leading + axis]);
  }
  out->data = fuzz_new(in, out->bytes + 2 * GUARD);
  memset(out->data, GUARD_BYTE, out->bytes + 2 * GUARD);
  out->data += GUARD;
  for (size_t i = 0; i < out->bytes; i++)
    out->data[i] = (unsigned char)(i * 37 + (size_t)k);
}

/* The sizes that arrays have in common; results have them all. */
static void find_rows(void) {
  for (int64_t axis = 0; axis < c.leading; axis++) {
    int is_there = 0;
    for (int32_t k = 0; k < c.function.parameter_count; k++) {
      const int64_t own = axis - (c.leading - c.operands[k].leading);
      if (has_result(k)) is_there = 1;
      if (has_operand(k) && own >= 0 && c.operands[k].dims[own] == c.full[axis])
        is_there = 1;
    }
    if (!is_there) c.full[axis] = 1;
    c.rows *= c.full[axis];
  }
}

static void make_arrays(fuzz_input *in) {
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    array *const operand = &c.operands[k];
    if (has_operand(k)) {
      make_array(in, k, 0, operand);
      c.kept[k] = fuzz_new(in, operand->bytes);
      memcpy(c.kept[k], operand->data, operand->bytes);
    }
    if (!has_result(k)) continue;
    make_array(in, k, 1, &c.results[k]);
    if (has_operand(k) && operand->bytes == c.results[k].bytes && fuzz_chance(in, 2)) {
      c.results[k].data = operand->data; /* as XLA gives both the same memory */
    }
    c.expected[k] = fuzz_new(in, c.results[k].bytes);
    c.written[k] = fuzz_new(in, c.results[k].bytes);
  }
  find_rows();
}

static void add_array(fuzz_input *in, jaxc_abi_operands *list, int32_t k, array *a) {
  jaxc_abi_buffer *const buffer = fuzz_new(in, sizeof *buffer);
  buffer->struct_size = sizeof *buffer;
  buffer->dtype = c.parameters[k].dtype;
  buffer->rank = a->leading + c.parameters[k].rank;
  buffer->dims = a->dims;
  buffer->data = a->bytes == 0 && fuzz_chance(in, 2) ? NULL : a->data;
  list->types[list->size] = JAXC_ABI_BUFFER;
  list->data[list->size++] = buffer;
}

static void begin_list(fuzz_input *in, jaxc_abi_operands *list) {
  list->struct_size = sizeof *list;
  list->types = fuzz_new(in, (MAX_PARAMETERS + 1) * sizeof *list->types);
  list->data = fuzz_new(in, (MAX_PARAMETERS + 1) * sizeof *list->data);
  if ((c.function.flags & JAXC_FUNCTION_EFFECT) != 0) list->size = 1; /* nobody looks */
}

static void add_scalar(fuzz_input *in, jaxc_abi_attrs *attrs, const char *name,
                       int32_t dtype, void *value) {
  const int64_t i = attrs->size++;
  jaxc_abi_scalar *const scalar = fuzz_new(in, sizeof *scalar);
  attrs->names[i] = fuzz_new(in, sizeof *attrs->names[i]);
  attrs->names[i]->ptr = name;
  attrs->names[i]->len = strlen(name);
  attrs->types[i] = JAXC_ABI_ATTR_SCALAR;
  scalar->dtype = dtype == JAXC_U64 ? JAXC_S64 : dtype;
  scalar->value = value;
  attrs->data[i] = scalar;
}

static void add_statics(fuzz_input *in, jaxc_abi_attrs *attrs) {
  const size_t most = MAX_PARAMETERS + MAX_DIMS;
  attrs->struct_size = sizeof *attrs;
  attrs->types = fuzz_new(in, most * sizeof *attrs->types);
  attrs->names = fuzz_new(in, most * sizeof *attrs->names);
  attrs->data = fuzz_new(in, most * sizeof *attrs->data);
  for (int32_t i = 0; i < c.function.dim_count; i++) {
    if (c.dims[i].is_static) {
      add_scalar(in, attrs, c.dims[i].name, JAXC_S64, &c.values[i]);
    }
  }
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    if (c.parameters[k].role != JAXC_ROLE_STATIC) continue;
    for (int i = 0; i < 16; i++) c.values_of[k][i] = fuzz_byte(in);
    add_scalar(in, attrs, c.parameters[k].name, c.parameters[k].dtype, c.values_of[k]);
    if (c.parameters[k].dtype == JAXC_STRING) {
      const size_t length = (size_t)fuzz_byte(in) * (fuzz_chance(in, 8) ? 40 : 1);
      char *const text = fuzz_new(in, length);
      memset(text, 'x', length);
      c.strings[k].ptr = length == 0 ? NULL : text;
      c.strings[k].len = length;
      attrs->types[attrs->size - 1] = JAXC_ABI_ATTR_STRING;
      attrs->data[attrs->size - 1] = &c.strings[k];
    }
  }
}

/* ---- after the call ---- */

/* Of a row that is not done, points may have been called. */
static void check_points(int32_t k, int64_t row, int is_done) {
  const array *const a = &c.results[k];
  const size_t at = row_offset(a, row);
  const int is_defined = c.points > 0 || has_operand(k) ||
                         (c.parameters[k].flags & JAXC_PARAMETER_ZERO) != 0;
  if (!is_done) {
    for (size_t i = 0; i < a->row_bytes; i++) FUZZ_CHECK(c.written[k][at + i] <= 1);
    return;
  }
  FUZZ_CHECK(fuzz_is_filled(c.written[k] + at, c.points > 0, a->row_bytes));
  if (is_defined) {
    FUZZ_CHECK(memcmp(a->data + at, c.expected[k] + at, a->row_bytes) == 0);
  }
}

/* Rows behind one that stopped may have been called, where several threads work. */
static void check_result(int32_t k, int64_t rows_done) {
  const array *const a = &c.results[k];
  for (int64_t row = 0; row < c.rows; row++) {
    const size_t at = row_offset(a, row);
    int is_done = row < rows_done;
    if (c.has_grid) {
      check_points(k, row, is_done);
      continue;
    }
    if (row > rows_done && !is_in_order() && !stops(row))
      is_done = a->row_bytes > 0 && c.written[k][at] == 1;
    FUZZ_CHECK(fuzz_is_filled(c.written[k] + at, is_done, a->row_bytes));
    if (!is_done) continue;
    FUZZ_CHECK(memcmp(a->data + at, c.expected[k] + at, a->row_bytes) == 0);
  }
}

static void check_arrays(int64_t rows_done) {
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    const array *const pair[2] = {has_operand(k) ? &c.operands[k] : NULL,
                                  has_result(k) ? &c.results[k] : NULL};
    const int is_shared =
        pair[0] != NULL && pair[1] != NULL && pair[0]->data == pair[1]->data;
    for (int i = 0; i < 2; i++) {
      if (pair[i] == NULL) continue;
      FUZZ_CHECK(fuzz_is_filled(pair[i]->data - GUARD, GUARD_BYTE, GUARD));
      FUZZ_CHECK(fuzz_is_filled(pair[i]->data + pair[i]->bytes, GUARD_BYTE, GUARD));
    }
    if (pair[0] != NULL && !is_shared) {
      FUZZ_CHECK(memcmp(pair[0]->data, c.kept[k], pair[0]->bytes) == 0);
    }
    if (pair[1] != NULL) check_result(k, rows_done);
  }
}

/* The text of a kernel that stopped. */
static void check_fault(const char *text) {
  char expected[128];
  snprintf(expected, sizeof expected, "batched: returned status 42; 0 is success");
  if (c.rows > 1) {
    snprintf(expected, sizeof expected,
             "batched: returned status 42 (batch row %lld of %lld); 0 is success",
             (long long)c.stop_row, (long long)c.rows);
  }
  FUZZ_CHECK(strcmp(text, expected) == 0);
}

static void call_function(fuzz_input *in, uint8_t pool_choice) {
  jaxc_abi_call_frame *const frame = fuzz_new(in, sizeof *frame);
  jaxc_abi_error *error;
  int64_t rows_done = c.rows;
  frame->struct_size = JAXC_ABI_FRAME_SIZE;
  frame->api = fuzz_runtime.api;
  frame->stage = JAXC_STAGE_EXECUTE;
  begin_list(in, &frame->args);
  begin_list(in, &frame->results);
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    if (has_operand(k)) add_array(in, &frame->args, k, &c.operands[k]);
    if (has_result(k)) add_array(in, &frame->results, k, &c.results[k]);
  }
  add_statics(in, &frame->attrs);
  compute_expected();
  pool_begin(pool_choice);
  error = jaxc_batch_handle(frame, &c.function);
  memset(frame, 0xDB, sizeof *frame);
  pool_end();
  if (error != NULL && error->code == JAXC_RESOURCE_EXHAUSTED) {
    FUZZ_CHECK(memory_fails && c.rows_called == 0);
    rows_done = 0;
  } else if (c.stop_row >= 0 && c.stop_row < c.rows) {
    FUZZ_CHECK(error != NULL && error->code == JAXC_UNKNOWN);
    check_fault(error->text);
    rows_done = c.stop_row;
  } else if (error != NULL) {
    fuzz_fail(__FILE__, __LINE__, error->text); /* a call that is right is refused */
  }
  FUZZ_CHECK(is_in_order() ? c.rows_called == rows_done : c.rows_called >= rows_done);
  check_arrays(rows_done);
  fuzz_runtime_end(error, c.function.name, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t last = size > 0 ? data[size - 1] : 0;
  fuzz_input in = {data, size > 0 ? size - 1 : 0, 0, NULL};
  memset(&c, 0, sizeof c);
  fuzz_runtime_begin(&in);
  c.function.struct_size = sizeof c.function;
  c.function.name = "batched";
  c.function.flags = fuzz_chance(&in, 8) ? JAXC_FUNCTION_EFFECT : 0;
  c.function.argument_count = c.function.result_count = c.function.flags != 0;
  if (last / 96 % 2 != 0) c.function.flags |= JAXC_FUNCTION_ZERO;
  c.function.dim_count = (int32_t)fuzz_between(&in, 0, MAX_DIMS);
  c.function.parameter_count =
      (int32_t)fuzz_between(&in, 1, MAX_PARAMETERS - MAX_INDICES);
  c.function.parameters = c.parameters;
  c.function.dims = c.dims;
  c.function.rows = rows;
  c.leading = fuzz_between(&in, 0, MAX_LEADING);
  for (int64_t i = 0; i < c.leading; i++) c.full[i] = (1 + fuzz_between(&in, 0, 3)) % 4;
  c.rows = 1;
  c.stop_row = fuzz_chance(&in, 8) ? fuzz_byte(&in) : -1;
  memory_fails = fuzz_chance(&in, 16);
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    make_parameter(&in, k, last / 96 % 2);
  }
  if (last / 48 % 2 != 0) make_grid(&in);
  make_dims(&in);
  count_points();
  make_arrays(&in);
  c.row_slot = -1;
  for (int32_t k = 0; k < c.function.parameter_count; k++) {
    if (has_result(k) && c.results[k].row_bytes > 0) c.row_slot = k;
  }
  c.stop_step = last / 6 % 8;
  call_function(&in, last);
  fuzz_end(&in);
  return 0;
}
