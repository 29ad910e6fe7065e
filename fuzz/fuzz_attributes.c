/* fuzz_attributes.c: attrs.h on dictionaries in any order, with names given twice, NULs
 * in names, and names, values and lists that are NULL.
 *
 * What must hold: the answer is that of a plain loop over the dictionary; an error names
 * the attribute; nothing behind a value's last byte is read, nothing behind the room for
 * it written.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wild_frame.h"

static const jaxc_field deepest[] = {
    {"a", 1, JAXC_FIELD_ATTRIBUTE, 0, JAXC_U8, 0, 0, 0, NULL},
    {"", 0, JAXC_FIELD_ATTRIBUTE, 0, JAXC_F64, 0, 0, 0, NULL},
};
static const jaxc_field deep[] = {
    {"a", 1, JAXC_FIELD_NESTED, 0, JAXC_DICTIONARY, 2, 0, 0, deepest},
    {"b", 1, JAXC_FIELD_ATTRIBUTE, 0, JAXC_STRING, 0, 0, 0, NULL},
    {"long_name", 9, JAXC_FIELD_ATTRIBUTE, 0, JAXC_C64, 0, 0, 0, NULL},
};
static const jaxc_field top[] = {
    {"a", 1, JAXC_FIELD_ATTRIBUTE, 0, JAXC_S32, 0, 0, 0, NULL},
    {"ab", 2, JAXC_FIELD_ARRAY, 0, JAXC_ANY, 0, 0, 0, NULL},
    {"b", 1, JAXC_FIELD_NESTED, 0, JAXC_DICTIONARY, 3, 0, 0, deep},
    {"c", 1, JAXC_FIELD_ATTRIBUTE, 0, JAXC_C128, 0, 0, 0, NULL},
    {"d", 1, JAXC_FIELD_ATTRIBUTE, 0, JAXC_PRED, 0, 0, 0, NULL},
    {"long_name", 9, JAXC_FIELD_ATTRIBUTE, 0, JAXC_STRING, 0, 0, 0, NULL},
};

static const char *const names[] = {"a",         "",   "ab", "b",     "c", "d",
                                    "long_name", "A", "long_nam", "other"};

/* The number of the first attribute of that name, byte by byte. */
static int64_t find(const jaxc_abi_attrs *attrs, const char *name) {
  for (int64_t i = 0; i < attrs->size; i++) {
    const jaxc_abi_span *const span = attrs->names[i];
    size_t at = 0;
    if (span == NULL || (span->ptr == NULL && span->len > 0)) continue;
    while (at < span->len && name[at] != '\0' && span->ptr[at] == name[at]) at++;
    if (at == span->len && name[at] == '\0') return i;
  }
  return -1;
}

/* What a status and its message must be for attribute `i`, -1 for none. */
static int is_answered(jaxc_status status, int64_t i, const jaxc_message *message,
                       const char *name) {
  char quoted[64];
  if (i < 0) FUZZ_CHECK(status == JAXC_NOT_FOUND);
  if (status == JAXC_OK) return 1;
  FUZZ_CHECK(status == (i < 0 ? JAXC_NOT_FOUND : JAXC_INVALID_ARGUMENT));
  snprintf(quoted, sizeof quoted, "attribute '%s' ", name);
  FUZZ_CHECK(strncmp(message->text, quoted, strlen(quoted)) == 0);
  FUZZ_CHECK(strlen(message->text) < sizeof message->text);
  return 0;
}

static void read_scalar(fuzz_input *in, const jaxc_abi_attrs *attrs, const char *name) {
  const int32_t dtype = (int32_t)fuzz_between(in, 0, 34);
  const int64_t i = find(attrs, name);
  const size_t size = jaxc_dtype_size(dtype);
  unsigned char *const out = fuzz_new(in, size);
  const void *value;
  jaxc_message message;
  if (!is_answered(jaxc_attrs_scalar(attrs, name, dtype, out, &message), i, &message,
                   name)) {
    return;
  }
  FUZZ_CHECK(attrs->types[i] == JAXC_ABI_ATTR_SCALAR ||
             attrs->types[i] == JAXC_ABI_ATTR_ARRAY);
  value = attrs->types[i] == JAXC_ABI_ATTR_SCALAR
              ? ((const jaxc_abi_scalar *)attrs->data[i])->value
              : ((const jaxc_abi_array *)attrs->data[i])->data;
  FUZZ_CHECK(value != NULL && memcmp(value, out, size) == 0);
}

static void read_string(const jaxc_abi_attrs *attrs, const char *name) {
  const int64_t i = find(attrs, name);
  jaxc_message message;
  jaxc_string out;
  if (!is_answered(jaxc_attrs_string(attrs, name, &out, &message), i, &message, name)) {
    return;
  }
  FUZZ_CHECK(attrs->types[i] == JAXC_ABI_ATTR_STRING);
  FUZZ_CHECK(out.ptr == ((const jaxc_abi_span *)attrs->data[i])->ptr);
  FUZZ_CHECK(out.ptr != NULL || out.len == 0);
}

static void read_array(fuzz_input *in, const jaxc_abi_attrs *attrs, const char *name) {
  const int32_t dtype = (int32_t)fuzz_between(in, -5, 34);
  const int64_t i = find(attrs, name);
  jaxc_message message;
  jaxc_array out;
  if (!is_answered(jaxc_attrs_array(attrs, name, dtype, &out, &message), i, &message,
                   name)) {
    return;
  }
  FUZZ_CHECK(attrs->types[i] == JAXC_ABI_ATTR_ARRAY);
  FUZZ_CHECK(out.dtype == dtype || dtype == JAXC_ANY);
  FUZZ_CHECK(out.data != NULL || out.size == 0);
}

/* The dictionary of that name, whole enough to be read, or NULL. */
static const jaxc_abi_attrs *read_dictionary(const jaxc_abi_attrs *attrs,
                                             const char *name) {
  const int64_t i = find(attrs, name);
  const jaxc_abi_attrs *out = NULL;
  jaxc_message message;
  if (!is_answered(jaxc_attrs_dictionary(attrs, name, &out, &message), i, &message,
                   name)) {
    return NULL;
  }
  FUZZ_CHECK(attrs->types[i] == JAXC_ABI_ATTR_DICTIONARY && out != NULL);
  FUZZ_CHECK(out == attrs->data[i]);
  FUZZ_CHECK(out->struct_size >= sizeof *out && out->size >= 0);
  FUZZ_CHECK(out->size == 0 || (out->types != NULL && out->names != NULL));
  FUZZ_CHECK(out->size == 0 || out->data != NULL);
  return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size, 0, NULL};
  jaxc_abi_call_frame frame = {.struct_size = JAXC_ABI_FRAME_SIZE};
  const jaxc_abi_attrs *attrs = &frame.attrs;
  jaxc_message message;
  frame.args.struct_size = frame.results.struct_size = sizeof frame.args;
  wild_attrs(&in, top, 6, &frame.attrs);
  if (jaxc_call_check_frame(&frame, &message) != JAXC_OK) attrs = NULL;
  for (int i = 0; i < 64 && attrs != NULL && in.at < in.size; i++) {
    const char *const name = names[fuzz_byte(&in) % 10];
    const jaxc_abi_attrs *inner;
    switch (fuzz_byte(&in) % 4) {
      case 0: read_scalar(&in, attrs, name); break;
      case 1: read_string(attrs, name); break;
      case 2: read_array(&in, attrs, name); break;
      default:
        inner = read_dictionary(attrs, name);
        if (inner != NULL) attrs = inner;
        break;
    }
  }
  fuzz_end(&in);
  return 0;
}
