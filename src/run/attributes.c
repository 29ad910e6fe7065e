/* attributes.c: --attr NAME=VALUE and NAME=TYPE:VALUE, with nested names.
 *
 *   eps=1e-5   eps=f32:1e-5   w=f64[]:1,2,3   mode=str:exact   options.k=i64:3
 *
 * Without a type, the description of the target says which it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

static jaxc_status fail_attribute(const jaxci_attribute *a, const char *reason,
                                  jaxc_message *message) {
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "--attr %s: %s", a->text, reason);
}

/* Reads the type before ":"; returns what follows it, or NULL when there is none. */
static const char *parse_type(const char *value, jaxci_attribute *a) {
  const char *const colon = strchr(value, ':');
  const size_t length = colon == NULL ? 0 : (size_t)(colon - value);
  const int is_array = length > 2 && memcmp(colon - 2, "[]", 2) == 0;
  if (length == 0) return NULL;
  if (length == 3 && memcmp(value, "str", 3) == 0) {
    a->kind = JAXC_ABI_ATTR_STRING;
    return colon + 1;
  }
  if (length == 4 && memcmp(value, "dict", 4) == 0) {
    a->kind = JAXC_ABI_ATTR_DICTIONARY;
    return colon + 1;
  }
  a->dtype = jaxci_dtype_find(value, length - (is_array ? 2 : 0));
  if (a->dtype == JAXC_DTYPE_INVALID) return NULL;
  a->kind = is_array ? JAXC_ABI_ATTR_ARRAY : JAXC_ABI_ATTR_SCALAR;
  return colon + 1;
}

static jaxci_text kind_text(int32_t kind, int32_t dtype) {
  jaxci_text out = {""};
  const char *const element = dtype == JAXC_ANY ? "any type" : jaxc_dtype_name(dtype);
  switch (kind) {
    case JAXC_ABI_ATTR_STRING: jaxci_text_add(&out, "a string"); break;
    case JAXC_ABI_ATTR_DICTIONARY: jaxci_text_add(&out, "a dictionary"); break;
    case JAXC_ABI_ATTR_ARRAY: jaxci_text_add(&out, "an array of %s", element); break;
    default: jaxci_text_add(&out, "%s", element); break;
  }
  return out;
}

/* Brings what is given and what is expected together. */
static jaxc_status decide_type(const jaxci_expected *expected, int is_typed,
                               jaxci_attribute *a, jaxc_message *message) {
  const jaxci_text wanted = kind_text(expected->kind, expected->dtype);
  const jaxci_text given = kind_text(a->kind, a->dtype);
  if (!is_typed) {
    a->kind = expected->kind;
    a->dtype = expected->dtype;
    if (a->kind == 0 || (a->kind == JAXC_ABI_ATTR_ARRAY && a->dtype == JAXC_ANY)) {
      return fail_attribute(
          a,
          "nothing says which type it has; expected TYPE:VALUE, such as "
          "f32:1e-5, i64:3, str:text or f32[]:1,2",
          message);
    }
    return JAXC_OK;
  }
  if (expected->kind == 0 ||
      (a->kind == expected->kind &&
       (a->kind == JAXC_ABI_ATTR_STRING || a->kind == JAXC_ABI_ATTR_DICTIONARY ||
        expected->dtype == JAXC_ANY || a->dtype == expected->dtype))) {
    return JAXC_OK;
  }
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "--attr %s: expected %s (%s), got %s",
                   a->text, wanted.text, expected->declaration, given.text);
}

static jaxc_status parse_array(const char *value, jaxci_attribute *a,
                               jaxc_message *message) {
  const size_t size = jaxc_dtype_bits(a->dtype) / 8;
  unsigned char element[JAXCI_MAX_ELEMENT];
  size_t room = 1;
  jaxc_message inner;
  for (const char *at = value; *at != '\0'; at++) room += *at == ',';
  a->data = calloc(room, JAXCI_MAX_ELEMENT);
  if (a->data == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  while (*value != '\0') {
    const size_t length = strcspn(value, ",");
    if (jaxci_value_parse(a->dtype, value, length, element, &inner) != JAXC_OK) {
      return fail_attribute(a, inner.text, message);
    }
    memcpy((unsigned char *)a->data + a->count++ * size, element, size);
    value += length;
    if (*value != ',') break;
    value++;
    if (*value == '\0') return fail_attribute(a, "expected a value after ','", message);
  }
  return JAXC_OK;
}

static jaxc_status parse_scalar(const char *value, const jaxci_expected *expected,
                                jaxci_attribute *a, jaxc_message *message) {
  jaxc_message inner;
  int64_t number;
  a->data = calloc(1, JAXCI_MAX_ELEMENT);
  if (a->data == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  if (jaxci_value_parse(a->dtype, value, strlen(value), a->data, &inner) != JAXC_OK) {
    return fail_attribute(a, inner.text, message);
  }
  if (expected->count == 0) return JAXC_OK;
  memcpy(&number, a->data, sizeof number);
  if (number >= 0 && number < expected->count) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "--attr %s: expected 0 to %lld",
                   a->text, (long long)expected->count - 1);
}

/* Reads the value; with `is_free` a type that is given wins over the one that is
 * expected, also for texts that begin as a type does. */
static jaxc_status parse_value(const char *value, const jaxci_expected *expected,
                               int is_free, jaxci_attribute *a, jaxc_message *message) {
  static const jaxci_expected nothing = {0, JAXC_ANY, 0, ""};
  const char *rest = parse_type(value, a);
  const int is_text = expected->kind == JAXC_ABI_ATTR_STRING && rest != NULL &&
                      a->kind != JAXC_ABI_ATTR_STRING && !is_free;
  if (is_free && rest != NULL) expected = &nothing;
  if (is_text) rest = NULL; /* "12:30" and "f32:x" are texts as well */
  JAXC_TRY(decide_type(expected, rest != NULL, a, message));
  if (rest == NULL) rest = value;
  switch (a->kind) {
    case JAXC_ABI_ATTR_STRING:
      a->string = rest;
      a->count = strlen(rest);
      return JAXC_OK;
    case JAXC_ABI_ATTR_DICTIONARY:
      if (*rest == '\0') return JAXC_OK;
      return fail_attribute(
          a, "expected nothing behind dict:, entries are NAME.KEY=VALUE", message);
    case JAXC_ABI_ATTR_ARRAY: return parse_array(rest, a, message);
    default: return parse_scalar(rest, expected, a, message);
  }
}

/* ---- names ---- */

static jaxc_status parse_path(jaxci_attribute *a, jaxc_message *message) {
  const char *const equals = strchr(a->text, '=');
  const size_t length = equals == NULL ? 0 : (size_t)(equals - a->text);
  if (length == 0) return fail_attribute(a, "expected NAME=VALUE", message);
  a->path = malloc(length + 1);
  if (a->path == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  memcpy(a->path, a->text, length);
  a->path[length] = '\0';
  if (a->path[0] == '.' || a->path[length - 1] == '.' || strstr(a->path, "..") != NULL) {
    return fail_attribute(a, "expected a name before and after each '.'", message);
  }
  return JAXC_OK;
}

/* Whether `path` is `outer`, or lies below it. */
static int is_inside(const char *path, const char *outer, size_t length) {
  return strncmp(path, outer, length) == 0 &&
         (path[length] == '\0' || path[length] == '.');
}

static jaxc_status check_path(const jaxci_attributes *before, const jaxci_attribute *a,
                              jaxc_message *message) {
  for (int i = 0; i < before->count; i++) {
    const jaxci_attribute *const other = &before->items[i];
    if (strcmp(a->path, other->path) == 0) {
      return fail_attribute(a, "the name was given before", message);
    }
    if ((is_inside(a->path, other->path, strlen(other->path)) &&
         other->kind != JAXC_ABI_ATTR_DICTIONARY) ||
        (is_inside(other->path, a->path, strlen(a->path)) &&
         a->kind != JAXC_ABI_ATTR_DICTIONARY)) {
      return JAXC_FAIL(
          message, JAXC_INVALID_ARGUMENT,
          "--attr %s: expected a dictionary, for '%s' cannot be one and a value", a->text,
          strlen(a->path) < strlen(other->path) ? a->path : other->path);
    }
  }
  return JAXC_OK;
}

/* What the target says of the attribute; with `is_free` only the type of one that has
 * none of its own. */
static jaxc_status expect(const jaxci_target *target, const jaxci_attribute *a,
                          int is_free, jaxci_expected *out, jaxc_message *message) {
  const jaxci_expected nothing = {0, JAXC_ANY, 0, ""};
  jaxc_status status = JAXC_OK;
  *out = nothing;
  if (target->function != NULL) {
    status = jaxci_function_expects(target->function, a->path, out, message);
  } else if (target->handler != NULL) {
    status = jaxci_fields_expect(target->handler, a->path, out, message);
  }
  if (!is_free) return status;
  if (status != JAXC_OK) *out = nothing;
  out->count = 0;
  return JAXC_OK;
}

static jaxc_status parse_attribute(const jaxci_target *target, int is_free,
                                   const jaxci_attributes *before, jaxci_attribute *a,
                                   jaxc_message *message) {
  jaxci_expected expected;
  JAXC_TRY(parse_path(a, message));
  JAXC_TRY(expect(target, a, is_free, &expected, message));
  JAXC_TRY(parse_value(strchr(a->text, '=') + 1, &expected, is_free, a, message));
  if (target->function != NULL && a->dtype == JAXC_U64) {
    a->dtype = JAXC_S64; /* sent as the int64 of the same bits, as JAX must */
  }
  return check_path(before, a, message);
}

jaxc_status jaxci_attributes_parse(const jaxci_options *options,
                                   const jaxci_target *target, jaxci_attributes *out,
                                   jaxc_message *message) {
  out->count = 0;
  out->items = calloc((size_t)options->attrs.count + 1, sizeof *out->items);
  if (out->items == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  for (int i = 0; i < options->attrs.count; i++) {
    jaxci_attribute *const a = &out->items[i];
    const jaxci_attributes before = {out->items, i};
    a->text = options->attrs.items[i];
    out->count = i + 1; /* so that it is freed */
    JAXC_TRY(parse_attribute(target, options->no_check != 0, &before, a, message));
  }
  return JAXC_OK;
}

void jaxci_attributes_free(jaxci_attributes *attributes) {
  for (int i = 0; i < attributes->count; i++) {
    free(attributes->items[i].path);
    free(attributes->items[i].data);
  }
  free(attributes->items);
  attributes->items = NULL;
  attributes->count = 0;
}

const jaxci_attribute *jaxci_attributes_find(const jaxci_attributes *attributes,
                                             const char *path) {
  for (int i = 0; i < attributes->count; i++) {
    if (strcmp(attributes->items[i].path, path) == 0) return &attributes->items[i];
  }
  return NULL;
}

int jaxci_attributes_has(const jaxci_attributes *attributes, const char *path) {
  for (int i = 0; i < attributes->count; i++) {
    if (is_inside(attributes->items[i].path, path, strlen(path))) return 1;
  }
  return 0;
}

/* ---- for the host ---- */

/* Adds attribute `index`, of which `name` is the last part of its path. */
static jaxc_status add_value(const jaxci_attribute *a, const char *name,
                             jaxc_host_attrs *out, jaxc_message *message) {
  switch (a->kind) {
    case JAXC_ABI_ATTR_STRING:
      return jaxc_host_attrs_string(out, name, a->string, a->count, message);
    case JAXC_ABI_ATTR_ARRAY:
      return jaxc_host_attrs_array(out, name, a->dtype, a->count, a->data, message);
    default: return jaxc_host_attrs_scalar(out, name, a->dtype, a->data, message);
  }
}

/* Fills the dictionary of all paths that begin with the first `prefix` characters of
 * `sample`: entries with one part more, and each dictionary where it is first met. */
static jaxc_status add_level(const jaxci_attributes *attributes, const char *sample,
                             size_t prefix, jaxc_host_attrs *out, jaxc_message *message) {
  for (int i = 0; i < attributes->count; i++) {
    const jaxci_attribute *const a = &attributes->items[i];
    const char *const name = a->path + prefix;
    size_t length;
    char *key;
    jaxc_status status;
    int is_first = 1;
    jaxc_host_attrs *inner = NULL;
    if (strncmp(a->path, sample, prefix) != 0 || strlen(a->path) <= prefix) continue;
    length = strcspn(name, ".");
    for (int k = 0; k < i; k++) {
      if (is_inside(attributes->items[k].path, a->path, prefix + length)) is_first = 0;
    }
    if (!is_first) continue;
    key = malloc(length + 1);
    if (key == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
    memcpy(key, name, length);
    key[length] = '\0';
    if (name[length] == '\0' && a->kind != JAXC_ABI_ATTR_DICTIONARY) {
      status = add_value(a, key, out, message);
    } else {
      status = jaxc_host_attrs_dictionary(out, key, &inner, message);
    }
    free(key);
    JAXC_TRY(status);
    if (inner == NULL) continue;
    /* A path that is the dictionary's own has no "." behind it, its entries have one. */
    for (int k = i; k < attributes->count; k++) {
      const char *const path = attributes->items[k].path;
      if (!is_inside(path, a->path, prefix + length) || path[prefix + length] == '\0') {
        continue;
      }
      JAXC_TRY(add_level(attributes, path, prefix + length + 1, inner, message));
      break;
    }
  }
  return JAXC_OK;
}

jaxc_status jaxci_attributes_add(const jaxci_attributes *attributes, jaxc_host_attrs *out,
                                 jaxc_message *message) {
  return add_level(attributes, "", 0, out, message);
}
