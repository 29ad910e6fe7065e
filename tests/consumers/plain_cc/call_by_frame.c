/* call_by_frame.c: calls the handler RmsNorm with a frame made by hand, where there is no
 * host. Prints "ok", or what is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/jaxc.h>
#include <math.h>
#include <stdio.h>

jaxc_abi_error *RmsNorm(jaxc_abi_call_frame *frame);

static char error_text[2048];

static jaxc_abi_error *error_create(jaxc_abi_error_create_args *args) {
  (void)snprintf(error_text, sizeof error_text, "%s", args->message);
  return (jaxc_abi_error *)(void *)error_text;
}

/* Calls RmsNorm on x and y of 2 and `size` floats; the error's text, "" for none. */
static const char *call(float *x, float *y, int64_t size, float eps) {
  static const jaxc_abi_api api = {.struct_size = sizeof(jaxc_abi_api),
                                   .api_version = {24, NULL, 0, 3},
                                   .error_create = error_create};
  int64_t sizes[2] = {2, size};
  jaxc_abi_buffer buffers[2] = {{sizeof *buffers, NULL, JAXC_F32, x, 1, &sizes[0]},
                                {sizeof *buffers, NULL, JAXC_F32, y, 1, &sizes[1]}};
  void *arguments[1] = {&buffers[0]}, *results[1] = {&buffers[1]};
  int32_t buffer_type = JAXC_ABI_BUFFER, attr_type = JAXC_ABI_ATTR_SCALAR;
  jaxc_abi_scalar scalar = {JAXC_F32, &eps};
  jaxc_abi_span name = {"eps", 3}, *names[1] = {&name};
  void *attrs[1] = {&scalar};
  jaxc_abi_call_frame frame = {
      .struct_size = JAXC_ABI_FRAME_SIZE,
      .api = &api,
      .stage = JAXC_STAGE_EXECUTE,
      .args = {sizeof frame.args, NULL, 1, &buffer_type, arguments},
      .results = {sizeof frame.results, NULL, 1, &buffer_type, results},
      .attrs = {sizeof frame.attrs, NULL, 1, &attr_type, names, attrs}};
  error_text[0] = '\0';
  (void)RmsNorm(&frame);
  return error_text;
}

int main(void) {
  float x[2] = {3, 4}, y[2] = {0, 0};
  const float scale = sqrtf(12.5f + 0.5f);
  const char *text = call(x, y, 2, 0.5f);
  if (text[0] != '\0' || fabsf(y[0] - 3 / scale) > 1e-6f ||
      fabsf(y[1] - 4 / scale) > 1e-6f) {
    printf("'%s' %g %g\n", text, (double)y[0], (double)y[1]);
    return 1;
  }
  text = call(x, y, 1, 0.5f);
  if (strcmp(text, "RmsNorm: x and y differ in size") != 0) {
    printf("'%s'\n", text);
    return 1;
  }
  puts("ok");
  return 0;
}
