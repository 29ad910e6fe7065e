/* test_types.c: 8-bit floats and bfloat16 against arithmetic on doubles. */
#include <jaxc/types.h>
#include <math.h>

#include "check.h"

/* The value of an 8-bit float by the definition of its format. */
static double value_of(unsigned bits, int mantissa, int bias) {
  const double sign = bits & 0x80 ? -1 : 1;
  const int exponent = (int)((bits & 0x7f) >> mantissa);
  const int fraction = (int)(bits & ((1u << mantissa) - 1));
  if (exponent == 0) return sign * ldexp(fraction, 1 - bias - mantissa);
  return sign * ldexp((1 << mantissa) + fraction, exponent - bias - mantissa);
}

TEST(every_e4m3fn_has_its_value_and_comes_back) {
  for (unsigned bits = 0; bits < 256; bits++) {
    const jaxc_f8e4m3fn x = {(uint8_t)bits};
    const float value = jaxc_f8e4m3fn_to(x);
    if ((bits & 0x7f) == 0x7f) {
      CHECK(isnan(value));
    } else {
      CHECK((double)value == value_of(bits, 3, 7));
      CHECK_INT(jaxc_f8e4m3fn_from(value).bits, bits);
    }
  }
}

TEST(every_e5m2_has_its_value_and_comes_back) {
  for (unsigned bits = 0; bits < 256; bits++) {
    const jaxc_f8e5m2 x = {(uint8_t)bits};
    const float value = jaxc_f8e5m2_to(x);
    if ((bits & 0x7f) > 0x7c) {
      CHECK(isnan(value));
    } else if ((bits & 0x7f) == 0x7c) {
      CHECK(isinf(value));
      CHECK_INT(jaxc_f8e5m2_from(value).bits, bits);
    } else {
      CHECK((double)value == value_of(bits, 2, 15));
      CHECK_INT(jaxc_f8e5m2_from(value).bits, bits);
    }
  }
}

/* The nearest of all finite values, ties to the even one, by looking at each. */
static unsigned nearest(double value, int mantissa, int bias, unsigned largest) {
  unsigned best = 0;
  for (unsigned bits = 1; bits <= largest; bits++) {
    const double here = fabs(value_of(bits, mantissa, bias) - value);
    const double there = fabs(value_of(best, mantissa, bias) - value);
    if (here < there || (here == there && bits % 2 == 0)) best = bits;
  }
  return best;
}

TEST(rounding_is_to_nearest_even_between_all_neighbours) {
  for (unsigned bits = 0; bits < 0x7e; bits++) {
    const double low = value_of(bits, 3, 7), high = value_of(bits + 1, 3, 7);
    for (int step = 0; step <= 16; step++) {
      const float x = (float)(low + (high - low) * step / 16);
      CHECK_INT(jaxc_f8e4m3fn_from(x).bits, nearest((double)x, 3, 7, 0x7e));
      CHECK_INT(jaxc_f8e4m3fn_from(-x).bits, 0x80 | nearest((double)x, 3, 7, 0x7e));
    }
  }
  for (unsigned bits = 0; bits < 0x7b; bits++) {
    const double low = value_of(bits, 2, 15), high = value_of(bits + 1, 2, 15);
    for (int step = 0; step <= 16; step++) {
      const float x = (float)(low + (high - low) * step / 16);
      CHECK_INT(jaxc_f8e5m2_from(x).bits, nearest((double)x, 2, 15, 0x7b));
    }
  }
}

TEST(what_is_too_large_overflows_as_the_format_says) {
  CHECK_INT(jaxc_f8e4m3fn_from(464.0f).bits, 0x7e);  /* halfway to the next: to even */
  CHECK_INT(jaxc_f8e4m3fn_from(464.1f).bits, 0x7f);
  CHECK_INT(jaxc_f8e4m3fn_from(-1e30f).bits, 0xff);
  CHECK_INT(jaxc_f8e4m3fn_from(INFINITY).bits, 0x7f);
  CHECK_INT(jaxc_f8e5m2_from(61439.0f).bits, 0x7b);
  CHECK_INT(jaxc_f8e5m2_from(61440.0f).bits, 0x7c);
  CHECK_INT(jaxc_f8e5m2_from(-1e30f).bits, 0xfc);
}

TEST(what_is_too_small_becomes_zero_with_its_sign) {
  CHECK_INT(jaxc_f8e4m3fn_from(1e-30f).bits, 0);
  CHECK_INT(jaxc_f8e4m3fn_from(-1e-44f).bits, 0x80);
  CHECK_INT(jaxc_f8e5m2_from(-1e-30f).bits, 0x80);
}

TEST(bfloat16_rounds_to_nearest_even) {
  static const struct {
    float value;
    unsigned bits;
  } table[] = {{1.0f, 0x3f80},         {1.00390625f, 0x3f80}, {1.01171875f, 0x3f82},
               {1.0078125f, 0x3f81},   {-2.5f, 0xc020},       {3.4e38f, 0x7f80},
               {INFINITY, 0x7f80},     {0.0f, 0},             {-0.0f, 0x8000}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    CHECK_INT(jaxc_bf16_from(table[i].value).bits, table[i].bits);
  }
  CHECK(isnan(jaxc_bf16_to(jaxc_bf16_from(NAN))));
  for (unsigned bits = 0; bits < 0x7f80; bits++) {
    const jaxc_bf16 x = {(uint16_t)bits};
    CHECK_INT(jaxc_bf16_from(jaxc_bf16_to(x)).bits, bits);
  }
}

TEST(nan_stays_nan) {
  CHECK(isnan(jaxc_f8e4m3fn_to(jaxc_f8e4m3fn_from(NAN))));
  CHECK(isnan(jaxc_f8e5m2_to(jaxc_f8e5m2_from(NAN))));
  CHECK(isnan(jaxc_f8e5m2_to(jaxc_f8e5m2_from(-NAN))));
}

TEST_MAIN
