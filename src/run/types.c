/* types.c: element types and shapes as the command line writes them.
 *
 *   f32[8,4]   float32[8,4]   pred[]   bf16   s64[0,3]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <stdarg.h>
#include <string.h>

void jaxci_text_add(jaxci_text *text, const char *format, ...) {
  const size_t used = strlen(text->text);
  va_list list;
  va_start(list, format);
  if (vsnprintf(text->text + used, sizeof text->text - used, format, list) < 0) {
    text->text[used] = '\0';
  }
  va_end(list);
}

/* Names of XLA and of JAX, where they are not NumPy's. */
static const struct {
  const char *name;
  int32_t dtype;
} short_names[] = {
    {"pred", JAXC_PRED},
    {"s8", JAXC_S8},
    {"s16", JAXC_S16},
    {"s32", JAXC_S32},
    {"s64", JAXC_S64},
    {"i8", JAXC_S8},
    {"i16", JAXC_S16},
    {"i32", JAXC_S32},
    {"i64", JAXC_S64},
    {"u8", JAXC_U8},
    {"u16", JAXC_U16},
    {"u32", JAXC_U32},
    {"u64", JAXC_U64},
    {"f16", JAXC_F16},
    {"f32", JAXC_F32},
    {"f64", JAXC_F64},
    {"c64", JAXC_C64},
    {"c128", JAXC_C128},
    {"bf16", JAXC_BF16},
    {"f8e5m2", JAXC_F8E5M2},
    {"f8e4m3fn", JAXC_F8E4M3FN},
    {"f8e4m3b11fnuz", JAXC_F8E4M3B11FNUZ},
    {"f8e5m2fnuz", JAXC_F8E5M2FNUZ},
    {"f8e4m3fnuz", JAXC_F8E4M3FNUZ},
    {"f8e4m3", JAXC_F8E4M3},
    {"f8e3m4", JAXC_F8E3M4},
    {"f8e8m0fnu", JAXC_F8E8M0FNU},
    {"f4e2m1fn", JAXC_F4E2M1FN},
    {"s4", JAXC_S4},
    {"s2", JAXC_S2},
    {"s1", JAXC_S1},
    {"i4", JAXC_S4},
    {"i2", JAXC_S2},
    {"i1", JAXC_S1},
    {"u4", JAXC_U4},
    {"u2", JAXC_U2},
    {"u1", JAXC_U1},
};

static int is_same(const char *name, const char *text, size_t length) {
  return strlen(name) == length && memcmp(name, text, length) == 0;
}

int32_t jaxci_dtype_find(const char *name, size_t length) {
  for (int32_t dtype = JAXC_PRED; dtype <= JAXC_F8E8M0FNU; dtype++) {
    const char *const known = jaxc_dtype_name(dtype);
    if (is_same(known, name, length) && !is_same("unknown", name, length)) return dtype;
  }
  for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++) {
    if (is_same(short_names[i].name, name, length)) return short_names[i].dtype;
  }
  return JAXC_DTYPE_INVALID;
}

int jaxci_shape_is_meant(const char *text) {
  return jaxci_dtype_find(text, strcspn(text, "[=")) != JAXC_DTYPE_INVALID;
}

/* Reads the sizes behind "[". */
static jaxc_status parse_dims(const char *text, const char *at, jaxci_shape *out,
                              const char **rest, jaxc_message *message) {
  out->rank = 0;
  while (*at != ']') {
    const size_t length = strspn(at, "0123456789");
    char digits[24];
    if (length == 0 || length >= sizeof digits) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "'%s' has no size where '%.20s' begins; expected sizes from 0 on, "
                       "such as f32[8,4]",
                       text, at);
    }
    if (out->rank == JAXCI_MAX_RANK) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "'%s' has more than %d axes, which NumPy does not have either",
                       text, JAXCI_MAX_RANK);
    }
    memcpy(digits, at, length);
    digits[length] = '\0';
    JAXC_TRY(jaxci_number_parse(digits, 0, INT64_MAX, &out->dims[out->rank++], message));
    at += length;
    if (*at == ',' && at[1] != ']') {
      at++;
    } else if (*at != ']') {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "'%s' has no ',' or ']' after size %d; expected it as in f32[8,4]",
                       text, (int)out->rank - 1);
    }
  }
  *rest = at + 1;
  return JAXC_OK;
}

jaxc_status jaxci_shape_parse(const char *text, jaxci_shape *out, const char **rest,
                              jaxc_message *message) {
  const size_t length = strcspn(text, "[=");
  int64_t count;
  memset(out, 0, sizeof *out);
  out->dtype = jaxci_dtype_find(text, length);
  if (out->dtype == JAXC_DTYPE_INVALID) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "'%.*s' in '%s' is no element type; expected a name of NumPy or XLA "
                     "and sizes, such as float32[8,4] or f32[]",
                     (int)(length < 64 ? length : 64), text, text);
  }
  *rest = text + length;
  if (**rest == '[') JAXC_TRY(parse_dims(text, *rest + 1, out, rest, message));
  if (!jaxci_shape_count(out, &count)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "'%s' has more bytes than an int64 counts", text);
  }
  return JAXC_OK;
}

jaxci_text jaxci_shape_text(const jaxci_shape *shape) {
  jaxci_text out = {""};
  jaxci_text_add(&out, "%s[", jaxc_dtype_name(shape->dtype));
  for (int32_t i = 0; i < shape->rank; i++) {
    jaxci_text_add(&out, "%s%lld", i == 0 ? "" : ",", (long long)shape->dims[i]);
  }
  jaxci_text_add(&out, "]");
  return out;
}

int jaxci_shape_count(const jaxci_shape *shape, int64_t *out) {
  *out = 1;
  for (int32_t i = 0; i < shape->rank; i++) {
    if (!jaxc_multiply(*out, shape->dims[i], out)) return 0;
  }
  return *out <= INT64_MAX / JAXCI_MAX_ELEMENT;
}
