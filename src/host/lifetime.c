/* lifetime.c: a host from its options to its end, and what is added to it between.
 *
 *   jaxc_host_options options = {sizeof options};
 *   options.minor = 3;
 *   JAXC_TRY(jaxc_host_create(&options, &host, &message));
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

#include <stdarg.h>
#include <stdio.h>

#define MAX_THREADS 4096
#define MAX_UNKNOWN 4096

/* The caller's options in the layout of here, and 0 replaced by what it stands for. */
static jaxc_status read_options(const jaxc_host_options *from, jaxc_host_options *out,
                                jaxc_message *message) {
  memset(out, 0, sizeof *out);
  if (from != NULL) {
    if (from->struct_size < JAXC_ABI_SIZE(jaxc_host_options, struct_size) ||
        from->struct_size > sizeof *out) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "options.struct_size is %zu, expected %zu or less",
                       from->struct_size, sizeof *out);
    }
    memcpy(out, from, from->struct_size);
  }
  out->struct_size = sizeof *out;
  if (out->minor == 0) out->minor = JAXC_ABI_MINOR_KNOWN;
  if (out->guard_byte == 0) out->guard_byte = 0xA5;
  if (out->poison_byte == 0) out->poison_byte = 0xCB;
  if (out->timeout_s == 0) out->timeout_s = 60;
  return JAXC_OK;
}

static jaxc_status check_range(const char *name, int64_t value, int64_t low, int64_t high,
                               jaxc_message *message) {
  if (value >= low && value <= high) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "options.%s is %lld, expected %lld to %lld", name, (long long)value,
                   (long long)low, (long long)high);
}

static int64_t as_int64(size_t value) {
  return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static jaxc_status check_options(const jaxc_host_options *options,
                                 jaxc_message *message) {
  const jaxc_host_faults *const faults = &options->faults;
  JAXC_TRY(check_range("minor", options->minor, 1, JAXC_ABI_MINOR_KNOWN, message));
  JAXC_TRY(check_range("profile", options->profile, JAXC_HOST_CPU, JAXC_HOST_GPU,
                       message));
  JAXC_TRY(check_range("thread_count", options->thread_count, JAXC_HOST_LATE,
                       MAX_THREADS, message));
  JAXC_TRY(check_range("flush_denormals", options->flush_denormals, 0, 1, message));
  JAXC_TRY(check_range("guard_byte", options->guard_byte, 1, 255, message));
  JAXC_TRY(check_range("poison_byte", options->poison_byte, 1, 255, message));
  JAXC_TRY(check_range("timeout_s", options->timeout_s, 1, INT32_MAX, message));
  JAXC_TRY(check_range("faults.fail_allocation", faults->fail_allocation, 0, INT64_MAX,
                       message));
  JAXC_TRY(check_range("faults.fail_error", faults->fail_error, 0, INT64_MAX, message));
  JAXC_TRY(check_range("faults.short_frame", as_int64(faults->short_frame), 0,
                       JAXC_ABI_FRAME_SIZE, message));
  JAXC_TRY(check_range("faults.short_table", as_int64(faults->short_table), 0,
                       JAXC_ABI_SIZE(jaxc_abi_api, device_ordinal), message));
  JAXC_TRY(check_range("faults.unknown_extensions", faults->unknown_extensions, 0,
                       MAX_UNKNOWN, message));
  JAXC_TRY(check_range("faults.misalignment", as_int64(faults->misalignment), 0, 63,
                       message));
  JAXC_TRY(check_range("faults.fail_request", faults->fail_request, 0, INT64_MAX,
                       message));
  JAXC_TRY(check_range("exact_memory", options->exact_memory, 0, 1, message));
  if (options->flush_denormals && !jaxci_flush_is_known()) {
    return JAXC_FAIL(message, JAXC_UNIMPLEMENTED,
                     "options.flush_denormals: the host does not know how on this "
                     "machine");
  }
  return JAXC_OK;
}

/* Nodes that no handler knows, for the chains that are empty without the fault. */
static jaxc_status make_unknown(jaxc_host *host, jaxc_message *message) {
  const size_t count = (size_t)host->options.faults.unknown_extensions;
  if (count == 0) return JAXC_OK;
  host->unknown =
      (jaxc_abi_extension *)jaxci_allocate(host, count * sizeof *host->unknown);
  if (host->unknown == NULL) {
    return jaxci_no_memory(message, count * sizeof *host->unknown);
  }
  for (size_t i = 0; i < count; i++) {
    host->unknown[i].struct_size = sizeof *host->unknown;
    host->unknown[i].type = JAXCI_UNKNOWN_TYPE + (int32_t)i;
    host->unknown[i].next = i + 1 < count ? &host->unknown[i + 1] : NULL;
  }
  return JAXC_OK;
}

static jaxc_status fill(jaxc_host *host, jaxc_message *message) {
  JAXC_TRY(make_unknown(host, message));
  jaxci_table_fill(host);
  host->custom_options = jaxci_attrs_make(host, NULL);
  if (host->custom_options == NULL) {
    return jaxci_no_memory(message, sizeof *host->custom_options);
  }
  return jaxci_pool_start(host, message);
}

jaxc_status jaxc_host_create(const jaxc_host_options *options, jaxc_host **out,
                             jaxc_message *message) {
  jaxc_host_options read;
  _Atomic int64_t count;
  jaxc_host *host;
  jaxc_status status;
  *out = NULL;
  JAXC_TRY(read_options(options, &read, message));
  JAXC_TRY(check_options(&read, message));
  atomic_init(&count, 0);
  host = (jaxc_host *)jaxci_allocate_as(&count, read.faults.fail_allocation,
                                        sizeof *host);
  if (host == NULL) return jaxci_no_memory(message, sizeof *host);
  host->options = read;
  atomic_init(&host->allocation_count, 1);
  atomic_init(&host->error_count, 0);
  atomic_init(&host->request_count, 0);
  atomic_init(&host->run_count, 0);
  jaxci_mutex_init(&host->lock);
  jaxci_pool_init(host);
  status = fill(host, message);
  if (status != JAXC_OK) {
    jaxc_host_destroy(host);
    return status;
  }
  *out = host;
  return JAXC_OK;
}

void jaxc_host_destroy(jaxc_host *host) {
  if (host == NULL) return;
  jaxci_pool_end(host);
  jaxci_futures_clear(host);
  jaxci_errors_clear(host);
  while (host->blocks != NULL) {
    jaxci_block *const next = host->blocks->next;
    free(host->blocks);
    host->blocks = next;
  }
  while (host->contexts != NULL) {
    jaxc_abi_context *const next = host->contexts->next;
    free(host->contexts);
    host->contexts = next;
  }
  for (size_t i = 0; i < host->type_count; i++) free(host->types[i].name);
  free(host->types);
  free(host->user_data);
  free(host->extensions);
  free(host->unknown);
  jaxci_attrs_end(host->custom_options);
  jaxci_mutex_end(&host->lock);
  free(host);
}

const jaxc_abi_api *jaxc_host_api(const jaxc_host *host) { return &host->api; }

int64_t jaxc_host_allocation_count(const jaxc_host *host) {
  return atomic_load(&host->allocation_count);
}

int64_t jaxc_host_request_count(const jaxc_host *host) {
  return atomic_load(&host->request_count);
}

int64_t jaxc_host_error_count(const jaxc_host *host) {
  return atomic_load(&host->error_count);
}

jaxc_host_attrs *jaxc_host_custom_options(jaxc_host *host) {
  return host->custom_options;
}

/* ---- leaks ---- */

/* The parts of a message, with "; " between them. */
typedef struct {
  char text[512];
  size_t length;
} report;

JAXC_PRINTF(2, 3)
static void report_add(report *out, const char *format, ...) {
  const size_t room = sizeof out->text - out->length;
  va_list list;
  int added;
  va_start(list, format);
  added = vsnprintf(out->text + out->length, room, format, list);
  va_end(list);
  if (added > 0) out->length += (size_t)added < room ? (size_t)added : room - 1;
}

/* "2 errors" and what they are; nothing for none. */
static void report_count(report *out, int64_t count, const char *thing,
                         const char *what) {
  if (count == 0) return;
  report_add(out, "%s%lld %s%s %s", out->length == 0 ? "" : "; ", (long long)count, thing,
             count == 1 ? "" : "s", what);
}

static void report_blocks(report *out, const jaxc_host *host) {
  size_t blocks = 0;
  size_t bytes = 0;
  jaxci_lock((jaxci_mutex *)&host->lock);
  for (const jaxci_block *block = host->blocks; block != NULL; block = block->next) {
    blocks++;
    bytes += block->size;
  }
  jaxci_unlock((jaxci_mutex *)&host->lock);
  if (blocks == 0) return;
  report_add(out, "%s%zu byte%s of device memory in %zu block%s",
             out->length == 0 ? "" : "; ", bytes, bytes == 1 ? "" : "s", blocks,
             blocks == 1 ? "" : "s");
}

jaxc_status jaxc_host_leaks(const jaxc_host *host, jaxc_message *message) {
  report left = {"", 0};
  report wrong = {"", 0};
  int64_t unfinished, unhanded, twice;
  jaxci_future_count(host, &unfinished, &unhanded, &twice);
  report_count(&left, jaxci_error_count(host), "error", "neither returned nor destroyed");
  report_blocks(&left, host);
  report_count(&left, unfinished, "future", "not finished");
  report_count(&left, unhanded, "future", "finished but not handed over");
  report_count(&wrong, twice, "future", "finished twice");
  if (left.length == 0 && wrong.length == 0) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_DATA_LOSS, "%s%s%s%s",
                   left.length > 0 ? "left behind: " : "", left.text,
                   left.length > 0 && wrong.length > 0 ? "; " : "", wrong.text);
}

/* ---- what the caller of a program passes ---- */

static jaxc_status add_user_data(jaxc_host *host, int64_t type_id, void *data,
                                 jaxc_message *message) {
  void *list = host->user_data;
  for (size_t i = 0; i < host->user_data_count; i++) {
    if (host->user_data[i].type_id != type_id) continue;
    return JAXC_FAIL(message, JAXC_ALREADY_EXISTS,
                     "User data with type id %lld already exists in execution context",
                     (long long)type_id);
  }
  if (!jaxci_grow(host, &list, host->user_data_count, &host->user_data_capacity,
                  sizeof *host->user_data)) {
    return jaxci_no_memory(message, sizeof *host->user_data);
  }
  host->user_data = (jaxci_user_data *)list;
  host->user_data[host->user_data_count].type_id = type_id;
  host->user_data[host->user_data_count].data = data;
  host->user_data_count++;
  return JAXC_OK;
}

jaxc_status jaxc_host_add_user_data(jaxc_host *host, int64_t type_id, void *data,
                                    jaxc_message *message) {
  jaxc_status status;
  if (type_id == 0 || data == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "user data %s",
                     type_id == 0 ? "has type id 0, which is no type" : "is NULL");
  }
  jaxci_lock(&host->lock);
  status = add_user_data(host, type_id, data, message);
  jaxci_unlock(&host->lock);
  return status;
}

jaxc_status jaxc_host_add_type(jaxc_host *host, const char *name, int64_t *type_id,
                               void (*deleter)(void *object), jaxc_message *message) {
  if (name == NULL || type_id == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "a type's %s is NULL",
                     name == NULL ? "name" : "id");
  }
  return jaxci_type_register(host, name, strlen(name), type_id, deleter, message);
}

jaxc_status jaxc_host_type_id(const jaxc_host *host, const char *name, int64_t *out,
                              jaxc_message *message) {
  const size_t length = strlen(name);
  int is_found = 0;
  jaxci_lock((jaxci_mutex *)&host->lock);
  for (size_t i = 0; i < host->type_count && !is_found; i++) {
    const jaxci_type *const type = &host->types[i];
    if (type->name_length != length || memcmp(type->name, name, length) != 0) continue;
    *out = type->id;
    is_found = 1;
  }
  jaxci_unlock((jaxci_mutex *)&host->lock);
  if (is_found) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_NOT_FOUND, "no type is registered as '%s'", name);
}

static jaxc_status add_extension(jaxc_host *host,
                                 const jaxc_abi_context_extension *extension,
                                 jaxc_message *message) {
  void *list = (void *)host->extensions;
  for (size_t i = 0; i < host->extension_count; i++) {
    if (host->extensions[i]->id.extension_type != extension->id.extension_type) continue;
    return JAXC_FAIL(message, JAXC_ALREADY_EXISTS,
                     "there is an extension of type %lld already",
                     (long long)extension->id.extension_type);
  }
  if (!jaxci_grow(host, &list, host->extension_count, &host->extension_capacity,
                  sizeof *host->extensions)) {
    return jaxci_no_memory(message, sizeof *host->extensions);
  }
  host->extensions = (const jaxc_abi_context_extension **)list;
  host->extensions[host->extension_count++] = extension;
  return JAXC_OK;
}

jaxc_status jaxc_host_add_extension(jaxc_host *host,
                                    const jaxc_abi_context_extension *extension,
                                    jaxc_message *message) {
  jaxc_status status;
  if (extension == NULL || !JAXC_ABI_HAS(extension, jaxc_abi_context_extension, next)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "an extension of the context has at least %zu bytes",
                     sizeof *extension);
  }
  jaxci_lock(&host->lock);
  status = add_extension(host, extension, message);
  jaxci_unlock(&host->lock);
  return status;
}
