/* grid.h: accumulation without races, for kernels whose points write to the same place.
 *
 *   #include <jaxc/grid.h>
 *
 *   #pragma jaxc grid(i < n) zero(bins)
 *   void histogram(int i, int n, const int x[n], int k, int bins[k]) {
 *     if (x[i] >= 0 && x[i] < k) jaxc_atomic_add(&bins[x[i]], 1);
 *   }
 *
 * The points of a grid run at the same time in several threads, so `bins[x[i]] += 1` loses
 * counts. Each of these changes *place in one step that no other thread comes between, and
 * returns what was there before, as atomicAdd of CUDA and wp.atomic_add of Warp do:
 *
 *   jaxc_atomic_add(place, value)   *place += value
 *   jaxc_atomic_sub(place, value)   *place -= value
 *   jaxc_atomic_min(place, value)   *place = the smaller one
 *   jaxc_atomic_max(place, value)   *place = the larger one
 *
 * `place` points to a float, a double or any integer of C; value converts to that type.
 * Integers wrap around. Beside a NaN a number wins, as in fmin and fmax: a NaN value changes
 * nothing, and a NaN in *place is replaced. (-ffast-math takes that away.) Of a complex
 * number add to both parts: jaxc_atomic_add((float *)&z[i], re), and + 1 for im.
 *
 * Lock-free, and of relaxed order: nothing is promised of other memory, and none is needed,
 * since results are read when all points are done. The order in which threads come is not
 * fixed, so the last digits of a sum of floats may differ from call to call; sums of
 * integers, minima and maxima do not. Where many points share few places the threads wait
 * for each other: add up in a local variable first, and once at the end.
 *
 * C11, and C++, with the builtins of gcc and clang.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_GRID_H
#define JAXC_GRID_H

#if !defined(__GNUC__) && !defined(__clang__)
#error "jaxc/grid.h needs the __atomic builtins of gcc or clang"
#endif

#ifdef __cplusplus
extern "C++" { /* overloads, where C has _Generic */
#define JAXCI_ATOMIC_NAME(operation, name) jaxc_atomic_##operation
#else
#define JAXCI_ATOMIC_NAME(operation, name) jaxci_atomic_##operation##_##name
#endif
#define JAXCI_ATOMIC_FUNCTION(operation, name, type)                             \
  __attribute__((unused)) static inline type JAXCI_ATOMIC_NAME(operation, name)( \
      type * place, type value)

/* One function: `condition` says whether *place becomes `next`, by old and value. A
 * comparison is of bytes, so that a NaN is equal to itself. */
#define JAXCI_ATOMIC(operation, name, type, condition, next)                        \
  JAXCI_ATOMIC_FUNCTION(operation, name, type) {                                    \
    type old, changed;                                                              \
    __atomic_load(place, &old, __ATOMIC_RELAXED);                                   \
    do {                                                                            \
      if (!(condition)) return old;                                                 \
      changed = (type)(next);                                                       \
    } while (!__atomic_compare_exchange(place, &old, &changed, 1, __ATOMIC_RELAXED, \
                                        __ATOMIC_RELAXED));                         \
    return old;                                                                     \
  }
#define JAXCI_ATOMIC_FLOAT(name, type)                                                \
  JAXCI_ATOMIC(add, name, type, 1, old + value)                                       \
  JAXCI_ATOMIC(sub, name, type, 1, old - value)                                       \
  JAXCI_ATOMIC(min, name, type, value < old || (old != old && value == value), value) \
  JAXCI_ATOMIC(max, name, type, value > old || (old != old && value == value), value)
#define JAXCI_ATOMIC_INTEGER(name, type)                       \
  JAXCI_ATOMIC_FUNCTION(add, name, type) {                     \
    return __atomic_fetch_add(place, value, __ATOMIC_RELAXED); \
  }                                                            \
  JAXCI_ATOMIC_FUNCTION(sub, name, type) {                     \
    return __atomic_fetch_sub(place, value, __ATOMIC_RELAXED); \
  }                                                            \
  JAXCI_ATOMIC(min, name, type, value < old, value)            \
  JAXCI_ATOMIC(max, name, type, value > old, value)

JAXCI_ATOMIC_FLOAT(float, float)
JAXCI_ATOMIC_FLOAT(double, double)
JAXCI_ATOMIC_INTEGER(char, char)
JAXCI_ATOMIC_INTEGER(schar, signed char)
JAXCI_ATOMIC_INTEGER(uchar, unsigned char)
JAXCI_ATOMIC_INTEGER(short, short)
JAXCI_ATOMIC_INTEGER(ushort, unsigned short)
JAXCI_ATOMIC_INTEGER(int, int)
JAXCI_ATOMIC_INTEGER(uint, unsigned int)
JAXCI_ATOMIC_INTEGER(long, long)
JAXCI_ATOMIC_INTEGER(ulong, unsigned long)
JAXCI_ATOMIC_INTEGER(llong, long long)
JAXCI_ATOMIC_INTEGER(ullong, unsigned long long)

#undef JAXCI_ATOMIC
#undef JAXCI_ATOMIC_FLOAT
#undef JAXCI_ATOMIC_INTEGER
#undef JAXCI_ATOMIC_FUNCTION
#undef JAXCI_ATOMIC_NAME

#ifdef __cplusplus
} /* extern "C++" */
#else

#define JAXCI_ATOMIC_OF(operation, place)                  \
  _Generic((place),                                        \
      float *: jaxci_atomic_##operation##_float,           \
      double *: jaxci_atomic_##operation##_double,         \
      char *: jaxci_atomic_##operation##_char,             \
      signed char *: jaxci_atomic_##operation##_schar,     \
      unsigned char *: jaxci_atomic_##operation##_uchar,   \
      short *: jaxci_atomic_##operation##_short,           \
      unsigned short *: jaxci_atomic_##operation##_ushort, \
      int *: jaxci_atomic_##operation##_int,               \
      unsigned int *: jaxci_atomic_##operation##_uint,     \
      long *: jaxci_atomic_##operation##_long,             \
      unsigned long *: jaxci_atomic_##operation##_ulong,   \
      long long *: jaxci_atomic_##operation##_llong,       \
      unsigned long long *: jaxci_atomic_##operation##_ullong)

/* The operations; see above. From any thread. `place` is evaluated once. */
#define jaxc_atomic_add(place, value) JAXCI_ATOMIC_OF(add, place)((place), (value))
#define jaxc_atomic_sub(place, value) JAXCI_ATOMIC_OF(sub, place)((place), (value))
#define jaxc_atomic_min(place, value) JAXCI_ATOMIC_OF(min, place)((place), (value))
#define jaxc_atomic_max(place, value) JAXCI_ATOMIC_OF(max, place)((place), (value))

#endif /* not __cplusplus */

#endif /* JAXC_GRID_H */
