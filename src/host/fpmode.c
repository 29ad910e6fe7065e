/* fpmode.c: the mode of arithmetic in which XLA executes on a CPU: subnormal numbers are
 * zero, as operands and as results, and rounding is to nearest.
 *
 *   const uint64_t before = jaxci_flush_begin();
 *   ...
 *   jaxci_flush_end(before);
 *
 * The mode belongs to the thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

#if defined(__x86_64__) || defined(_M_X64) || defined(__SSE2__)
#include <xmmintrin.h>

int jaxci_flush_is_known(void) { return 1; }
uint64_t jaxci_flush_begin(void) {
  const unsigned before = _mm_getcsr();
  /* flush to zero, denormals are zero; the bits of the rounding mode are 0 for nearest */
  _mm_setcsr((before | 0x8040u) & ~0x6000u);
  return before;
}
/* The flags of exceptions that happened meanwhile stay, as after any other function. */
void jaxci_flush_end(uint64_t before) {
  _mm_setcsr((_mm_getcsr() & 0x3fu) | ((unsigned)before & ~0x3fu));
}

#elif defined(__aarch64__)

int jaxci_flush_is_known(void) { return 1; }
uint64_t jaxci_flush_begin(void) {
  uint64_t before, mode;
  __asm__ __volatile__("mrs %0, fpcr" : "=r"(before));
  mode = (before | (UINT64_C(1) << 24)) & ~(UINT64_C(3) << 22);
  __asm__ __volatile__("msr fpcr, %0" : : "r"(mode) : "memory");
  return before;
}
void jaxci_flush_end(uint64_t before) {
  __asm__ __volatile__("msr fpcr, %0" : : "r"(before) : "memory");
}

#else

int jaxci_flush_is_known(void) { return 0; }
uint64_t jaxci_flush_begin(void) { return 0; }
void jaxci_flush_end(uint64_t before) { (void)before; }

#endif
