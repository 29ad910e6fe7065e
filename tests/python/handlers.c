/* handlers.c: hand-written handlers for test_register.py and test_host.py. */
#include <jaxc/jaxc.h>

/* y = x / sqrt(mean(x^2) + eps) over the last axis. */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  float eps;
} rms_call;

static const jaxc_field rms_fields[] = {
    JAXC_ARGUMENT(rms_call, x, JAXC_AT_LEAST(1)),
    JAXC_RESULT(rms_call, y, JAXC_AT_LEAST(1)),
    JAXC_ATTRIBUTE(rms_call, eps),
};

static float inverse_root(float value) { /* of a value near 1, without libm */
  float guess = 1;
  for (int i = 0; i < 60; i++) guess = 0.5f * guess * (3 - value * guess * guess);
  return guess;
}

static jaxc_status rms(jaxc_context *context, const void *data) {
  const rms_call *const call = (const rms_call *)data;
  const int64_t n = call->x.dims[call->x.rank - 1];
  if (call->x.count != call->y.count) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x has %lld elements, y has %lld",
                     (long long)call->x.count, (long long)call->y.count);
  }
  for (int64_t row = 0; row < call->x.count; row += n) {
    const float *const x = call->x.data + row;
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    sum = inverse_root(sum / (float)n + call->eps);
    for (int64_t i = 0; i < n; i++) call->y.data[row + i] = x[i] * sum;
  }
  return JAXC_OK;
}

JAXC_HANDLER(Rms, rms_call, rms_fields, .execute = rms);

/* y = scale * x, where instantiate makes the scale into a state. */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  int64_t scale;
} scale_call;

static const jaxc_field scale_fields[] = {
    JAXC_ARGUMENT(scale_call, x, JAXC_ANY_RANK),
    JAXC_RESULT(scale_call, y, JAXC_ANY_RANK),
    JAXC_ATTRIBUTE(scale_call, scale),
};

JAXC_EXPORT int states_alive(void);
static int alive;
int states_alive(void) { return alive; }

static void scale_destroy(void *state) {
  alive--;
  free(state);
}

static jaxc_state_type scale_type = JAXC_STATE_TYPE("jaxc_tests.scale", scale_destroy);

static jaxc_status scale_instantiate(jaxc_context *context, const void *data) {
  const scale_call *const call = (const scale_call *)data;
  float *const state = (float *)malloc(sizeof *state);
  jaxc_status status;
  if (state == NULL) return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory");
  *state = (float)call->scale;
  status = jaxc_state_set(context, &scale_type, state);
  if (status == JAXC_OK) {
    alive++;
  } else {
    free(state);
  }
  return status;
}

static jaxc_status scale_execute(jaxc_context *context, const void *data) {
  const scale_call *const call = (const scale_call *)data;
  void *state;
  JAXC_TRY(jaxc_state_get(context, &scale_type, JAXC_STAGE_INSTANTIATE, &state));
  for (int64_t i = 0; i < call->x.count; i++) {
    call->y.data[i] = *(const float *)state * call->x.data[i];
  }
  return JAXC_OK;
}

JAXC_HANDLER(Scale, scale_call, scale_fields, .execute = scale_execute,
             .instantiate = scale_instantiate, .instantiate_state = &scale_type);

/* Attributes of every kind, as text in y. */

typedef struct {
  int64_t k;
  jaxc_string word;
} inner_call;

static const jaxc_field inner_fields[] = {
    JAXC_ATTRIBUTE(inner_call, k),
    JAXC_ATTRIBUTE(inner_call, word),
};

typedef enum { RED, GREEN, BLUE } colour;

typedef struct {
  JAXC_VIEW(double) y;
  _Bool flag;
  int8_t i8;
  int16_t i16;
  int32_t i32;
  int64_t i64;
  uint8_t u8;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  float f32;
  double f64;
  colour hue;
  void *address;
  jaxc_string text;
  jaxc_array numbers;
  inner_call inner;
} kinds_call;

static const jaxc_field kinds_fields[] = {
    JAXC_RESULT(kinds_call, y, 1),
    JAXC_ATTRIBUTE(kinds_call, flag),
    JAXC_ATTRIBUTE(kinds_call, i8),
    JAXC_ATTRIBUTE(kinds_call, i16),
    JAXC_ATTRIBUTE(kinds_call, i32),
    JAXC_ATTRIBUTE(kinds_call, i64),
    JAXC_ATTRIBUTE(kinds_call, u8),
    JAXC_ATTRIBUTE(kinds_call, u16),
    JAXC_ATTRIBUTE(kinds_call, u32),
    JAXC_ATTRIBUTE(kinds_call, u64),
    JAXC_ATTRIBUTE(kinds_call, f32),
    JAXC_ATTRIBUTE(kinds_call, f64),
    JAXC_ATTRIBUTE_ENUM(kinds_call, hue, 3),
    JAXC_ATTRIBUTE(kinds_call, address),
    JAXC_ATTRIBUTE(kinds_call, text),
    JAXC_ATTRIBUTE_ARRAY(kinds_call, numbers, JAXC_S16),
    JAXC_ATTRIBUTE_NESTED(kinds_call, inner, inner_fields),
};

static jaxc_status kinds(jaxc_context *context, const void *data) {
  const kinds_call *const call = (const kinds_call *)data;
  const int16_t *const numbers = (const int16_t *)call->numbers.data;
  const double values[] = {call->flag,
                           call->i8,
                           call->i16,
                           call->i32,
                           (double)call->i64,
                           call->u8,
                           call->u16,
                           call->u32,
                           (double)(call->u64 >> 32),
                           call->f32,
                           call->f64,
                           call->hue,
                           (double)(uintptr_t)call->address,
                           (double)call->text.len,
                           call->text.ptr[0],
                           (double)call->numbers.size,
                           numbers[0],
                           (double)call->inner.k,
                           (double)call->inner.word.len};
  const int64_t count = (int64_t)(sizeof values / sizeof *values);
  if (call->y.count != count) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "y has %lld elements, expected %lld",
                     (long long)call->y.count, (long long)count);
  }
  memcpy(call->y.data, values, sizeof values);
  return JAXC_OK;
}

JAXC_HANDLER(Kinds, kinds_call, kinds_fields, .execute = kinds);

/* Returns the error that it is told to. */

typedef struct {
  JAXC_VIEW(const void) x;
  JAXC_VIEW(void) y;
  jaxc_status code;
} fails_call;

static const jaxc_field fails_fields[] = {
    JAXC_ARGUMENT(fails_call, x, JAXC_ANY_RANK),
    JAXC_RESULT(fails_call, y, JAXC_ANY_RANK),
    JAXC_ATTRIBUTE_ENUM(fails_call, code, 17),
};

static jaxc_status fails(jaxc_context *context, const void *data) {
  const fails_call *const call = (const fails_call *)data;
  if (call->code == JAXC_OK) return JAXC_OK;
  return jaxc_fail(context, call->code, "code %d of %d axes", (int)call->code,
                   (int)call->x.rank);
}

JAXC_HANDLER(Fails, fails_call, fails_fields, .execute = fails);

/* y = x for any type. A token may go first. */

typedef struct {
  JAXC_VIEW(const void) x;
  JAXC_VIEW(void) y;
} copy_call;

static const jaxc_field copy_fields[] = {
    JAXC_ARGUMENT(copy_call, x, JAXC_ANY_RANK),
    JAXC_RESULT(copy_call, y, JAXC_ANY_RANK),
};

static jaxc_status copy(jaxc_context *context, const void *data) {
  const copy_call *const call = (const copy_call *)data;
  const size_t size = jaxc_dtype_size(call->x.dtype);
  if (call->x.dtype != call->y.dtype || call->x.count != call->y.count || size == 0) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "cannot copy %s of %lld to %s of %lld",
                     jaxc_dtype_name(call->x.dtype), (long long)call->x.count,
                     jaxc_dtype_name(call->y.dtype), (long long)call->y.count);
  }
  if (call->x.count != 0) {
    memcpy(call->y.data, call->x.data, (size_t)call->x.count * size);
  }
  return JAXC_OK;
}

JAXC_HANDLER(Copy, copy_call, copy_fields, .execute = copy);

typedef struct {
  JAXC_VIEW(const void) token_in;
  JAXC_VIEW(void) token_out;
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
} ordered_call;

static const jaxc_field ordered_fields[] = {
    JAXC_ARGUMENT_AS(ordered_call, token_in, JAXC_TOKEN, 0),
    JAXC_ARGUMENT(ordered_call, x, JAXC_ANY_RANK),
    JAXC_RESULT_AS(ordered_call, token_out, JAXC_TOKEN, 0),
    JAXC_RESULT(ordered_call, y, JAXC_ANY_RANK),
};

static jaxc_status ordered(jaxc_context *context, const void *data) {
  const ordered_call *const call = (const ordered_call *)data;
  if (call->token_in.count != 0 || call->x.count != call->y.count) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ");
  }
  memcpy(call->y.data, call->x.data, (size_t)call->x.count * sizeof *call->x.data);
  return JAXC_OK;
}

JAXC_HANDLER(Ordered, ordered_call, ordered_fields, .execute = ordered);

/* Asks for more than there is. */
JAXC_HANDLER(Future, rms_call, rms_fields, .execute = rms, .minor = 6);
JAXC_HANDLER(OnCuda, rms_call, rms_fields, .execute = rms, .platform = "cuda");

/* Writes one element too many, and keeps memory of the device. */
static jaxc_status beyond(jaxc_context *context, const void *data) {
  const scale_call *const call = (const scale_call *)data;
  (void)context;
  for (int64_t i = 0; i < call->x.count + call->scale; i++) call->y.data[i] = 1;
  return JAXC_OK;
}
JAXC_HANDLER(Beyond, scale_call, scale_fields, .execute = beyond);

static jaxc_status scribbles(jaxc_context *context, const void *data) {
  const copy_call *const call = (const copy_call *)data;
  (void)context;
  memset((void *)(uintptr_t)call->x.data, 0x11, 1);
  memset(call->y.data, 0, (size_t)call->y.count * jaxc_dtype_size(call->y.dtype));
  return JAXC_OK;
}
JAXC_HANDLER(Scribbles, copy_call, copy_fields, .execute = scribbles);

/* A handler by hand that announces a version that no runtime has. */
JAXC_EXPORT jaxc_abi_error *Newer(jaxc_abi_call_frame *frame);
jaxc_abi_error *Newer(jaxc_abi_call_frame *frame) {
  jaxc_abi_metadata *const metadata = jaxc_call_metadata(frame);
  if (metadata != NULL) {
    metadata->api_version.major_version = 0;
    metadata->api_version.minor_version = 9;
    metadata->traits = 0;
  }
  return NULL;
}

/* Functions that are no handlers. */
JAXC_EXPORT int add(int a, int b);
JAXC_EXPORT int calls_of_add(void);
JAXC_EXPORT void crash(double *x);
static int add_calls;
int add(int a, int b) {
  add_calls++;
  return a + b;
}
int calls_of_add(void) { return add_calls; }
static volatile uintptr_t nowhere = 8;
void crash(double *x) { *(volatile double *)nowhere = *x; }
