/* axpy.c: one kernel for float, double and half precision, written once as a macro. */
/* SPDX-License-Identifier: Apache-2.0
 *
 *   axpy = jaxc.load("axpy.c").axpy     # picks by the dtype of its arguments
 *   z = axpy(2.0, x, y)
 *
 * _Pragma is the pragma that a macro can contain. A derivative belongs to the function
 * whose name it has, so each type gets its own.
 */

#define DEFINE_AXPY(T, name)                                                           \
  _Pragma("jaxc overload(axpy)")                                                       \
  void name(int n, T a, const T x[n], const T y[n], T z[n]) {                          \
    for (int i = 0; i < n; i++) z[i] = (T)(a * x[i] + y[i]);                           \
  }                                                                                    \
  void name##_jvp(int n, T a, const T x[n], T d_a, const T d_x[n], const T d_y[n],     \
                  T d_z[n]) {                                                          \
    for (int i = 0; i < n; i++) d_z[i] = (T)(d_a * x[i] + a * d_x[i] + d_y[i]);        \
  }                                                                                    \
  void name##_bwd(int n, T a, const T x[n], const T ct_z[n], T *ct_a, T ct_x[n],       \
                  T ct_y[n]) {                                                         \
    double sum = 0;                                                                    \
    for (int i = 0; i < n; i++) {                                                      \
      sum += (double)x[i] * (double)ct_z[i];                                           \
      ct_x[i] = (T)(a * ct_z[i]);                                                      \
      ct_y[i] = ct_z[i];                                                               \
    }                                                                                  \
    *ct_a = (T)sum;                                                                    \
  }

DEFINE_AXPY(float, axpy_float)
DEFINE_AXPY(double, axpy_double)
#ifdef __FLT16_MAX__ /* where the compiler has the type */
__extension__ typedef _Float16 half;
DEFINE_AXPY(half, axpy_half)
#endif
