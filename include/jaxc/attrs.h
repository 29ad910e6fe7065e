/* attrs.h: read the attributes of a call by name.
 *
 *   int32_t mode;
 *   JAXC_TRY(jaxc_attrs_scalar(attrs, "mode", JAXC_S32, &mode, &message));
 *
 * Attributes belong to the frame and live until the handler returns. Strings are not
 * NUL-terminated and arrays have lost their shape: XLA drops both. Nothing is converted:
 * a scalar of another type is an error that names the attribute and both types.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_ATTRS_H
#define JAXC_ATTRS_H

#include <jaxc/error.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Attributes that point into the frame: characters without a NUL at their end, and
 * elements that have lost their shape. */
typedef jaxc_abi_span jaxc_string;
typedef jaxc_abi_array jaxc_array;

/* Whether the string is `text`. */
JAXC_UNUSED static inline int jaxc_string_is(const jaxc_string *string, const char *text) {
  const size_t length = strlen(text);
  return string->len == length && (length == 0 || memcmp(string->ptr, text, length) == 0);
}

/* Names as NumPy writes them, and bits of one element, by type number. */
#define JAXCI_DTYPES(X)                                                             \
  X(JAXC_PRED, "bool", 8) X(JAXC_S8, "int8", 8) X(JAXC_S16, "int16", 16)            \
  X(JAXC_S32, "int32", 32) X(JAXC_S64, "int64", 64) X(JAXC_U8, "uint8", 8)          \
  X(JAXC_U16, "uint16", 16) X(JAXC_U32, "uint32", 32) X(JAXC_U64, "uint64", 64)     \
  X(JAXC_F16, "float16", 16) X(JAXC_F32, "float32", 32) X(JAXC_F64, "float64", 64)  \
  X(JAXC_C64, "complex64", 64) X(JAXC_BF16, "bfloat16", 16) X(JAXC_TOKEN, "token", 0) \
  X(JAXC_C128, "complex128", 128) X(JAXC_F8E5M2, "float8_e5m2", 8)                  \
  X(JAXC_F8E4M3FN, "float8_e4m3fn", 8) X(JAXC_S4, "int4", 4) X(JAXC_U4, "uint4", 4) \
  X(JAXC_F8E4M3B11FNUZ, "float8_e4m3b11fnuz", 8)                                    \
  X(JAXC_F8E5M2FNUZ, "float8_e5m2fnuz", 8) X(JAXC_F8E4M3FNUZ, "float8_e4m3fnuz", 8) \
  X(JAXC_S2, "int2", 2) X(JAXC_U2, "uint2", 2) X(JAXC_F8E4M3, "float8_e4m3", 8)     \
  X(JAXC_F8E3M4, "float8_e3m4", 8) X(JAXC_S1, "int1", 1) X(JAXC_U1, "uint1", 1)     \
  X(JAXC_F4E2M1FN, "float4_e2m1fn", 4) X(JAXC_F8E8M0FNU, "float8_e8m0fnu", 8)

/* The type's name; "unknown" for a number that jaxc does not know. */
JAXC_UNUSED JAXC_COLD static const char *jaxc_dtype_name(int32_t dtype) {
  switch (dtype) {
#define JAXCI_NAME(number, name, bits) case number: return name;
    JAXCI_DTYPES(JAXCI_NAME)
#undef JAXCI_NAME
    default: return "unknown";
  }
}

/* Bits of one element; 0 for a token and for unknown types. Types below 8 bits lie packed
 * in memory. */
JAXC_UNUSED static size_t jaxc_dtype_bits(int32_t dtype) {
  switch (dtype) {
#define JAXCI_BITS(number, name, bits) case number: return bits;
    JAXCI_DTYPES(JAXCI_BITS)
#undef JAXCI_BITS
    default: return 0;
  }
}

/* Bytes of one element; 0 for types without storage of whole bytes and unknown ones. */
JAXC_UNUSED static inline size_t jaxc_dtype_size(int32_t dtype) {
  return jaxc_dtype_bits(dtype) / 8;
}

/* Whether the span is `name`. Names are short: a call of memcmp would cost more. */
static JAXC_INLINE int jaxci_span_is_name(const jaxc_abi_span *span, const char *name) {
  size_t i = 0;
  if (span == NULL || (span->ptr == NULL && span->len != 0)) return 0;
  while (i < span->len && name[i] == span->ptr[i] && name[i] != '\0') i++;
  return i == span->len && name[i] == '\0';
}

/* Index of the attribute called `name`, or -1. The search is linear because a call has
 * a handful, and because it must not trust the order of a frame made by someone else. */
JAXC_UNUSED JAXC_NOINLINE static int64_t jaxc_attrs_find(const jaxc_abi_attrs *attrs,
                                                         const char *name) {
  for (int64_t i = 0; i < attrs->size; i++) {
    if (jaxci_span_is_name(attrs->names[i], name)) return i;
  }
  return -1;
}

/* Names of the kinds JAXC_ABI_ATTR_*. */
JAXC_UNUSED JAXC_COLD static const char *jaxci_attr_kind(int32_t kind) {
  static const char *const kinds[] = {"unknown", "array", "dictionary", "scalar",
                                      "string"};
  return kinds[kind >= 1 && kind <= 4 ? kind : 0];
}

/* The list has all its parts, so that they may be read. */
static JAXC_INLINE int jaxci_list_is_whole(size_t struct_size, size_t expected,
                                           int64_t size, const void *types,
                                           const void *data) {
  return struct_size >= expected && size >= 0 &&
         (size == 0 || (types != NULL && data != NULL));
}
static JAXC_INLINE int jaxci_attrs_are_whole(const jaxc_abi_attrs *attrs) {
  return jaxci_list_is_whole(attrs->struct_size, sizeof *attrs, attrs->size, attrs->types,
                             attrs->data) &&
         (attrs->size == 0 || attrs->names != NULL);
}

/* Says that attribute `name` is of another kind, or has no data. */
JAXC_UNUSED JAXC_COLD static jaxc_status jaxci_attr_refuse(const char *name, int is_null,
                                                           int32_t found, int32_t kind,
                                                           jaxc_message *message) {
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "attribute '%s' is %s %s, expected %s",
                   name,
                   is_null                                             ? "a null"
                   : found == JAXC_ABI_ATTR_ARRAY || found < 1 || found > 4 ? "an"
                                                                       : "a",
                   jaxci_attr_kind(found), jaxci_attr_kind(kind));
}

/* Checks the kind (JAXC_ABI_ATTR_*) of attribute `index`, which the message calls `name`;
 * its data goes to `out`. INVALID_ARGUMENT for another kind. */
JAXC_UNUSED static JAXC_INLINE jaxc_status jaxci_attr_at(const jaxc_abi_attrs *attrs,
                                                         int64_t index, const char *name,
                                                         int32_t kind, const void **out,
                                                         jaxc_message *message) {
  const int32_t found = attrs->types[index];
  *out = attrs->data[index];
  if (found == kind && *out != NULL) return JAXC_OK;
  return jaxci_attr_refuse(name, *out == NULL, found, kind, message);
}

/* Copies the scalar at `index` to `out`, as jaxc_attrs_scalar. */
JAXC_UNUSED static JAXC_INLINE jaxc_status jaxci_attr_scalar(const jaxc_abi_attrs *attrs,
                                                             int64_t index,
                                                             const char *name,
                                                             int32_t dtype, void *out,
                                                             jaxc_message *message) {
  const void *data = NULL;
  const void *value = NULL;
  int32_t found;
  if ((dtype == JAXC_C64 || dtype == JAXC_C128) &&
      attrs->types[index] == JAXC_ABI_ATTR_ARRAY && attrs->data[index] != NULL) {
    const int32_t part = dtype == JAXC_C64 ? JAXC_F32 : JAXC_F64;
    const jaxc_abi_array *array = (const jaxc_abi_array *)attrs->data[index];
    found = array->dtype;
    value = array->data;
    if (found != part || array->size != 2 || value == NULL) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "attribute '%s' is an array of %zu %s, expected 2 %s for %s",
                       name, array->size, jaxc_dtype_name(found), jaxc_dtype_name(part),
                       jaxc_dtype_name(dtype));
    }
  } else {
    const jaxc_abi_scalar *scalar;
    JAXC_TRY(jaxci_attr_at(attrs, index, name, JAXC_ABI_ATTR_SCALAR, &data, message));
    scalar = (const jaxc_abi_scalar *)data;
    found = scalar->dtype;
    value = scalar->value;
    if (found != dtype) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "attribute '%s' has type %s, expected %s", name,
                       jaxc_dtype_name(found), jaxc_dtype_name(dtype));
    }
    if (value == NULL) {
      return jaxci_attr_refuse(name, 1, JAXC_ABI_ATTR_SCALAR, JAXC_ABI_ATTR_SCALAR,
                               message);
    }
  }
  switch (jaxc_dtype_size(dtype)) { /* constant sizes are single moves */
    case 1: memcpy(out, value, 1); break;
    case 2: memcpy(out, value, 2); break;
    case 4: memcpy(out, value, 4); break;
    case 8: memcpy(out, value, 8); break;
    default: memcpy(out, value, jaxc_dtype_size(dtype)); break;
  }
  return JAXC_OK;
}

/* The string, array and dictionary at `index`, as the functions below. */
JAXC_UNUSED static JAXC_INLINE jaxc_status jaxci_attr_string(const jaxc_abi_attrs *attrs,
                                                             int64_t index,
                                                             const char *name,
                                                             jaxc_string *out,
                                                             jaxc_message *message) {
  const void *data = NULL;
  JAXC_TRY(jaxci_attr_at(attrs, index, name, JAXC_ABI_ATTR_STRING, &data, message));
  *out = *(const jaxc_string *)data;
  if (out->ptr != NULL || out->len == 0) return JAXC_OK;
  return jaxci_attr_refuse(name, 1, JAXC_ABI_ATTR_STRING, JAXC_ABI_ATTR_STRING, message);
}
JAXC_UNUSED static JAXC_INLINE jaxc_status jaxci_attr_array(const jaxc_abi_attrs *attrs,
                                                            int64_t index,
                                                            const char *name,
                                                            int32_t dtype, jaxc_array *out,
                                                            jaxc_message *message) {
  const void *data = NULL;
  JAXC_TRY(jaxci_attr_at(attrs, index, name, JAXC_ABI_ATTR_ARRAY, &data, message));
  *out = *(const jaxc_array *)data;
  if (out->dtype != dtype && dtype != JAXC_ANY) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "attribute '%s' is an array of %s, expected %s", name,
                     jaxc_dtype_name(out->dtype), jaxc_dtype_name(dtype));
  }
  if (out->data != NULL || out->size == 0) return JAXC_OK;
  return jaxci_attr_refuse(name, 1, JAXC_ABI_ATTR_ARRAY, JAXC_ABI_ATTR_ARRAY, message);
}
JAXC_UNUSED static JAXC_INLINE jaxc_status jaxci_attr_dictionary(
    const jaxc_abi_attrs *attrs, int64_t index, const char *name,
    const jaxc_abi_attrs **out, jaxc_message *message) {
  const void *data = NULL;
  JAXC_TRY(jaxci_attr_at(attrs, index, name, JAXC_ABI_ATTR_DICTIONARY, &data, message));
  *out = (const jaxc_abi_attrs *)data;
  if (jaxci_attrs_are_whole(*out)) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "attribute '%s' is damaged", name);
}

/* ---- by name ---- */

/* The place of `name`; NOT_FOUND when there is none. */
static inline jaxc_status jaxci_attr_place(const jaxc_abi_attrs *attrs, const char *name,
                                           int64_t *out, jaxc_message *message) {
  *out = jaxc_attrs_find(attrs, name);
  if (*out >= 0) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_NOT_FOUND, "attribute '%s' is missing", name);
}

/* Checks the kind of `name` (JAXC_ABI_ATTR_*); its data goes to `out`.
 * NOT_FOUND when there is no such attribute, INVALID_ARGUMENT for another kind. */
JAXC_UNUSED static jaxc_status jaxc_attrs_get(const jaxc_abi_attrs *attrs,
                                              const char *name, int32_t kind,
                                              const void **out, jaxc_message *message) {
  int64_t i;
  JAXC_TRY(jaxci_attr_place(attrs, name, &i, message));
  return jaxci_attr_at(attrs, i, name, kind, out, message);
}

/* Copies the scalar `name` of type `dtype` to `out` (jaxc_dtype_size(dtype) bytes).
 * A complex scalar may come as an array of its real and imaginary part, because JAX has
 * no complex attribute. NOT_FOUND, or INVALID_ARGUMENT for another kind or type. */
JAXC_UNUSED static jaxc_status jaxc_attrs_scalar(const jaxc_abi_attrs *attrs,
                                                 const char *name, int32_t dtype,
                                                 void *out, jaxc_message *message) {
  int64_t i;
  JAXC_TRY(jaxci_attr_place(attrs, name, &i, message));
  return jaxci_attr_scalar(attrs, i, name, dtype, out, message);
}

/* The string `name`; `out` points into the frame. NOT_FOUND or INVALID_ARGUMENT. */
JAXC_UNUSED static jaxc_status jaxc_attrs_string(const jaxc_abi_attrs *attrs,
                                                 const char *name, jaxc_string *out,
                                                 jaxc_message *message) {
  int64_t i;
  JAXC_TRY(jaxci_attr_place(attrs, name, &i, message));
  return jaxci_attr_string(attrs, i, name, out, message);
}

/* The array `name` of elements of `dtype`, or JAXC_ANY; `out` points into the frame.
 * NOT_FOUND or INVALID_ARGUMENT. */
JAXC_UNUSED static jaxc_status jaxc_attrs_array(const jaxc_abi_attrs *attrs,
                                                const char *name, int32_t dtype,
                                                jaxc_array *out, jaxc_message *message) {
  int64_t i;
  JAXC_TRY(jaxci_attr_place(attrs, name, &i, message));
  return jaxci_attr_array(attrs, i, name, dtype, out, message);
}

/* The dictionary `name`, to be read by these functions again. NOT_FOUND or
 * INVALID_ARGUMENT. */
JAXC_UNUSED static jaxc_status jaxc_attrs_dictionary(const jaxc_abi_attrs *attrs,
                                                     const char *name,
                                                     const jaxc_abi_attrs **out,
                                                     jaxc_message *message) {
  int64_t i;
  JAXC_TRY(jaxci_attr_place(attrs, name, &i, message));
  return jaxci_attr_dictionary(attrs, i, name, out, message);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_ATTRS_H */
