/* library.c: a shared library, the tables in it, and what a name in it stands for.
 *
 * A name is looked for in this order: a function of the table that jaxc wrote
 * (jaxc/library.h), a handler with a table (jaxc/handler.h: jaxc_handler_<name>), and any
 * other symbol, which the caller has to probe before it is called.
 *
 * Tables come from a file, so counts and pointers in them are checked here, once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if !defined(_POSIX_C_SOURCE) && !defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#include "run.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ---- */

static int is_whole(int32_t count, int32_t most, const void *items) {
  return count >= 0 && count <= most && (count == 0 || items != NULL);
}

static int bound_is_whole(const jaxc_bound *bound, int32_t dim_count) {
  if (bound->text == NULL || !is_whole(bound->step_count, INT32_MAX, bound->steps) ||
      bound->dim >= dim_count) {
    return 0;
  }
  for (int32_t i = 0; i < bound->step_count; i++) {
    if (bound->steps[i].code == JAXC_BOUND_DIM &&
        (bound->steps[i].argument < 0 || bound->steps[i].argument >= dim_count)) {
      return 0;
    }
  }
  return 1;
}

static int parameter_is_whole(const jaxc_parameter *p, int32_t dim_count) {
  if (p->name == NULL || p->declaration == NULL || p->role < JAXC_ROLE_INPUT ||
      p->role > JAXC_ROLE_INDEX || !is_whole(p->rank, JAXC_MAX_AXES, p->bounds) ||
      (p->role == JAXC_ROLE_INDEX && p->rank != 1)) {
    return 0;
  }
  for (int32_t axis = 0; axis < p->rank; axis++) {
    if (!bound_is_whole(&p->bounds[axis], dim_count)) return 0;
  }
  return 1;
}

static int function_is_whole(const jaxc_function *f) {
  if (f == NULL || f->struct_size < JAXC_FUNCTION_LEAST_SIZE || f->name == NULL) return 0;
  if (f->refusal != NULL) return 1;
  if (f->prototype == NULL ||
      !is_whole(f->parameter_count, JAXC_MAX_PARAMETERS, f->parameters) ||
      !is_whole(f->dim_count, JAXC_MAX_DIMS, f->dims) ||
      !is_whole(f->solve_count, JAXC_MAX_DIMS, f->solve) ||
      !is_whole(f->entry_count, 64, f->entries)) {
    return 0;
  }
  for (int32_t k = 0; k < f->parameter_count; k++) {
    if (!parameter_is_whole(&f->parameters[k], f->dim_count)) return 0;
  }
  for (int32_t i = 0; i < f->dim_count; i++) {
    if (f->dims[i].name == NULL) return 0;
  }
  for (int32_t i = 0; i < f->solve_count; i++) {
    const jaxc_solve_step *const step = &f->solve[i];
    if (step->dim < 0 || step->dim >= f->dim_count || step->parameter < 0 ||
        step->parameter >= f->parameter_count || step->axis < 0 ||
        step->axis >= f->parameters[step->parameter].rank ||
        !jaxci_parameter_is_argument(&f->parameters[step->parameter])) {
      return 0;
    }
  }
  for (int32_t i = 0; i < f->entry_count; i++) {
    if (f->entries[i].platform == NULL || f->entries[i].execute == NULL) return 0;
  }
  return 1;
}

static jaxc_status check_table(const jaxci_library *library, jaxc_message *message) {
  const jaxc_library *const table = library->table;
  if (table->struct_size < sizeof *table || table->abi_version != JAXC_LIBRARY_ABI) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: its jaxc_library_table has version %d, expected version %d",
                     library->path, (int)table->abi_version, JAXC_LIBRARY_ABI);
  }
  if (table->name == NULL || table->jaxc_version == NULL ||
      !is_whole(table->function_count, INT32_MAX, (const void *)table->functions)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: its jaxc_library_table is damaged", library->path);
  }
  for (int32_t i = 0; i < table->function_count; i++) {
    if (function_is_whole(table->functions[i])) continue;
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: entry %d of its jaxc_library_table is damaged", library->path,
                     (int)i);
  }
  return JAXC_OK;
}

static int fields_are_whole(const jaxc_field *fields, int32_t count) {
  if (!is_whole(count, INT16_MAX, fields)) return 0;
  for (int32_t k = 0; k < count; k++) {
    if (fields[k].name == NULL || fields[k].kind < JAXC_FIELD_ARGUMENT ||
        fields[k].kind > JAXC_FIELD_ALL_ATTRIBUTES) {
      return 0;
    }
    if (fields[k].kind == JAXC_FIELD_NESTED &&
        !fields_are_whole(fields[k].fields, fields[k].rank)) {
      return 0;
    }
  }
  return 1;
}

/* ---- loading ---- */

jaxc_status jaxci_library_open(const char *path, jaxci_library *out,
                               jaxc_message *message) {
  char *local = NULL;
  const char *reason;
  memset(out, 0, sizeof *out);
  out->path = path;
  /* The loader looks for a bare name in the system's folders; a user means this one. */
  if (strchr(path, '/') == NULL) {
    const size_t length = strlen(path);
    local = malloc(length + 3);
    if (local == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
    memcpy(local, "./", 2);
    memcpy(local + 2, path, length + 1);
  }
  out->handle = dlopen(local != NULL ? local : path, RTLD_NOW | RTLD_LOCAL);
  free(local);
  if (out->handle == NULL) {
    reason = dlerror();
    return JAXC_FAIL(message, JAXC_NOT_FOUND, "library '%s' cannot be loaded: %s", path,
                     reason != NULL ? reason : "no reason is given");
  }
  out->table = dlsym(out->handle, "jaxc_library_table");
  return out->table == NULL ? JAXC_OK : check_table(out, message);
}

void jaxci_library_close(jaxci_library *library) {
  if (library->handle != NULL) dlclose(library->handle);
  library->handle = NULL;
}

jaxc_status jaxci_library_handler(const jaxci_library *library, const char *name,
                                  const jaxc_handler **out, jaxc_message *message) {
  const size_t length = strlen(name);
  char *const symbol = malloc(sizeof JAXCI_HANDLER_PREFIX + length);
  const jaxc_handler *handler;
  *out = NULL;
  if (symbol == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  memcpy(symbol, JAXCI_HANDLER_PREFIX, sizeof JAXCI_HANDLER_PREFIX - 1);
  memcpy(symbol + sizeof JAXCI_HANDLER_PREFIX - 1, name, length + 1);
  handler = dlsym(library->handle, symbol);
  free(symbol);
  if (handler == NULL) return JAXC_OK;
  if (handler->struct_size < sizeof *handler ||
      handler->abi_version != JAXC_HANDLER_ABI) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: " JAXCI_HANDLER_PREFIX "%s has version %d, expected version %d",
                     library->path, name, (int)handler->abi_version, JAXC_HANDLER_ABI);
  }
  if (!fields_are_whole(handler->fields, handler->field_count)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: " JAXCI_HANDLER_PREFIX "%s is damaged", library->path, name);
  }
  *out = handler;
  return JAXC_OK;
}

/* ---- names ---- */

static void add_handler(const char *name, int is_function, void *data) {
  jaxci_text *const names = data;
  const size_t prefix = sizeof JAXCI_HANDLER_PREFIX - 1;
  if (is_function || strncmp(name, JAXCI_HANDLER_PREFIX, prefix) != 0) return;
  jaxci_text_add(names, "%s%s", names->text[0] == '\0' ? "" : ", ", name + prefix);
}

jaxci_text jaxci_library_names(const jaxci_library *library) {
  jaxci_text names = {""};
  for (int32_t i = 0; library->table != NULL && i < library->table->function_count; i++) {
    jaxci_text_add(&names, "%s%s", i == 0 ? "" : ", ",
                   library->table->functions[i]->name);
  }
  (void)jaxci_elf_symbols(library->handle, add_handler, &names);
  return names;
}

/* ISO C has no way from void * to a function, every system that has dlsym does. */
static jaxc_abi_handler *find_symbol(const jaxci_library *library, const char *name) {
  void *const address = dlsym(library->handle, name);
  jaxc_abi_handler *out = NULL;
  if (address != NULL) memcpy(&out, &address, sizeof out);
  return out;
}

static jaxc_status find_stage(const jaxci_library *library, const char *option,
                              const char *name, jaxc_abi_handler **out,
                              jaxc_message *message) {
  if (name == NULL) return JAXC_OK;
  *out = find_symbol(library, name);
  if (*out != NULL) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_NOT_FOUND, "%s: library '%s' exports no symbol '%s'",
                   option, library->path, name);
}

/* ---- what a name stands for ---- */

/* The entry for the platform that is asked for, or for CPUs, or the first. */
static jaxc_status take_function(const jaxci_options *options, jaxci_target *out,
                                 jaxc_message *message) {
  const jaxc_function *const f = out->function;
  const jaxc_entry *found = NULL;
  jaxci_text platforms = {""};
  if (f->refusal != NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "function '%s' cannot be called: it %s", f->name, f->refusal);
  }
  for (int32_t i = 0; i < f->entry_count; i++) {
    const int is_cpu = strcmp(f->entries[i].platform, "cpu") == 0;
    jaxci_text_add(&platforms, "%s%s", i == 0 ? "" : ", ", f->entries[i].platform);
    if (options->platform != NULL && is_cpu != (strcmp(options->platform, "cpu") == 0)) {
      continue;
    }
    if (found == NULL || is_cpu) found = &f->entries[i];
  }
  if (found == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "--platform: function '%s' has handlers for %s, expected one for %s",
                     f->name, platforms.text[0] == '\0' ? "no platform" : platforms.text,
                     options->platform == NULL ? "any" : options->platform);
  }
  out->bundle.execute = found->execute;
  out->platform = found->platform;
  return JAXC_OK;
}

static jaxc_status take_handler(const jaxci_library *library, jaxci_target *out,
                                jaxc_message *message) {
  const jaxc_handler *const handler = out->handler;
  jaxc_abi_handler *const function = find_symbol(library, out->name);
  if (handler->execute == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "handler '%s' cannot be called: its table has no execute stage",
                     out->name);
  }
  if (function == NULL) {
    return JAXC_FAIL(message, JAXC_NOT_FOUND,
                     "library '%s' exports " JAXCI_HANDLER_PREFIX
                     "%s, but not '%s' itself",
                     library->path, out->name, out->name);
  }
  out->bundle.execute = function;
  if (handler->instantiate != NULL) out->bundle.instantiate = function;
  if (handler->prepare != NULL) out->bundle.prepare = function;
  if (handler->initialize != NULL) out->bundle.initialize = function;
  out->platform = handler->platform;
  return JAXC_OK;
}

static jaxc_status take_symbol(const jaxci_library *library, jaxci_target *out,
                               jaxc_message *message) {
  jaxci_text names;
  out->bundle.execute = find_symbol(library, out->name);
  if (out->bundle.execute != NULL) return JAXC_OK;
  names = jaxci_library_names(library);
  if (names.text[0] == '\0') {
    return JAXC_FAIL(message, JAXC_NOT_FOUND, "library '%s' has no handler '%s'",
                     library->path, out->name);
  }
  return JAXC_FAIL(message, JAXC_NOT_FOUND, "library '%s' has no handler '%s'; it has %s",
                   library->path, out->name, names.text);
}

jaxc_status jaxci_library_find(const jaxci_library *library, const jaxci_options *options,
                               jaxci_target *out, jaxc_message *message) {
  const char *const stage = options->instantiate != NULL  ? "--instantiate"
                            : options->prepare != NULL    ? "--prepare"
                            : options->initialize != NULL ? "--initialize"
                                                          : NULL;
  memset(out, 0, sizeof *out);
  out->name = options->handler;
  for (int32_t i = 0; library->table != NULL && i < library->table->function_count; i++) {
    if (strcmp(library->table->functions[i]->name, out->name) != 0) continue;
    out->function = library->table->functions[i];
  }
  if (out->function == NULL) {
    JAXC_TRY(jaxci_library_handler(library, out->name, &out->handler, message));
  }
  if (stage != NULL && (out->function != NULL || out->handler != NULL)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: '%s' says itself which stages it has; expected no such option",
                     stage, out->name);
  }
  if (out->function != NULL) return take_function(options, out, message);
  if (out->handler != NULL) return take_handler(library, out, message);
  JAXC_TRY(take_symbol(library, out, message));
  JAXC_TRY(find_stage(library, "--instantiate", options->instantiate,
                      &out->bundle.instantiate, message));
  JAXC_TRY(
      find_stage(library, "--prepare", options->prepare, &out->bundle.prepare, message));
  return find_stage(library, "--initialize", options->initialize, &out->bundle.initialize,
                    message);
}
