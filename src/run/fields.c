/* fields.c: a call against the table of a hand-written handler (jaxc/handler.h).
 *
 * The table says dtype and least rank of arrays and the types of attributes; shapes of
 * results it does not say, so --result does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <string.h>

static const char *type_name(int32_t dtype) {
  switch (dtype) {
    case JAXC_STRING: return "string";
    case JAXC_DICTIONARY: return "dictionary";
    case JAXC_POINTER: return "address as int64";
    case JAXC_ENUM: return "int64";
    case JAXC_ANY: return "any type";
    default: return jaxc_dtype_name(dtype);
  }
}

static void add_rank(jaxci_text *out, int32_t rank) {
  const int32_t axes = rank >= 0 ? rank : JAXC_AT_LEAST(rank);
  if (rank == JAXC_ANY_RANK) {
    jaxci_text_add(out, ", any number of axes");
  } else {
    jaxci_text_add(out, ", %s%d %s", rank >= 0 ? "" : "at least ", (int)axes,
                   axes == 1 ? "axis" : "axes");
  }
}

jaxci_text jaxci_field_text(const jaxc_field *field) {
  jaxci_text out = {""};
  switch (field->kind) {
    case JAXC_FIELD_ARGUMENT:
    case JAXC_FIELD_RESULT:
      jaxci_text_add(&out, "%s", type_name(field->dtype));
      add_rank(&out, field->rank);
      break;
    case JAXC_FIELD_ARRAY:
      jaxci_text_add(&out, "array of %s", type_name(field->dtype));
      break;
    case JAXC_FIELD_REST_ARGUMENTS:
    case JAXC_FIELD_REST_RESULTS:
      jaxci_text_add(&out, "any number of further ones");
      break;
    case JAXC_FIELD_ALL_ATTRIBUTES:
      jaxci_text_add(&out, "all attributes, of any name");
      break;
    default:
      jaxci_text_add(&out, "%s", type_name(field->dtype));
      if (field->dtype == JAXC_ENUM) jaxci_text_add(&out, ", 0 to %d", field->rank - 1);
      break;
  }
  if (field->is_optional &&
      (field->kind == JAXC_FIELD_ARGUMENT || field->kind == JAXC_FIELD_RESULT ||
       field->kind == JAXC_FIELD_ATTRIBUTE)) {
    jaxci_text_add(&out, ", may be absent");
  }
  return out;
}

/* ---- attributes ---- */

static int is_attribute(const jaxc_field *field) {
  return field->kind == JAXC_FIELD_ATTRIBUTE || field->kind == JAXC_FIELD_ARRAY ||
         field->kind == JAXC_FIELD_NESTED;
}

static void expect_field(const jaxc_field *field, jaxci_expected *out) {
  out->declaration = "as the handler's table says";
  out->dtype = field->dtype;
  out->count = 0;
  if (field->kind == JAXC_FIELD_ARRAY) {
    out->kind = JAXC_ABI_ATTR_ARRAY;
    return;
  }
  switch (field->dtype) {
    case JAXC_STRING: out->kind = JAXC_ABI_ATTR_STRING; break;
    case JAXC_DICTIONARY: out->kind = JAXC_ABI_ATTR_DICTIONARY; break;
    default: out->kind = JAXC_ABI_ATTR_SCALAR; break;
  }
  if (field->dtype == JAXC_POINTER || field->dtype == JAXC_ENUM) out->dtype = JAXC_S64;
  if (field->dtype == JAXC_ENUM) out->count = field->rank;
}

jaxc_status jaxci_fields_expect(const jaxc_handler *handler, const char *path,
                                jaxci_expected *out, jaxc_message *message) {
  const jaxc_field *fields = handler->fields;
  int32_t count = handler->field_count;
  const char *part = path;
  for (;;) {
    const size_t length = strcspn(part, ".");
    const jaxc_field *found = NULL;
    jaxci_text names = {""};
    int takes_all = 0;
    for (int32_t k = 0; k < count; k++) {
      if (fields[k].kind == JAXC_FIELD_ALL_ATTRIBUTES) takes_all = 1;
      if (!is_attribute(&fields[k])) continue;
      jaxci_text_add(&names, "%s%s", names.text[0] == '\0' ? "" : ", ", fields[k].name);
      if (strlen(fields[k].name) == length && memcmp(fields[k].name, part, length) == 0) {
        found = &fields[k];
      }
    }
    if (found == NULL && takes_all) return JAXC_OK;
    if (found == NULL) {
      return JAXC_FAIL(message, JAXC_NOT_FOUND,
                       "--attr: handler '%s' has no attribute '%.*s'; expected of %s",
                       handler->name, (int)(part - path + (ptrdiff_t)length), path,
                       names.text[0] == '\0' ? "none" : names.text);
    }
    if (part[length] == '\0') {
      expect_field(found, out);
      return JAXC_OK;
    }
    if (found->dtype != JAXC_DICTIONARY) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "--attr %s: '%s' is %s, expected a dictionary before '.'", path,
                       found->name, jaxci_field_text(found).text);
    }
    if (found->kind != JAXC_FIELD_NESTED)
      return JAXC_OK; /* the handler reads it itself */
    fields = found->fields;
    count = found->rank;
    part += length + 1;
  }
}

/* Attributes that must be there, at every level. `path` is the level's own and a dot. */
static jaxc_status check_missing(const jaxc_field *fields, int32_t count,
                                 const char *path, const jaxci_attributes *attributes,
                                 jaxc_message *message) {
  for (int32_t k = 0; k < count; k++) {
    jaxci_text name = {""};
    if (!is_attribute(&fields[k])) continue;
    jaxci_text_add(&name, "%s%s", path, fields[k].name);
    if (!jaxci_attributes_has(attributes, name.text)) {
      if (fields[k].is_optional) continue;
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "attribute '%s' (%s) is missing; expected --attr %s%s", name.text,
                       jaxci_field_text(&fields[k]).text, name.text,
                       fields[k].kind == JAXC_FIELD_NESTED ? ".KEY=VALUE" : "=VALUE");
    }
    if (fields[k].kind != JAXC_FIELD_NESTED) continue;
    jaxci_text_add(&name, ".");
    JAXC_TRY(
        check_missing(fields[k].fields, fields[k].rank, name.text, attributes, message));
  }
  return JAXC_OK;
}

/* ---- arrays ---- */

typedef struct {
  const char *kind;   /* "argument" */
  const char *option; /* "--arg" */
  int8_t field, rest; /* jaxc_field_kind */
  int count;          /* that are given */
} side;

static const jaxci_shape *shape_of(const side *s, const jaxci_request *request,
                                   int index) {
  return s->field == JAXC_FIELD_ARGUMENT ? &request->arguments[index].shape
                                         : &request->results[index];
}

static jaxc_status check_count(const jaxc_handler *handler, const side *s,
                               jaxc_message *message) {
  jaxci_text names = {""}, expected = {""};
  int least = 0, most = 0, takes_rest = 0;
  for (int32_t k = 0; k < handler->field_count; k++) {
    const jaxc_field *const field = &handler->fields[k];
    if (field->kind == s->rest) takes_rest = 1;
    if (field->kind != s->field) continue;
    jaxci_text_add(&names, "%s'%s' (%s)", most == 0 ? ": " : ", ", field->name,
                   jaxci_field_text(field).text);
    least += !field->is_optional;
    most++;
  }
  if (s->count >= least && (takes_rest || s->count <= most)) return JAXC_OK;
  jaxci_text_add(&expected, "%s%d", takes_rest ? "at least " : "", least);
  if (!takes_rest && least < most) jaxci_text_add(&expected, " to %d", most);
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "%s: handler '%s' has %s %s%s%s; got %d", s->option, handler->name,
                   expected.text, s->kind, (takes_rest ? least : most) == 1 ? "" : "s",
                   names.text, s->count);
}

static jaxc_status check_side(const jaxc_handler *handler, const side *s,
                              const jaxci_request *request, jaxc_message *message) {
  int index = 0;
  JAXC_TRY(check_count(handler, s, message));
  for (int32_t k = 0; k < handler->field_count && index < s->count; k++) {
    const jaxc_field *const field = &handler->fields[k];
    const jaxci_shape *shape;
    if (field->kind != s->field) continue;
    shape = shape_of(s, request, index);
    if ((field->dtype != JAXC_ANY && field->dtype != shape->dtype) ||
        (field->rank >= 0 ? shape->rank != field->rank
                          : shape->rank < JAXC_AT_LEAST(field->rank))) {
      const char *const text =
          s->field == JAXC_FIELD_ARGUMENT ? request->arguments[index].text : "";
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "%s %d is '%s', expected %s, got %s from %s%s%s", s->kind, index,
                       field->name, jaxci_field_text(field).text,
                       jaxci_shape_text(shape).text, s->option,
                       text[0] == '\0' ? "" : " ", text);
    }
    index++;
  }
  return JAXC_OK;
}

jaxc_status jaxci_fields_check(const jaxc_handler *handler, const jaxci_request *request,
                               jaxc_message *message) {
  const side arguments = {"argument", "--arg", JAXC_FIELD_ARGUMENT,
                          JAXC_FIELD_REST_ARGUMENTS, request->argument_count};
  const side results = {"result", "--result", JAXC_FIELD_RESULT, JAXC_FIELD_REST_RESULTS,
                        request->result_count};
  JAXC_TRY(check_side(handler, &arguments, request, message));
  JAXC_TRY(check_side(handler, &results, request, message));
  return check_missing(handler->fields, handler->field_count, "", &request->attributes,
                       message);
}
