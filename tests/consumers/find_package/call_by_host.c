/* call_by_host.c: calls the handler RmsNorm through jaxc_host. Prints "ok", or what is
 * wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/host.h>
#include <jaxc/jaxc.h>
#include <math.h>
#include <stdio.h>

jaxc_abi_error *RmsNorm(jaxc_abi_call_frame *frame);

/* Calls RmsNorm on {3, 4} and a result of `size` floats, which are copied to y. */
static jaxc_status call(int64_t size, float *y, jaxc_message *message) {
  const jaxc_abi_bundle handlers = {.execute = RmsNorm};
  const int64_t two = 2;
  const float eps = 0.5f;
  float x[2] = {3, 4};
  jaxc_host *host = NULL;
  jaxc_host_call *run = NULL;
  jaxc_status status = jaxc_host_create(NULL, &host, message);
  if (status != JAXC_OK) goto done;
  status = jaxc_host_call_create(host, &handlers, &run, message);
  if (status != JAXC_OK) goto done;
  status = jaxc_host_call_argument(run, JAXC_F32, 1, &two, x, message);
  if (status != JAXC_OK) goto done;
  status = jaxc_host_call_result(run, JAXC_F32, 1, &size, NULL, message);
  if (status != JAXC_OK) goto done;
  status = jaxc_host_attrs_scalar(jaxc_host_call_attrs(run), "eps", JAXC_F32, &eps,
                                  message);
  if (status != JAXC_OK) goto done;
  status = jaxc_host_call_run(run, message);
  if (status != JAXC_OK) goto done;
  status = jaxc_host_call_check(run, message);
  memcpy(y, jaxc_host_call_result_data(run, 0, NULL), (size_t)size * sizeof *y);
done:
  jaxc_host_call_destroy(run);
  jaxc_host_destroy(host);
  return status;
}

int main(void) {
  jaxc_message message = {{0}};
  float y[2] = {0, 0};
  const float scale = sqrtf(12.5f + 0.5f);
  if (call(2, y, &message) != JAXC_OK || fabsf(y[0] - 3 / scale) > 1e-6f ||
      fabsf(y[1] - 4 / scale) > 1e-6f) {
    printf("'%s' %g %g\n", message.text, (double)y[0], (double)y[1]);
    return 1;
  }
  if (call(1, y, &message) != JAXC_INVALID_ARGUMENT ||
      strstr(message.text, "RmsNorm: x and y differ in size") == NULL) {
    printf("'%s'\n", message.text);
    return 1;
  }
  puts("ok");
  return 0;
}
