/* handler.h: an XLA FFI handler in C, declared by a struct and a table.
 *
 *   typedef struct {
 *     JAXC_VIEW(const float) x;
 *     JAXC_VIEW(float) y;
 *     float eps;
 *   } rms_norm_call;
 *
 *   static const jaxc_field rms_norm_fields[] = {
 *       JAXC_ARGUMENT(rms_norm_call, x, JAXC_AT_LEAST(1)),
 *       JAXC_RESULT(rms_norm_call, y, JAXC_AT_LEAST(1)),
 *       JAXC_ATTRIBUTE(rms_norm_call, eps),
 *   };
 *
 *   static jaxc_status rms_norm(jaxc_context *context, const void *data) {
 *     const rms_norm_call *call = data;
 *     if (call->x.count != call->y.count) {
 *       return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in size");
 *     }
 *     ...call->x.data[i], call->x.dims[call->x.rank - 1], call->eps...
 *     return JAXC_OK;
 *   }
 *
 *   JAXC_HANDLER(RmsNorm, rms_norm_call, rms_norm_fields, .execute = rms_norm);
 *
 * The struct's own types say what the call must look like: `const float` is a float32
 * array, `float eps` a float32 attribute. Arguments and results are in the order of the
 * table, attributes are found by name. Nothing is converted. All that is wrong with a
 * call is reported in one error, by name. Fields live as long as the call.
 *
 * JAXC_HANDLER uses designated initialisers: C11, or C++20.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_HANDLER_H
#define JAXC_HANDLER_H

#include <jaxc/call.h>
#include <jaxc/context.h>
#include <jaxc/library.h>
#include <jaxc/state.h>
#include <jaxc/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- members of the struct ---- */

/* An array of `type`: const for an argument, void for any element type. rank is -1 when an
 * optional array is absent, or the stage has no arrays. */
#define JAXC_VIEW(type)    \
  struct {                 \
    type *data;            \
    const int64_t *dims;   \
    int64_t rank;          \
    int64_t count;         \
    int32_t dtype;         \
  }

/* The arrays behind those that the table names, for jaxc_rest_view. */
typedef struct {
  const jaxc_abi_operands *operands;
  int64_t first;
  int64_t count;
} jaxc_rest;

/* Views array `index` of the rest; `dtype` may be JAXC_ANY, `rank` JAXC_AT_LEAST(n).
 * OUT_OF_RANGE, or INVALID_ARGUMENT for another type or rank. */
JAXC_UNUSED static jaxc_status jaxc_rest_view(jaxc_context *context, const jaxc_rest *rest,
                                              int64_t index, int32_t dtype, int32_t rank,
                                              jaxc_view *out) {
  if (index < 0 || index >= rest->count) {
    return jaxc_fail(context, JAXC_OUT_OF_RANGE, "operand %lld of the %lld remaining",
                     (long long)index, (long long)rest->count);
  }
  return jaxc_call_operand(rest->operands, rest->first + index, "operand", "remaining",
                           dtype, rank, out, &context->message);
}

/* ---- the table ---- */

typedef enum {
  JAXC_FIELD_ARGUMENT = 1,
  JAXC_FIELD_RESULT = 2,
  JAXC_FIELD_REST_ARGUMENTS = 3,
  JAXC_FIELD_REST_RESULTS = 4,
  JAXC_FIELD_ATTRIBUTE = 5,
  JAXC_FIELD_ARRAY = 6,
  JAXC_FIELD_NESTED = 7,
  JAXC_FIELD_ALL_ATTRIBUTES = 8
} jaxc_field_kind;

typedef struct jaxc_field {
  const char *name;
  int16_t name_length;
  int8_t kind;        /* jaxc_field_kind */
  int8_t is_optional;
  int32_t dtype;      /* jaxc_dtype, or JAXC_STRING, ... */
  int32_t rank;       /* of an array; an enum's or a nested table's count */
  int32_t reserved;
  size_t offset;      /* in the struct */
  const struct jaxc_field *fields; /* of a nested dictionary */
} jaxc_field;

/* C types that stand for an element type. */
#define JAXCI_C_TYPES(X)                                                          \
  X(_Bool, JAXC_PRED) X(char, JAXC_INTEGER_DTYPE(char)) X(signed char, JAXC_S8)   \
  X(unsigned char, JAXC_U8) X(short, JAXC_INTEGER_DTYPE(short))                   \
  X(unsigned short, JAXC_INTEGER_DTYPE(unsigned short))                           \
  X(int, JAXC_INTEGER_DTYPE(int)) X(unsigned, JAXC_INTEGER_DTYPE(unsigned))       \
  X(long, JAXC_INTEGER_DTYPE(long))                                               \
  X(unsigned long, JAXC_INTEGER_DTYPE(unsigned long))                             \
  X(long long, JAXC_INTEGER_DTYPE(long long))                                     \
  X(unsigned long long, JAXC_INTEGER_DTYPE(unsigned long long))                   \
  X(float, JAXC_F32) X(double, JAXC_F64) X(float _Complex, JAXC_C64)              \
  X(double _Complex, JAXC_C128) X(jaxc_bf16, JAXC_BF16)                           \
  X(jaxc_f8e4m3fn, JAXC_F8E4M3FN) X(jaxc_f8e5m2, JAXC_F8E5M2)

#define JAXCI_VALUE_TYPE(type, number) type: number,
#define JAXCI_POINTER_TYPE(type, number) type *: number, const type *: number,

#ifndef __cplusplus
/* Type number of an attribute's and of an array's member, by its C type. A compile error
 * here means that the member's type stands for no element type. */
#define JAXCI_ATTRIBUTE_DTYPE(value)                                               \
  _Generic((value), JAXCI_C_TYPES(JAXCI_VALUE_TYPE) jaxc_string: JAXC_STRING,      \
           const jaxc_abi_attrs *: JAXC_DICTIONARY, void *: JAXC_POINTER,          \
           const void *: JAXC_POINTER)
#define JAXCI_ARRAY_DTYPE(pointer)                                                 \
  _Generic((pointer), JAXCI_C_TYPES(JAXCI_POINTER_TYPE) void *: JAXC_ANY,          \
           const void *: JAXC_ANY)
#endif

#define JAXCI_MEMBER(type, member) (((type *)0)->member)
#define JAXCI_FIELD(type, member, kind, is_optional, dtype, rank, fields)          \
  {#member, (int16_t)(sizeof #member - 1), kind, is_optional, dtype, rank, 0,      \
   offsetof(type, member), fields}

/* The next argument or result, into a JAXC_VIEW member. `rank` is a number of axes,
 * JAXC_AT_LEAST(n) or JAXC_ANY_RANK. */
#define JAXC_ARGUMENT(type, member, rank)                                          \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARGUMENT, 0,                                \
              JAXCI_ARRAY_DTYPE(JAXCI_MEMBER(type, member).data), rank, NULL)
#define JAXC_RESULT(type, member, rank)                                            \
  JAXCI_FIELD(type, member, JAXC_FIELD_RESULT, 0,                                  \
              JAXCI_ARRAY_DTYPE(JAXCI_MEMBER(type, member).data), rank, NULL)

/* May be absent; behind those that may not. */
#define JAXC_OPTIONAL_ARGUMENT(type, member, rank)                                 \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARGUMENT, 1,                                \
              JAXCI_ARRAY_DTYPE(JAXCI_MEMBER(type, member).data), rank, NULL)
#define JAXC_OPTIONAL_RESULT(type, member, rank)                                   \
  JAXCI_FIELD(type, member, JAXC_FIELD_RESULT, 1,                                  \
              JAXCI_ARRAY_DTYPE(JAXCI_MEMBER(type, member).data), rank, NULL)

/* With the type number given, for element types that C has no type for: JAXC_F16 in a
 * JAXC_VIEW(const uint16_t), JAXC_S4 in a JAXC_VIEW(const void). */
#define JAXC_ARGUMENT_AS(type, member, dtype, rank)                                \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARGUMENT, 0, dtype, rank, NULL)
#define JAXC_RESULT_AS(type, member, dtype, rank)                                  \
  JAXCI_FIELD(type, member, JAXC_FIELD_RESULT, 0, dtype, rank, NULL)

/* All further ones, into a jaxc_rest member; last of its kind. */
#define JAXC_REST_ARGUMENTS(type, member)                                          \
  JAXCI_FIELD(type, member, JAXC_FIELD_REST_ARGUMENTS, 1, JAXC_ANY, 0, NULL)
#define JAXC_REST_RESULTS(type, member)                                            \
  JAXCI_FIELD(type, member, JAXC_FIELD_REST_RESULTS, 1, JAXC_ANY, 0, NULL)

/* The attribute of the member's name: a scalar of the member's type, a jaxc_string, a
 * dictionary (const jaxc_abi_attrs *, for attrs.h), or an address (void *), which comes as
 * an int64. */
#define JAXC_ATTRIBUTE(type, member)                                               \
  JAXCI_FIELD(type, member, JAXC_FIELD_ATTRIBUTE, 0,                               \
              JAXCI_ATTRIBUTE_DTYPE(JAXCI_MEMBER(type, member)), 0, NULL)

/* May be absent; then the member is as in the handler's `defaults`, or zero. */
#define JAXC_OPTIONAL_ATTRIBUTE(type, member)                                      \
  JAXCI_FIELD(type, member, JAXC_FIELD_ATTRIBUTE, 1,                               \
              JAXCI_ATTRIBUTE_DTYPE(JAXCI_MEMBER(type, member)), 0, NULL)

/* An enum member, which comes as an int64 from 0 to count - 1. */
#define JAXC_ATTRIBUTE_ENUM(type, member, count)                                   \
  JAXCI_FIELD(type, member, JAXC_FIELD_ATTRIBUTE, 0, JAXC_ENUM, count, NULL)

/* A jaxc_array member: an array of `dtype`, or JAXC_ANY. */
#define JAXC_ATTRIBUTE_ARRAY(type, member, dtype)                                  \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARRAY, 0, dtype, 0, NULL)

/* A struct member, filled from the dictionary of its name by a table of attributes. */
#define JAXC_ATTRIBUTE_NESTED(type, member, field_list)                            \
  JAXCI_FIELD(type, member, JAXC_FIELD_NESTED, 0, JAXC_DICTIONARY,                 \
              (int32_t)(sizeof(field_list) / sizeof *(field_list)), field_list)

/* All attributes, whatever their names, into a const jaxc_abi_attrs * member. */
#define JAXC_ALL_ATTRIBUTES(type, member)                                          \
  JAXCI_FIELD(type, member, JAXC_FIELD_ALL_ATTRIBUTES, 1, JAXC_DICTIONARY, 0, NULL)

/* ---- the handler ---- */

/* The work of one stage. `call` is the struct; in instantiate, arrays may be absent, and
 * in prepare they have shapes but no data. */
typedef jaxc_status jaxc_handler_function(jaxc_context *context, const void *call);

/* Moves when a layout below changes in a way that struct_size cannot tell. */
#define JAXC_HANDLER_ABI 1

/* What JAXC_HANDLER writes: constant, exported as jaxc_handler_<symbol>, and read by
 * jaxc.register and jaxc-run. NULL and 0 are right for all that is left out. */
typedef struct {
  size_t struct_size;
  int32_t abi_version; /* JAXC_HANDLER_ABI */
  int32_t field_count;
  const char *name; /* of the symbol: begins every message */
  const jaxc_field *fields;
  size_t call_size; /* of the struct */
  jaxc_handler_function *execute;
  /* Once for each call site of a compiled program: on CPUs with attributes alone. */
  jaxc_handler_function *instantiate;
  /* Before each execution, on GPUs only. */
  jaxc_handler_function *prepare;
  jaxc_handler_function *initialize;
  /* Types of the states that those stages set. */
  jaxc_state_type *instantiate_state;
  jaxc_state_type *prepare_state;
  jaxc_state_type *initialize_state;
  uint32_t traits;       /* JAXC_TRAIT_* */
  int32_t minor;         /* lowest API minor that will do; a runtime below it refuses */
  const void *defaults;  /* a struct with the values of absent optional attributes */
  const char *platform;  /* "cpu", "cuda", "rocm"; NULL is "cpu" */
} jaxc_handler;

/* Defines and exports the handler `symbol` for the struct `type` and its table. The rest
 * are members of jaxc_handler: .execute = f, .instantiate = g, ... */
#define JAXC_HANDLER(symbol, type, field_list, ...)                                \
  JAXC_EXPORT extern const jaxc_handler jaxc_handler_##symbol;                     \
  const jaxc_handler jaxc_handler_##symbol = {                                     \
      .struct_size = sizeof(jaxc_handler),                                         \
      .abi_version = JAXC_HANDLER_ABI,                                             \
      .field_count = (int32_t)(sizeof(field_list) / sizeof *(field_list)),         \
      .name = #symbol,                                                             \
      .fields = field_list,                                                        \
      .call_size = sizeof(type),                                                   \
      __VA_ARGS__};                                                                \
  JAXC_EXPORT jaxc_abi_error *symbol(jaxc_abi_call_frame *frame);                  \
  jaxc_abi_error *symbol(jaxc_abi_call_frame *frame) {                             \
    type call;                                                                     \
    return jaxc_handler_run(frame, &jaxc_handler_##symbol, &call);                 \
  }                                                                                \
  JAXC_EXPORT extern const jaxc_handler jaxc_handler_##symbol

/* ---- decoding ---- */

typedef struct {
  const jaxc_abi_operands *args;    /* NULL where the stage has none */
  const jaxc_abi_operands *results;
  const jaxc_abi_attrs *attrs;
  int64_t argument;  /* the next */
  int64_t result;
  int64_t attribute; /* where the next probably is */
  int64_t found;     /* attributes */
  int takes_rest;    /* bits: 1 arguments, 2 results, 4 attributes */
  int asks_data;
} jaxci_decoder;

/* Stores a view into a JAXC_VIEW member. Its data is a pointer of another type than the
 * view's, which has the same bytes. */
static inline void jaxci_handler_store(char *member, const jaxc_view *view) {
  jaxc_view *const out = (jaxc_view *)(void *)member;
  memcpy(member + offsetof(jaxc_view, data), &view->data, sizeof view->data);
  out->dims = view->dims;
  out->rank = view->rank;
  out->count = view->count;
  out->dtype = view->dtype;
}

static inline jaxc_status jaxci_handler_array(const jaxci_decoder *decoder,
                                              const jaxc_field *field,
                                              const jaxc_abi_operands *list, int64_t index,
                                              const char *kind, char *member,
                                              jaxc_message *message) {
  jaxc_view view;
  if (list == NULL || index >= list->size) {
    static const jaxc_view absent = {NULL, NULL, -1, 0, JAXC_DTYPE_INVALID};
    jaxci_handler_store(member, &absent);
    if (list == NULL || field->is_optional) return JAXC_OK;
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s %lld ('%s') is missing", kind,
                     (long long)index, field->name);
  }
  JAXC_TRY(jaxc_call_shape(list, index, kind, field->name, field->dtype, field->rank,
                           &view, message));
  if (view.data == NULL && view.count != 0 && decoder->asks_data) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %lld ('%s') has no data but %lld elements", kind,
                     (long long)index, field->name, (long long)view.count);
  }
  jaxci_handler_store(member, &view);
  return JAXC_OK;
}

static inline void jaxci_handler_rest(const jaxc_abi_operands *list, int64_t first,
                                      char *member) {
  jaxc_rest *const rest = (jaxc_rest *)(void *)member;
  rest->operands = list;
  rest->first = first;
  rest->count = list == NULL || list->size < first ? 0 : list->size - first;
}

static JAXC_NOINLINE jaxc_status jaxci_handler_nested(const jaxc_field *field,
                                                      const jaxc_abi_attrs *attrs,
                                                      char *member, jaxc_message *message);

/* An attribute whose place is known, into its member. */
static inline jaxc_status jaxci_handler_attribute(const jaxci_decoder *decoder,
                                                  const jaxc_field *field, int64_t index,
                                                  char *member, jaxc_message *message) {
  const jaxc_abi_attrs *const attrs = decoder->attrs;
  const void *data = NULL;
  int64_t number = 0;
  if (field->kind == JAXC_FIELD_ATTRIBUTE && field->dtype >= 0) {
    return jaxci_attr_scalar(attrs, index, field->name, field->dtype, member, message);
  }
  if (field->kind == JAXC_FIELD_ARRAY) {
    JAXC_TRY(jaxci_attr_at(attrs, index, field->name, JAXC_ABI_ATTR_ARRAY, &data, message));
    *(jaxc_array *)(void *)member = *(const jaxc_array *)data;
    if (field->dtype == JAXC_ANY || field->dtype == ((const jaxc_array *)data)->dtype) {
      return JAXC_OK;
    }
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "attribute '%s' is an array of %s, expected %s", field->name,
                     jaxc_dtype_name(((const jaxc_array *)data)->dtype),
                     jaxc_dtype_name(field->dtype));
  }
  switch (field->dtype) {
    case JAXC_STRING:
      JAXC_TRY(jaxci_attr_at(attrs, index, field->name, JAXC_ABI_ATTR_STRING, &data,
                             message));
      *(jaxc_string *)(void *)member = *(const jaxc_string *)data;
      return JAXC_OK;
    case JAXC_DICTIONARY:
      JAXC_TRY(jaxci_attr_at(attrs, index, field->name, JAXC_ABI_ATTR_DICTIONARY, &data,
                             message));
      if (field->kind == JAXC_FIELD_NESTED) {
        return jaxci_handler_nested(field, (const jaxc_abi_attrs *)data, member, message);
      }
      memcpy(member, &data, sizeof data);
      return JAXC_OK;
    case JAXC_POINTER:
      JAXC_TRY(jaxci_attr_scalar(attrs, index, field->name, JAXC_S64, &number, message));
      data = (const void *)(uintptr_t)number;
      memcpy(member, &data, sizeof data);
      return JAXC_OK;
    default: { /* JAXC_ENUM */
      int value;
      JAXC_TRY(jaxci_attr_scalar(attrs, index, field->name, JAXC_S64, &number, message));
      if (number < 0 || number >= field->rank) {
        return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                         "attribute '%s' is %lld, expected 0 to %d", field->name,
                         (long long)number, (int)field->rank - 1);
      }
      value = (int)number;
      memcpy(member, &value, sizeof value);
      return JAXC_OK;
    }
  }
}

/* Fills one member. */
static inline jaxc_status jaxci_handler_field(jaxci_decoder *decoder,
                                              const jaxc_field *field, char *member,
                                              jaxc_message *message) {
  const jaxc_abi_attrs *const attrs = decoder->attrs;
  int64_t index;
  switch (field->kind) {
    case JAXC_FIELD_ARGUMENT:
      return jaxci_handler_array(decoder, field, decoder->args, decoder->argument++,
                                 "argument", member, message);
    case JAXC_FIELD_RESULT:
      return jaxci_handler_array(decoder, field, decoder->results, decoder->result++,
                                 "result", member, message);
    case JAXC_FIELD_REST_ARGUMENTS:
      jaxci_handler_rest(decoder->args, decoder->argument, member);
      decoder->takes_rest |= 1;
      return JAXC_OK;
    case JAXC_FIELD_REST_RESULTS:
      jaxci_handler_rest(decoder->results, decoder->result, member);
      decoder->takes_rest |= 2;
      return JAXC_OK;
    case JAXC_FIELD_ALL_ATTRIBUTES:
      memcpy(member, &attrs, sizeof attrs);
      decoder->takes_rest |= 4;
      return JAXC_OK;
    default:
      break;
  }
  /* Attributes are sorted by name, so a table in that order never searches. */
  index = decoder->attribute;
  if (index >= attrs->size || attrs->names[index] == NULL ||
      attrs->names[index]->len != (size_t)field->name_length ||
      attrs->names[index]->ptr == NULL ||
      memcmp(attrs->names[index]->ptr, field->name, (size_t)field->name_length) != 0) {
    index = jaxc_attrs_find(attrs, field->name);
  }
  if (index < 0) {
    if (field->is_optional) return JAXC_OK;
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "attribute '%s' is missing",
                     field->name);
  }
  decoder->attribute = index + 1;
  decoder->found++;
  return jaxci_handler_attribute(decoder, field, index, member, message);
}

/* True when the call has no more than the table names. */
static inline int jaxci_handler_is_all(const jaxci_decoder *decoder) {
  return (decoder->args == NULL || (decoder->takes_rest & 1) ||
          decoder->args->size <= decoder->argument) &&
         (decoder->results == NULL || (decoder->takes_rest & 2) ||
          decoder->results->size <= decoder->result) &&
         ((decoder->takes_rest & 4) || decoder->attrs->size <= decoder->found);
}

/* Text that grows; what does not fit is counted. */
typedef struct {
  size_t used;
  int count;
  int left_out;
  jaxc_message text;
} jaxci_problems;

JAXC_COLD static void jaxci_problems_add(jaxci_problems *problems, const char *text) {
  const size_t room = sizeof problems->text.text - 32 - problems->used;
  const char *const between = problems->count == 0 ? "" : "; ";
  const size_t length = strlen(text) + strlen(between);
  problems->count++;
  if (length >= room) {
    problems->left_out++;
    return;
  }
  (void)snprintf(problems->text.text + problems->used, room, "%s%s", between, text);
  problems->used += length;
}

/* Arrays and attributes that the table does not name. */
JAXC_COLD static void jaxci_handler_surplus(const jaxci_decoder *decoder,
                                            const jaxc_field *fields, int32_t count,
                                            jaxci_problems *problems) {
  jaxc_message one;
  if (decoder->args != NULL && !(decoder->takes_rest & 1) &&
      decoder->args->size > decoder->argument) {
    (void)JAXC_FAIL(&one, JAXC_OK, "called with %lld arguments, expected %lld",
                    (long long)decoder->args->size, (long long)decoder->argument);
    jaxci_problems_add(problems, one.text);
  }
  if (decoder->results != NULL && !(decoder->takes_rest & 2) &&
      decoder->results->size > decoder->result) {
    (void)JAXC_FAIL(&one, JAXC_OK, "called with %lld results, expected %lld",
                    (long long)decoder->results->size, (long long)decoder->result);
    jaxci_problems_add(problems, one.text);
  }
  for (int64_t i = 0; !(decoder->takes_rest & 4) && i < decoder->attrs->size; i++) {
    const jaxc_abi_span *const name = decoder->attrs->names[i];
    int32_t k = 0;
    if (name == NULL || name->ptr == NULL) {
      jaxci_problems_add(problems, "an attribute has no name");
      continue;
    }
    while (k < count && (fields[k].kind < JAXC_FIELD_ATTRIBUTE ||
                         strlen(fields[k].name) != name->len ||
                         memcmp(fields[k].name, name->ptr, name->len) != 0)) {
      k++;
    }
    if (k < count) continue;
    (void)JAXC_FAIL(&one, JAXC_OK, "attribute '%.*s' is not expected",
                    (int)(name->len < 100 ? name->len : 100), name->ptr);
    jaxci_problems_add(problems, one.text);
  }
}

/* Looks at every field again and names all that is wrong. */
JAXC_COLD static jaxc_status jaxci_handler_report(jaxci_decoder decoder,
                                                  const jaxc_field *fields, int32_t count,
                                                  char *call, jaxc_message *message) {
  jaxci_problems problems;
  jaxc_message one;
  memset(&problems, 0, offsetof(jaxci_problems, text) + 1);
  decoder.argument = decoder.result = decoder.attribute = decoder.found = 0;
  decoder.takes_rest = 0;
  for (int32_t k = 0; k < count; k++) {
    if (jaxci_handler_field(&decoder, &fields[k], call + fields[k].offset, &one) !=
        JAXC_OK) {
      jaxci_problems_add(&problems, one.text);
    }
  }
  jaxci_handler_surplus(&decoder, fields, count, &problems);
  if (problems.left_out == 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s", problems.text.text);
  }
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%.960s; and %d more problems",
                   problems.text.text, problems.left_out);
}

static inline jaxc_status jaxci_handler_decode(jaxci_decoder *decoder,
                                               const jaxc_field *fields, int32_t count,
                                               char *call, jaxc_message *message) {
  for (int32_t k = 0; k < count; k++) {
    if (jaxci_handler_field(decoder, &fields[k], call + fields[k].offset, message) !=
        JAXC_OK) {
      return jaxci_handler_report(*decoder, fields, count, call, message);
    }
  }
  if (jaxci_handler_is_all(decoder)) return JAXC_OK;
  return jaxci_handler_report(*decoder, fields, count, call, message);
}

static JAXC_NOINLINE jaxc_status jaxci_handler_nested(const jaxc_field *field,
                                                      const jaxc_abi_attrs *attrs,
                                                      char *member, jaxc_message *message) {
  jaxci_decoder decoder;
  jaxc_message inner;
  jaxc_status status;
  memset(&decoder, 0, sizeof decoder);
  decoder.attrs = attrs;
  if (!jaxci_call_list_is_whole(attrs->struct_size, sizeof *attrs, attrs->size,
                                attrs->types, attrs->data) ||
      (attrs->size > 0 && attrs->names == NULL)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "attribute '%s' is damaged",
                     field->name);
  }
  status = jaxci_handler_decode(&decoder, field->fields, field->rank, member, &inner);
  if (status == JAXC_OK) return JAXC_OK;
  return JAXC_FAIL(message, status, "in dictionary '%s': %s", field->name, inner.text);
}

/* ---- running ---- */

JAXC_UNUSED JAXC_COLD static jaxc_abi_error *jaxci_handler_error(
    const jaxc_abi_call_frame *frame, const jaxc_handler *handler, jaxc_status status,
    const jaxc_message *message) {
  jaxc_message whole;
  status = JAXC_FAIL(&whole, status, "%s: %s", handler->name, message->text);
  return jaxc_error_create(frame->api, status, whole.text);
}

/* Answers the metadata query. The types of states are registered here, since that must
 * come before the handler and this is the runtime's first word to it. */
JAXC_UNUSED JAXC_NOINLINE static jaxc_abi_error *jaxci_handler_metadata(
    jaxc_abi_call_frame *frame, const jaxc_handler *handler, jaxc_abi_metadata *metadata) {
  jaxc_state_type *const types[3] = {handler->instantiate_state, handler->prepare_state,
                                     handler->initialize_state};
  jaxc_message message;
  for (int i = 0; i < 3; i++) {
    if (types[i] == NULL || (i > 0 && types[i] == types[i - 1])) continue;
    if (frame->api == NULL) continue; /* a probe, not a runtime */
    if (jaxci_state_register(frame->api, types[i], &message) != JAXC_OK) {
      return jaxci_handler_error(frame, handler, JAXC_INTERNAL, &message);
    }
  }
  metadata->api_version.major_version = JAXC_ABI_MAJOR;
  metadata->api_version.minor_version =
      handler->minor > JAXC_ABI_MINOR ? handler->minor : JAXC_ABI_MINOR;
  metadata->traits = handler->traits;
  /* API 0.1 has no such field, and its struct_size does not tell. */
  if (frame->api != NULL && frame->api->api_version.minor_version >= 2) {
    metadata->state_type_id =
        handler->instantiate_state != NULL ? handler->instantiate_state->id.type_id : 0;
  }
  return NULL;
}

/* The error of a function that has begun a future belongs to the future. */
JAXC_UNUSED JAXC_COLD static jaxc_abi_error *jaxci_handler_failed(
    jaxc_context *context, const jaxc_handler *handler, jaxc_status status) {
  jaxc_message whole;
  jaxc_future future;
  if (context->frame->stage != JAXC_STAGE_EXECUTE || context->frame->future == NULL) {
    return jaxci_handler_error(context->frame, handler, status, &context->message);
  }
  future.api = context->frame->api;
  future.future = context->frame->future;
  status = JAXC_FAIL(&whole, status, "%s: %s", handler->name, context->message.text);
  jaxc_future_finish(&future, status, whole.text);
  return NULL;
}

static inline jaxc_status jaxci_handler_call(jaxc_context *context,
                                             const jaxc_handler *handler, void *call) {
  jaxc_abi_call_frame *const frame = context->frame;
  jaxc_handler_function *function = handler->execute;
  jaxci_decoder decoder;
  JAXC_TRY(jaxc_call_check_frame(frame, &context->message));
  decoder.args = &frame->args;
  decoder.results = &frame->results;
  decoder.attrs = &frame->attrs;
  decoder.argument = decoder.result = decoder.attribute = decoder.found = 0;
  decoder.takes_rest = 0;
  decoder.asks_data = 1;
  if (frame->stage != JAXC_STAGE_EXECUTE) {
    function = frame->stage == JAXC_STAGE_INSTANTIATE  ? handler->instantiate
               : frame->stage == JAXC_STAGE_PREPARE    ? handler->prepare
               : frame->stage == JAXC_STAGE_INITIALIZE ? handler->initialize
                                                       : NULL;
    decoder.asks_data = 0;
    if (frame->args.size == 0 && frame->results.size == 0) {
      decoder.args = decoder.results = NULL;
    }
  } else {
    frame->future = NULL; /* beyond what XLA counts as the frame: not always cleared */
  }
  if (function == NULL) {
    return jaxc_fail(context, JAXC_UNIMPLEMENTED, "called in stage %d, which it lacks",
                     (int)frame->stage);
  }
  if (handler->defaults != NULL) {
    memcpy(call, handler->defaults, handler->call_size);
  } else {
    memset(call, 0, handler->call_size);
  }
  JAXC_TRY(jaxci_handler_decode(&decoder, handler->fields, handler->field_count,
                                (char *)call, &context->message));
  return function(context, call);
}

/* The whole handler: answers a metadata query, decodes the frame into `call`
 * (handler->call_size bytes of the caller), runs the function of the frame's stage and
 * frees the memory that it took. Returns NULL or an error that the runtime owns; its text
 * begins with the handler's name. From any thread. */
JAXC_UNUSED static inline jaxc_abi_error *jaxc_handler_run(jaxc_abi_call_frame *frame,
                                                           const jaxc_handler *handler,
                                                           void *call) {
  jaxc_context context;
  jaxc_status status;
  if (frame->extension_start != NULL) {
    jaxc_abi_metadata *const metadata = jaxc_call_metadata(frame);
    if (metadata != NULL) return jaxci_handler_metadata(frame, handler, metadata);
  }
  context.frame = frame;
  context.block_count = 0;
  status = jaxci_handler_call(&context, handler, call);
  if (context.block_count > 0) {
    /* A failure to free matters less than the failure that came before it. */
    jaxc_message kept;
    if (status != JAXC_OK) kept = context.message;
    if (status == JAXC_OK) {
      status = jaxci_context_free(&context);
    } else {
      (void)jaxci_context_free(&context);
      context.message = kept;
    }
  }
  if (status == JAXC_OK) return NULL;
  return jaxci_handler_failed(&context, handler, status);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_HANDLER_H */
