/* rms_norm.c: root-mean-square normalisation as XLA FFI handlers, with its derivative.
 *
 *   cc -O3 -shared -fPIC -I$(python -m jaxc --include) rms_norm.c -o librms_norm.so -lm
 *
 * All axes but the last are batch axes: each row of the last axis is normalised by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/jaxc.h>
#include <math.h>

/* ---- the library that JAX is to call ---- */

/* y = x r with r = 1 / sqrt(mean(x^2) + eps), which is returned. */
static float normalise(float eps, int64_t n, const float *x, float *y) {
  float sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
  const float r = 1 / sqrtf(sum / (float)n + eps);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * r;
  return r;
}

/* out = r v - r^3 (x . v) x / n: the derivative of y along v. Its matrix is symmetric, so
 * v may be a tangent of x as well as a cotangent of y. */
static void differentiate(float r, int64_t n, const float *x, const float *v, float *out) {
  float dot = 0;
  for (int64_t i = 0; i < n; i++) dot += x[i] * v[i];
  const float along = r * r * r * dot / (float)n;
  for (int64_t i = 0; i < n; i++) out[i] = r * v[i] - along * x[i];
}

/* ---- what XLA calls ---- */

/* True when the first `axes` axes of two views have the same sizes. */
#define SAME_AXES(a, b, axes) \
  (memcmp((a).dims, (b).dims, (size_t)(axes) * sizeof *(a).dims) == 0)

/* Both views have the same shape. */
#define SAME_SHAPE(a, b) ((a).rank == (b).rank && SAME_AXES(a, b, (a).rank))

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
  const rms_norm_call *const call = data;
  const int64_t n = call->x.dims[call->x.rank - 1];
  if (!SAME_SHAPE(call->x, call->y)) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in shape");
  }
  for (int64_t at = 0; at < call->x.count; at += n) {
    (void)normalise(call->eps, n, call->x.data + at, call->y.data + at);
  }
  return JAXC_OK;
}

JAXC_HANDLER(RmsNorm, rms_norm_call, rms_norm_fields, .execute = rms_norm);

/* The same, keeping r of each row for the derivative. */
typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  JAXC_VIEW(float) r;
  float eps;
} rms_norm_fwd_call;

static const jaxc_field rms_norm_fwd_fields[] = {
    JAXC_ARGUMENT(rms_norm_fwd_call, x, JAXC_AT_LEAST(1)),
    JAXC_RESULT(rms_norm_fwd_call, y, JAXC_AT_LEAST(1)),
    JAXC_RESULT(rms_norm_fwd_call, r, JAXC_ANY_RANK),
    JAXC_ATTRIBUTE(rms_norm_fwd_call, eps),
};

static jaxc_status rms_norm_fwd(jaxc_context *context, const void *data) {
  const rms_norm_fwd_call *const call = data;
  const int64_t axes = call->x.rank - 1;
  const int64_t n = call->x.dims[axes];
  if (!SAME_SHAPE(call->x, call->y) || call->r.rank != axes ||
      !SAME_AXES(call->r, call->x, axes)) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT,
                     "y must have the shape of x, r that without the last axis");
  }
  for (int64_t row = 0; row < call->r.count; row++) {
    call->r.data[row] =
        normalise(call->eps, n, call->x.data + row * n, call->y.data + row * n);
  }
  return JAXC_OK;
}

JAXC_HANDLER(RmsNormFwd, rms_norm_fwd_call, rms_norm_fwd_fields, .execute = rms_norm_fwd);

/* From r, x and a cotangent of y to the cotangent of x. */
typedef struct {
  JAXC_VIEW(const float) r;
  JAXC_VIEW(const float) x;
  JAXC_VIEW(const float) ct_y;
  JAXC_VIEW(float) ct_x;
} rms_norm_bwd_call;

static const jaxc_field rms_norm_bwd_fields[] = {
    JAXC_ARGUMENT(rms_norm_bwd_call, r, JAXC_ANY_RANK),
    JAXC_ARGUMENT(rms_norm_bwd_call, x, JAXC_AT_LEAST(1)),
    JAXC_ARGUMENT(rms_norm_bwd_call, ct_y, JAXC_AT_LEAST(1)),
    JAXC_RESULT(rms_norm_bwd_call, ct_x, JAXC_AT_LEAST(1)),
};

static jaxc_status rms_norm_bwd(jaxc_context *context, const void *data) {
  const rms_norm_bwd_call *const call = data;
  const int64_t axes = call->x.rank - 1;
  const int64_t n = call->x.dims[axes];
  if (!SAME_SHAPE(call->x, call->ct_y) || !SAME_SHAPE(call->x, call->ct_x) ||
      call->r.rank != axes || !SAME_AXES(call->r, call->x, axes)) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT,
                     "x, ct_y and ct_x must have one shape, r that without the last axis");
  }
  for (int64_t row = 0; row < call->r.count; row++) {
    differentiate(call->r.data[row], n, call->x.data + row * n, call->ct_y.data + row * n,
                  call->ct_x.data + row * n);
  }
  return JAXC_OK;
}

JAXC_HANDLER(RmsNormBwd, rms_norm_bwd_call, rms_norm_bwd_fields, .execute = rms_norm_bwd);

/* ---- what only a GPU has: asked for on a CPU, the runtime's own answer is the error ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
} stream_call;

static const jaxc_field stream_fields[] = {
    JAXC_ARGUMENT(stream_call, x, JAXC_ANY_RANK),
    JAXC_RESULT(stream_call, y, JAXC_ANY_RANK),
};

static jaxc_status stream_only(jaxc_context *context, const void *data) {
  void *stream = NULL;
  (void)data;
  JAXC_TRY(jaxc_context_stream(context, &stream));
  return JAXC_OK; /* after queueing work on the stream */
}

JAXC_HANDLER(StreamOnly, stream_call, stream_fields, .execute = stream_only);
