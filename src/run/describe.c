/* describe.c: what a library has, for --list, and what a call is, for --check.
 *
 *   rms_norm.so: library 'rms_norm', written by jaxc 0.9.0
 *
 *   function rms_norm (cpu)
 *     void rms_norm(int n, const float x[n], float eps, float y[n])
 *     argument 0: x, float32[..., n]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

const char *jaxci_operand_name(const jaxci_target *target, int is_result, int index) {
  int number = 0;
  if (target->function != NULL) {
    for (int32_t k = 0; k < target->function->parameter_count; k++) {
      const jaxc_parameter *const p = &target->function->parameters[k];
      if (!(is_result ? jaxci_parameter_is_result(p) : jaxci_parameter_is_argument(p))) {
        continue;
      }
      if (number++ == index) return p->name;
    }
  } else if (target->handler != NULL) {
    for (int32_t k = 0; k < target->handler->field_count; k++) {
      const jaxc_field *const field = &target->handler->fields[k];
      if (field->kind != (is_result ? JAXC_FIELD_RESULT : JAXC_FIELD_ARGUMENT)) continue;
      if (number++ == index) return field->name;
    }
  }
  return "";
}

/* ---- functions of jaxc ---- */

static void print_operand(const char *kind, int index, const jaxc_parameter *p) {
  printf("  %s %d: %s, %s%s%s\n", kind, index, p->name, jaxci_parameter_text(p).text,
         p->role == JAXC_ROLE_INOUT ? ", read and written" : "",
         (p->flags & JAXC_PARAMETER_ZERO) != 0 ? ", cleared first" : "");
}

/* The indices of a grid, the slowest first. */
static void print_grid(const jaxc_function *f) {
  const char *before = "  called for each point of a grid: ";
  for (int32_t place = 0; place < f->parameter_count; place++) {
    for (int32_t k = 0; k < f->parameter_count; k++) {
      const jaxc_parameter *const p = &f->parameters[k];
      if (p->role != JAXC_ROLE_INDEX || p->dim != place) continue;
      printf("%s%s < %s", before, p->name, p->bounds[0].text);
      before = ", ";
    }
  }
  if (before[0] == ',') putchar('\n');
}

static void print_dim(const jaxc_dim *dim) {
  const long long least = dim->minimum > 0 ? dim->minimum : 0;
  if (dim->is_static) {
    printf("  attribute: %s, int64, a dimension, %lld to %lld\n", dim->name, least,
           (long long)dim->maximum);
  } else {
    printf("  dimension: %s, from the shapes, %lld to %lld\n", dim->name, least,
           (long long)dim->maximum);
  }
}

static void print_function(const jaxc_function *f) {
  int argument = 0, result = 0;
  printf("\nfunction %s (", f->name);
  for (int32_t i = 0; f->refusal == NULL && i < f->entry_count; i++) {
    printf("%s%s", i == 0 ? "" : ", ", f->entries[i].platform);
  }
  printf("%s)\n", f->refusal != NULL ? "cannot be called" : "");
  if (f->prototype != NULL) printf("  %s\n", f->prototype);
  if (f->refusal != NULL) {
    printf("  it %s\n", f->refusal);
    return;
  }
  for (int32_t k = 0; k < f->parameter_count; k++) {
    const jaxc_parameter *const p = &f->parameters[k];
    if (jaxci_parameter_is_argument(p)) print_operand("argument", argument++, p);
  }
  for (int32_t k = 0; k < f->parameter_count; k++) {
    const jaxc_parameter *const p = &f->parameters[k];
    if (jaxci_parameter_is_result(p)) print_operand("result", result++, p);
  }
  for (int32_t k = 0; k < f->parameter_count; k++) {
    const jaxc_parameter *const p = &f->parameters[k];
    if (p->role != JAXC_ROLE_STATIC) continue;
    printf("  attribute: %s, %s\n", p->name,
           p->dtype == JAXC_STRING ? "string" : jaxc_dtype_name(p->dtype));
  }
  for (int32_t i = 0; i < f->dim_count; i++) print_dim(&f->dims[i]);
  print_grid(f);
  if ((f->flags & JAXC_FUNCTION_EFFECT) != 0) puts("  has side effects");
  if ((f->flags & JAXC_FUNCTION_SERIAL) != 0) puts("  one call at a time");
}

/* ---- hand-written handlers ---- */

static void print_fields(const jaxc_field *fields, int32_t count, const char *path) {
  int argument = 0, result = 0;
  for (int32_t k = 0; k < count; k++) {
    const jaxc_field *const field = &fields[k];
    const jaxci_text text = jaxci_field_text(field);
    jaxci_text inner = {""};
    switch (field->kind) {
      case JAXC_FIELD_ARGUMENT:
        printf("  argument %d: %s, %s\n", argument++, field->name, text.text);
        break;
      case JAXC_FIELD_RESULT:
        printf("  result %d: %s, %s\n", result++, field->name, text.text);
        break;
      case JAXC_FIELD_REST_ARGUMENTS:
        printf("  arguments from %d on: %s, %s\n", argument, field->name, text.text);
        break;
      case JAXC_FIELD_REST_RESULTS:
        printf("  results from %d on: %s, %s\n", result, field->name, text.text);
        break;
      default: printf("  attribute: %s%s, %s\n", path, field->name, text.text); break;
    }
    if (field->kind != JAXC_FIELD_NESTED) continue;
    jaxci_text_add(&inner, "%s%s.", path, field->name);
    print_fields(field->fields, field->rank, inner.text);
  }
}

static void print_stages(const jaxc_handler *handler) {
  const struct {
    const char *name;
    int is_there;
  } stages[] = {{"instantiate", handler->instantiate != NULL},
                {"prepare", handler->prepare != NULL},
                {"initialize", handler->initialize != NULL},
                {"execute", handler->execute != NULL}};
  jaxci_text names = {""};
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    if (!stages[i].is_there) continue;
    jaxci_text_add(&names, "%s%s", names.text[0] == '\0' ? "" : ", ", stages[i].name);
  }
  printf("  stages: %s\n", names.text[0] == '\0' ? "none" : names.text);
  if (handler->execute == NULL) puts("  cannot be called: it has no execute stage");
}

static void print_handler(const char *name, const jaxc_handler *handler) {
  printf("\nhandler %s (%s)\n", name,
         handler->platform == NULL ? "cpu" : handler->platform);
  print_fields(handler->fields, handler->field_count, "");
  print_stages(handler);
  if (handler->instantiate_state != NULL && handler->instantiate_state->name != NULL) {
    printf("  state: %s\n", handler->instantiate_state->name);
  }
  if ((handler->traits & JAXC_TRAIT_COMMAND_BUFFER) != 0) {
    puts("  traits: can be captured in a command buffer");
  }
  if (handler->minor > JAXC_ABI_MINOR) printf("  API: 0.%d or newer\n", handler->minor);
}

/* A symbol without a description: only what it answers. */
static jaxc_status print_symbol(const jaxci_target *target, const jaxci_options *options,
                                jaxc_message *message) {
  const jaxc_host_options settings = jaxci_call_options(options);
  jaxc_host *host = NULL;
  jaxc_host_metadata metadata;
  jaxc_status status = jaxc_host_create(&settings, &host, message);
  if (status == JAXC_OK) status = jaxci_call_probe(host, target, message);
  if (status == JAXC_OK) {
    status = jaxc_host_probe_apart(host, target->bundle.execute, &metadata, message);
  }
  if (status == JAXC_OK) {
    printf("\nhandler %s, without a description\n  API: %d.%d\n", target->name,
           (int)metadata.major_version, (int)metadata.minor_version);
    if (metadata.state_type_id != 0) puts("  state: of its instantiate stage");
    if ((metadata.traits & JAXC_TRAIT_COMMAND_BUFFER) != 0) {
      puts("  traits: can be captured in a command buffer");
    }
  }
  jaxc_host_destroy(host);
  return status;
}

/* ---- the library ---- */

typedef struct {
  const char **names; /* owned; the names are the library's */
  size_t count;
  size_t room; /* 0 while they are counted */
} listing;

static int is_table(const char *symbol) {
  return strncmp(symbol, JAXCI_HANDLER_PREFIX, sizeof JAXCI_HANDLER_PREFIX - 1) == 0;
}

/* Handlers with a table, and functions that have neither a table nor a name that only a
 * compiler or jaxc makes. */
static int is_listed(const char *symbol, int is_function) {
  return is_function ? symbol[0] != '_' && strncmp(symbol, "jaxc_call_", 10) != 0
                     : is_table(symbol);
}

static void collect(const char *symbol, int is_function, void *data) {
  listing *const l = data;
  if (!is_listed(symbol, is_function)) return;
  if (l->count < l->room) l->names[l->count] = symbol;
  l->count++;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A table that cannot be read does not hide the others. */
static void print_table(const jaxci_library *library, const char *name) {
  const jaxc_handler *handler = NULL;
  jaxc_message message = {""};
  if (jaxci_library_handler(library, name, &handler, &message) != JAXC_OK) {
    printf("\nhandler %s (cannot be called)\n  %s\n", name, message.text);
  } else if (handler != NULL) {
    print_handler(name, handler);
  }
}

static void print_listing(const jaxci_library *library, const listing *l,
                          size_t table_count) {
  jaxci_text others = {""};
  for (size_t i = 0; i < l->count; i++) {
    const char *const symbol = l->names[i];
    const jaxc_handler *handler = NULL;
    if (is_table(symbol)) {
      print_table(library, symbol + sizeof JAXCI_HANDLER_PREFIX - 1);
    } else if (jaxci_library_handler(library, symbol, &handler, NULL) == JAXC_OK &&
               handler == NULL) {
      jaxci_text_add(&others, "%s%s", others.text[0] == '\0' ? "" : ", ", symbol);
    }
  }
  if (library->table != NULL) return; /* the others are the kernels */
  if (others.text[0] != '\0') {
    printf("\nfunctions without a description, handlers or not: %s\n", others.text);
  } else if (table_count == 0) {
    puts("\nno handlers");
  }
}

/* What the library is, and the functions of jaxc. */
static void print_library(const jaxci_library *library, size_t table_count) {
  const jaxc_library *const table = library->table;
  if (table != NULL) {
    printf("%s: library '%s', written by jaxc %s\n", library->path, table->name,
           table->jaxc_version);
  } else if (table_count > 0) {
    printf("%s: %zu handler%s\n", library->path, table_count,
           table_count == 1 ? "" : "s");
  } else {
    printf("%s: not written by jaxc\n", library->path);
  }
  for (int32_t i = 0; table != NULL && i < table->function_count; i++) {
    print_function(table->functions[i]);
  }
}

static jaxc_status list_all(const jaxci_library *library, jaxc_message *message) {
  listing l = {NULL, 0, 0};
  size_t table_count = 0;
  if (!jaxci_elf_symbols(library->handle, collect, &l)) {
    print_library(library, 0);
    puts(
        "\nOn this system the names of further handlers cannot be listed; give one after "
        "the library.");
    return JAXC_OK;
  }
  l.room = l.count;
  l.count = 0;
  l.names = malloc((l.room + 1) * sizeof *l.names);
  if (l.names == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  (void)jaxci_elf_symbols(library->handle, collect, &l);
  qsort((void *)l.names, l.count, sizeof *l.names, compare_names);
  for (size_t i = 0; i < l.count; i++) table_count += (size_t)is_table(l.names[i]);
  print_library(library, table_count);
  print_listing(library, &l, table_count);
  free((void *)l.names);
  return JAXC_OK;
}

jaxc_status jaxci_describe(const jaxci_library *library, const jaxci_options *options,
                           jaxc_message *message) {
  const jaxc_handler *handler;
  jaxci_target target;
  if (options->handler == NULL) return list_all(library, message);
  for (int32_t i = 0; library->table != NULL && i < library->table->function_count; i++) {
    if (strcmp(library->table->functions[i]->name, options->handler) != 0) continue;
    print_function(library->table->functions[i]); /* those that cannot be called too */
    return JAXC_OK;
  }
  JAXC_TRY(jaxci_library_handler(library, options->handler, &handler, message));
  if (handler != NULL) { /* those that cannot be called too */
    print_handler(options->handler, handler);
    return JAXC_OK;
  }
  JAXC_TRY(jaxci_library_find(library, options, &target, message));
  return print_symbol(&target, options, message);
}

/* ---- a call ---- */

static void print_shape(const jaxci_target *target, int is_result, int index,
                        const jaxci_shape *shape) {
  const char *const name = jaxci_operand_name(target, is_result, index);
  printf("  %s %d%s%s: %s\n", is_result ? "result" : "argument", index,
         name[0] == '\0' ? "" : " ", name, jaxci_shape_text(shape).text);
}

void jaxci_describe_request(const jaxci_target *target, const jaxci_request *request) {
  printf("%s: %s\n", target->name,
         target->function != NULL  ? target->function->prototype
         : target->handler != NULL ? "a handler with a description"
                                   : "a handler without a description");
  for (int i = 0; i < request->argument_count; i++) {
    print_shape(target, 0, i, &request->arguments[i].shape);
  }
  for (int i = 0; i < request->result_count; i++) {
    print_shape(target, 1, i, &request->results[i]);
  }
  for (int i = 0; i < request->attributes.count; i++) {
    printf("  attribute %s\n", request->attributes.items[i].text);
  }
}
