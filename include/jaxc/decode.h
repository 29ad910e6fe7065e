/* decode.h: a call frame into the struct of a handler, by its table.
 *
 * Included by handler.h, whose jaxc_handler_run is all that a handler's author needs. The
 * table is a constant there, so the loops below are unrolled and fold into straight code
 * without a table; that is why they are always inlined. What is wrong with a call is only
 * found on that path; a second look, apart and without haste, makes the text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_DECODE_H
#define JAXC_DECODE_H

#include <jaxc/field.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __clang__
/* Without optimisation loops are not unrolled, and need not be. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

typedef struct {
  const jaxc_abi_operands *args;    /* NULL where the stage has none */
  const jaxc_abi_operands *results;
  const jaxc_abi_attrs *attrs;
  int64_t argument;  /* the next */
  int64_t result;
  int64_t attribute; /* where the next probably is */
  int64_t found;     /* attributes */
  int takes_rest;    /* bits: 1 arguments, 2 results, 4 attributes */
  int asks_data;     /* arrays with elements have data */
  int sizes_known;   /* jaxci_handler_sizes_fit has compared them */
  size_t before;     /* characters that will stand before the text of a refusal */
} jaxci_decoder;

static JAXC_INLINE void jaxci_decoder_begin(jaxci_decoder *decoder,
                                            const jaxc_abi_call_frame *frame) {
  decoder->args = &frame->args;
  decoder->results = &frame->results;
  decoder->attrs = &frame->attrs;
  decoder->argument = decoder->result = decoder->attribute = decoder->found = 0;
  decoder->takes_rest = decoder->sizes_known = 0;
  decoder->asks_data = 1;
  decoder->before = 0;
}

/* Stores a view into a JAXC_VIEW member. Its data is a pointer of another type than the
 * view's, which has the same bytes. */
static JAXC_INLINE void jaxci_handler_store(char *member, const jaxc_view *view) {
  jaxc_view *const out = (jaxc_view *)(void *)member;
  memcpy(member + offsetof(jaxc_view, data), &view->data, sizeof view->data);
  out->dims = view->dims;
  out->rank = view->rank;
  out->count = view->count;
  out->dtype = view->dtype;
}

static JAXC_INLINE jaxc_status jaxci_handler_array(const jaxci_decoder *decoder,
                                              const jaxc_field *field,
                                              const jaxc_abi_operands *list, int64_t index,
                                              const char *kind, char *member,
                                              jaxc_message *message) {
  jaxc_view view;
  if (!(decoder->sizes_known && !field->is_optional) &&
      (list == NULL || index >= list->size)) {
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

static JAXC_INLINE void jaxci_handler_rest(const jaxc_abi_operands *list, int64_t first,
                                           const char *kind, const char *name,
                                           char *member) {
  jaxc_rest *const rest = (jaxc_rest *)(void *)member;
  rest->count = list == NULL || list->size < first ? 0 : list->size - first;
  rest->operands = list;
  rest->first = first;
  rest->kind = kind;
  rest->name = name;
}

static JAXC_NOINLINE jaxc_status jaxci_handler_nested(const jaxc_field *field,
                                                      const jaxc_abi_attrs *attrs,
                                                      char *member, jaxc_message *message);

/* An attribute whose place is known, into its member. */
static JAXC_INLINE jaxc_status jaxci_handler_attribute(const jaxci_decoder *decoder,
                                                       const jaxc_field *field,
                                                       int64_t index, char *member,
                                                       jaxc_message *message) {
  const jaxc_abi_attrs *const attrs = decoder->attrs;
  const char *const name = field->name;
  const jaxc_abi_attrs *inner = NULL;
  int64_t number = 0;
  if (field->kind == JAXC_FIELD_ARRAY) {
    return jaxci_attr_array(attrs, index, name, field->dtype,
                            (jaxc_array *)(void *)member, message);
  }
  if (field->dtype >= 0) {
    return jaxci_attr_scalar(attrs, index, name, field->dtype, member, message);
  }
  if (field->dtype == JAXC_STRING) {
    return jaxci_attr_string(attrs, index, name, (jaxc_string *)(void *)member, message);
  }
  if (field->dtype == JAXC_DICTIONARY) {
    JAXC_TRY(jaxci_attr_dictionary(attrs, index, name, &inner, message));
    if (field->kind == JAXC_FIELD_NESTED) {
      return jaxci_handler_nested(field, inner, member, message);
    }
    memcpy(member, &inner, sizeof inner);
    return JAXC_OK;
  }
  JAXC_TRY(jaxci_attr_scalar(attrs, index, name, JAXC_S64, &number, message));
  if (field->dtype == JAXC_POINTER) {
    const void *const address = (const void *)(uintptr_t)number;
    memcpy(member, &address, sizeof address);
  } else { /* JAXC_ENUM */
    const int value = (int)number;
    if (number < 0 || number >= field->rank) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "attribute '%s' is %lld, expected 0 to %d", name, (long long)number,
                       (int)field->rank - 1);
    }
    memcpy(member, &value, sizeof value);
  }
  return JAXC_OK;
}

/* Fills one member. */
static JAXC_INLINE jaxc_status jaxci_handler_field(jaxci_decoder *decoder,
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
      jaxci_handler_rest(decoder->args, decoder->argument, "argument", field->name, member);
      decoder->takes_rest |= 1;
      return JAXC_OK;
    case JAXC_FIELD_REST_RESULTS:
      jaxci_handler_rest(decoder->results, decoder->result, "result", field->name, member);
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

/* More than a list can have. */
#define JAXCI_MANY ((int64_t)1 << 40)

/* With equal limits it is one comparison, which the compiler does not see by itself. */
static JAXC_INLINE int jaxci_handler_is_between(int64_t size, int64_t least,
                                                int64_t most) {
  return least == most ? size == least : size >= least && size <= most;
}

/* True when the call has no more than the table names. */
static JAXC_INLINE int jaxci_handler_is_all(const jaxci_decoder *decoder) {
  return (decoder->args == NULL || (decoder->takes_rest & 1) ||
          decoder->args->size <= decoder->argument) &&
         (decoder->results == NULL || (decoder->takes_rest & 2) ||
          decoder->results->size <= decoder->result) &&
         ((decoder->takes_rest & 4) || decoder->attrs->size <= decoder->found);
}

/* Text that grows; what does not fit is counted. */
typedef struct {
  size_t used;
  size_t room; /* for problems: the rest is for a name before and the count after them */
  int count;
  int left_out;
  jaxc_message text;
} jaxci_problems;

JAXC_COLD static void jaxci_problems_begin(jaxci_problems *problems, size_t before) {
  const size_t kept = before + sizeof "; and 2147483647 more problems";
  problems->used = 0;
  problems->room = kept < sizeof problems->text.text / 2
                       ? sizeof problems->text.text - kept
                       : sizeof problems->text.text / 2;
  problems->count = problems->left_out = 0;
  problems->text.text[0] = '\0';
}

JAXC_COLD static void jaxci_problems_add(jaxci_problems *problems, const char *text) {
  const char *const between = problems->count == 0 ? "" : "; ";
  const size_t length = strlen(text) + strlen(between);
  const size_t left = problems->room - problems->used;
  problems->count++;
  if (length >= left && problems->used > 0) {
    problems->left_out++;
    return;
  }
  /* The first is there in any case, cut where it must be. */
  (void)snprintf(problems->text.text + problems->used, left, "%s%s", between, text);
  problems->used += length < left ? length : left - 1;
}

JAXC_COLD static jaxc_status jaxci_problems_end(const jaxci_problems *problems,
                                                jaxc_message *message) {
  if (problems->left_out == 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s", problems->text.text);
  }
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s; and %d more problem%s",
                   problems->text.text, problems->left_out,
                   problems->left_out == 1 ? "" : "s");
}

static inline int jaxci_span_is(const jaxc_abi_span *span, const char *name,
                                size_t length) {
  return span != NULL && span->ptr != NULL && span->len == length &&
         memcmp(span->ptr, name, length) == 0;
}

/* Attribute i, when the table does not name it or when it is there twice. */
JAXC_COLD static void jaxci_handler_surplus_attribute(const jaxc_abi_attrs *attrs,
                                                      int64_t i, const jaxc_field *fields,
                                                      int32_t count,
                                                      jaxci_problems *problems) {
  const jaxc_abi_span *const name = attrs->names[i];
  const char *what = "not expected";
  jaxc_message one;
  if (name == NULL || name->ptr == NULL) {
    jaxci_problems_add(problems, "an attribute has no name");
    return;
  }
  for (int32_t k = 0; k < count; k++) {
    if (fields[k].kind >= JAXC_FIELD_ATTRIBUTE &&
        jaxci_span_is(name, fields[k].name, (size_t)fields[k].name_length)) {
      what = NULL;
    }
  }
  for (int64_t j = 0; j < i; j++) {
    if (jaxci_span_is(attrs->names[j], name->ptr, name->len)) what = "given twice";
  }
  if (what == NULL) return;
  (void)JAXC_FAIL(&one, JAXC_INVALID_ARGUMENT, "attribute '%.*s' is %s",
                  (int)(name->len < 100 ? name->len : 100), name->ptr, what);
  jaxci_problems_add(problems, one.text);
}

/* More arrays than the table names. bit: of takes_rest. */
JAXC_COLD static void jaxci_handler_surplus_arrays(const jaxc_abi_operands *list, int bit,
                                                   const jaxci_decoder *decoder,
                                                   const jaxc_field *fields,
                                                   int32_t count,
                                                   jaxci_problems *problems) {
  const int kind = bit == 1 ? JAXC_FIELD_ARGUMENT : JAXC_FIELD_RESULT;
  const int64_t most = bit == 1 ? decoder->argument : decoder->result;
  int64_t least = 0;
  char range[32] = "";
  jaxc_message one;
  if (list == NULL || (decoder->takes_rest & bit) || list->size <= most) return;
  for (int32_t k = 0; k < count; k++) {
    least += fields[k].kind == kind && !fields[k].is_optional;
  }
  if (least < most) (void)snprintf(range, sizeof range, "%lld to ", (long long)least);
  (void)JAXC_FAIL(&one, JAXC_INVALID_ARGUMENT, "called with %lld %s, expected %s%lld",
                  (long long)list->size, bit == 1 ? "arguments" : "results", range,
                  (long long)most);
  jaxci_problems_add(problems, one.text);
}

/* Arrays and attributes that the table does not name. */
JAXC_COLD static void jaxci_handler_surplus(const jaxci_decoder *decoder,
                                            const jaxc_field *fields, int32_t count,
                                            jaxci_problems *problems) {
  jaxci_handler_surplus_arrays(decoder->args, 1, decoder, fields, count, problems);
  jaxci_handler_surplus_arrays(decoder->results, 2, decoder, fields, count, problems);
  for (int64_t i = 0; !(decoder->takes_rest & 4) && i < decoder->attrs->size; i++) {
    jaxci_handler_surplus_attribute(decoder->attrs, i, fields, count, problems);
  }
}

/* Looks at every field again and names all that is wrong. */
JAXC_COLD static jaxc_status jaxci_handler_report(jaxci_decoder decoder,
                                                  const jaxc_field *fields, int32_t count,
                                                  char *call, jaxc_message *message) {
  jaxci_problems problems;
  jaxc_message one;
  jaxci_problems_begin(&problems, decoder.before);
  decoder.argument = decoder.result = decoder.attribute = decoder.found = 0;
  decoder.takes_rest = decoder.sizes_known = 0;
  for (int32_t k = 0; k < count; k++) {
    if (jaxci_handler_field(&decoder, &fields[k], call + fields[k].offset, &one) !=
        JAXC_OK) {
      jaxci_problems_add(&problems, one.text);
    }
  }
  jaxci_handler_surplus(&decoder, fields, count, &problems);
  return jaxci_problems_end(&problems, message);
}

/* Compares the sizes of the frame's lists with the table, before anything in them is
 * read. Constants but for the frame's own numbers, once the table is known. */
static JAXC_INLINE int jaxci_handler_sizes_fit(const jaxc_abi_call_frame *frame,
                                               const jaxc_field *fields, int32_t count) {
  const jaxc_abi_operands *const args = &frame->args;
  const jaxc_abi_operands *const results = &frame->results;
  const jaxc_abi_attrs *const attrs = &frame->attrs;
  int64_t least_args = 0, most_args = 0, least_results = 0, most_results = 0;
  int64_t least_attrs = 0, most_attrs = 0;
  JAXC_UNROLL
  for (int32_t k = 0; k < count; k++) {
    const int kind = fields[k].kind;
    const int needed = !fields[k].is_optional;
    const int is_arg = kind == JAXC_FIELD_ARGUMENT;
    const int is_result = kind == JAXC_FIELD_RESULT;
    const int is_attr = kind == JAXC_FIELD_ATTRIBUTE || kind == JAXC_FIELD_ARRAY ||
                        kind == JAXC_FIELD_NESTED;
    /* The place of the last that must be there, also behind an optional one. */
    if (is_arg & needed) least_args = most_args + 1;
    if (is_result & needed) least_results = most_results + 1;
    least_attrs += is_attr & needed;
    most_args += kind == JAXC_FIELD_REST_ARGUMENTS ? JAXCI_MANY : is_arg;
    most_results += kind == JAXC_FIELD_REST_RESULTS ? JAXCI_MANY : is_result;
    most_attrs += kind == JAXC_FIELD_ALL_ATTRIBUTES ? JAXCI_MANY : is_attr;
  }
  if (args->struct_size < sizeof *args || results->struct_size < sizeof *results ||
      attrs->struct_size < sizeof *attrs) {
    return 0;
  }
  if (!jaxci_handler_is_between(args->size, least_args, most_args) ||
      !jaxci_handler_is_between(results->size, least_results, most_results) ||
      !jaxci_handler_is_between(attrs->size, least_attrs, most_attrs)) {
    return 0;
  }
  return (args->size == 0 || (args->types != NULL && args->data != NULL)) &&
         (results->size == 0 || (results->types != NULL && results->data != NULL)) &&
         (attrs->size == 0 ||
          (attrs->types != NULL && attrs->data != NULL && attrs->names != NULL));
}

/* Fills the struct; 0 at the first thing that is wrong. */
static JAXC_INLINE int jaxci_handler_fits(jaxci_decoder *decoder, const jaxc_field *fields,
                                          int32_t count, char *call) {
  JAXC_UNROLL
  for (int32_t k = 0; k < count; k++) {
    if (jaxci_handler_field(decoder, &fields[k], call + fields[k].offset, NULL) !=
        JAXC_OK) {
      return 0;
    }
  }
  return (decoder->takes_rest & 4) || decoder->attrs->size == decoder->found;
}

/* Fills the struct, or says all that is wrong. */
static JAXC_NOINLINE jaxc_status jaxci_handler_decode(jaxci_decoder *decoder,
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
  decoder.before = sizeof "in dictionary '': " + (size_t)field->name_length + 100;
  status = jaxci_handler_decode(&decoder, field->fields, field->rank, member, &inner);
  if (status == JAXC_OK) return JAXC_OK;
  return JAXC_FAIL(message, status, "in dictionary '%s': %s", field->name, inner.text);
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* JAXC_DECODE_H */
