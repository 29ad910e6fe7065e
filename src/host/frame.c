/* frame.c: a call frame and all that it points to, in one block.
 *
 * XLA lends a handler a frame from a pool and fills it for another call as soon as the
 * handler has returned. Here each stage of each execution has a block of its own, which
 * the caller poisons at that moment, so that a handler that looks at it later is seen.
 *
 *   frame = jaxci_frame_build(execution, JAXC_STAGE_EXECUTE, context);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

/* No overflow: the host's own lists of the same operands are larger. */
static size_t operands_bytes(const jaxci_operand_list *operands) {
  size_t bytes = JAXCI_ROUND(operands->count * sizeof(int32_t)) +
                 JAXCI_ROUND(operands->count * sizeof(void *));
  for (size_t i = 0; i < operands->count; i++) {
    bytes += JAXCI_ROUND(sizeof(jaxc_abi_buffer)) +
             JAXCI_ROUND((size_t)operands->list[i].rank * sizeof(int64_t));
  }
  return bytes;
}

/* `data` is NULL for the operands' own memory. */
static void build_operands(const jaxc_host *host, const jaxci_operand_list *operands,
                           int has_data, void *const *data, jaxci_arena *arena,
                           jaxc_abi_operands *out) {
  out->size = (int64_t)operands->count;
  out->types = (int32_t *)jaxci_arena_take(arena, operands->count * sizeof *out->types);
  out->data = (void **)jaxci_arena_take(arena, operands->count * sizeof *out->data);
  for (size_t i = 0; i < operands->count; i++) {
    const jaxci_operand *const operand = &operands->list[i];
    const size_t dims_bytes = (size_t)operand->rank * sizeof(int64_t);
    jaxc_abi_buffer *const buffer =
        (jaxc_abi_buffer *)jaxci_arena_take(arena, sizeof *buffer);
    buffer->struct_size = sizeof *buffer;
    buffer->extension_start = host->unknown;
    buffer->dtype = operand->dtype;
    buffer->data = !has_data ? NULL : data != NULL ? data[i] : operand->data;
    buffer->rank = operand->rank;
    buffer->dims = (int64_t *)jaxci_arena_take(arena, dims_bytes);
    if (dims_bytes > 0) memcpy(buffer->dims, operand->dims, dims_bytes);
    out->types[i] = JAXC_ABI_BUFFER;
    out->data[i] = buffer;
  }
}

jaxc_abi_call_frame *jaxci_frame_build(jaxci_execution *execution, int32_t stage,
                                       jaxc_abi_context *context) {
  const jaxc_host_call *const call = execution->call;
  jaxc_host *const host = call->host;
  /* On a CPU, instantiate knows of no operands. */
  const int has_operands =
      stage != JAXC_STAGE_INSTANTIATE || host->options.profile == JAXC_HOST_GPU;
  const int has_data = stage > JAXC_STAGE_PREPARE;
  jaxc_abi_call_frame *frame;
  jaxci_arena arena = {NULL, 0, 0};
  arena.size = JAXCI_ROUND(sizeof *frame) + jaxci_attrs_bytes(call->attrs) +
               jaxci_attrs_bytes(host->custom_options);
  if (has_operands) {
    arena.size += operands_bytes(&call->arguments) + operands_bytes(&call->results);
  }
  arena.base = (char *)jaxci_allocate(host, arena.size);
  if (arena.base == NULL) return NULL;
  frame = (jaxc_abi_call_frame *)jaxci_arena_take(&arena, sizeof *frame);
  frame->struct_size = JAXC_ABI_FRAME_SIZE - host->options.faults.short_frame;
  frame->extension_start = host->unknown;
  frame->api = &host->api;
  frame->context = context;
  frame->stage = stage;
  frame->args.struct_size = frame->results.struct_size = sizeof frame->args;
  frame->args.extension_start = frame->results.extension_start = host->unknown;
  if (has_operands) {
    build_operands(host, &call->arguments, has_data, execution->arguments, &arena,
                   &frame->args);
    build_operands(host, &call->results, has_data, execution->results, &arena,
                   &frame->results);
  }
  jaxci_attrs_build(call->attrs, &arena, &frame->attrs);
  memset(&context->options, 0, sizeof context->options);
  context->options.struct_size = sizeof context->options;
  if (stage != JAXC_STAGE_INSTANTIATE) { /* they are of an execution */
    jaxci_attrs_build(host->custom_options, &arena, &context->options);
  }
  execution->block = arena.base;
  execution->block_bytes = arena.size;
  return frame;
}
