/* handlers.c: handlers with jaxc/handler.h and without, for the tests of jaxc-run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/jaxc.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the example of handler.h ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  float eps;
} rms_norm_call;

static const jaxc_field rms_norm_fields[] = {
    JAXC_ARGUMENT(rms_norm_call, x, JAXC_AT_LEAST(1)),
    JAXC_RESULT(rms_norm_call, y, JAXC_AT_LEAST(1)),
    JAXC_ATTRIBUTE(rms_norm_call, eps),
};

static jaxc_status rms_norm(jaxc_context *context, const void *data) {
  const rms_norm_call *call = data;
  const int64_t n = call->x.dims[call->x.rank - 1];
  if (call->x.count != call->y.count) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in size");
  }
  for (int64_t row = 0; n > 0 && row < call->x.count / n; row++) {
    const float *const x = call->x.data + row * n;
    float *const y = call->y.data + row * n;
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    for (int64_t i = 0; i < n; i++) y[i] = x[i] / sqrtf(sum / (float)n + call->eps);
  }
  return JAXC_OK;
}

JAXC_HANDLER(RmsNorm, rms_norm_call, rms_norm_fields, .execute = rms_norm);

/* ---- any array, any attributes ---- */

typedef struct {
  JAXC_VIEW(const void) x;
  JAXC_VIEW(void) y;
  const jaxc_abi_attrs *all;
} copy_call;

static const jaxc_field copy_fields[] = {
    JAXC_ARGUMENT(copy_call, x, JAXC_ANY_RANK),
    JAXC_RESULT(copy_call, y, JAXC_ANY_RANK),
    JAXC_ALL_ATTRIBUTES(copy_call, all),
};

static jaxc_status copy(jaxc_context *context, const void *data) {
  const copy_call *call = data;
  if (call->x.count != call->y.count || call->x.dtype != call->y.dtype) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ");
  }
  if (call->x.count > 0) {
    memcpy(call->y.data, call->x.data,
           (size_t)call->x.count * jaxc_dtype_size(call->x.dtype));
  }
  return JAXC_OK;
}

JAXC_HANDLER(Copy, copy_call, copy_fields, .execute = copy);

/* ---- what is wrong with a handler ---- */

static jaxc_status write_argument(jaxc_context *context, const void *data) {
  const copy_call *call = data;
  (void)context;
  memset((void *)(uintptr_t)call->x.data, 0x11, 1);
  return JAXC_OK;
}
static jaxc_status write_behind(jaxc_context *context, const void *data) {
  const copy_call *call = data;
  (void)context;
  ((char *)call->y.data)[(size_t)call->y.count * jaxc_dtype_size(call->y.dtype)] = 0x11;
  return JAXC_OK;
}
static jaxc_status keep_error(jaxc_context *context, const void *data) {
  (void)data;
  (void)jaxc_error_create(context->frame->api, JAXC_INTERNAL, "nobody gets this");
  return JAXC_OK;
}

static jaxc_status read_behind(jaxc_context *context, const void *data) {
  const copy_call *call = data;
  const size_t bytes = (size_t)call->x.count * jaxc_dtype_size(call->x.dtype);
  (void)context;
  ((char *)call->y.data)[0] = ((const char *)call->x.data)[bytes];
  return JAXC_OK;
}
static jaxc_status write_nothing(jaxc_context *context, const void *data) {
  (void)context, (void)data;
  return JAXC_OK;
}
static jaxc_status finish_twice(jaxc_context *context, const void *data) {
  jaxc_future future;
  (void)data;
  JAXC_TRY(jaxc_future_begin(context, &future));
  jaxc_future_finish(&future, JAXC_OK, NULL);
  jaxc_future_finish(&future, JAXC_OK, NULL);
  return JAXC_OK;
}
static jaxc_status never_finish(jaxc_context *context, const void *data) {
  jaxc_future future;
  (void)data;
  return jaxc_future_begin(context, &future);
}

JAXC_HANDLER(ReadBehind, copy_call, copy_fields, .execute = read_behind);
JAXC_HANDLER(WriteNothing, copy_call, copy_fields, .execute = write_nothing);
JAXC_HANDLER(FinishTwice, copy_call, copy_fields, .execute = finish_twice);
JAXC_HANDLER(NeverFinish, copy_call, copy_fields, .execute = never_finish);
JAXC_HANDLER(WriteArgument, copy_call, copy_fields, .execute = write_argument);
JAXC_HANDLER(WriteBehind, copy_call, copy_fields, .execute = write_behind);
JAXC_HANDLER(KeepError, copy_call, copy_fields, .execute = keep_error);

/* ---- tasks ---- */

static void set_flag(void *data) { atomic_store((_Atomic int *)data, 1); }
static void sleep_long(void *data) {
  (void)data;
  (void)sleep(1000);
}
static jaxc_status wait_for_task(jaxc_context *context, const void *data) {
  _Atomic int is_done = 0;
  (void)data;
  JAXC_TRY(jaxc_context_schedule(context, set_flag, (void *)&is_done));
  while (!atomic_load(&is_done)) (void)sched_yield();
  return JAXC_OK;
}
static jaxc_status leave_task(jaxc_context *context, const void *data) {
  (void)data;
  return jaxc_context_schedule(context, sleep_long, NULL);
}

static const jaxc_field no_fields[] = {JAXC_ALL_ATTRIBUTES(copy_call, all)};
JAXC_HANDLER(WaitForTask, copy_call, no_fields, .execute = wait_for_task);
JAXC_HANDLER(LeaveTask, copy_call, no_fields, .execute = leave_task);

/* ---- that cannot be called here, or not with these operands ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(const float) scale;
} between_call;
static const jaxc_field between_fields[] = {
    JAXC_ARGUMENT(between_call, x, 1),
    JAXC_OPTIONAL_ARGUMENT(between_call, scale, 0),
};
JAXC_HANDLER(Between, between_call, between_fields, .execute = write_nothing);
JAXC_HANDLER(OnCuda, copy_call, copy_fields, .execute = copy, .platform = "cuda");
JAXC_HANDLER(OnRocm, copy_call, copy_fields, .execute = copy, .platform = "rocm");
JAXC_HANDLER(NoExecute, copy_call, no_fields, .instantiate = write_nothing);

/* ---- every kind of attribute ---- */

typedef struct {
  int64_t k;
} inner_attributes;

typedef struct {
  JAXC_VIEW(double) y;
  _Bool flag;
  int8_t small;
  uint64_t large;
  double real;
  float _Complex pair;
  jaxc_string text;
  jaxc_array weights;
  void *address;
  inner_attributes options;
  int mode;
  int32_t extra;
} attributes_call;

static const jaxc_field inner_fields[] = {JAXC_ATTRIBUTE(inner_attributes, k)};

static const jaxc_field attributes_fields[] = {
    JAXC_RESULT(attributes_call, y, 1),
    JAXC_ATTRIBUTE(attributes_call, flag),
    JAXC_ATTRIBUTE(attributes_call, small),
    JAXC_ATTRIBUTE(attributes_call, large),
    JAXC_ATTRIBUTE(attributes_call, real),
    JAXC_ATTRIBUTE(attributes_call, pair),
    JAXC_ATTRIBUTE(attributes_call, text),
    JAXC_ATTRIBUTE_ARRAY(attributes_call, weights, JAXC_F32),
    JAXC_ATTRIBUTE(attributes_call, address),
    JAXC_ATTRIBUTE_NESTED(attributes_call, options, inner_fields),
    JAXC_ATTRIBUTE_ENUM(attributes_call, mode, 3),
    JAXC_OPTIONAL_ATTRIBUTE(attributes_call, extra),
};

static const attributes_call attributes_defaults = {.extra = -5};

static jaxc_status show_attributes(jaxc_context *context, const void *data) {
  const attributes_call *call = data;
  const float *const weights = call->weights.data;
  float parts[2];
  double sum = 0;
  if (call->y.count != 12) return jaxc_fail(context, JAXC_OUT_OF_RANGE, "y has not 12");
  memcpy(parts, &call->pair, sizeof parts);
  for (size_t i = 0; i < call->weights.size; i++) sum += (double)weights[i];
  call->y.data[0] = call->flag;
  call->y.data[1] = call->small;
  call->y.data[2] = (double)call->large;
  call->y.data[3] = call->real;
  call->y.data[4] = (double)parts[0];
  call->y.data[5] = (double)parts[1];
  call->y.data[6] = (double)call->text.len;
  call->y.data[7] = sum;
  call->y.data[8] = (double)(uintptr_t)call->address;
  call->y.data[9] = (double)call->options.k;
  call->y.data[10] = call->mode;
  call->y.data[11] = call->extra;
  return JAXC_OK;
}

JAXC_HANDLER(Attributes, attributes_call, attributes_fields, .execute = show_attributes,
             .defaults = &attributes_defaults);

/* ---- what the host does ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  JAXC_VIEW(int64_t) facts;
} facts_call;

static const jaxc_field facts_fields[] = {
    JAXC_ARGUMENT(facts_call, x, 1),
    JAXC_RESULT(facts_call, y, 1),
    JAXC_RESULT(facts_call, facts, 1),
};

static jaxc_status facts(jaxc_context *context, const void *data) {
  const facts_call *call = data;
  volatile float half = 0.5f;
  int64_t threads = -1;
  if (call->facts.count != 6) return jaxc_fail(context, JAXC_OUT_OF_RANGE, "not 6 facts");
  call->facts.data[0] =
      jaxc_context_thread_count(context, &threads) == JAXC_OK ? threads : -1;
  call->facts.data[1] = (int64_t)((uintptr_t)call->x.data % 64);
  call->facts.data[2] = jaxc_context_minor(context);
  call->facts.data[3] = (const void *)call->x.data == (const void *)call->y.data;
  call->facts.data[4] = call->x.data[0] * half == 0;
  call->facts.data[5] = context->frame->extension_start != NULL;
  for (int64_t i = 0; i < call->y.count && i < call->x.count; i++) {
    call->y.data[i] = call->x.data[i] + 1;
  }
  return JAXC_OK;
}

JAXC_HANDLER(Facts, facts_call, facts_fields, .execute = facts);

/* ---- stages ---- */

typedef struct {
  JAXC_VIEW(int64_t) y;
  int64_t k;
} stages_call;

static const jaxc_field stages_fields[] = {
    JAXC_RESULT(stages_call, y, 1),
    JAXC_ATTRIBUTE(stages_call, k),
};

static jaxc_state_type stages_type = JAXC_STATE_TYPE("jaxc_run_tests.number", free);

static jaxc_status stages_instantiate(jaxc_context *context, const void *data) {
  const stages_call *call = data;
  int64_t *const number = malloc(sizeof *number);
  if (number == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  *number = call->k * 10;
  return jaxc_state_set(context, &stages_type, number);
}
static jaxc_status stages_prepare(jaxc_context *context, const void *data) {
  const stages_call *call = data;
  int64_t *const number = malloc(sizeof *number);
  if (number == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  *number = call->k * 1000;
  return jaxc_state_set(context, &stages_type, number);
}
static jaxc_status stages_execute(jaxc_context *context, const void *data) {
  const stages_call *call = data;
  void *first = NULL;
  void *second = NULL;
  JAXC_TRY(jaxc_state_get(context, &stages_type, JAXC_STAGE_INSTANTIATE, &first));
  call->y.data[0] = *(const int64_t *)first;
  if (jaxc_state_get(context, &stages_type, JAXC_STAGE_PREPARE, &second) == JAXC_OK) {
    call->y.data[0] += *(const int64_t *)second;
  }
  return JAXC_OK;
}

JAXC_HANDLER(Stages, stages_call, stages_fields, .execute = stages_execute,
             .instantiate = stages_instantiate, .prepare = stages_prepare,
             .instantiate_state = &stages_type, .prepare_state = &stages_type,
             .traits = JAXC_TRAIT_COMMAND_BUFFER, .minor = 2);

/* ---- without a description ---- */

static int64_t begun;

JAXC_EXPORT jaxc_abi_error *BareBegin(jaxc_abi_call_frame *frame);
jaxc_abi_error *BareBegin(jaxc_abi_call_frame *frame) {
  if (jaxc_call_answer_metadata(frame, 0)) return NULL;
  begun += 7;
  return NULL;
}

JAXC_EXPORT jaxc_abi_error *Bare(jaxc_abi_call_frame *frame);
jaxc_abi_error *Bare(jaxc_abi_call_frame *frame) {
  jaxc_message message;
  jaxc_view y;
  jaxc_status status;
  if (jaxc_call_answer_metadata(frame, JAXC_TRAIT_COMMAND_BUFFER)) return NULL;
  status = jaxc_call_check(frame, JAXC_STAGE_EXECUTE, 0, 1, 0, &message);
  if (status == JAXC_OK) {
    status =
        jaxc_call_operand(&frame->results, 0, "result", "y", JAXC_S64, 1, &y, &message);
  }
  if (status != JAXC_OK) return jaxc_error_create(frame->api, status, message.text);
  ((int64_t *)y.data)[0] = begun;
  return NULL;
}

/* No handlers. */
JAXC_EXPORT int no_handler(void *anything);
int no_handler(void *anything) {
  return anything != NULL;
}
JAXC_EXPORT extern int just_data[4];
int just_data[4] = {1, 2, 3, 4};
