/* gsl.c: functions of the GNU Scientific Library that need a few lines of C. */
/* SPDX-License-Identifier: Apache-2.0
 *
 *   lib = jaxc.load("gsl.c", libraries=["gsl", "gslcblas"])
 *   y, error = lib.bessel_k0(x)
 */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_sf_bessel.h>
#include <math.h>

/* A function of GSL that meets a bad argument ends the process, unless it is told not to;
 * then it returns a status. This runs when the library is loaded, and holds for the whole
 * process: also for functions of GSL that others call. */
__attribute__((constructor)) static void go_on_after_errors(void) {
  gsl_set_error_handler_off();
}

/* The modified Bessel function K0 and a bound of its error; for x > 0. */
#pragma jaxc scalar(y, error)
const char *bessel_k0(double x, double *y, double *error) {
  gsl_sf_result result;
  const int status = gsl_sf_bessel_K0_e(x, &result);
  *y = result.val;
  *error = result.err;
  return status == GSL_SUCCESS ? 0 : gsl_strerror(status);
}

/* K0' is -K1. */
double bessel_k0_value(double x) { return gsl_sf_bessel_K0(x); }
double bessel_k0_value_jvp(double x, double d_x) { return -gsl_sf_bessel_K1(x) * d_x; }

struct debye {
  double order;
};

static double debye_integrand(double t, void *data) {
  const struct debye *const self = (const struct debye *)data;
  return t > 0 ? pow(t, self->order) / expm1(t) : (self->order > 1 ? 0 : 1);
}

/* Integral of t^order / (exp(t) - 1) from 0 to x, for order >= 1. What GSL calls is C,
 * and its workspace lives for one call, so that rows may run at the same time. */
#pragma jaxc scalar(y)
const char *debye(double order, double x, double *y) {
  struct debye self = {order};
  gsl_function integrand = {debye_integrand, &self};
  gsl_integration_workspace *const space = gsl_integration_workspace_alloc(200);
  double error;
  int status;
  if (space == 0) return "no memory for the integration";
  status = gsl_integration_qags(&integrand, 0, x, 0, 1e-10, 200, space, y, &error);
  gsl_integration_workspace_free(space);
  return status == GSL_SUCCESS ? 0 : gsl_strerror(status);
}
