/* advanced.c: handlers for several types, with a state, asynchronous ones, with
 * attributes of every kind, with work memory, and on the runtime's threads.
 *
 *   cc -O3 -shared -fPIC -pthread -I$(python -m jaxc --include) advanced.c \
 *      -o libadvanced.so -lm
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/jaxc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SAME_SHAPE(a, b)     \
  ((a).rank == (b).rank &&   \
   memcmp((a).dims, (b).dims, (size_t)(a).rank * sizeof *(a).dims) == 0)

/* Rows of one type. `to` and `from` are conversions to and from the type of the sum. */
#define DEFINE_NORMALISE(name, type, sum_type, to, from)                            \
  static void name(float eps, int64_t n, const type *x, type *y) {                  \
    sum_type sum = 0;                                                               \
    for (int64_t i = 0; i < n; i++) sum += to(x[i]) * to(x[i]);                     \
    const sum_type r = (sum_type)(1 / sqrt((double)(sum / (sum_type)n) + (double)eps)); \
    for (int64_t i = 0; i < n; i++) y[i] = from(to(x[i]) * r);                      \
  }

#define SAME(value) (value)
DEFINE_NORMALISE(normalise_f32, float, float, SAME, SAME)
DEFINE_NORMALISE(normalise_f64, double, double, SAME, SAME)
DEFINE_NORMALISE(normalise_bf16, jaxc_bf16, float, jaxc_bf16_to, jaxc_bf16_from)

/* ---- several types: one handler that asks what came ---- */

typedef struct {
  JAXC_VIEW(const void) x;
  JAXC_VIEW(void) y;
  float eps;
} any_call;

static const jaxc_field any_fields[] = {
    JAXC_ARGUMENT(any_call, x, JAXC_AT_LEAST(1)),
    JAXC_RESULT(any_call, y, JAXC_AT_LEAST(1)),
    JAXC_ATTRIBUTE(any_call, eps),
};

#define EACH_ROW(function, type)                                         \
  for (int64_t at = 0; at < call->x.count; at += n) {                    \
    function(call->eps, n, (const type *)call->x.data + at,              \
             (type *)call->y.data + at);                                 \
  }                                                                      \
  return JAXC_OK

static jaxc_status any(jaxc_context *context, const void *data) {
  const any_call *const call = data;
  const int64_t n = call->x.dims[call->x.rank - 1];
  if (!SAME_SHAPE(call->x, call->y) || call->x.dtype != call->y.dtype) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in shape or type");
  }
  switch (call->x.dtype) {
    case JAXC_F32: EACH_ROW(normalise_f32, float);
    case JAXC_F64: EACH_ROW(normalise_f64, double);
    case JAXC_BF16: EACH_ROW(normalise_bf16, jaxc_bf16);
    default:
      return jaxc_fail(context, JAXC_UNIMPLEMENTED, "not implemented for %s",
                       jaxc_dtype_name(call->x.dtype));
  }
}

JAXC_HANDLER(RmsNormAny, any_call, any_fields, .execute = any);

/* ---- several types: a handler for each ---- */

#define DEFINE_HANDLER(symbol, name, type)                                          \
  typedef struct {                                                                  \
    JAXC_VIEW(const type) x;                                                        \
    JAXC_VIEW(type) y;                                                              \
    float eps;                                                                      \
  } name##_call;                                                                    \
  static const jaxc_field name##_fields[] = {                                       \
      JAXC_ARGUMENT(name##_call, x, JAXC_AT_LEAST(1)),                              \
      JAXC_RESULT(name##_call, y, JAXC_AT_LEAST(1)),                                \
      JAXC_ATTRIBUTE(name##_call, eps),                                             \
  };                                                                                \
  static jaxc_status name##_rows(jaxc_context *context, const void *data) {         \
    const name##_call *const call = data;                                           \
    const int64_t n = call->x.dims[call->x.rank - 1];                               \
    if (!SAME_SHAPE(call->x, call->y)) {                                            \
      return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in shape");  \
    }                                                                               \
    EACH_ROW(name, type);                                                           \
  }                                                                                 \
  JAXC_HANDLER(symbol, name##_call, name##_fields, .execute = name##_rows)

DEFINE_HANDLER(RmsNormF32, normalise_f32, float);
DEFINE_HANDLER(RmsNormF64, normalise_f64, double);
DEFINE_HANDLER(RmsNormBf16, normalise_bf16, jaxc_bf16);

/* ---- a state: a table made once for each call site of a compiled program ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  int64_t size;
} window_call;

static const jaxc_field window_fields[] = {
    JAXC_ARGUMENT(window_call, x, 1),
    JAXC_RESULT(window_call, y, 1),
    JAXC_ATTRIBUTE(window_call, size),
};

static atomic_int windows_made, windows_gone;
JAXC_EXPORT int count_windows_made(void);
JAXC_EXPORT int count_windows_gone(void);
int count_windows_made(void) { return windows_made; }
int count_windows_gone(void) { return windows_gone; }

static void window_destroy(void *state) {
  free(state);
  windows_gone++;
}

static jaxc_state_type window_type = JAXC_STATE_TYPE("tutorial.window", window_destroy);

/* Hann's window. Here there are attributes, and on CPUs no arrays. */
static jaxc_status window_instantiate(jaxc_context *context, const void *data) {
  const window_call *const call = data;
  const int64_t most = 1 << 20;
  if (call->size < 2 || call->size > most) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "size is %lld, expected 2 to %lld",
                     (long long)call->size, (long long)most);
  }
  float *const weights = malloc((size_t)call->size * sizeof *weights);
  if (weights == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  const double step = acos(-1.0) / (double)(call->size - 1);
  for (int64_t i = 0; i < call->size; i++) {
    weights[i] = (float)(sin(step * (double)i) * sin(step * (double)i));
  }
  const jaxc_status status = jaxc_state_set(context, &window_type, weights);
  if (status == JAXC_OK) {
    windows_made++;
  } else {
    free(weights);
  }
  return status;
}

static jaxc_status window_execute(jaxc_context *context, const void *data) {
  const window_call *const call = data;
  void *state = NULL;
  if (call->x.count != call->size || call->y.count != call->size) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT,
                     "x has %lld elements, y %lld, expected %lld", (long long)call->x.count,
                     (long long)call->y.count, (long long)call->size);
  }
  JAXC_TRY(jaxc_state_get(context, &window_type, JAXC_STAGE_INSTANTIATE, &state));
  const float *const weights = state;
  for (int64_t i = 0; i < call->size; i++) call->y.data[i] = weights[i] * call->x.data[i];
  return JAXC_OK;
}

JAXC_HANDLER(Window, window_call, window_fields, .execute = window_execute,
             .instantiate = window_instantiate, .instantiate_state = &window_type);

/* ---- an asynchronous handler: it returns, and a thread of ours finishes the call ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  float eps;
} later_call;

static const jaxc_field later_fields[] = {
    JAXC_ARGUMENT(later_call, x, JAXC_AT_LEAST(1)),
    JAXC_RESULT(later_call, y, JAXC_AT_LEAST(1)),
    JAXC_ATTRIBUTE(later_call, eps),
};

/* All that the work needs: the frame is gone by then, the buffers stay until the end. */
typedef struct {
  jaxc_future future;
  const float *x;
  float *y;
  int64_t count;
  int64_t n;
  float eps;
  atomic_int handler_is_through;
} later_work;

static atomic_int calls_finished_later;
JAXC_EXPORT int count_finished_later(void);
int count_finished_later(void) { return calls_finished_later; }

/* Begins only when the handler has done its last step, to show that it need not wait. */
static void *later_thread(void *data) {
  later_work *const work = data;
  while (!work->handler_is_through) (void)sched_yield();
  if (work->eps < 0) {
    jaxc_future_finish(&work->future, JAXC_INVALID_ARGUMENT, "eps is negative");
  } else {
    for (int64_t at = 0; at < work->count; at += work->n) {
      normalise_f32(work->eps, work->n, work->x + at, work->y + at);
    }
    calls_finished_later++;
    jaxc_future_finish(&work->future, JAXC_OK, NULL);
  }
  free(work);
  return NULL;
}

static jaxc_status later(jaxc_context *context, const void *data) {
  const later_call *const call = data;
  pthread_t thread;
  if (!SAME_SHAPE(call->x, call->y)) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in shape");
  }
  later_work *const work = malloc(sizeof *work);
  if (work == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  work->x = call->x.data;
  work->y = call->y.data;
  work->count = call->x.count;
  work->n = call->x.dims[call->x.rank - 1];
  work->eps = call->eps;
  atomic_init(&work->handler_is_through, 0);
  const jaxc_status status = jaxc_future_begin(context, &work->future);
  if (status != JAXC_OK || pthread_create(&thread, NULL, later_thread, work) != 0) {
    free(work);
    if (status != JAXC_OK) return status;
    return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no thread"); /* by the future */
  }
  (void)pthread_detach(thread);
  work->handler_is_through = 1; /* the last use of work: the thread frees it */
  return JAXC_OK;
}

JAXC_HANDLER(Later, later_call, later_fields, .execute = later);

/* ---- attributes of every kind ---- */

typedef enum { EDGE_ZERO, EDGE_REPEAT, EDGE_WRAP, EDGE_COUNT } edge_mode;

typedef struct {
  float scale;
  float offset;
} affine;

static const jaxc_field affine_fields[] = {
    JAXC_ATTRIBUTE(affine, scale),
    JAXC_ATTRIBUTE(affine, offset),
};

/* y[i] = scale f(sum_k taps[k] x[i - k]) + offset, where x goes on at its left as `edge`
 * says and f is called `activation`. */
typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  jaxc_string activation;
  edge_mode edge;
  affine output;
  _Bool reverse;
  jaxc_array taps;
} filter_call;

static const filter_call filter_defaults = {.reverse = 0};

static const jaxc_field filter_fields[] = {
    JAXC_ARGUMENT(filter_call, x, 1),
    JAXC_RESULT(filter_call, y, 1),
    JAXC_ATTRIBUTE(filter_call, activation),
    JAXC_ATTRIBUTE_ENUM(filter_call, edge, EDGE_COUNT),
    JAXC_ATTRIBUTE_NESTED(filter_call, output, affine_fields),
    JAXC_OPTIONAL_ATTRIBUTE(filter_call, reverse),
    JAXC_ATTRIBUTE_ARRAY(filter_call, taps, JAXC_F32),
};

/* Strings have no NUL at their end. */
static int string_is(jaxc_string string, const char *text) {
  return string.len == strlen(text) && memcmp(string.ptr, text, string.len) == 0;
}

static float element(const filter_call *call, int64_t i) {
  const int64_t n = call->x.count;
  if (i >= 0) return call->x.data[i];
  switch (call->edge) {
    case EDGE_REPEAT: return call->x.data[0];
    case EDGE_WRAP: return call->x.data[(i % n + n) % n];
    default: return 0;
  }
}

static jaxc_status filter(jaxc_context *context, const void *data) {
  const filter_call *const call = data;
  const float *const taps = call->taps.data;
  const int is_tanh = string_is(call->activation, "tanh");
  if (!is_tanh && !string_is(call->activation, "none")) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT,
                     "activation is '%.*s', expected 'none' or 'tanh'",
                     (int)(call->activation.len < 50 ? call->activation.len : 50),
                     call->activation.ptr);
  }
  if (!SAME_SHAPE(call->x, call->y)) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in shape");
  }
  for (int64_t i = 0; i < call->x.count; i++) {
    float sum = 0;
    for (size_t k = 0; k < call->taps.size; k++) {
      const float tap = taps[call->reverse ? call->taps.size - 1 - k : k];
      sum += tap * element(call, i - (int64_t)k);
    }
    if (is_tanh) sum = tanhf(sum);
    call->y.data[i] = call->output.scale * sum + call->output.offset;
  }
  return JAXC_OK;
}

JAXC_HANDLER(Filter, filter_call, filter_fields, .execute = filter,
             .defaults = &filter_defaults);

/* ---- work memory ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) median;
} median_call;

static const jaxc_field median_fields[] = {
    JAXC_ARGUMENT(median_call, x, JAXC_AT_LEAST(1)),
    JAXC_RESULT(median_call, median, JAXC_ANY_RANK),
};

static int compare(const void *a, const void *b) {
  const float left = *(const float *)a, right = *(const float *)b;
  return (left > right) - (left < right);
}

/* Of each row, which is sorted in memory that the context frees. */
static jaxc_status median(jaxc_context *context, const void *data) {
  const median_call *const call = data;
  const int64_t n = call->x.dims[call->x.rank - 1];
  const size_t size = (size_t)n * sizeof(float); /* of a row of x, so it is a size_t */
  void *memory = NULL;
  if (n == 0 || call->x.count / n != call->median.count) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT,
                     "the median needs a value in each row and a result for it");
  }
  JAXC_TRY(jaxc_context_host_memory(context, size, &memory));
  float *const sorted = memory;
  for (int64_t row = 0; row < call->median.count; row++) {
    memcpy(sorted, call->x.data + row * n, size);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    call->median.data[row] = 0.5f * (sorted[(n - 1) / 2] + sorted[n / 2]);
  }
  return JAXC_OK;
}

JAXC_HANDLER(Median, median_call, median_fields, .execute = median);

/* ---- the runtime's threads ---- */

/* One for the call: the last piece finishes it. A handler that waited here instead could
 * wait for ever, since the thread it blocks may be the one that its pieces need. */
typedef struct {
  jaxc_future future;
  atomic_int pieces_left;
} team;

typedef struct {
  team *team;
  const float *x;
  float *y;
  int64_t rows;
  int64_t n;
  float eps;
} piece;

static atomic_int pieces_done;
JAXC_EXPORT int count_pieces_done(void);
int count_pieces_done(void) { return pieces_done; }

static void piece_run(void *data) {
  piece *const work = data;
  team *const team = work->team;
  for (int64_t row = 0; row < work->rows; row++) {
    normalise_f32(work->eps, work->n, work->x + row * work->n, work->y + row * work->n);
  }
  free(work);
  pieces_done++;
  if (atomic_fetch_sub(&team->pieces_left, 1) != 1) return;
  jaxc_future_finish(&team->future, JAXC_OK, NULL);
  free(team);
}

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  float eps;
} parallel_call;

static const jaxc_field parallel_fields[] = {
    JAXC_ARGUMENT(parallel_call, x, 2),
    JAXC_RESULT(parallel_call, y, 2),
    JAXC_ATTRIBUTE(parallel_call, eps),
};

/* Hands the pieces out. What the pool does not take is done here. */
static jaxc_status parallel_start(jaxc_context *context, const parallel_call *call,
                                  team *team, piece **pieces, int count) {
  const int64_t rows = call->x.dims[0], n = call->x.dims[1];
  int64_t at = 0;
  JAXC_TRY(jaxc_future_begin(context, &team->future));
  atomic_init(&team->pieces_left, count);
  for (int k = 0; k < count; k++) {
    const int64_t mine = rows / count + (k < rows % count);
    *pieces[k] = (piece){team, call->x.data + at, call->y.data + at, mine, n, call->eps};
    at += mine * n;
    if (jaxc_context_schedule(context, piece_run, pieces[k]) != JAXC_OK) {
      piece_run(pieces[k]);
    }
  }
  return JAXC_OK;
}

static jaxc_status parallel(jaxc_context *context, const void *data) {
  const parallel_call *const call = data;
  enum { MOST = 16 };
  piece *pieces[MOST] = {NULL};
  int64_t threads;
  int count = 0;
  if (!SAME_SHAPE(call->x, call->y)) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in shape");
  }
  JAXC_TRY(jaxc_context_thread_count(context, &threads));
  team *const team = malloc(sizeof *team);
  while (count < MOST && count < threads) {
    pieces[count] = malloc(sizeof *pieces[count]);
    if (pieces[count] == NULL) break;
    count++;
  }
  jaxc_status status = JAXC_RESOURCE_EXHAUSTED;
  if (team == NULL || count == 0) {
    (void)jaxc_fail(context, status, "no memory");
  } else {
    status = parallel_start(context, call, team, pieces, count);
  }
  if (status != JAXC_OK) { /* else they free themselves */
    for (int k = 0; k < count; k++) free(pieces[k]);
    free(team);
  }
  return status;
}

JAXC_HANDLER(Parallel, parallel_call, parallel_fields, .execute = parallel);
