/* versatile.c: handlers that use all that the runtime offers, for test_runtimes.py: built
 * once, and called under every JAX.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/jaxc.h>
#include <pthread.h>

/* ---- y = scale * x + calls, by the pool, finished from a thread of its own ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  JAXC_VIEW(int32_t) tasks; /* how many ran */
  float scale;
  jaxc_string fail; /* the future's error, when there is one */
} pooled_call;

static const pooled_call pooled_defaults = {.scale = 2};

static const jaxc_field pooled_fields[] = {
    JAXC_ARGUMENT(pooled_call, x, 1),
    JAXC_RESULT(pooled_call, y, 1),
    JAXC_RESULT(pooled_call, tasks, 0),
    JAXC_OPTIONAL_ATTRIBUTE(pooled_call, scale),
    JAXC_OPTIONAL_ATTRIBUTE(pooled_call, fail),
};

/* What a call site keeps: made by instantiate, read by every call. */
typedef struct {
  float scale;
  pthread_mutex_t lock;
  int calls;
} pooled_state;

JAXC_EXPORT int pooled_states(void);
static int states;
int pooled_states(void) { return __atomic_load_n(&states, __ATOMIC_SEQ_CST); }

static void pooled_destroy(void *object) {
  pooled_state *const state = (pooled_state *)object;
  pthread_mutex_destroy(&state->lock);
  free(state);
  __atomic_sub_fetch(&states, 1, __ATOMIC_SEQ_CST);
}

static jaxc_state_type pooled_type = JAXC_STATE_TYPE("jaxc_tests.pooled", pooled_destroy);

static jaxc_status pooled_instantiate(jaxc_context *context, const void *data) {
  const pooled_call *const call = (const pooled_call *)data;
  pooled_state *const state = (pooled_state *)calloc(1, sizeof *state);
  jaxc_status status;
  if (state == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  if (pthread_mutex_init(&state->lock, NULL) != 0) {
    free(state);
    return jaxc_fail(context, JAXC_INTERNAL, "no lock");
  }
  state->scale = call->scale;
  __atomic_add_fetch(&states, 1, __ATOMIC_SEQ_CST);
  status = jaxc_state_set(context, &pooled_type, state);
  if (status != JAXC_OK) pooled_destroy(state);
  return status;
}

/* One call that goes on after its handler has returned. */
typedef struct {
  jaxc_future future;
  const float *x;
  float *y;
  int32_t *tasks;
  int64_t count;
  float scale;
  float offset;
  int left; /* tasks, and the handler itself */
  char fail[100];
} pooled_work;

typedef struct {
  pooled_work *work;
  int64_t begin;
  int64_t end;
} pooled_part;

static void *pooled_finish(void *data) {
  pooled_work *const work = (pooled_work *)data;
  const jaxc_status code = work->fail[0] == '\0' ? JAXC_OK : JAXC_ABORTED;
  jaxc_future_finish(&work->future, code, work->fail);
  free(work);
  return NULL;
}

/* The last one out finishes the future, in a thread that the runtime does not know. */
static void pooled_leave(pooled_work *work) {
  pthread_t thread;
  if (__atomic_sub_fetch(&work->left, 1, __ATOMIC_SEQ_CST) > 0) return;
  if (pthread_create(&thread, NULL, pooled_finish, work) == 0) {
    pthread_detach(thread);
  } else {
    pooled_finish(work);
  }
}

static void pooled_task(void *data) {
  pooled_part *const part = (pooled_part *)data;
  pooled_work *const work = part->work;
  for (int64_t i = part->begin; i < part->end; i++) {
    work->y[i] = work->scale * work->x[i] + work->offset;
  }
  free(part);
  __atomic_add_fetch(work->tasks, 1, __ATOMIC_SEQ_CST);
  pooled_leave(work);
}

static jaxc_status pooled_schedule(jaxc_context *context, pooled_work *work,
                                   int64_t begin, int64_t end) {
  pooled_part *const part = (pooled_part *)malloc(sizeof *part);
  jaxc_status status;
  if (part == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  part->work = work;
  part->begin = begin;
  part->end = end;
  __atomic_add_fetch(&work->left, 1, __ATOMIC_SEQ_CST);
  status = jaxc_context_schedule(context, pooled_task, part);
  if (status != JAXC_OK) {
    __atomic_sub_fetch(&work->left, 1, __ATOMIC_SEQ_CST);
    free(part);
  }
  return status;
}

static jaxc_status pooled_execute(jaxc_context *context, const void *data) {
  const pooled_call *const call = (const pooled_call *)data;
  const size_t length = call->fail.len < 99 ? call->fail.len : 99;
  void *object;
  pooled_state *state;
  pooled_work *work;
  if (call->x.count != call->y.count) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in size");
  }
  JAXC_TRY(jaxc_state_get(context, &pooled_type, JAXC_STAGE_INSTANTIATE, &object));
  state = (pooled_state *)object;
  work = (pooled_work *)calloc(1, sizeof *work);
  if (work == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  pthread_mutex_lock(&state->lock);
  work->offset = (float)state->calls++;
  pthread_mutex_unlock(&state->lock);
  work->x = call->x.data;
  work->y = call->y.data;
  work->tasks = call->tasks.data;
  work->count = call->x.count;
  work->scale = state->scale;
  if (length > 0) memcpy(work->fail, call->fail.ptr, length);
  work->left = 1;
  *work->tasks = 0;
  {
    const jaxc_status status = jaxc_future_begin(context, &work->future);
    if (status != JAXC_OK) {
      free(work);
      return status;
    }
  }
  for (int64_t begin = 0; begin < work->count; begin += 100) {
    const int64_t end = begin + 100 < work->count ? begin + 100 : work->count;
    const jaxc_status status = pooled_schedule(context, work, begin, end);
    if (status != JAXC_OK) {
      snprintf(work->fail, sizeof work->fail, "%.99s", context->message.text);
      break;
    }
  }
  pooled_leave(work); /* may free the work */
  return JAXC_OK;
}

JAXC_HANDLER(Pooled, pooled_call, pooled_fields, .execute = pooled_execute,
             .instantiate = pooled_instantiate, .instantiate_state = &pooled_type,
             .defaults = &pooled_defaults);

/* ---- what the runtime says ---- */

typedef struct {
  JAXC_VIEW(int32_t) numbers; /* minor, device, threads, options, run in two halves */
  JAXC_VIEW(const int32_t) after; /* an order for calls of one program; may be absent */
} about_call;

static const jaxc_field about_fields[] = {
    JAXC_OPTIONAL_ARGUMENT(about_call, after, 1),
    JAXC_RESULT(about_call, numbers, 1),
};

static jaxc_status about(jaxc_context *context, const void *data) {
  const about_call *const call = (const about_call *)data;
  int32_t *const out = call->numbers.data;
  int64_t threads = 0, run = 0;
  if (call->numbers.count != 6) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "numbers are 6");
  }
  out[0] = jaxc_context_minor(context);
  JAXC_TRY(jaxc_context_device_ordinal(context, &out[1]));
  JAXC_TRY(jaxc_context_thread_count(context, &threads));
  JAXC_TRY(jaxc_context_run_id(context, &run));
  out[2] = (int32_t)threads;
  out[3] = -1;
  if (jaxc_context_minor(context) >= 5) {
    const jaxc_abi_attrs *options;
    JAXC_TRY(jaxc_context_options(context, &options));
    out[3] = (int32_t)options->size;
  }
  out[4] = (int32_t)(uint32_t)((uint64_t)run & UINT32_MAX);
  out[5] = (int32_t)(uint32_t)((uint64_t)run >> 32);
  return JAXC_OK;
}

JAXC_HANDLER(About, about_call, about_fields, .execute = about);

/* ---- what the runtime refuses: one thing a call, whose error becomes the call's ---- */

enum { STREAM, DEVICE_MEMORY, OPTIONS, EXTENSION, NO_STATE, OTHER_STATE, TWO_FUTURES,
       INITIALIZE_STATE, BLOCKS, REFUSALS };

typedef struct {
  JAXC_VIEW(int32_t) y;
  int what;
} refused_call;

static const jaxc_field refused_fields[] = {
    JAXC_RESULT(refused_call, y, 0),
    JAXC_ATTRIBUTE_ENUM(refused_call, what, REFUSALS),
};

static jaxc_state_type other_type = JAXC_STATE_TYPE("jaxc_tests.other", free);

static jaxc_status refused_instantiate(jaxc_context *context, const void *data) {
  const refused_call *const call = (const refused_call *)data;
  void *state;
  jaxc_status status;
  if (call->what == NO_STATE) return JAXC_OK;
  state = malloc(1);
  if (state == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  status = jaxc_state_set(context, &other_type, state);
  if (status != JAXC_OK) free(state);
  return status;
}

static jaxc_status refused(jaxc_context *context, const void *data) {
  const refused_call *const call = (const refused_call *)data;
  const jaxc_abi_context_extension *extension = NULL;
  const jaxc_abi_attrs *options;
  jaxc_future future;
  void *object;
  *call->y.data = 0;
  switch (call->what) {
    case STREAM:
      return jaxc_context_stream(context, &object);
    case DEVICE_MEMORY:
      return jaxc_context_device_memory(context, 64, &object);
    case OPTIONS:
      return jaxc_context_options(context, &options);
    case EXTENSION:
      JAXC_TRY(jaxc_context_extension(context, 123456789, &extension));
      return jaxc_fail(context, JAXC_NOT_FOUND, "extension %s",
                       extension == NULL ? "is not there" : "is there");
    case NO_STATE:
      return jaxc_state_get(context, &other_type, JAXC_STAGE_INSTANTIATE, &object);
    case OTHER_STATE:
      return jaxc_state_get(context, &pooled_type, JAXC_STAGE_INSTANTIATE, &object);
    case TWO_FUTURES:
      JAXC_TRY(jaxc_future_begin(context, &future));
      return jaxc_future_begin(context, &future);
    case INITIALIZE_STATE:
      return jaxc_state_get(context, &other_type, JAXC_STAGE_INITIALIZE, &object);
    default:
      for (;;) JAXC_TRY(jaxc_context_host_memory(context, 1, &object));
  }
}

JAXC_HANDLER(Refused, refused_call, refused_fields, .execute = refused,
             .instantiate = refused_instantiate, .instantiate_state = &other_type);

/* ---- a second state of one call site ---- */

static jaxc_status twice_instantiate(jaxc_context *context, const void *data) {
  void *const first = malloc(1);
  void *const second = malloc(1);
  jaxc_status status = JAXC_RESOURCE_EXHAUSTED;
  (void)data;
  if (first == NULL || second == NULL) {
    free(first);
    free(second);
    return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  }
  status = jaxc_state_set(context, &other_type, first);
  if (status != JAXC_OK) {
    free(first);
    free(second);
    return status;
  }
  status = jaxc_state_set(context, &other_type, second);
  if (status != JAXC_OK) free(second);
  return status;
}

JAXC_HANDLER(Twice, refused_call, refused_fields, .execute = refused,
             .instantiate = twice_instantiate, .instantiate_state = &other_type);

/* ---- what needs a newer API than the oldest ---- */

JAXC_HANDLER(NeedsTwo, about_call, about_fields, .execute = about, .minor = 2);
JAXC_HANDLER(NeedsFive, about_call, about_fields, .execute = about, .minor = 5);
