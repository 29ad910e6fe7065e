/* types.h: element types that C has no word for, and facts about every element type.
 *
 * Include it in a kernel that computes on bfloat16 or 8-bit floats:
 *
 *   #include <jaxc/types.h>
 *   void scale(int n, const jaxc_bf16 x[n], float a, jaxc_bf16 y[n]) {
 *     for (int i = 0; i < n; i++) y[i] = jaxc_bf16_from(a * jaxc_bf16_to(x[i]));
 *   }
 *
 * The types are structs so that arithmetic on their bits is a compile error. Conversions
 * to float are exact; conversions from float round to nearest, ties to even. bfloat16 and
 * e5m2 overflow to infinity; e4m3fn has no infinity and overflows to NaN.
 * Formats: bfloat16 is the upper half of IEEE binary32; the 8-bit formats are those of
 * "FP8 Formats for Deep Learning" (Micikevicius et al., 2022). All functions are pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_TYPES_H
#define JAXC_TYPES_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint16_t bits;
} jaxc_bf16;

typedef struct {
  uint8_t bits;
} jaxc_f8e4m3fn;

typedef struct {
  uint8_t bits;
} jaxc_f8e5m2;

static inline float jaxc_bf16_to(jaxc_bf16 value) {
  const uint32_t bits = (uint32_t)value.bits << 16;
  float out;
  memcpy(&out, &bits, sizeof out);
  return out;
}

static inline jaxc_bf16 jaxc_bf16_from(float value) {
  jaxc_bf16 out;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { /* keep a NaN a NaN, and quiet */
    out.bits = (uint16_t)((bits >> 16) | 0x40u);
  } else {
    out.bits = (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
  return out;
}

/* An 8-bit float with `mantissa` fraction bits and exponent bias `bias`, as float bits. */
static inline float jaxci_f8_to(uint8_t value, int mantissa, int bias) {
  const uint32_t sign = (uint32_t)(value & 0x80u) << 24;
  const uint32_t fraction = value & ((1u << mantissa) - 1u);
  const int exponent = (int)((value & 0x7fu) >> mantissa);
  uint32_t bits;
  float out;
  if (exponent == 0) { /* subnormal: fraction * 2^(1 - bias - mantissa), exact in float */
    const uint32_t scale = (uint32_t)(127 + 1 - bias - mantissa) << 23;
    float unit;
    memcpy(&unit, &scale, sizeof unit);
    out = (float)fraction * unit;
    memcpy(&bits, &out, sizeof bits);
    bits |= sign;
  } else {
    bits = sign | ((uint32_t)(exponent - bias + 127) << 23) |
           (fraction << (23 - mantissa));
  }
  memcpy(&out, &bits, sizeof out);
  return out;
}

/* Rounds |value|, given as float bits, to `mantissa` fraction bits; the caller looks at
 * overflow. Returns exponent and fraction together, as the format stores them. */
static inline uint32_t jaxci_f8_round(uint32_t magnitude, int mantissa, int bias) {
  const int exponent = (int)(magnitude >> 23) - 127;
  const int lowest = 1 - bias; /* exponent of the smallest normal number */
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  int drop = 23 - mantissa; /* bits below the last that is kept */
  uint32_t kept, rest, half;
  if (exponent < lowest) drop += lowest - exponent;
  if (drop > 25) return 0; /* under half of the smallest subnormal, float's zero too */
  kept = significand >> drop;
  rest = significand & ((1u << drop) - 1u);
  half = 1u << (drop - 1);
  if (rest > half || (rest == half && (kept & 1u))) kept++;
  if (exponent < lowest) return kept; /* a carry makes it the smallest normal: the same */
  return kept + ((uint32_t)(exponent + bias - 1) << mantissa);
}

static inline float jaxc_f8e4m3fn_to(jaxc_f8e4m3fn value) {
  uint32_t bits = 0x7fc00000u | ((uint32_t)(value.bits & 0x80u) << 24);
  float out;
  if ((value.bits & 0x7fu) != 0x7fu) return jaxci_f8_to(value.bits, 3, 7);
  memcpy(&out, &bits, sizeof out);
  return out;
}

static inline jaxc_f8e4m3fn jaxc_f8e4m3fn_from(float value) {
  jaxc_f8e4m3fn out;
  uint32_t bits, magnitude, rounded;
  memcpy(&bits, &value, sizeof bits);
  magnitude = bits & 0x7fffffffu;
  rounded = magnitude >= 0x7f800000u ? 0x7fu : jaxci_f8_round(magnitude, 3, 7);
  if (rounded > 0x7eu) rounded = 0x7fu;
  out.bits = (uint8_t)(((bits >> 24) & 0x80u) | rounded);
  return out;
}

static inline float jaxc_f8e5m2_to(jaxc_f8e5m2 value) {
  const uint32_t magnitude = value.bits & 0x7fu;
  uint32_t bits = ((uint32_t)(value.bits & 0x80u) << 24) | 0x7f800000u;
  float out;
  if (magnitude < 0x7cu) return jaxci_f8_to(value.bits, 2, 15);
  if (magnitude > 0x7cu) bits |= 0x400000u;
  memcpy(&out, &bits, sizeof out);
  return out;
}

static inline jaxc_f8e5m2 jaxc_f8e5m2_from(float value) {
  jaxc_f8e5m2 out;
  uint32_t bits, magnitude, rounded;
  memcpy(&bits, &value, sizeof bits);
  magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    rounded = 0x7eu;
  } else {
    rounded = magnitude == 0x7f800000u ? 0x7cu : jaxci_f8_round(magnitude, 2, 15);
    if (rounded > 0x7cu) rounded = 0x7cu;
  }
  out.bits = (uint8_t)(((bits >> 24) & 0x80u) | rounded);
  return out;
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_TYPES_H */
