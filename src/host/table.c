/* table.c: the functions that a handler calls, with XLA's checks, codes and texts.
 *
 *   jaxci_table_fill(host);      host->api, in the layout of the host's minor version
 *
 * Where XLA only asserts in debug builds and then follows a null pointer, these return an
 * error that says so. What needs the memory of a device or a state is in resources.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "table.h"

jaxc_abi_error *jaxci_size_error(const char *name, size_t expected, size_t actual) {
  const jaxc_host *const host = jaxci_current();
  return jaxci_error_make(
      JAXC_INVALID_ARGUMENT,
      "Unexpected %s size: expected %zu, got %zu. Check installed software versions. The "
      "framework XLA FFI API version is %d.%d.",
      name, expected, actual, JAXC_ABI_MAJOR,
      host == NULL ? JAXC_ABI_MINOR_KNOWN : (int)host->options.minor);
}

jaxc_abi_error *jaxci_context_error(const jaxc_abi_context *context) {
  if (context == NULL) {
    return jaxci_error_make(JAXC_FAILED_PRECONDITION,
                            "the context is NULL, as in a query for metadata; XLA "
                            "crashes here");
  }
  if (!atomic_load(&context->is_live)) {
    return jaxci_error_make(JAXC_FAILED_PRECONDITION,
                            "the context is of a handler that has returned; XLA crashes "
                            "here");
  }
  return NULL;
}

/* ---- errors ---- */

static jaxc_abi_error *error_create(jaxc_abi_error_create_args *args) {
  jaxc_host *const host = jaxci_current();
  JAXCI_CHECK_SIZE(args, jaxc_abi_error_create_args, code, "XLA_FFI_Error_Create");
  if (host != NULL) {
    const int64_t number = atomic_fetch_add(&host->error_count, 1) + 1;
    const int request_fails = jaxci_request_fails(host);
    if (request_fails || number == host->options.faults.fail_error) {
      return jaxci_error_shared();
    }
  }
  return jaxci_error_text(args->code, args->message == NULL ? "" : args->message);
}

/* Up to API 0.3 the struct ends with the message. */
static void error_details(jaxc_abi_error_details_args *args) {
  const jaxc_host *const host = jaxci_current();
  const int has_code = host == NULL || host->options.minor >= 4;
  if (!JAXC_ABI_HAS(args, jaxc_abi_error_details_args, message)) return;
  if (args->error == NULL) return;
  args->message = args->error->text;
  if (has_code && JAXC_ABI_HAS(args, jaxc_abi_error_details_args, code)) {
    args->code = args->error->code;
  }
}

static void error_destroy(jaxc_abi_error_destroy_args *args) {
  if (!JAXC_ABI_HAS(args, jaxc_abi_error_destroy_args, error)) return;
  if (args->error == NULL) return;
  if (jaxci_error_claim(args->error)) jaxci_error_end(args->error);
}

/* ---- registration ---- */

static jaxc_abi_error *handler_register(jaxc_abi_handler_register_args *args) {
  const jaxc_host *const host = jaxci_current();
  const size_t expected =
      JAXC_ABI_SIZE(jaxc_abi_handler_register_args, traits) +
      (host != NULL && host->options.minor < 4 ? 0 : sizeof(jaxc_abi_handler *));
  if (args->struct_size < expected) {
    return jaxci_size_error("XLA_FFI_Handler_Register", expected, args->struct_size);
  }
  return jaxci_error_make(JAXC_UNIMPLEMENTED,
                          "the host has no registry of handlers: call them by "
                          "jaxc_host_call_create");
}

static jaxc_abi_error *type_register(jaxc_abi_type_register_args *args) {
  jaxc_host *const host = jaxci_current();
  void (*deleter)(void *) = NULL;
  jaxc_message message;
  jaxc_status status;
  /* XLA compares with the size of another struct, and says so. */
  if (args->struct_size < offsetof(jaxc_abi_type_register_args, type_info)) {
    return jaxci_size_error("XLA_FFI_ExecutionContext_Get_Args",
                            offsetof(jaxc_abi_type_register_args, type_info),
                            args->struct_size);
  }
  if (host == NULL) {
    return jaxci_error_make(JAXC_FAILED_PRECONDITION,
                            "a type is registered in a thread in which the host runs no "
                            "handler");
  }
  if (args->type_id == NULL || (args->name.ptr == NULL && args->name.len > 0)) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT, "a type's name or id is NULL; XLA "
                                                   "crashes here");
  }
  if (host->options.minor >= 2) {
    /* Behind what struct_size counts; XLA reads it all the same. */
    if (args->type_info == NULL) {
      return jaxci_error_make(JAXC_INVALID_ARGUMENT,
                              "the type's info is NULL; XLA crashes here");
    }
    deleter = args->type_info->deleter;
  }
  if (jaxci_request_fails(host)) {
    return jaxci_error_make(JAXC_RESOURCE_EXHAUSTED, "no memory for a type");
  }
  status = jaxci_type_register(host, args->name.ptr, args->name.len,
                               &args->type_id->type_id, deleter, &message);
  return status == JAXC_OK ? NULL : jaxci_error_text((int32_t)status, message.text);
}

/* ---- threads ---- */

static jaxc_abi_error *pool_error(const jaxc_abi_context *context) {
  const jaxc_host *const host = context->host;
  if (host->options.profile != JAXC_HOST_CPU) {
    return jaxci_error_make(JAXC_UNIMPLEMENTED, "XLA FFI CPU context is not available");
  }
  if (context->stage == JAXC_STAGE_INSTANTIATE ||
      host->options.thread_count == JAXC_HOST_NO_POOL) {
    return jaxci_error_make(JAXC_UNIMPLEMENTED,
                            "No intra-op thread pool available on this platform");
  }
  return NULL;
}

static jaxc_abi_error *schedule(jaxc_abi_schedule_args *args) {
  jaxc_abi_error *error;
  JAXCI_CHECK_SIZE(args, jaxc_abi_schedule_args, data,
                   "XLA_FFI_ThreadPool_Schedule_Args");
  JAXCI_CHECK_CONTEXT(args->context);
  error = pool_error(args->context);
  if (error != NULL) return error;
  if (args->task == NULL) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT, "the task is NULL; XLA crashes here");
  }
  return jaxci_pool_schedule(args->context->execution, args->task, args->data);
}

static jaxc_abi_error *thread_count(jaxc_abi_thread_count_args *args) {
  jaxc_abi_error *error;
  int32_t count;
  JAXCI_CHECK_SIZE(args, jaxc_abi_thread_count_args, thread_count,
                   "XLA_FFI_ThreadPool_NumThreads_Args");
  JAXCI_CHECK_CONTEXT(args->context);
  error = pool_error(args->context);
  if (error != NULL) return error;
  if (args->thread_count == NULL) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT,
                            "num_threads is NULL; XLA crashes here");
  }
  count = args->context->host->options.thread_count;
  *args->thread_count = count < 0 ? 1 : count; /* inline and late */
  return NULL;
}

/* ---- futures ---- */

static jaxc_abi_error *future_create(jaxc_abi_future_create_args *args) {
  const size_t expected = offsetof(jaxc_abi_future_create_args, future);
  if (args->struct_size < expected) {
    return jaxci_size_error("XLA_FFI_Future_Create", expected, args->struct_size);
  }
  return jaxci_future_create(&args->future);
}

static jaxc_abi_error *future_available(jaxc_abi_future_available_args *args) {
  JAXCI_CHECK_SIZE(args, jaxc_abi_future_available_args, future,
                   "XLA_FFI_Future_SetAvailable");
  return jaxci_future_finish(args->future, NULL);
}

static jaxc_abi_error *future_error(jaxc_abi_future_error_args *args) {
  JAXCI_CHECK_SIZE(args, jaxc_abi_future_error_args, error, "XLA_FFI_Future_SetError");
  if (args->error == NULL || args->error->code == JAXC_OK) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT, "Error must not be null or OK");
  }
  /* The error is the runtime's only when this succeeds. */
  return jaxci_future_finish(args->future, args->error);
}

/* ---- the table ---- */

void jaxci_table_fill(jaxc_host *host) {
  jaxc_abi_api *const api = &host->api;
  const int32_t minor = host->options.minor;
  size_t size = JAXC_ABI_SIZE(jaxc_abi_api, device_ordinal);
  api->extension_start = host->unknown;
  api->api_version.struct_size = sizeof api->api_version;
  api->api_version.extension_start = host->unknown;
  api->api_version.major_version = JAXC_ABI_MAJOR;
  api->api_version.minor_version = minor;
  api->error_create = error_create;
  api->error_details = error_details;
  api->error_destroy = error_destroy;
  api->handler_register = handler_register;
  api->type_register = type_register;
  api->schedule = schedule;
  api->thread_count = thread_count;
  api->future_create = future_create;
  api->future_available = future_available;
  api->future_error = future_error;
  jaxci_table_fill_resources(api, minor);
  if (minor >= 4) size = JAXC_ABI_SIZE(jaxc_abi_api, find_extension);
  if (minor >= 5) size = JAXC_ABI_SIZE(jaxc_abi_api, options);
  api->struct_size = size - host->options.faults.short_table;
}
