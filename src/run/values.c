/* values.c: elements in text and in memory, with the limits of each type.
 *
 *   i8: -128    u64: 0xff    f32: 1e-5, inf    c64: 1.5-2j or 1.5,-2    bool: true
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- halves, which C11 has no type for ---- */

float jaxci_half_to(uint16_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  uint32_t whole;
  float out;
  if (exponent == 0) { /* zero or subnormal: fraction * 2^-24, exact in float */
    out = (float)fraction * 0x1p-24f;
    memcpy(&whole, &out, sizeof whole);
    whole |= sign;
  } else if (exponent == 0x1fu) {
    whole = sign | 0x7f800000u | (fraction << 13);
  } else {
    whole = sign | ((exponent + 112u) << 23) | (fraction << 13);
  }
  memcpy(&out, &whole, sizeof out);
  return out;
}

uint16_t jaxci_half_from(float value) {
  uint32_t bits, magnitude, rounded;
  memcpy(&bits, &value, sizeof bits);
  magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    rounded = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) { /* 65520: rounds beyond the largest */
    rounded = 0x7c00u;
  } else if (magnitude < 0x38800000u) { /* below 2^-14: in steps of 2^-24 */
    rounded = (uint32_t)lrintf(fabsf(value) * 0x1p24f);
  } else {
    rounded = (magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    rounded -= 112u << 10;
  }
  return (uint16_t)(((bits >> 16) & 0x8000u) | rounded);
}

/* ---- from text ---- */

static jaxc_status fail_value(int32_t dtype, const char *text, const char *expected,
                              jaxc_message *message) {
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "'%s' is no %s; expected %s", text,
                   jaxc_dtype_name(dtype), expected);
}

/* Integers in decimal, or in hexadecimal behind 0x; a leading 0 is no octal number. */
static int parse_unsigned(const char *text, uint64_t *out) {
  const int is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  char *end;
  if (text[0] < '0' || text[0] > '9') return 0;
  errno = 0;
  *out = strtoull(text, &end, is_hex ? 16 : 10);
  return *end == '\0' && errno == 0;
}

static jaxc_status parse_integer(int32_t dtype, const char *text, void *out,
                                 jaxc_message *message) {
  const int is_signed = dtype <= JAXC_S64;
  const size_t bits = jaxc_dtype_bits(dtype);
  const int is_negative = text[0] == '-';
  const uint64_t most = UINT64_MAX >> (64 - bits + (is_signed ? 1 : 0));
  const uint64_t limit = !is_negative ? most : is_signed ? most + 1 : 0;
  const char *const digits = text + (is_negative || text[0] == '+' ? 1 : 0);
  uint64_t magnitude;
  if (digits[strspn(digits, "0123456789abcdefABCDEFxX")] != '\0' || digits[0] < '0' ||
      digits[0] > '9') {
    return fail_value(dtype, text, "a whole number", message);
  }
  if (!parse_unsigned(digits, &magnitude) && errno != ERANGE) {
    return fail_value(dtype, text, "a whole number", message);
  }
  if (errno == ERANGE || magnitude > limit) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s is outside the range of %s: expected %s%llu to %llu", text,
                     jaxc_dtype_name(dtype), is_signed ? "-" : "",
                     is_signed ? (unsigned long long)most + 1 : 0ull,
                     (unsigned long long)most);
  }
  if (is_negative) magnitude = 0 - magnitude;
  memcpy(out, &magnitude, bits / 8); /* little-endian, as XLA is */
  return JAXC_OK;
}

/* A floating number at the beginning of the text; NULL when there is none. Values that
 * are too small become 0 or subnormal, those too large are refused. */
static const char *parse_real(const char *text, int is_double, double *out,
                              int *is_too_large) {
  char *end;
  errno = 0;
  if (text[0] == ' ' || text[0] == '\t' || text[0] == '\n') return NULL;
  *out = is_double ? strtod(text, &end) : (double)strtof(text, &end);
  *is_too_large = errno == ERANGE && fabs(*out) > 1;
  return end == text ? NULL : end;
}

static jaxc_status fail_large(int32_t dtype, const char *text, jaxc_message *message) {
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s is outside the range of %s", text,
                   jaxc_dtype_name(dtype));
}

static jaxc_status parse_float(int32_t dtype, const char *text, void *out,
                               jaxc_message *message) {
  int is_too_large = 0;
  double value, back;
  const char *const end = parse_real(text, dtype == JAXC_F64, &value, &is_too_large);
  const float single = (float)value;
  uint16_t half = 0;
  jaxc_bf16 brain;
  uint8_t small = 0;
  if (end == NULL || *end != '\0') return fail_value(dtype, text, "a number", message);
  if (is_too_large) return fail_large(dtype, text, message);
  switch (dtype) {
    case JAXC_F64: memcpy(out, &value, sizeof value); return JAXC_OK;
    case JAXC_F32: memcpy(out, &single, sizeof single); return JAXC_OK;
    case JAXC_F16:
      half = jaxci_half_from(single);
      back = (double)jaxci_half_to(half);
      memcpy(out, &half, sizeof half);
      break;
    case JAXC_BF16:
      brain = jaxc_bf16_from(single);
      back = (double)jaxc_bf16_to(brain);
      memcpy(out, &brain, sizeof brain);
      break;
    case JAXC_F8E4M3FN: {
      const jaxc_f8e4m3fn narrow = jaxc_f8e4m3fn_from(single);
      back = (double)jaxc_f8e4m3fn_to(narrow);
      small = narrow.bits;
      memcpy(out, &small, 1);
      break;
    }
    default: {
      const jaxc_f8e5m2 narrow = jaxc_f8e5m2_from(single);
      back = (double)jaxc_f8e5m2_to(narrow);
      small = narrow.bits;
      memcpy(out, &small, 1);
      break;
    }
  }
  /* e4m3fn has no infinity, so that an infinity does not fit it either. */
  if (isfinite(back) || isnan(value)) return JAXC_OK;
  if (isinf(value) && isinf(back)) return JAXC_OK;
  return fail_large(dtype, text, message);
}

/* "1", "2j", "1+2j", "1,2", and the same in parentheses. */
static jaxc_status parse_complex(int32_t dtype, const char *text, void *out,
                                 jaxc_message *message) {
  const int is_double = dtype == JAXC_C128;
  double parts[2] = {0, 0};
  float singles[2];
  int large[2] = {0, 0};
  const char *at = text + (text[0] == '(' ? 1 : 0);
  const char *end = parse_real(at, is_double, &parts[0], &large[0]);
  if (end != NULL && (*end == '+' || *end == '-')) {
    end = parse_real(end, is_double, &parts[1], &large[1]);
    end = end != NULL && (*end == 'j' || *end == 'i') ? end + 1 : NULL;
  } else if (end != NULL && *end == ',') {
    end = parse_real(end + 1, is_double, &parts[1], &large[1]);
  } else if (end != NULL && (*end == 'j' || *end == 'i')) {
    parts[1] = parts[0];
    parts[0] = 0;
    end++;
  }
  if (end != NULL && text[0] == '(') end = *end == ')' ? end + 1 : NULL;
  if (end == NULL || *end != '\0') {
    return fail_value(dtype, text, "a complex number, such as 1.5-2j", message);
  }
  if (large[0] || large[1]) return fail_large(dtype, text, message);
  singles[0] = (float)parts[0];
  singles[1] = (float)parts[1];
  if (is_double) {
    memcpy(out, parts, sizeof parts);
  } else {
    memcpy(out, singles, sizeof singles);
  }
  return JAXC_OK;
}

static jaxc_status parse_bool(const char *text, void *out, jaxc_message *message) {
  static const char *const words[2][3] = {{"0", "false", "False"}, {"1", "true", "True"}};
  for (int value = 0; value < 2; value++) {
    for (int i = 0; i < 3; i++) {
      if (strcmp(text, words[value][i]) != 0) continue;
      memset(out, value, 1);
      return JAXC_OK;
    }
  }
  return fail_value(JAXC_PRED, text, "true or false", message);
}

int jaxci_value_has_text(int32_t dtype) {
  return (dtype >= JAXC_PRED && dtype <= JAXC_F64) || dtype == JAXC_C64 ||
         dtype == JAXC_BF16 || dtype == JAXC_C128 || dtype == JAXC_F8E5M2 ||
         dtype == JAXC_F8E4M3FN;
}

jaxc_status jaxci_value_parse(int32_t dtype, const char *text, size_t length, void *out,
                              jaxc_message *message) {
  char copy[128];
  memset(out, 0, JAXCI_MAX_ELEMENT);
  if (!jaxci_value_has_text(dtype)) {
    return JAXC_FAIL(
        message, JAXC_INVALID_ARGUMENT,
        "values of %s cannot be written here; expected bool, an integer of 8 "
        "bits or more, a float that C or jaxc/types.h has, or complex",
        jaxc_dtype_name(dtype));
  }
  if (length >= sizeof copy) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "'%.20s...' is too long for one %s: %zu characters", text,
                     jaxc_dtype_name(dtype), length);
  }
  memcpy(copy, text, length);
  copy[length] = '\0';
  if (dtype == JAXC_PRED) return parse_bool(copy, out, message);
  if (dtype <= JAXC_U64) return parse_integer(dtype, copy, out, message);
  if (dtype == JAXC_C64 || dtype == JAXC_C128) {
    return parse_complex(dtype, copy, out, message);
  }
  return parse_float(dtype, copy, out, message);
}

jaxc_status jaxci_number_parse(const char *text, int64_t least, int64_t most,
                               int64_t *out, jaxc_message *message) {
  unsigned char value[JAXCI_MAX_ELEMENT];
  int64_t number = 0;
  if (jaxci_value_parse(JAXC_S64, text, strlen(text), value, NULL) == JAXC_OK) {
    memcpy(&number, value, sizeof number);
    if (number >= least && number <= most) {
      *out = number;
      return JAXC_OK;
    }
  }
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "expected a whole number from %lld to %lld, got '%s'",
                   (long long)least, (long long)most, text);
}

/* ---- to text ---- */

static void print_integer(FILE *file, int32_t dtype, const unsigned char *data) {
  const size_t bits = jaxc_dtype_bits(dtype);
  uint64_t value = 0;
  memcpy(&value, data, bits / 8);
  if (dtype > JAXC_S64) {
    fprintf(file, "%llu", (unsigned long long)value);
    return;
  }
  if (bits < 64 && (value >> (bits - 1)) != 0) value |= UINT64_MAX << bits;
  fprintf(file, "%lld", (long long)value);
}

static float small_float(int32_t dtype, const unsigned char *data) {
  uint16_t half;
  jaxc_bf16 brain;
  jaxc_f8e5m2 wide;
  jaxc_f8e4m3fn fine;
  if (dtype == JAXC_F8E5M2) {
    wide.bits = data[0];
    return jaxc_f8e5m2_to(wide);
  }
  if (dtype == JAXC_F8E4M3FN) {
    fine.bits = data[0];
    return jaxc_f8e4m3fn_to(fine);
  }
  memcpy(&half, data, sizeof half);
  brain.bits = half;
  return dtype == JAXC_BF16 ? jaxc_bf16_to(brain) : jaxci_half_to(half);
}

static void print_value(FILE *file, int32_t dtype, const unsigned char *data) {
  float singles[2];
  double doubles[2];
  if (dtype == JAXC_PRED) {
    fputs(data[0] == 0 ? "false" : data[0] == 1 ? "true" : "neither", file);
  } else if (dtype <= JAXC_U64) {
    print_integer(file, dtype, data);
  } else if (dtype == JAXC_F32) {
    memcpy(singles, data, sizeof *singles);
    fprintf(file, "%.7g", (double)singles[0]);
  } else if (dtype == JAXC_F64) {
    memcpy(doubles, data, sizeof *doubles);
    fprintf(file, "%.15g", doubles[0]);
  } else if (dtype == JAXC_C64) {
    memcpy(singles, data, sizeof singles);
    fprintf(file, "%.7g%+.7gj", (double)singles[0], (double)singles[1]);
  } else if (dtype == JAXC_C128) {
    memcpy(doubles, data, sizeof doubles);
    fprintf(file, "%.15g%+.15gj", doubles[0], doubles[1]);
  } else {
    fprintf(file, "%.5g", (double)small_float(dtype, data));
  }
}

void jaxci_values_print(FILE *file, int32_t dtype, int64_t count, const void *data) {
  const size_t size = jaxc_dtype_bits(dtype) / 8;
  if (!jaxci_value_has_text(dtype)) {
    fputs(" (values without text)", file);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    if (count > 16 && i == 8) {
      i = count - 4;
      fputs(" ...", file);
    }
    fputc(' ', file);
    print_value(file, dtype, (const unsigned char *)data + (size_t)i * size);
  }
}
