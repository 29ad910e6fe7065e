/* frame.h: call frames for tests, with a runtime that makes errors, futures and types.
 *
 *   frame_t f;
 *   frame_begin(&f);
 *   frame_argument(&f, JAXC_F32, x, 1, 4);          dims follow the rank
 *   frame_result(&f, JAXC_F32, y, 1, 4);
 *   CHECK_TEXT(frame_call(&f, handler), "");        the error's text, "" for none
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_TESTS_FRAME_H
#define JAXC_TESTS_FRAME_H

#include <jaxc/jaxc.h>
#include <stdarg.h>
#include <string.h>

#define FRAME_MAX 80
#define FRAME_MAX_RANK 40

typedef struct {
  jaxc_abi_call_frame frame;
  jaxc_abi_buffer buffers[2][FRAME_MAX];
  int64_t dims[2][FRAME_MAX][FRAME_MAX_RANK];
  void *data[2][FRAME_MAX];
  int32_t types[2][FRAME_MAX];
  jaxc_abi_span names[FRAME_MAX];
  jaxc_abi_span *name_pointers[FRAME_MAX];
  jaxc_abi_scalar scalars[FRAME_MAX];
  jaxc_abi_array arrays[FRAME_MAX];
  void *attrs[FRAME_MAX];
  int32_t attr_types[FRAME_MAX];
} frame_t;

struct jaxc_abi_error {
  int code;
  char text[2048];
};

static struct jaxc_abi_error frame_error;

static jaxc_abi_error *frame_error_create(jaxc_abi_error_create_args *args) {
  frame_error.code = args->code;
  snprintf(frame_error.text, sizeof frame_error.text, "%s", args->message);
  return &frame_error;
}

/* The future of a call, and what became of it. */
struct jaxc_abi_future {
  int created;
  int available;
  jaxc_abi_error *error;
};
static struct jaxc_abi_future frame_future;

static jaxc_abi_error *frame_future_create(jaxc_abi_future_create_args *args) {
  frame_future.created++;
  args->future = &frame_future;
  return NULL;
}
static jaxc_abi_error *frame_future_available(jaxc_abi_future_available_args *args) {
  args->future->available++;
  return NULL;
}
static jaxc_abi_error *frame_future_error(jaxc_abi_future_error_args *args) {
  args->future->error = args->error;
  return NULL;
}

/* Numbers of types go up from 41; one that is given stays. */
static int frame_type_count;
static jaxc_abi_error *frame_type_register(jaxc_abi_type_register_args *args) {
  if (args->type_id->type_id == 0) args->type_id->type_id = 41 + frame_type_count;
  frame_type_count++;
  return NULL;
}

static const jaxc_abi_api frame_api = {
    .struct_size = 192, /* what a runtime of API 0.3 says; later slots are not called */
    .api_version = {24, NULL, 0, 3},
    .error_create = frame_error_create,
    .type_register = frame_type_register,
    .future_create = frame_future_create,
    .future_available = frame_future_available,
    .future_error = frame_future_error,
};

static inline void frame_begin(frame_t *f) {
  memset(f, 0, sizeof *f);
  f->frame.struct_size = offsetof(jaxc_abi_call_frame, attrs) + sizeof f->frame.attrs;
  f->frame.api = &frame_api;
  f->frame.stage = JAXC_STAGE_EXECUTE;
  f->frame.args.struct_size = f->frame.results.struct_size = sizeof(jaxc_abi_operands);
  f->frame.args.types = f->types[0];
  f->frame.args.data = f->data[0];
  f->frame.results.types = f->types[1];
  f->frame.results.data = f->data[1];
  f->frame.attrs.struct_size = sizeof(jaxc_abi_attrs);
  f->frame.attrs.types = f->attr_types;
  f->frame.attrs.names = f->name_pointers;
  f->frame.attrs.data = f->attrs;
}

static inline void frame_operand(frame_t *f, int side, int dtype, void *data, int rank,
                                 const int64_t *dims) {
  jaxc_abi_operands *list = side == 0 ? &f->frame.args : &f->frame.results;
  const int64_t i = list->size++;
  jaxc_abi_buffer *buffer = &f->buffers[side][i];
  buffer->struct_size = sizeof *buffer;
  buffer->dtype = dtype;
  buffer->data = data;
  buffer->rank = rank;
  buffer->dims = f->dims[side][i];
  if (rank > 0) memcpy(f->dims[side][i], dims, (size_t)rank * sizeof *dims);
  f->types[side][i] = JAXC_ABI_BUFFER;
  f->data[side][i] = buffer;
}

/* The sizes follow as ints. */
static inline void frame_argument(frame_t *f, int dtype, void *data, int rank, ...) {
  int64_t dims[FRAME_MAX_RANK];
  va_list list;
  va_start(list, rank);
  for (int i = 0; i < rank; i++) dims[i] = va_arg(list, int);
  va_end(list);
  frame_operand(f, 0, dtype, data, rank, dims);
}
static inline void frame_result(frame_t *f, int dtype, void *data, int rank, ...) {
  int64_t dims[FRAME_MAX_RANK];
  va_list list;
  va_start(list, rank);
  for (int i = 0; i < rank; i++) dims[i] = va_arg(list, int);
  va_end(list);
  frame_operand(f, 1, dtype, data, rank, dims);
}

static inline int64_t frame_name(frame_t *f, const char *name, int type, void *data) {
  const int64_t i = f->frame.attrs.size++;
  f->names[i].ptr = name;
  f->names[i].len = strlen(name);
  f->name_pointers[i] = &f->names[i];
  f->attr_types[i] = type;
  f->attrs[i] = data;
  return i;
}

static inline void frame_scalar(frame_t *f, const char *name, int dtype, void *value) {
  const int64_t i = frame_name(f, name, JAXC_ABI_ATTR_SCALAR, NULL);
  f->scalars[i].dtype = dtype;
  f->scalars[i].value = value;
  f->attrs[i] = &f->scalars[i];
}
static inline void frame_array(frame_t *f, const char *name, int dtype, void *data,
                               size_t size) {
  const int64_t i = frame_name(f, name, JAXC_ABI_ATTR_ARRAY, NULL);
  f->arrays[i].dtype = dtype;
  f->arrays[i].size = size;
  f->arrays[i].data = data;
  f->attrs[i] = &f->arrays[i];
}
static inline void frame_string(frame_t *f, const char *name, jaxc_abi_span *value) {
  frame_name(f, name, JAXC_ABI_ATTR_STRING, value);
}

/* A nested dictionary: the attributes of `inner`, which frame_begin has begun. */
static inline void frame_dictionary(frame_t *f, const char *name, frame_t *inner) {
  frame_name(f, name, JAXC_ABI_ATTR_DICTIONARY, &inner->frame.attrs);
}

/* Calls the handler; the error's text, or "" when there was none. */
static inline const char *frame_call(frame_t *f, jaxc_abi_handler *handler) {
  frame_error.code = 0;
  frame_error.text[0] = '\0';
  return handler(&f->frame) == NULL ? "" : frame_error.text;
}

#endif /* JAXC_TESTS_FRAME_H */
