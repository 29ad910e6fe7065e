/* resources.c: the functions of the table that give a handler something of its call: the
 * device's stream and memory, states, user data, numbers, extensions and options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "table.h"

/* ---- the device ---- */

static jaxc_abi_error *stream(jaxc_abi_stream_args *args) {
  jaxc_host *host;
  JAXCI_CHECK_SIZE(args, jaxc_abi_stream_args, stream, "XLA_FFI_Stream_Get");
  JAXCI_CHECK_CONTEXT(args->context);
  host = args->context->host;
  if (host->options.profile != JAXC_HOST_GPU) {
    return jaxci_error_make(JAXC_UNIMPLEMENTED, "XLA FFI GPU context is not available");
  }
  if (args->context->stage < JAXC_STAGE_INITIALIZE) {
    return jaxci_error_make(JAXC_UNIMPLEMENTED, "XLA FFI GPU stream is not available");
  }
  args->stream = host->options.stream != NULL ? host->options.stream : &host->stream;
  return NULL;
}

static jaxc_abi_error *allocator_error(const jaxc_abi_context *context,
                                       int32_t code_on_cpu) {
  if (context->host->options.profile != JAXC_HOST_GPU) {
    return jaxci_error_make(code_on_cpu, "XLA FFI GPU context is not available");
  }
  if (context->stage < JAXC_STAGE_INITIALIZE) {
    return jaxci_error_make(JAXC_UNIMPLEMENTED,
                            "No device memory allocator available on this platform");
  }
  return NULL;
}

static jaxc_abi_error *memory_allocate(jaxc_abi_memory_allocate_args *args) {
  const size_t alignment = 64;
  jaxc_abi_error *error;
  jaxci_block *block = NULL;
  jaxc_host *host;
  size_t bytes;
  JAXCI_CHECK_SIZE(args, jaxc_abi_memory_allocate_args, data,
                   "XLA_FFI_DeviceMemory_Allocate_Args");
  JAXCI_CHECK_CONTEXT(args->context);
  error = allocator_error(args->context, JAXC_INVALID_ARGUMENT);
  if (error != NULL) return error;
  if (args->alignment == 0 || (args->alignment & (args->alignment - 1)) != 0 ||
      args->alignment > 16) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT, "Unsupported alignment: %zu",
                            args->alignment);
  }
  args->data = NULL;
  if (args->size == 0) return NULL;
  host = args->context->host;
  if (!jaxci_request_fails(host) &&
      jaxci_add(args->size, sizeof *block + alignment, &bytes)) {
    block = (jaxci_block *)jaxci_allocate(host, bytes);
  }
  if (block == NULL) {
    return jaxci_error_make(JAXC_RESOURCE_EXHAUSTED,
                            "no device memory for %zu bytes", args->size);
  }
  block->size = args->size;
  block->data = (char *)(block + 1) +
                (alignment - (uintptr_t)(block + 1) % alignment) % alignment;
  memset(block->data, host->options.poison_byte, block->size);
  jaxci_lock(&host->lock);
  block->next = host->blocks;
  host->blocks = block;
  jaxci_unlock(&host->lock);
  args->data = block->data;
  return NULL;
}

static jaxc_abi_error *memory_free(jaxc_abi_memory_free_args *args) {
  jaxc_abi_error *error;
  jaxci_block **place;
  jaxci_block *block;
  jaxc_host *host;
  JAXCI_CHECK_SIZE(args, jaxc_abi_memory_free_args, data,
                   "XLA_FFI_DeviceMemory_Free_Args");
  JAXCI_CHECK_CONTEXT(args->context);
  error = allocator_error(args->context, JAXC_UNIMPLEMENTED);
  if (error != NULL) return error;
  if (args->data == NULL) return NULL;
  host = args->context->host;
  jaxci_lock(&host->lock);
  place = &host->blocks;
  while (*place != NULL && (*place)->data != args->data) place = &(*place)->next;
  block = *place;
  if (block != NULL && block->size == args->size) *place = block->next;
  jaxci_unlock(&host->lock);
  if (block == NULL) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT,
                            "device memory is freed that was not allocated, or twice");
  }
  if (block->size != args->size) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT,
                            "device memory of %zu bytes is freed as %zu bytes",
                            block->size, args->size);
  }
  free(block);
  return NULL;
}

static jaxc_abi_error *run_id(jaxc_abi_run_id_args *args) {
  JAXCI_CHECK_SIZE(args, jaxc_abi_run_id_args, run_id, "XLA_FFI_RunId_Get");
  JAXCI_CHECK_CONTEXT(args->context);
  args->run_id = args->context->execution->run_id;
  return NULL;
}

static jaxc_abi_error *device_ordinal(jaxc_abi_device_ordinal_args *args) {
  JAXCI_CHECK_SIZE(args, jaxc_abi_device_ordinal_args, device_ordinal,
                   "XLA_FFI_DeviceOrdinal_Get");
  JAXCI_CHECK_CONTEXT(args->context);
  /* XLA takes it from the buffers, which there are from initialize on. */
  args->device_ordinal = args->context->stage < JAXC_STAGE_INITIALIZE
                             ? -1
                             : args->context->host->options.device_ordinal;
  return NULL;
}

/* ---- states ---- */

/* What the two layouts say. */
typedef struct {
  int32_t stage;
  jaxc_abi_type_id *type_id;
  void *state;
  void (*deleter)(void *state);
  void **out;
} state_request;

static jaxc_abi_error *read_request(jaxc_abi_state_args *args, int is_set,
                                    state_request *out) {
  const char *const name = is_set ? "XLA_FFI_State_Set_Args" : "XLA_FFI_State_Get_Args";
  const jaxc_host *host = jaxci_current();
  size_t expected = JAXC_ABI_STATE_SIZE;
  int32_t minor;
  memset(out, 0, sizeof *out);
  /* The handler's own threads have no current host, but both layouts have the context. */
  if (JAXC_ABI_HAS(args, jaxc_abi_state_args, context) && args->context != NULL) {
    host = args->context->host;
  }
  minor = host == NULL ? JAXC_ABI_MINOR_KNOWN : host->options.minor;
  if (minor == 2 || (minor == 1 && !is_set)) expected = JAXC_ABI_STATE_SIZE_GET_SINGLE;
  /* From API 0.3 on, exactly the size of 0.2 means its layout. */
  if (minor < 3 || args->struct_size == JAXC_ABI_STATE_SIZE_GET_SINGLE) {
    if (minor < 3 && args->struct_size < expected) {
      return jaxci_size_error(name, expected, args->struct_size);
    }
    out->stage = JAXC_STAGE_INSTANTIATE;
    out->type_id = args->u.single.type_id;
    out->state = args->u.single.state;
    out->out = &args->u.single.state;
    if (minor == 1 && is_set) out->deleter = args->u.single.deleter;
  } else {
    if (args->struct_size < expected) {
      return jaxci_size_error(name, expected, args->struct_size);
    }
    out->stage = args->u.staged.stage;
    out->type_id = args->u.staged.type_id;
    out->state = args->u.staged.state;
    out->out = &args->u.staged.state;
  }
  JAXCI_CHECK_CONTEXT(args->context);
  if (out->type_id == NULL) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT,
                            "the state's type id is NULL; XLA crashes here");
  }
  return NULL;
}

/* Where the state of `stage` is; NULL with an error where there is none. */
static jaxci_state *find_state(const jaxc_abi_context *context, int32_t stage,
                               jaxc_abi_error **error) {
  static const char *const names[] = {"instantiate", "prepare", "initialize"};
  if (stage == JAXC_STAGE_INSTANTIATE) return &context->execution->call->state;
  if (stage != JAXC_STAGE_PREPARE && stage != JAXC_STAGE_INITIALIZE) {
    *error = jaxci_error_make(JAXC_FAILED_PRECONDITION,
                              "Execution stage doesn't have a state (stage %d); XLA "
                              "crashes here",
                              (int)stage);
    return NULL;
  }
  if (context->host->options.profile != JAXC_HOST_GPU ||
      context->stage == JAXC_STAGE_INSTANTIATE) {
    *error = jaxci_error_make(JAXC_FAILED_PRECONDITION,
                              "there is no state of %s %s; XLA crashes here",
                              names[stage],
                              context->stage == JAXC_STAGE_INSTANTIATE
                                  ? "in instantiate"
                                  : "on a CPU");
    return NULL;
  }
  return &context->execution->states[stage - JAXC_STAGE_PREPARE];
}

static jaxc_abi_error *state_set(jaxc_abi_state_args *args) {
  state_request request;
  jaxc_abi_error *error = read_request(args, 1, &request);
  jaxci_state *state;
  jaxci_type type = {0};
  jaxc_host *host;
  int64_t set_id = 0;
  if (error != NULL) return error;
  state = find_state(args->context, request.stage, &error);
  if (state == NULL) return error;
  host = args->context->host;
  type.id = request.type_id->type_id;
  if (host->options.minor == 1) {
    type.deleter = request.deleter; /* its types have no info, only names */
  } else if (!jaxci_type_find(host, type.id, &type)) {
    return jaxci_error_make(JAXC_INTERNAL,
                            "Type id %lld is not registered with a static registry",
                            (long long)type.id);
  }
  if (request.state == NULL) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT, "State must be not null");
  }
  if (type.deleter == NULL) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT, "Type info must have a deleter");
  }
  if (jaxci_request_fails(host)) {
    return jaxci_error_make(JAXC_RESOURCE_EXHAUSTED, "no memory for a state");
  }
  jaxci_lock(&host->lock);
  if (state->object == NULL) {
    state->object = request.state;
    state->type_id = type.id;
    state->deleter = type.deleter;
  } else {
    set_id = state->type_id;
    state = NULL;
  }
  jaxci_unlock(&host->lock);
  if (state != NULL) return NULL;
  return jaxci_error_make(JAXC_FAILED_PRECONDITION,
                          "State is already set with a type id %lld", (long long)set_id);
}

static jaxc_abi_error *state_get(jaxc_abi_state_args *args) {
  state_request request;
  jaxc_abi_error *error = read_request(args, 0, &request);
  const jaxci_state *state;
  jaxci_state found;
  if (error != NULL) return error;
  state = find_state(args->context, request.stage, &error);
  if (state == NULL) return error;
  jaxci_lock(&args->context->host->lock);
  found = *state;
  jaxci_unlock(&args->context->host->lock);
  if (found.object == NULL) {
    return jaxci_error_make(JAXC_NOT_FOUND, "State is not set");
  }
  if (found.type_id != request.type_id->type_id) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT,
                            "Set state type id %lld does not match the requested one "
                            "%lld",
                            (long long)found.type_id,
                            (long long)request.type_id->type_id);
  }
  *request.out = found.object;
  return NULL;
}

/* ---- what the caller of the program passes ---- */

static jaxc_abi_error *user_data(jaxc_abi_user_data_args *args) {
  jaxc_host *host;
  int32_t first = JAXC_STAGE_EXECUTE;
  int64_t id;
  int is_found = 0;
  JAXCI_CHECK_SIZE(args, jaxc_abi_user_data_args, data,
                   "XLA_FFI_ExecutionContext_Get_Args");
  JAXCI_CHECK_CONTEXT(args->context);
  host = args->context->host;
  if (args->type_id == NULL) {
    return jaxci_error_make(JAXC_INVALID_ARGUMENT,
                            "the user data's type id is NULL; XLA crashes here");
  }
  if (host->options.profile == JAXC_HOST_GPU) first = JAXC_STAGE_INITIALIZE;
  if (args->context->stage < first) {
    return jaxci_error_make(JAXC_FAILED_PRECONDITION,
                            "user data is asked for in stage %d, which has no execution "
                            "context; XLA crashes here",
                            (int)args->context->stage);
  }
  id = args->type_id->type_id;
  jaxci_lock(&host->lock);
  for (size_t i = 0; i < host->user_data_count && !is_found; i++) {
    if (host->user_data[i].type_id != id) continue;
    args->data = host->user_data[i].data;
    is_found = 1;
  }
  jaxci_unlock(&host->lock);
  if (is_found) return NULL;
  return jaxci_error_make(JAXC_NOT_FOUND,
                          "User data with type id %lld not found in execution context",
                          (long long)id);
}

static jaxc_abi_error *find_extension(jaxc_abi_find_extension_args *args) {
  jaxc_host *host;
  JAXCI_CHECK_SIZE(args, jaxc_abi_find_extension_args, extension,
                   "XLA_FFI_InvokeContext_FindExtension_Args");
  JAXCI_CHECK_CONTEXT(args->context);
  host = args->context->host;
  args->extension = NULL;
  jaxci_lock(&host->lock);
  for (size_t i = 0; i < host->extension_count; i++) {
    if (host->extensions[i]->id.extension_type != args->extension_type) continue;
    args->extension = host->extensions[i];
    break;
  }
  jaxci_unlock(&host->lock);
  return NULL;
}

static jaxc_abi_error *options(jaxc_abi_options_args *args) {
  JAXCI_CHECK_SIZE(args, jaxc_abi_options_args, attrs, "XLA_FFI_CustomOptions_Get_Args");
  JAXCI_CHECK_CONTEXT(args->context);
  args->attrs = &args->context->options;
  return NULL;
}

void jaxci_table_fill_resources(jaxc_abi_api *api, int32_t minor) {
  api->stream = stream;
  api->user_data = user_data;
  api->state_set = state_set;
  api->state_get = state_get;
  api->memory_allocate = memory_allocate;
  api->memory_free = memory_free;
  api->run_id = run_id;
  api->device_ordinal = device_ordinal;
  if (minor >= 4) api->find_extension = find_extension;
  if (minor >= 5) api->options = options;
}
