/* array.c: --arg, which is a file or a type with one value.
 *
 *   x.npy   x.npy:bf16   f32[8,4]   f32[8,4]=1.5
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* The place of the colon in "x.npy:bf16", NULL when no type is named. */
static const char *find_named_type(const char *text, int32_t *dtype) {
  const char *const colon = strrchr(text, ':');
  *dtype = JAXC_DTYPE_INVALID;
  if (colon == NULL || colon == text) return NULL;
  *dtype = jaxci_dtype_find(colon + 1, strlen(colon + 1));
  return *dtype == JAXC_DTYPE_INVALID ? NULL : colon;
}

/* Of the word at the beginning; 0 when there is none. */
static size_t name_length(const char *text) {
  const size_t length = strspn(
      text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
  return length <= 64 ? length : 0;
}

/* "float[2]=2", "float[]", "float=2": no file's name that is likely. */
static int is_like_shape(const char *text) {
  const size_t length = name_length(text);
  const char *at = text + length;
  if (length == 0) return 0;
  if (*at == '[') {
    at += 1 + strspn(at + 1, "0123456789,- ");
    return at[0] == ']' && (at[1] == '\0' || at[1] == '=');
  }
  return *at == '=' && strchr(at, '/') == NULL && strstr(at, ".npy") == NULL;
}

static jaxc_status parse_fill(const char *text, jaxci_array *out, jaxc_message *message) {
  const char *rest;
  int64_t count;
  JAXC_TRY(jaxci_shape_parse(text, &out->shape, &rest, message));
  (void)jaxci_shape_count(&out->shape, &count); /* has been checked */
  out->bytes = (size_t)count * (jaxc_dtype_bits(out->shape.dtype) / 8);
  if (*rest == '\0') return JAXC_OK;
  if (*rest != '=') {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "'%s' has '%s' after its shape; expected nothing or '=VALUE'", text,
                     rest);
  }
  out->is_filled = 1;
  return jaxci_value_parse(out->shape.dtype, rest + 1, strlen(rest + 1), out->fill,
                           message);
}

jaxc_status jaxci_array_parse(const char *text, jaxci_array *out, jaxc_message *message) {
  int32_t dtype;
  const char *colon;
  char *path;
  jaxc_status status;
  memset(out, 0, sizeof *out);
  out->text = text;
  if (jaxci_shape_is_meant(text)) return parse_fill(text, out, message);
  colon = find_named_type(text, &dtype);
  if (colon == NULL) {
    status = jaxci_npy_read(text, JAXC_DTYPE_INVALID, out, message);
    if (status != JAXC_NOT_FOUND || !is_like_shape(text)) return status;
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: unknown type %.*s; expected a name of NumPy or XLA, such as "
                     "float32[8,4] or f32[], or a file",
                     text, (int)name_length(text), text);
  }
  path = malloc((size_t)(colon - text) + 1);
  if (path == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  memcpy(path, text, (size_t)(colon - text));
  path[colon - text] = '\0';
  status = jaxci_npy_read(path, dtype, out, message);
  free(path);
  return status;
}
