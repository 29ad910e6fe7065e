/* rows.h: the leading axes of a call broadcast, and the function called on all rows.
 *
 *   JAXC_TRY(jaxci_rows_run(frame, &batch, &message));     after signature.h's checks
 *
 * Included by batch.h, and of use to nobody else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_ROWS_H
#define JAXC_ROWS_H

#include <jaxc/parallel.h>
#include <jaxc/points.h>
#include <stdlib.h>
#include <time.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define JAXCI_SCRATCH_ALIGNMENT ((size_t)64)
#define JAXCI_LOCAL_SCRATCH ((size_t)4096)

/* Bytes that parameter k needs in the block behind all scratch and strings. */
static jaxc_status jaxci_batch_block_bytes(const jaxci_batch *batch, int32_t k,
                                           const jaxc_abi_attrs *attrs, int64_t *out,
                                           jaxc_message *message) {
  const jaxc_parameter *parameter = &batch->function->parameters[k];
  int64_t bytes = (int64_t)jaxc_dtype_size(parameter->dtype);
  jaxc_abi_span span;
  *out = 0;
  if (parameter->role == JAXC_ROLE_STATIC && parameter->dtype == JAXC_STRING) {
    JAXC_TRY(jaxc_attrs_string(attrs, parameter->name, &span, message));
    *out = (int64_t)span.len + 1;
    return JAXC_OK;
  }
  if (parameter->role != JAXC_ROLE_SCRATCH) return JAXC_OK;
  for (int32_t axis = 0; axis < parameter->rank; axis++) {
    int64_t size;
    if (!jaxc_bound_value(&parameter->bounds[axis], batch->dims, &size) ||
        !jaxc_multiply(bytes, size, &bytes)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "scratch '%s' has no size for these dimensions (C: %s)",
                       parameter->name, parameter->declaration);
    }
  }
  *out = bytes;
  return JAXC_OK;
}

/* Places scratch and strings in `local` or in memory that goes to *allocated, which the
 * caller frees. RESOURCE_EXHAUSTED when there is no memory. */
static jaxc_status jaxci_batch_block(jaxci_batch *batch, const jaxc_abi_attrs *attrs,
                                     char *local, void **allocated,
                                     jaxc_message *message) {
  const jaxc_function *function = batch->function;
  int64_t offsets[JAXC_MAX_PARAMETERS];
  int64_t total = 0;
  char *block = local;
  for (int32_t k = 0; k < function->parameter_count; k++) {
    int64_t bytes;
    JAXC_TRY(jaxci_batch_block_bytes(batch, k, attrs, &bytes, message));
    offsets[k] = total;
    if (bytes > INT64_MAX / 4 || total > INT64_MAX / 4) {
      return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED,
                       "scratch '%s' of %lld bytes does not fit in memory",
                       function->parameters[k].name, (long long)bytes);
    }
    total += (bytes + (int64_t)JAXCI_SCRATCH_ALIGNMENT - 1) &
             ~((int64_t)JAXCI_SCRATCH_ALIGNMENT - 1);
  }
  if (total > (int64_t)JAXCI_LOCAL_SCRATCH) {
    *allocated = (uint64_t)total > SIZE_MAX - JAXCI_SCRATCH_ALIGNMENT
                     ? NULL
                     : malloc((size_t)total + JAXCI_SCRATCH_ALIGNMENT);
    if (*allocated == NULL) {
      return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED,
                       "no memory for %lld bytes of scratch", (long long)total);
    }
    block = (char *)*allocated;
  }
  block += (JAXCI_SCRATCH_ALIGNMENT - (uintptr_t)block % JAXCI_SCRATCH_ALIGNMENT) %
           JAXCI_SCRATCH_ALIGNMENT;
  for (int32_t k = 0; k < function->parameter_count; k++) {
    const jaxc_parameter *parameter = &function->parameters[k];
    if (parameter->role == JAXC_ROLE_SCRATCH) {
      batch->data[k] = block + offsets[k];
    } else if (parameter->role == JAXC_ROLE_STATIC && parameter->dtype == JAXC_STRING) {
      jaxc_abi_span span;
      JAXC_TRY(jaxc_attrs_string(attrs, parameter->name, &span, message));
      if (span.len != 0) memcpy(block + offsets[k], span.ptr, span.len);
      block[offsets[k] + (int64_t)span.len] = '\0';
      batch->statics[k].string = block + offsets[k];
    }
  }
  return JAXC_OK;
}

/* Gives the batch what each thread has of its own: scratch, strings and the context. */
static jaxc_status jaxci_batch_own(jaxci_batch *batch, const jaxc_abi_call_frame *frame,
                                   char *local, void **allocated, jaxc_context *context,
                                   jaxc_message *message) {
  if (batch->context >= 0) {
    jaxci_context_begin(context, frame, batch->function->name);
    context->has_future = 1; /* a row cannot put off its completion */
    batch->data[batch->context] = (char *)context;
  }
  return jaxci_batch_block(batch, &frame->attrs, local, allocated, message);
}

static JAXC_COLD jaxc_status jaxci_batch_fault(const jaxci_batch *batch,
                                               const jaxc_fault *fault, int64_t row,
                                               jaxc_message *message) {
  char where[64] = "";
  if (batch->rows > 1 && !(fault->text != NULL && fault->status == -1)) {
    snprintf(where, sizeof where, " (batch row %lld of %lld)", (long long)row,
             (long long)batch->rows);
  }
  if (fault->text != NULL) { /* with a status where the text is a context's */
    const int is_known = fault->status > JAXC_OK && fault->status <= JAXC_UNAUTHENTICATED;
    return JAXC_FAIL(message, is_known ? (jaxc_status)fault->status : JAXC_UNKNOWN, "%s%s",
                     fault->text, where);
  }
  return JAXC_FAIL(message, JAXC_UNKNOWN, "returned status %lld%s; 0 is success",
                   fault->status, where);
}

/* The same for a function that takes a context: a row at a time, since memory that it
 * takes is its own until it returns. An error that it has put into the context is its
 * text. */
static JAXC_NOINLINE jaxc_status jaxci_batch_call_with_context(
    const jaxci_batch *batch, const long long *strides, int64_t count, int64_t first,
    int64_t *failed, jaxc_message *message) {
  jaxc_context *const context = (jaxc_context *)(void *)batch->data[batch->context];
  char *data[JAXCI_MAX_SLOTS];
  memcpy(data, batch->data, (size_t)batch->slot_count * sizeof *data);
  for (int64_t row = 0; row < count; row++) {
    jaxc_fault fault = {0, 0, NULL};
    int stopped;
    jaxc_status status;
    context->message.text[0] = '\0';
    stopped = batch->function->rows(batch->dims, data, strides, 1, &fault);
    *failed = first + row;
    if (stopped) { /* its text may lie in memory that is freed */
      if (context->message.text[0] != '\0') fault.text = context->message.text;
      status = jaxci_batch_fault(batch, &fault, *failed, message);
      (void)jaxci_context_free(context);
      return status;
    }
    status = jaxci_context_free(context);
    if (status != JAXC_OK) return JAXC_FAIL(message, status, "%s", context->message.text);
    for (int32_t slot = 0; slot < batch->slot_count; slot++) data[slot] += strides[slot];
  }
  return JAXC_OK;
}

/* Calls the kernel on a run of rows, of which the first is number `first`. The number of
 * a row that fails goes to *failed. */
static inline jaxc_status jaxci_batch_call(const jaxci_batch *batch,
                                           const long long *strides, int64_t count,
                                           int64_t first, int64_t *failed,
                                           jaxc_message *message) {
  jaxc_fault fault = {0, 0, NULL};
  if (batch->prepares != 0) {
    jaxci_points_prepare(batch, strides, count);
    if ((batch->prepares & JAXCI_PREPARE_ONLY) != 0) return JAXC_OK;
  }
  if (batch->context >= 0) {
    return jaxci_batch_call_with_context(batch, strides, count, first, failed, message);
  }
  if (batch->function->rows(batch->dims, batch->data, strides, count, &fault) != 0) {
    *failed = first + fault.row;
    return jaxci_batch_fault(batch, &fault, *failed, message);
  }
  return JAXC_OK;
}

/* Calls the kernel on rows begin to end - 1, a run of the innermost axis at a time. base:
 * where each slot has row 0; batch->data is used for what changes. */
static jaxc_status jaxci_rows_piece(jaxci_batch *batch, char *const *base,
                                    const jaxci_axes *axes, int64_t begin, int64_t end,
                                    int64_t *failed, jaxc_message *message) {
  const int64_t run = axes->sizes[0];
  int64_t index[JAXC_MAX_AXES];
  int64_t rest = begin;
  memcpy(batch->data, base, (size_t)batch->slot_count * sizeof *base);
  for (int32_t axis = 0; axis < axes->count; axis++) {
    index[axis] = rest % axes->sizes[axis];
    rest /= axes->sizes[axis];
    for (int32_t slot = 0; index[axis] != 0 && slot < batch->slot_count; slot++) {
      batch->data[slot] += axes->strides[axis][slot] * index[axis];
    }
  }
  for (;;) {
    const int64_t count = run - index[0] < end - begin ? run - index[0] : end - begin;
    JAXC_TRY(jaxci_batch_call(batch, axes->strides[0], count, begin, failed, message));
    begin += count;
    if (begin >= end) return JAXC_OK;
    for (int32_t slot = 0; index[0] != 0 && slot < batch->slot_count; slot++) {
      batch->data[slot] -= axes->strides[0][slot] * index[0];
    }
    index[0] = 0;
    for (int32_t axis = 1; axis < axes->count; axis++) { /* the odometer */
      const int wraps = ++index[axis] == axes->sizes[axis];
      const long long back = axes->sizes[axis] - 1;
      for (int32_t slot = 0; slot < batch->slot_count; slot++) {
        const long long stride = axes->strides[axis][slot];
        if (stride != 0) batch->data[slot] += wraps ? -stride * back : stride;
      }
      if (!wraps) break;
      index[axis] = 0;
    }
  }
}

/* Calls the kernel on units begin to end - 1, as far as *failed: rows, or the points of
 * all rows in order. */
static jaxc_status jaxci_units_piece(jaxci_batch *batch, char *const *base,
                                     const jaxci_axes *axes, int64_t begin, int64_t end,
                                     int64_t *failed, jaxc_message *message) {
  const int64_t points = batch->points;
  if (!batch->by_point) {
    return jaxci_rows_piece(batch, base, axes, begin, end, failed, message);
  }
  while (begin < end) { /* the rest of a row, whole rows, the begin of a row */
    const int64_t row = begin / points, first = begin % points, left = end - begin;
    const int64_t rows = first == 0 && left > points ? left / points : 1;
    const int64_t count = left < points - first ? left : points - first;
    jaxc_status status;
    batch->range[0] = first;
    batch->range[1] = first + count;
    status = jaxci_rows_piece(batch, base, axes, row, row + rows, failed, message);
    if (status != JAXC_OK) {
      *failed = *failed * points > begin ? *failed * points : begin;
      return status;
    }
    begin += rows * count;
  }
  return JAXC_OK;
}

/* ---- several threads ---- */

/* When threads of the pool are worth it, in nanoseconds of work that remains; how long a
 * piece should be at least; and bytes above which neither is measured first. Waking a
 * thread costs some 5 microseconds. */
#ifndef JAXCI_PARALLEL_NS
#define JAXCI_PARALLEL_NS 20000
#endif
#ifndef JAXCI_TRUSTED_NS
#define JAXCI_TRUSTED_NS 2000
#endif
#ifndef JAXCI_PIECE_NS
#define JAXCI_PIECE_NS 5000
#endif
#ifndef JAXCI_PARALLEL_BYTES
#define JAXCI_PARALLEL_BYTES ((int64_t)256 * 1024)
#endif
#ifndef JAXCI_PIECE_BYTES
#define JAXCI_PIECE_BYTES ((int64_t)16 * 1024)
#endif

/* What the threads of one call share; on the stack of the calling thread. */
typedef struct {
  const jaxci_batch *batch; /* as it was before the first row; data[] are row 0 */
  const jaxci_axes *axes;
  const jaxc_abi_call_frame *frame;
  int32_t lock;
  int64_t failed; /* the first unit in order that failed, or the number of units */
  jaxc_status status;
  jaxc_message message;
} jaxci_crew;

/* Keeps the failure of the first unit in order. */
JAXC_COLD static void jaxci_crew_fail(jaxci_crew *crew, int64_t unit, jaxc_status status,
                                      const jaxc_message *message) {
#if JAXCI_HAS_ATOMICS
  while (__atomic_exchange_n(&crew->lock, 1, __ATOMIC_ACQUIRE) != 0) {
  }
#endif
  if (unit < crew->failed) {
    crew->failed = unit;
    crew->status = status;
    crew->message = *message;
  }
#if JAXCI_HAS_ATOMICS
  __atomic_store_n(&crew->lock, 0, __ATOMIC_RELEASE);
#endif
}

static void jaxci_crew_units(jaxci_loop *loop, jaxci_crew *crew, jaxci_batch *batch,
                             char *const *base) {
  int64_t begin, end;
  while (jaxci_loop_next(loop, &begin, &end)) {
    jaxc_message message;
    int64_t failed = begin;
    const jaxc_status status =
        jaxci_units_piece(batch, base, crew->axes, begin, end, &failed, &message);
    if (status == JAXC_OK) continue;
    jaxci_loop_stop(loop, failed);
    jaxci_crew_fail(crew, failed, status, &message);
  }
}

/* The work of one thread; `own` is the calling thread's batch, with its scratch memory.
 * A thread of the pool that finds no memory for scratch leaves the units to the others. */
static void jaxci_crew_work(jaxci_loop *loop, void *data, void *own) {
  jaxci_crew *const crew = (jaxci_crew *)data;
  if (own != NULL) {
    jaxci_crew_units(loop, crew, (jaxci_batch *)own, crew->batch->data);
    return;
  }
  char local[JAXCI_LOCAL_SCRATCH + JAXCI_SCRATCH_ALIGNMENT];
  char *base[JAXCI_MAX_SLOTS];
  jaxci_batch batch = *crew->batch;
  jaxc_context context;
  jaxc_message message;
  void *allocated = NULL;
  jaxci_points_own(&batch);
  if (!batch.needs_block || jaxci_batch_own(&batch, crew->frame, local, &allocated,
                                            &context, &message) == JAXC_OK) {
    memcpy(base, batch.data, (size_t)batch.slot_count * sizeof *base);
    jaxci_crew_units(loop, crew, &batch, base);
  }
  free(allocated);
}

/* About nanoseconds since some time; 0 where there is no clock. A factor of two does not
 * matter here, the cost of asking does. */
static inline int64_t jaxci_now_ns(void) {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  return (int64_t)(__builtin_ia32_rdtsc() / 5 * 2); /* 2.5 GHz */
#elif defined(TIME_UTC)
  struct timespec now;
  if (timespec_get(&now, TIME_UTC) == TIME_UTC) {
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  }
#endif
  return 0;
}

/* Bytes that one unit reads and writes of its own. What a point does with its row's arrays
 * is not known: at least something. */
static int64_t jaxci_units_bytes(const jaxci_batch *batch, const jaxci_axes *axes) {
  int64_t bytes = 0;
  if (batch->by_point) return 1;
  for (int32_t slot = 0; slot < batch->slot_count; slot++) {
    const long long stride = axes->strides[0][slot];
    if (bytes < INT64_MAX / 4) bytes += stride < 0 ? -stride : stride;
  }
  return bytes > 0 ? bytes : 1;
}

/* Units from `begin` on, in all threads. unit_ns: what one takes, 0 when not known. */
static JAXC_NOINLINE jaxc_status jaxci_units_parallel(
    const jaxc_abi_call_frame *frame, jaxci_batch *batch, char *const *base,
    const jaxci_axes *axes, int64_t begin, int64_t unit_bytes, double unit_ns,
    jaxc_message *message) {
  const int64_t threads = jaxci_loop_threads(frame);
  const int64_t left = batch->units - begin;
  int64_t piece = left / (threads * 8);
  int64_t least = (JAXCI_PIECE_BYTES - 1) / unit_bytes + 1;
  jaxci_batch pristine;
  jaxci_crew crew;
  if (threads == 1) {
    int64_t failed;
    return jaxci_units_piece(batch, base, axes, begin, batch->units, &failed, message);
  }
  if (unit_ns > 0 && (double)least * unit_ns > JAXCI_PIECE_NS) {
    least = (int64_t)(JAXCI_PIECE_NS / unit_ns) + 1;
  }
  if (piece < least) piece = least;
  pristine = *batch;
  memcpy(pristine.data, base, (size_t)batch->slot_count * sizeof *base);
  crew.batch = &pristine;
  crew.axes = axes;
  crew.frame = frame;
  crew.lock = 0;
  crew.failed = batch->units;
  crew.status = JAXC_OK;
  (void)jaxci_loop_run(frame, begin, batch->units, piece, threads, jaxci_crew_work, &crew,
                       batch);
  if (crew.status != JAXC_OK) *message = crew.message;
  return crew.status;
}

/* Units in the calling thread, until what remains is worth more threads. A time is trusted
 * when it is so long that the first unit's misses do not count. */
static jaxc_status jaxci_units_measured(const jaxc_abi_call_frame *frame,
                                        jaxci_batch *batch, char *const *base,
                                        const jaxci_axes *axes, jaxc_message *message) {
  const int64_t unit_bytes = jaxci_units_bytes(batch, axes);
  int64_t count = 1, done = 0, before, failed;
  double unit_ns = 0;
  if (unit_bytes >= JAXCI_PARALLEL_BYTES / batch->units) {
    return jaxci_units_parallel(frame, batch, base, axes, 0, unit_bytes, 0, message);
  }
  before = jaxci_now_ns();
  while (count < batch->units - done) {
    int64_t now;
    JAXC_TRY(jaxci_units_piece(batch, base, axes, done, done + count, &failed, message));
    done += count;
    now = jaxci_now_ns();
    if (now - before > JAXCI_TRUSTED_NS) {
      unit_ns = (double)(now - before) / (double)count;
      if (unit_ns * (double)(batch->units - done) > JAXCI_PARALLEL_NS) {
        return jaxci_units_parallel(frame, batch, base, axes, done, unit_bytes, unit_ns,
                                    message);
      }
    }
    /* A few points cost less than to measure them again and again. */
    if (batch->by_point && (double)(now - before) * 8 * (double)(batch->units - done) <
                               (double)JAXCI_PARALLEL_NS * (double)count) {
      break;
    }
    before = now;
    count *= 4;
  }
  return jaxci_units_piece(batch, base, axes, done, batch->units, &failed, message);
}

/* Asks for large pages for large results: where the memory is new, a page fault for each
 * 4 KiB of it costs more than most kernels (64 MiB: 41 ms in all, 9 ms with large pages).
 * Advice only: nothing is lost where the system does not follow it. */
static JAXC_NOINLINE void jaxci_rows_advise(const jaxci_batch *batch) {
#if defined(MADV_HUGEPAGE)
  const uintptr_t page = (uintptr_t)2 * 1024 * 1024;
  for (int32_t slot = 0; slot < batch->function->parameter_count; slot++) {
    const jaxci_shape *const shape = &batch->shapes[slot];
    const uintptr_t place = (uintptr_t)batch->data[slot];
    uintptr_t begin, end;
    uintptr_t bytes = jaxc_dtype_size(batch->function->parameters[slot].dtype);
    if (!jaxci_slot_is_result(batch, slot)) continue;
    for (int64_t axis = 0; axis < shape->rank; axis++) bytes *= (uintptr_t)shape->dims[axis];
    begin = (place + page - 1) / page * page;
    end = (place + bytes) / page * page;
    if (begin < end) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
  }
#else
  (void)batch;
#endif
}

/* Rows from which on they are divided whole, whatever the number of threads. */
#define JAXCI_MANY_ROWS 256

/* Makes points the units of work where there are too few rows to keep all threads busy.
 * Then no piece has its rows to itself, so all rows are prepared first. */
static jaxc_status jaxci_rows_divide(const jaxc_abi_call_frame *frame, jaxci_batch *batch,
                                     char *const *base, const jaxci_axes *axes,
                                     jaxc_message *message) {
  int64_t units, failed;
  if (batch->points <= 1 || batch->rows >= JAXCI_MANY_ROWS ||
      (batch->rows > 1 && batch->rows >= 8 * jaxci_loop_threads(frame)) ||
      !jaxc_multiply(batch->rows, batch->points, &units)) {
    return JAXC_OK;
  }
  if ((batch->prepares & JAXCI_PREPARE_ZEROS) != 0) jaxci_points_clear(frame, batch, base);
  if ((batch->prepares & JAXCI_PREPARE_COPIES) != 0) {
    batch->prepares = JAXCI_PREPARE_COPIES | JAXCI_PREPARE_ONLY;
    JAXC_TRY(jaxci_rows_piece(batch, base, axes, 0, batch->rows, &failed, message));
  }
  batch->prepares = 0;
  batch->by_point = 1;
  batch->units = units;
  return JAXC_OK;
}

/* Elements from which on a result can fill large pages. */
#define JAXCI_LARGE ((int64_t)256 * 1024)

static JAXC_NOINLINE jaxc_status jaxci_rows_many(const jaxc_abi_call_frame *frame,
                                                 jaxci_batch *batch,
                                                 jaxc_message *message) {
  jaxci_axes axes;
  char *base[JAXCI_MAX_SLOTS];
  int64_t failed;
  JAXC_TRY(jaxci_batch_axes(batch, &axes, message));
  if (batch->rows == 0) return JAXC_OK;
  if (axes.count == 0) { /* all sizes are 1 */
    axes.count = 1;
    axes.sizes[0] = 1;
    memset(axes.strides[0], 0, (size_t)batch->slot_count * sizeof axes.strides[0][0]);
  }
  memcpy(base, batch->data, (size_t)batch->slot_count * sizeof *base);
  batch->units = batch->rows;
  batch->by_point = 0;
  if ((batch->function->flags & (JAXC_FUNCTION_SERIAL | JAXC_FUNCTION_EFFECT)) == 0 &&
      jaxci_loop_has_pool(frame)) {
    if (batch->index >= 0) JAXC_TRY(jaxci_rows_divide(frame, batch, base, &axes, message));
    if (batch->units > 1) return jaxci_units_measured(frame, batch, base, &axes, message);
  }
  return jaxci_units_piece(batch, base, &axes, 0, batch->units, &failed, message);
}

static inline jaxc_status jaxci_rows_all(const jaxc_abi_call_frame *frame,
                                         jaxci_batch *batch, jaxc_message *message) {
  static const long long no_strides[JAXCI_MAX_SLOTS] = {0};
  int64_t failed;
  if (batch->largest >= JAXCI_LARGE) jaxci_rows_advise(batch);
  if (batch->leading > 0 || batch->index >= 0) {
    return jaxci_rows_many(frame, batch, message);
  }
  batch->rows = 1;
  return jaxci_batch_call(batch, no_strides, 1, 0, &failed, message);
}

/* The rows of a function with scratch parameters, strings or a context. */
static JAXC_NOINLINE jaxc_status jaxci_rows_with_block(const jaxc_abi_call_frame *frame,
                                                       jaxci_batch *batch,
                                                       jaxc_message *message) {
  char local[JAXCI_LOCAL_SCRATCH + JAXCI_SCRATCH_ALIGNMENT];
  jaxc_context context;
  void *allocated = NULL;
  jaxc_status status =
      jaxci_batch_own(batch, frame, local, &allocated, &context, message);
  if (status == JAXC_OK) status = jaxci_rows_all(frame, batch, message);
  free(allocated);
  return status;
}

/* Calls the function on every row of a call that signature.h has checked. */
static inline jaxc_status jaxci_rows_run(const jaxc_abi_call_frame *frame,
                                         jaxci_batch *batch, jaxc_message *message) {
  if (batch->needs_block) return jaxci_rows_with_block(frame, batch, message);
  return jaxci_rows_all(frame, batch, message);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_ROWS_H */
