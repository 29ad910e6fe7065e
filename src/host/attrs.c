/* attrs.c: dictionaries of attributes, as a user fills and as a handler reads them.
 *
 *   jaxc_host_attrs *inner;
 *   JAXC_TRY(jaxc_host_attrs_dictionary(attrs, "plan", &inner, &message));
 *   JAXC_TRY(jaxc_host_attrs_string(inner, "mode", "fast", 4, &message));
 *
 * A dictionary is kept sorted while it is filled; jaxci_attrs_build lays it out for one
 * frame. Names and values are not copied there: XLA shares them between frames too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

void *jaxci_arena_take(jaxci_arena *arena, size_t bytes) {
  char *const piece = arena->base + arena->used;
  arena->used += JAXCI_ROUND(bytes);
  return piece;
}

jaxc_host_attrs *jaxci_attrs_make(jaxc_host *host, const int *sealed) {
  jaxc_host_attrs *const attrs =
      (jaxc_host_attrs *)jaxci_allocate(host, sizeof(jaxc_host_attrs));
  if (attrs == NULL) return NULL;
  attrs->host = host;
  attrs->sealed = sealed;
  return attrs;
}

static void end_one(jaxci_attr *attr) {
  free(attr->name);
  free(attr->data);
  jaxci_attrs_end(attr->inner);
}

void jaxci_attrs_end(jaxc_host_attrs *attrs) {
  if (attrs == NULL) return;
  for (size_t i = 0; i < attrs->count; i++) end_one(&attrs->list[i]);
  free(attrs->list);
  free(attrs);
}

/* Bytewise, as std::string compares; a name comes before those that it begins. */
static int compare(const jaxci_attr *attr, const char *name, size_t length) {
  const size_t both = attr->name_length < length ? attr->name_length : length;
  const int order = both == 0 ? 0 : memcmp(attr->name, name, both);
  if (order != 0) return order;
  return (attr->name_length > length) - (attr->name_length < length);
}

static jaxc_status check_name(const jaxc_host_attrs *attrs, const char *name,
                              size_t *place, jaxc_message *message) {
  size_t i = 0;
  int order = 1;
  if (attrs == NULL || name == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "the %s is NULL",
                     attrs == NULL ? "dictionary" : "attribute's name");
  }
  if (attrs->sealed != NULL && *attrs->sealed) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "attribute '%s' comes after the call was instantiated", name);
  }
  for (; i < attrs->count; i++) {
    order = compare(&attrs->list[i], name, strlen(name));
    if (order >= 0) break;
  }
  if (i < attrs->count && order == 0) {
    return JAXC_FAIL(message, JAXC_ALREADY_EXISTS, "attribute '%s' is there already",
                     name);
  }
  *place = i;
  return JAXC_OK;
}

/* Inserts what `made` describes, and owns its parts whatever comes back. */
static jaxc_status insert(jaxc_host_attrs *attrs, const char *name, size_t place,
                          jaxci_attr made, jaxc_message *message) {
  const size_t length = strlen(name);
  void *list = attrs->list;
  made.name = (char *)jaxci_allocate(attrs->host, length + 1);
  made.name_length = length;
  if (made.name == NULL ||
      !jaxci_grow(attrs->host, &list, attrs->count, &attrs->capacity, sizeof made)) {
    end_one(&made);
    return jaxci_no_memory(message, length + sizeof made);
  }
  memcpy(made.name, name, length + 1);
  attrs->list = (jaxci_attr *)list;
  memmove(attrs->list + place + 1, attrs->list + place,
          (attrs->count - place) * sizeof made);
  attrs->list[place] = made;
  attrs->count++;
  return JAXC_OK;
}

static jaxc_status insert_copy(jaxc_host_attrs *attrs, const char *name, size_t place,
                               jaxci_attr made, const void *data, size_t bytes,
                               jaxc_message *message) {
  if (data == NULL && bytes > 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "the value of attribute '%s' is NULL", name);
  }
  made.data = jaxci_allocate(attrs->host, bytes);
  if (made.data == NULL) return jaxci_no_memory(message, bytes);
  if (bytes > 0) memcpy(made.data, data, bytes);
  return insert(attrs, name, place, made, message);
}

/* What XLA encodes: no 16- or 8-bit floats, and neither booleans nor complex numbers in
 * arrays. */
static int is_attribute_dtype(int32_t dtype, int is_array) {
  switch (dtype) {
    case JAXC_S8: case JAXC_S16: case JAXC_S32: case JAXC_S64: case JAXC_U8:
    case JAXC_U16: case JAXC_U32: case JAXC_U64: case JAXC_F32: case JAXC_F64:
      return 1;
    case JAXC_PRED: case JAXC_C64: case JAXC_C128:
      return !is_array;
    default:
      return 0;
  }
}

static jaxc_status check_dtype(const char *name, int32_t dtype, int is_array,
                               jaxc_message *message) {
  if (is_attribute_dtype(dtype, is_array)) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "attribute '%s' cannot be %s %s (type %d)", name,
                   is_array ? "an array of" : "a scalar of", jaxc_dtype_name(dtype),
                   (int)dtype);
}

jaxc_status jaxc_host_attrs_scalar(jaxc_host_attrs *attrs, const char *name,
                                   int32_t dtype, const void *value,
                                   jaxc_message *message) {
  jaxci_attr made = {0};
  size_t place = 0;
  JAXC_TRY(check_name(attrs, name, &place, message));
  JAXC_TRY(check_dtype(name, dtype, 0, message));
  made.kind = JAXC_ABI_ATTR_SCALAR;
  made.dtype = dtype;
  return insert_copy(attrs, name, place, made, value, jaxc_dtype_size(dtype), message);
}

jaxc_status jaxc_host_attrs_array(jaxc_host_attrs *attrs, const char *name, int32_t dtype,
                                  size_t size, const void *data, jaxc_message *message) {
  jaxci_attr made = {0};
  size_t place = 0;
  size_t bytes;
  JAXC_TRY(check_name(attrs, name, &place, message));
  JAXC_TRY(check_dtype(name, dtype, 1, message));
  if (!jaxci_times(size, jaxc_dtype_size(dtype), &bytes)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "attribute '%s' has an impossible size of %zu elements", name, size);
  }
  made.kind = JAXC_ABI_ATTR_ARRAY;
  made.dtype = dtype;
  made.size = size;
  return insert_copy(attrs, name, place, made, data, bytes, message);
}

jaxc_status jaxc_host_attrs_string(jaxc_host_attrs *attrs, const char *name,
                                   const char *text, size_t length,
                                   jaxc_message *message) {
  jaxci_attr made = {0};
  size_t place = 0;
  JAXC_TRY(check_name(attrs, name, &place, message));
  made.kind = JAXC_ABI_ATTR_STRING;
  made.size = length;
  return insert_copy(attrs, name, place, made, text, length, message);
}

jaxc_status jaxc_host_attrs_dictionary(jaxc_host_attrs *attrs, const char *name,
                                       jaxc_host_attrs **out, jaxc_message *message) {
  jaxci_attr made = {0};
  size_t place = 0;
  *out = NULL;
  JAXC_TRY(check_name(attrs, name, &place, message));
  made.kind = JAXC_ABI_ATTR_DICTIONARY;
  made.inner = jaxci_attrs_make(attrs->host, attrs->sealed);
  if (made.inner == NULL) return jaxci_no_memory(message, sizeof *made.inner);
  JAXC_TRY(insert(attrs, name, place, made, message));
  *out = made.inner;
  return JAXC_OK;
}

/* ---- for a frame ---- */

/* Bytes of what data[i] points to. */
static size_t value_bytes(const jaxci_attr *attr) {
  switch (attr->kind) {
    case JAXC_ABI_ATTR_ARRAY: return sizeof(jaxc_abi_array);
    case JAXC_ABI_ATTR_DICTIONARY: return sizeof(jaxc_abi_attrs);
    case JAXC_ABI_ATTR_SCALAR: return sizeof(jaxc_abi_scalar);
    default: return sizeof(jaxc_abi_span);
  }
}

/* No overflow: each entry is larger in the host's own list. */
size_t jaxci_attrs_bytes(const jaxc_host_attrs *attrs) {
  size_t bytes = JAXCI_ROUND(attrs->count * sizeof(int32_t)) +
                 2 * JAXCI_ROUND(attrs->count * sizeof(void *));
  for (size_t i = 0; i < attrs->count; i++) {
    const jaxci_attr *const attr = &attrs->list[i];
    bytes += JAXCI_ROUND(sizeof(jaxc_abi_span)) + JAXCI_ROUND(value_bytes(attr));
    if (attr->inner != NULL) bytes += jaxci_attrs_bytes(attr->inner);
  }
  return bytes;
}

static void build_value(const jaxci_attr *attr, jaxci_arena *arena, void *value) {
  switch (attr->kind) {
    case JAXC_ABI_ATTR_ARRAY: {
      jaxc_abi_array *const array = (jaxc_abi_array *)value;
      array->dtype = attr->dtype;
      array->size = attr->size;
      array->data = attr->data;
      break;
    }
    case JAXC_ABI_ATTR_DICTIONARY:
      jaxci_attrs_build(attr->inner, arena, (jaxc_abi_attrs *)value);
      break;
    case JAXC_ABI_ATTR_SCALAR: {
      jaxc_abi_scalar *const scalar = (jaxc_abi_scalar *)value;
      scalar->dtype = attr->dtype;
      scalar->value = attr->data;
      break;
    }
    default: {
      jaxc_abi_span *const span = (jaxc_abi_span *)value;
      span->ptr = (const char *)attr->data;
      span->len = attr->size;
      break;
    }
  }
}

void jaxci_attrs_build(const jaxc_host_attrs *attrs, jaxci_arena *arena,
                       jaxc_abi_attrs *out) {
  const size_t count = attrs->count;
  out->struct_size = sizeof *out;
  out->extension_start = attrs->host->unknown;
  out->size = (int64_t)count;
  out->types = (int32_t *)jaxci_arena_take(arena, count * sizeof *out->types);
  out->names = (jaxc_abi_span **)jaxci_arena_take(arena, count * sizeof *out->names);
  out->data = (void **)jaxci_arena_take(arena, count * sizeof *out->data);
  for (size_t i = 0; i < count; i++) {
    const jaxci_attr *const attr = &attrs->list[i];
    out->names[i] = (jaxc_abi_span *)jaxci_arena_take(arena, sizeof(jaxc_abi_span));
    out->names[i]->ptr = attr->name;
    out->names[i]->len = attr->name_length;
    out->types[i] = attr->kind;
    out->data[i] = jaxci_arena_take(arena, value_bytes(attr));
    build_value(attr, arena, out->data[i]);
  }
}
