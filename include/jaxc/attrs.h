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

/* The type's name as NumPy writes it; "unknown" for a number that jaxc does not know. */
JAXC_UNUSED static const char *jaxc_dtype_name(int32_t dtype) {
  static const char *const names[] = {
      "invalid", "bool",    "int8",    "int16",   "int32",    "int64",    "uint8",
      "uint16",  "uint32",  "uint64",  "float16", "float32",  "float64",  "unknown",
      "unknown", "complex64", "bfloat16", "token", "complex128", "float8_e5m2",
      "float8_e4m3fn"};
  const int32_t count = (int32_t)(sizeof names / sizeof *names);
  return dtype >= 0 && dtype < count ? names[dtype] : "unknown";
}

/* Bytes of one element; 0 for types without storage of whole bytes and unknown ones. */
JAXC_UNUSED static size_t jaxc_dtype_size(int32_t dtype) {
  static const unsigned char sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2,
                                        4, 8, 0, 0, 8, 2, 0, 16, 1, 1};
  const int32_t count = (int32_t)(sizeof sizes / sizeof *sizes);
  return dtype >= 0 && dtype < count ? sizes[dtype] : 0;
}

/* Index of the attribute called `name`, or -1. The search is linear because a call has
 * a handful, and because it must not trust the order of a frame made by someone else. */
JAXC_UNUSED static int64_t jaxc_attrs_find(const jaxc_abi_attrs *attrs,
                                           const char *name) {
  const size_t length = strlen(name);
  for (int64_t i = 0; i < attrs->size; i++) {
    const jaxc_abi_span *span = attrs->names[i];
    if (span != NULL && span->len == length && memcmp(span->ptr, name, length) == 0) {
      return i;
    }
  }
  return -1;
}

/* Finds `name` and checks its kind (JAXC_ABI_ATTR_*); its data goes to `out`.
 * NOT_FOUND when there is no such attribute, INVALID_ARGUMENT for another kind. */
JAXC_UNUSED static jaxc_status jaxc_attrs_get(const jaxc_abi_attrs *attrs,
                                              const char *name, int32_t kind,
                                              const void **out, jaxc_message *message) {
  static const char *const kinds[] = {"unknown", "array", "dictionary", "scalar",
                                      "string"};
  const int64_t i = jaxc_attrs_find(attrs, name);
  int32_t found;
  if (i < 0) return JAXC_FAIL(message, JAXC_NOT_FOUND, "attribute '%s' is missing", name);
  found = attrs->types[i];
  if (found != kind || attrs->data[i] == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "attribute '%s' is %s %s, expected %s", name,
                     attrs->data[i] == NULL ? "a null" : "a",
                     kinds[found >= 1 && found <= 4 ? found : 0], kinds[kind]);
  }
  *out = attrs->data[i];
  return JAXC_OK;
}

/* Copies the scalar `name` of type `dtype` to `out` (jaxc_dtype_size(dtype) bytes).
 * A complex scalar is sent as an array of its real and imaginary part, because JAX has
 * no complex attribute. NOT_FOUND, or INVALID_ARGUMENT for another kind or type. */
JAXC_UNUSED static jaxc_status jaxc_attrs_scalar(const jaxc_abi_attrs *attrs,
                                                 const char *name, int32_t dtype,
                                                 void *out, jaxc_message *message) {
  const int is_complex = dtype == JAXC_C64 || dtype == JAXC_C128;
  const int32_t sent =
      dtype == JAXC_C64 ? JAXC_F32 : dtype == JAXC_C128 ? JAXC_F64 : dtype;
  const void *data = NULL;
  const void *value = NULL;
  int32_t found;
  JAXC_TRY(jaxc_attrs_get(attrs, name,
                          is_complex ? JAXC_ABI_ATTR_ARRAY : JAXC_ABI_ATTR_SCALAR, &data,
                          message));
  if (is_complex) {
    const jaxc_abi_array *array = (const jaxc_abi_array *)data;
    found = array->dtype;
    value = array->size == 2 ? array->data : NULL;
  } else {
    const jaxc_abi_scalar *scalar = (const jaxc_abi_scalar *)data;
    found = scalar->dtype;
    value = scalar->value;
  }
  if (found != sent || value == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "attribute '%s' has type %s, expected %s", name,
                     jaxc_dtype_name(found), jaxc_dtype_name(dtype));
  }
  memcpy(out, value, jaxc_dtype_size(dtype));
  return JAXC_OK;
}

/* The string `name`; `out` points into the frame. NOT_FOUND or INVALID_ARGUMENT. */
JAXC_UNUSED static jaxc_status jaxc_attrs_string(const jaxc_abi_attrs *attrs,
                                                 const char *name, jaxc_abi_span *out,
                                                 jaxc_message *message) {
  const void *data = NULL;
  JAXC_TRY(jaxc_attrs_get(attrs, name, JAXC_ABI_ATTR_STRING, &data, message));
  *out = *(const jaxc_abi_span *)data;
  return JAXC_OK;
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_ATTRS_H */
