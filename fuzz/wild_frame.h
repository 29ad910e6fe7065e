/* wild_frame.h: call frames for a handler's table, right where the bytes are zero and
 * wrong in every way where they are not.
 *
 *   jaxc_abi_call_frame *frame = wild_frame(&in, fields, field_count);
 *
 * Pointers are valid or NULL and chains end, as a runtime's do; each struct lies in a
 * block that ends with its struct_size. Nothing else is promised.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_FUZZ_WILD_FRAME_H
#define JAXC_FUZZ_WILD_FRAME_H

#include "fake_runtime.h"

/* Most bytes of an array that has memory; of larger ones only the address is used. */
#define WILD_BYTES 65536
#define WILD_ATTRIBUTES 24

/* A struct of `whole` bytes, or one that ends early; at least `least` bytes are there. */
static inline void *wild_struct(fuzz_input *in, size_t least, size_t whole) {
  size_t size = whole;
  void *data;
  if (fuzz_chance(in, 16)) size = fuzz_byte(in);
  data = fuzz_new(in, size < least ? least : size);
  memcpy(data, &size, sizeof size);
  return data;
}

/* Nodes of any type; one that asks for metadata where `metadata` is not NULL. */
static inline jaxc_abi_extension *wild_chain(fuzz_input *in,
                                             jaxc_abi_metadata *metadata) {
  jaxc_abi_extension *chain = NULL;
  int64_t count = fuzz_chance(in, 8) ? fuzz_between(in, 0, 5) : 0;
  if (metadata != NULL) count++;
  while (count-- > 0) {
    jaxc_abi_extension *node =
        wild_struct(in, sizeof *node, sizeof(jaxc_abi_metadata_extension));
    if (node->struct_size >= sizeof(jaxc_abi_metadata_extension) && metadata != NULL) {
      ((jaxc_abi_metadata_extension *)(void *)node)->metadata =
          fuzz_chance(in, 8) ? NULL : metadata;
      node->type = JAXC_ABI_EXTENSION_METADATA;
    }
    if (metadata == NULL || fuzz_chance(in, 8)) node->type = (int32_t)fuzz_wide(in);
    /* Without metadata to point to, the node must not ask for it. */
    if (metadata == NULL && node->type == JAXC_ABI_EXTENSION_METADATA) node->type = 2;
    node->next = chain;
    chain = node;
  }
  return chain;
}

/* Bytes of the elements, or 0 where they are many or without whole bytes, or where the
 * sizes mean nothing. */
static inline size_t wild_bytes(int32_t dtype, int64_t rank, const int64_t *dims) {
  int64_t bytes = (int64_t)jaxc_dtype_size(dtype);
  for (int64_t i = 0; i < rank; i++) {
    if (dims[i] < 0 || dims[i] > WILD_BYTES) return 0;
    bytes *= dims[i];
    if (bytes > WILD_BYTES) return 0;
  }
  return (size_t)bytes;
}

/* Sizes, of which a few are strange. */
static inline int64_t *wild_dims(fuzz_input *in, int64_t rank) {
  int64_t *const dims = fuzz_new(in, (size_t)(rank < 0 ? 0 : rank) * sizeof *dims);
  const int is_strange = fuzz_chance(in, 4);
  for (int64_t i = 0; i < rank; i++) {
    dims[i] = is_strange ? fuzz_wide(in) : fuzz_between(in, 0, 4);
  }
  return dims;
}

/* An array of that type and of at least that rank, or exactly; NULL now and then. */
static inline jaxc_abi_buffer *wild_buffer(fuzz_input *in, int32_t dtype, int32_t rank) {
  jaxc_abi_buffer whole = {0};
  jaxc_abi_buffer *buffer;
  if (fuzz_chance(in, 32)) return NULL;
  buffer = wild_struct(in, sizeof(size_t), sizeof *buffer);
  whole.struct_size = buffer->struct_size;
  whole.extension_start = wild_chain(in, NULL);
  whole.dtype = dtype == JAXC_ANY ? (int32_t)fuzz_between(in, 0, 34) : dtype;
  if (fuzz_chance(in, 16)) whole.dtype = (int32_t)fuzz_wide(in);
  whole.rank = rank >= 0 ? rank : JAXC_AT_LEAST(rank) + fuzz_between(in, 0, 3);
  if (fuzz_chance(in, 16)) whole.rank = fuzz_between(in, 0, 70);
  whole.dims = wild_dims(in, whole.rank);
  if (fuzz_chance(in, 32)) whole.rank = -1 - (fuzz_wide(in) & INT64_MAX);
  whole.data = fuzz_new(in, wild_bytes(whole.dtype, whole.rank, whole.dims));
  if (fuzz_chance(in, 16)) whole.data = NULL;
  if (fuzz_chance(in, 32)) whole.dims = NULL;
  memcpy(buffer, &whole,
         whole.struct_size < sizeof whole ? whole.struct_size : sizeof whole);
  if (whole.struct_size < sizeof whole.struct_size)
    buffer->struct_size = whole.struct_size;
  return buffer;
}

/* Damages the head of a list in place; `size` is its count. */
static inline void wild_list_damage(fuzz_input *in, size_t *struct_size, int64_t *size,
                                    void *types, void *data) {
  static void *const none = NULL;
  if (!fuzz_chance(in, 32)) return;
  switch (fuzz_byte(in) % 4) {
    case 0: *struct_size = fuzz_byte(in) % *struct_size; break;
    case 1: *size = -1 - (fuzz_wide(in) & INT64_MAX); break;
    case 2: memcpy(types, &none, sizeof none); break;
    default: memcpy(data, &none, sizeof none); break;
  }
}

/* The arguments or results of a table, with some left out or added. */
static inline void wild_operands(fuzz_input *in, const jaxc_field *fields, int32_t count,
                                 int kind, jaxc_abi_operands *out) {
  const int has_extra = fuzz_chance(in, 4);
  const int64_t most = count + 4;
  out->struct_size = sizeof *out;
  out->extension_start = wild_chain(in, NULL);
  out->types = fuzz_new(in, (size_t)most * sizeof *out->types);
  out->data = fuzz_new(in, (size_t)most * sizeof *out->data);
  for (int32_t k = 0; k < count; k++) {
    if (fields[k].kind != kind || fuzz_chance(in, 32)) continue;
    out->types[out->size] =
        fuzz_chance(in, 32) ? (int32_t)fuzz_wide(in) : JAXC_ABI_BUFFER;
    out->data[out->size++] = wild_buffer(in, fields[k].dtype, fields[k].rank);
  }
  for (int64_t extra = has_extra ? fuzz_between(in, 0, most - out->size) : 0; extra > 0;
       extra--) {
    out->types[out->size] = JAXC_ABI_BUFFER;
    out->data[out->size++] = wild_buffer(in, JAXC_ANY, JAXC_ANY_RANK);
  }
  wild_list_damage(in, &out->struct_size, &out->size, &out->types, &out->data);
}

static inline jaxc_abi_span *wild_span(fuzz_input *in, const char *text, size_t length) {
  jaxc_abi_span *const span = fuzz_new(in, sizeof *span);
  char *const copy = fuzz_new(in, length);
  if (length != 0) memcpy(copy, text, length);
  span->ptr = copy;
  span->len = length;
  return span;
}

/* A span of random characters, NULs among them. */
static inline jaxc_abi_span *wild_text(fuzz_input *in) {
  char text[256];
  const size_t length = fuzz_byte(in);
  for (size_t i = 0; i < length; i++) text[i] = (char)fuzz_byte(in);
  return wild_span(in, text, length);
}

static inline jaxc_abi_span *wild_name(fuzz_input *in, const jaxc_field *field) {
  jaxc_abi_span *span = wild_span(in, field->name, strlen(field->name));
  if (!fuzz_chance(in, 32)) return span;
  switch (fuzz_byte(in) % 5) {
    case 0: return NULL;
    case 1: span->ptr = NULL; break; /* with its length */
    case 2: return wild_text(in);
    case 3: span->len = fuzz_byte(in) % (span->len + 1); break;
    default: return wild_span(in, field->name, strlen(field->name) + 1); /* with NUL */
  }
  return span;
}

/* `count` elements in as many bytes; a count that is too large has no memory. */
static inline void *wild_elements(fuzz_input *in, int32_t dtype, size_t count) {
  const size_t size = jaxc_dtype_size(dtype);
  const size_t bytes = count > 64 ? 0 : count * size;
  uint8_t *const data = fuzz_new(in, bytes);
  for (size_t i = 0; i < bytes; i++) data[i] = fuzz_byte(in);
  return data;
}

static inline void *wild_scalar(fuzz_input *in, int32_t dtype) {
  jaxc_abi_scalar *const scalar = fuzz_new(in, sizeof *scalar);
  scalar->dtype = fuzz_chance(in, 16) ? (int32_t)fuzz_wide(in) : dtype;
  if (fuzz_chance(in, 32)) return scalar;
  if (scalar->dtype == JAXC_S64) { /* numbers of enums are small */
    const int64_t number = fuzz_wide(in);
    scalar->value = fuzz_new(in, sizeof number);
    memcpy(scalar->value, &number, sizeof number);
  } else {
    scalar->value = wild_elements(in, scalar->dtype, 1);
  }
  return scalar;
}

static inline void *wild_array(fuzz_input *in, int32_t dtype, size_t size) {
  jaxc_abi_array *const array = fuzz_new(in, sizeof *array);
  array->dtype = dtype == JAXC_ANY ? (int32_t)fuzz_between(in, 0, 34) : dtype;
  if (fuzz_chance(in, 16)) array->dtype = (int32_t)fuzz_wide(in);
  array->size = fuzz_chance(in, 16) ? (size_t)fuzz_wide(in) : size;
  array->data = fuzz_chance(in, 32) ? NULL : wild_elements(in, array->dtype, array->size);
  return array;
}

static inline void wild_attrs(fuzz_input *in, const jaxc_field *fields, int32_t count,
                              jaxc_abi_attrs *out);

/* The type number that a scalar must have for the field. */
static inline int32_t wild_scalar_dtype(const jaxc_field *field) {
  if (field->kind != JAXC_FIELD_ATTRIBUTE) return JAXC_S32;
  if (field->dtype == JAXC_POINTER || field->dtype == JAXC_ENUM) return JAXC_S64;
  return field->dtype < 0 ? JAXC_S32 : field->dtype;
}

/* The kind of attribute that a field asks for. */
static inline int32_t wild_kind(const jaxc_field *field) {
  if (field->kind == JAXC_FIELD_ARRAY || field->dtype == JAXC_C64 ||
      field->dtype == JAXC_C128) {
    return JAXC_ABI_ATTR_ARRAY;
  }
  if (field->dtype == JAXC_STRING) return JAXC_ABI_ATTR_STRING;
  return field->dtype == JAXC_DICTIONARY ? JAXC_ABI_ATTR_DICTIONARY
                                         : JAXC_ABI_ATTR_SCALAR;
}

static inline void *wild_attribute(fuzz_input *in, const jaxc_field *field,
                                   int32_t *kind) {
  int32_t dtype = field->dtype == JAXC_C64    ? JAXC_F32
                  : field->dtype == JAXC_C128 ? JAXC_F64
                                              : field->dtype;
  *kind = wild_kind(field);
  if (fuzz_chance(in, 16)) *kind = (int32_t)fuzz_between(in, 0, 6);
  switch (*kind) {
    case JAXC_ABI_ATTR_ARRAY:
      return wild_array(in, dtype,
                        field->kind == JAXC_FIELD_ARRAY ? fuzz_byte(in) % 4 : 2);
    case JAXC_ABI_ATTR_STRING: {
      jaxc_abi_span *const span = wild_text(in);
      if (fuzz_chance(in, 64)) span->ptr = NULL;
      return span;
    }
    case JAXC_ABI_ATTR_DICTIONARY: {
      jaxc_abi_attrs *const attrs = fuzz_new(in, sizeof *attrs);
      const int is_nested = field->kind == JAXC_FIELD_NESTED;
      wild_attrs(in, is_nested ? field->fields : NULL, is_nested ? field->rank : 0,
                 attrs);
      return attrs;
    }
    default:
      return wild_scalar(in, wild_scalar_dtype(field));
  }
}

/* A dictionary for the table: in its order or another, with some left out, given twice,
 * or added. */
static inline void wild_attrs(fuzz_input *in, const jaxc_field *fields, int32_t count,
                              jaxc_abi_attrs *out) {
  const int32_t start = fuzz_chance(in, 8) && count > 0 ? fuzz_byte(in) % count : 0;
  static const jaxc_field other = {"other", 5, JAXC_FIELD_ATTRIBUTE, 0, JAXC_S32, 0, 0, 0,
                                   NULL};
  out->struct_size = sizeof *out;
  out->extension_start = wild_chain(in, NULL);
  out->types = fuzz_new(in, 2 * WILD_ATTRIBUTES * sizeof *out->types);
  out->names = fuzz_new(in, 2 * WILD_ATTRIBUTES * sizeof *out->names);
  out->data = fuzz_new(in, 2 * WILD_ATTRIBUTES * sizeof *out->data);
  for (int32_t k = 0; k < count && out->size < 2 * WILD_ATTRIBUTES - 2; k++) {
    const jaxc_field *const field = &fields[(k + start) % count];
    int64_t copies = fuzz_chance(in, 32) ? fuzz_between(in, 0, 2) : 1;
    if (field->kind < JAXC_FIELD_ATTRIBUTE) continue;
    if (field->kind == JAXC_FIELD_ALL_ATTRIBUTES) continue;
    for (; copies > 0; copies--) {
      const int64_t i = out->size++;
      out->names[i] = wild_name(in, field);
      out->data[i] = wild_attribute(in, field, &out->types[i]);
      if (fuzz_chance(in, 32)) out->data[i] = NULL;
    }
  }
  if (fuzz_chance(in, 8)) {
    const int64_t i = out->size++;
    out->names[i] = fuzz_chance(in, 2) ? wild_text(in) : wild_name(in, &other);
    out->data[i] = wild_attribute(in, &other, &out->types[i]);
  }
  if (fuzz_chance(in, 64)) out->names = NULL;
  wild_list_damage(in, &out->struct_size, &out->size, &out->types, &out->data);
}

/* Metadata as a runtime of the table's minor has it: without a state before 0.2. */
static inline jaxc_abi_metadata *wild_metadata(fuzz_input *in) {
  const size_t layout = fuzz_runtime.api->api_version.minor_version >= 2 ? 48 : 40;
  jaxc_abi_metadata *const metadata = fuzz_new(in, layout);
  metadata->struct_size = fuzz_chance(in, 8) ? fuzz_byte(in) % 40 : 36;
  metadata->api_version.struct_size = sizeof metadata->api_version;
  return metadata;
}

/* The future that lies in a frame by chance; nothing may be done with it. */
static inline jaxc_abi_future *wild_future(void) {
  static jaxc_abi_future stale = {-1};
  return &stale;
}

/* A call, or a query for metadata. What a runtime leaves unwritten is stale. */
static inline jaxc_abi_call_frame *wild_frame(fuzz_input *in, const jaxc_field *fields,
                                              int32_t count) {
  const size_t size = fuzz_chance(in, 32) ? fuzz_byte(in) : JAXC_ABI_FRAME_SIZE;
  /* Up to the stage it is there, or nothing could be said. */
  const size_t whole = size >= JAXC_ABI_FRAME_SIZE ? sizeof(jaxc_abi_call_frame) : size;
  jaxc_abi_call_frame frame = {0};
  jaxc_abi_call_frame *const out =
      fuzz_new(in, whole < 40 ? 40 : whole < sizeof frame ? whole : sizeof frame);
  frame.struct_size = size;
  frame.api = fuzz_runtime.api;
  frame.stage = fuzz_chance(in, 8) ? (int32_t)fuzz_between(in, 0, 6) - 1 : 3;
  if (fuzz_chance(in, 16)) {
    frame.extension_start = wild_chain(in, wild_metadata(in));
  } else {
    frame.extension_start = wild_chain(in, NULL);
    wild_operands(in, fields, count, JAXC_FIELD_ARGUMENT, &frame.args);
    wild_operands(in, fields, count, JAXC_FIELD_RESULT, &frame.results);
    wild_attrs(in, fields, count, &frame.attrs);
  }
  if (fuzz_chance(in, 4)) frame.future = wild_future();
  memcpy(out, &frame, whole < 40 ? 40 : whole < sizeof frame ? whole : sizeof frame);
  return out;
}

#endif /* JAXC_FUZZ_WILD_FRAME_H */
