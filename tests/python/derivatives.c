/* derivatives.c: kernels with derivative kernels, for test_derivative.py. */
#include <complex.h>
#include <math.h>

/* With a residual: the reciprocal root of the mean square. */
void rms(int n, const double x[n], double eps, double y[n]) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  for (int i = 0; i < n; i++) y[i] = x[i] / sqrt(s / n + eps);
}
void rms_fwd(int n, const double x[n], double eps, double y[n], double *r) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  *r = 1 / sqrt(s / n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * *r;
}
/* y = x r with r = (mean(x^2) + eps)^(-1/2), so dr = -r^3 (x . dx / n + deps / 2). */
void rms_bwd(int n, const double x[n], double r, const double ct_y[n], double ct_x[n],
             double *ct_eps) {
  double dot = 0;
  for (int i = 0; i < n; i++) dot += ct_y[i] * x[i];
  for (int i = 0; i < n; i++) ct_x[i] = r * ct_y[i] - r * r * r * dot * x[i] / n;
  *ct_eps = -r * r * r * dot / 2;
}
void rms_jvp(int n, const double x[n], double eps, const double d_x[n], double d_eps,
             double d_y[n]) {
  double s = 0, dot = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  for (int i = 0; i < n; i++) dot += x[i] * d_x[i];
  const double r = 1 / sqrt(s / n + eps);
  for (int i = 0; i < n; i++) {
    d_y[i] = r * d_x[i] - r * r * r * (dot / n + d_eps / 2) * x[i];
  }
}

/* Second order: with residuals, both the forward and the backward kernel have a jvp. */
void rms_fwd_jvp(int n, const double x[n], double eps, const double d_x[n], double d_eps,
                 double d_y[n], double *d_r) {
  double s = 0, dot = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  for (int i = 0; i < n; i++) dot += x[i] * d_x[i];
  const double r = 1 / sqrt(s / n + eps);
  *d_r = -r * r * r * (dot / n + d_eps / 2);
  for (int i = 0; i < n; i++) d_y[i] = r * d_x[i] + *d_r * x[i];
}
void rms_bwd_jvp(int n, const double x[n], double r, const double ct_y[n],
                 const double d_x[n], double d_r, const double d_ct_y[n],
                 double d_ct_x[n], double *d_ct_eps) {
  double dot = 0, d_dot = 0;
  for (int i = 0; i < n; i++) dot += ct_y[i] * x[i];
  for (int i = 0; i < n; i++) d_dot += d_ct_y[i] * x[i] + ct_y[i] * d_x[i];
  const double r3 = r * r * r, d_r3 = 3 * r * r * d_r;
  for (int i = 0; i < n; i++) {
    d_ct_x[i] = d_r * ct_y[i] + r * d_ct_y[i] -
                (d_r3 * dot * x[i] + r3 * d_dot * x[i] + r3 * dot * d_x[i]) / n;
  }
  *d_ct_eps = -(d_r3 * dot + r3 * d_dot) / 2;
}

/* Two differentiable inputs of different core dims. */
void matvec(int m, int n, const double a[m][n], const double x[n], double y[m]) {
  for (int i = 0; i < m; i++) {
    y[i] = 0;
    for (int j = 0; j < n; j++) y[i] += a[i][j] * x[j];
  }
}
void matvec_jvp(int m, int n, const double a[m][n], const double x[n],
                const double d_a[m][n], const double d_x[n], double d_y[m]) {
  for (int i = 0; i < m; i++) {
    d_y[i] = 0;
    for (int j = 0; j < n; j++) d_y[i] += a[i][j] * d_x[j] + d_a[i][j] * x[j];
  }
}
void matvec_bwd(int m, int n, const double a[m][n], const double x[n], const double ct_y[m],
                double ct_a[m][n], double ct_x[n]) {
  for (int j = 0; j < n; j++) ct_x[j] = 0;
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      ct_a[i][j] = ct_y[i] * x[j];
      ct_x[j] += ct_y[i] * a[i][j];
    }
  }
}
/* Second order: the derivative of the derivative. */
void matvec_bwd_jvp(int m, int n, const double a[m][n], const double x[n],
                    const double ct_y[m], const double d_a[m][n], const double d_x[n],
                    const double d_ct_y[m], double d_ct_a[m][n], double d_ct_x[n]) {
  for (int j = 0; j < n; j++) d_ct_x[j] = 0;
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      d_ct_a[i][j] = d_ct_y[i] * x[j] + ct_y[i] * d_x[j];
      d_ct_x[j] += d_ct_y[i] * a[i][j] + ct_y[i] * d_a[i][j];
    }
  }
}

/* An integer input, and a value function. */
double power(double x, int k) { return pow(x, k); }
double power_jvp(double x, int k, double d_x) { return k * pow(x, k - 1) * d_x; }
double power_bwd(double x, int k, double ct_return) { return k * pow(x, k - 1) * ct_return; }
double power_bwd_jvp(double x, int k, double ct_return, double d_x, double d_ct_return) {
  return k * pow(x, k - 1) * d_ct_return + k * (k - 1) * pow(x, k - 2) * ct_return * d_x;
}

/* Complex, and holomorphic. JAX transposes and does not conjugate. */
double complex product(double complex x, double complex y) { return x * y; }
double complex product_jvp(double complex x, double complex y, double complex d_x,
                           double complex d_y) {
  return d_x * y + x * d_y;
}
void product_bwd(double complex x, double complex y, double complex ct_return,
                 double complex *ct_x, double complex *ct_y) {
  *ct_x = ct_return * y;
  *ct_y = x * ct_return;
}

/* Linear in x: its jvp is itself. */
#pragma jaxc linear(x) nondifferentiable(w)
void fir(int n, int k, const double w[k], const double x[n], double y[n - k + 1]) {
  for (int i = 0; i < n - k + 1; i++) {
    y[i] = 0;
    for (int j = 0; j < k; j++) y[i] += w[j] * x[i + j];
  }
}
void fir_transpose(int n, int k, const double w[k], const double ct_y[n - k + 1],
                   double ct_x[n]) {
  for (int i = 0; i < n; i++) ct_x[i] = 0;
  for (int i = 0; i < n - k + 1; i++) {
    for (int j = 0; j < k; j++) ct_x[i + j] += w[j] * ct_y[i];
  }
}

/* In place, with a status, a static value and scratch. */
#pragma jaxc inout(x) static(times) scratch(w)
int grow(int n, int times, double x[n], double w[n]) {
  for (int i = 0; i < n; i++) {
    w[i] = exp(times * log(x[i]));
    x[i] = w[i];
  }
  return x[0] < 0;
}
#pragma jaxc inout(ct_x) static(times)
int grow_bwd(int n, int times, const double x[n], double ct_x[n]) {
  for (int i = 0; i < n; i++) ct_x[i] *= times * pow(x[i], times - 1);
  return 0;
}

/* A dimension of outputs only, several outputs, one of them an integer. */
void line(double a, double b, int n, double y[n], int count[n]) {
  for (int i = 0; i < n; i++) {
    y[i] = a + (b - a) * i / (n - 1);
    count[i] = i;
  }
}
void line_jvp(double d_a, double d_b, int n, double d_y[n]) {
  for (int i = 0; i < n; i++) d_y[i] = d_a + (d_b - d_a) * i / (n - 1);
}
void line_bwd(int n, const double ct_y[n], double *ct_a, double *ct_b) {
  *ct_a = *ct_b = 0;
  for (int i = 0; i < n; i++) {
    *ct_a += ct_y[i] * (1 - (double)i / (n - 1));
    *ct_b += ct_y[i] * i / (n - 1);
  }
}

/* Only one of the two directions, and a partial one. */
double forward_only(double x) { return sin(x); }
double forward_only_jvp(double x, double d_x) { return cos(x) * d_x; }
double reverse_only(double x) { return sin(x); }
double reverse_only_bwd(double x, double ct_return) { return cos(x) * ct_return; }
double neither(double x) { return sin(x); }
double partial(double x, double y) { return x * y; }
double partial_jvp(double x, double y, double d_x) { return d_x * y; }
void partial_bwd(double x, double y, double ct_return, double *ct_x) { *ct_x = y * ct_return; }
#pragma jaxc nondifferentiable(y)
double barred(double x, double y) { return x * y; }
double barred_jvp(double x, double y, double d_x, double d_y) { return d_x * y; }
