/* operands.c: the arguments and results of a call.
 *
 *   JAXC_TRY(jaxc_host_call_argument(call, JAXC_F32, 2, dims, NULL, &message));
 *   float *x = jaxc_host_call_argument_data(call, 0, NULL);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

static void end_one(jaxci_operand *operand) {
  free(operand->dims);
  free(operand->own.block);
  free(operand->snapshot);
}

void jaxci_operands_end(jaxci_operand_list *list) {
  for (size_t i = 0; i < list->count; i++) end_one(&list->list[i]);
  free(list->list);
}

static jaxc_status check_shape(const char *kind, size_t index, int32_t dtype,
                               int32_t rank, const int64_t *dims, size_t *bytes,
                               jaxc_message *message) {
  const size_t bits = jaxc_dtype_bits(dtype);
  int64_t count = 1;
  if (bits == 0 && dtype != JAXC_TOKEN) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s %zu has the unknown dtype %d",
                     kind, index, (int)dtype);
  }
  if (rank < 0 || (rank > 0 && dims == NULL)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s %zu has %d axes%s", kind, index,
                     (int)rank, rank < 0 ? "" : " but no sizes");
  }
  for (int32_t i = 0; i < rank; i++) {
    if (!jaxc_multiply(count, dims[i], &count)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "%s %zu has an impossible size %lld on axis %d", kind, index,
                       (long long)dims[i], (int)i);
    }
  }
  /* 16 bytes is the largest element; half of what is addressable leaves room around. */
  if ((uint64_t)count > PTRDIFF_MAX / 16) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %zu has more bytes than can be addressed", kind, index);
  }
  *bytes = ((size_t)count * bits + 7) / 8; /* below 8 bits, elements are packed */
  return JAXC_OK;
}

static jaxc_status fill(jaxc_host_call *call, jaxci_operand *operand, int is_result,
                        const int64_t *dims, void *data, jaxc_message *message) {
  jaxc_host *const host = call->host;
  const size_t dims_bytes = (size_t)operand->rank * sizeof *dims;
  const size_t misalignment = is_result ? 0 : host->options.faults.misalignment;
  operand->dims = (int64_t *)jaxci_allocate(host, dims_bytes);
  if (operand->dims == NULL) return jaxci_no_memory(message, dims_bytes);
  if (dims_bytes > 0) memcpy(operand->dims, dims, dims_bytes);
  if (operand->dtype == JAXC_TOKEN) return JAXC_OK; /* has no data in XLA either */
  if (data != NULL) {
    operand->data = data;
    return JAXC_OK;
  }
  if (!(host->options.exact_memory ? jaxci_exact_make : jaxci_guarded_make)(
          host, operand->bytes, misalignment, &operand->own)) {
    return jaxci_no_memory(message, operand->bytes);
  }
  operand->data = operand->own.data;
  if (is_result) {
    memset(operand->data, host->options.poison_byte, operand->bytes);
    return JAXC_OK;
  }
  operand->snapshot = (unsigned char *)jaxci_allocate(host, operand->bytes);
  if (operand->snapshot == NULL) return jaxci_no_memory(message, operand->bytes);
  return JAXC_OK;
}

static jaxc_status add(jaxc_host_call *call, jaxci_operand_list *operands, int is_result,
                       int32_t dtype, int32_t rank, const int64_t *dims, void *data,
                       jaxc_message *message) {
  const char *const kind = is_result ? "result" : "argument";
  jaxci_operand made = {0};
  void *list = operands->list;
  jaxc_status status;
  if (call->is_instantiated) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "%s %zu comes after the call was instantiated", kind,
                     operands->count);
  }
  JAXC_TRY(check_shape(kind, operands->count, dtype, rank, dims, &made.bytes, message));
  if (!jaxci_grow(call->host, &list, operands->count, &operands->capacity, sizeof made)) {
    return jaxci_no_memory(message, sizeof made);
  }
  operands->list = (jaxci_operand *)list;
  made.dtype = dtype;
  made.rank = rank;
  made.alias = -1;
  status = fill(call, &made, is_result, dims, data, message);
  if (status != JAXC_OK) {
    end_one(&made);
    return status;
  }
  operands->list[operands->count++] = made;
  return JAXC_OK;
}

jaxc_status jaxc_host_call_argument(jaxc_host_call *call, int32_t dtype, int32_t rank,
                                    const int64_t *dims, void *data,
                                    jaxc_message *message) {
  return add(call, &call->arguments, 0, dtype, rank, dims, data, message);
}

jaxc_status jaxc_host_call_result(jaxc_host_call *call, int32_t dtype, int32_t rank,
                                  const int64_t *dims, void *data,
                                  jaxc_message *message) {
  return add(call, &call->results, 1, dtype, rank, dims, data, message);
}

static jaxci_operand *at(const jaxci_operand_list *operands, int32_t index) {
  return index >= 0 && (size_t)index < operands->count ? &operands->list[index] : NULL;
}

jaxc_status jaxc_host_call_alias(jaxc_host_call *call, int32_t argument, int32_t result,
                                 jaxc_message *message) {
  jaxci_operand *const from = at(&call->arguments, argument);
  jaxci_operand *const to = at(&call->results, result);
  if (call->is_instantiated) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "an alias comes after the call was instantiated");
  }
  if (from == NULL || to == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "there is no %s %d, the call has %zu", from == NULL ? "argument"
                                                                         : "result",
                     (int)(from == NULL ? argument : result),
                     from == NULL ? call->arguments.count : call->results.count);
  }
  if (from->bytes != to->bytes) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "argument %d has %zu bytes but result %d %zu: they cannot be the "
                     "same memory",
                     (int)argument, from->bytes, (int)result, to->bytes);
  }
  if (from->alias >= 0 || to->alias >= 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s %d has an alias already",
                     from->alias >= 0 ? "argument" : "result",
                     (int)(from->alias >= 0 ? argument : result));
  }
  from->alias = result;
  to->alias = argument;
  free(to->own.block);
  memset(&to->own, 0, sizeof to->own);
  to->data = from->data;
  return JAXC_OK;
}

static void *data_of(const jaxci_operand *operand, size_t *bytes) {
  if (bytes != NULL) *bytes = operand == NULL ? 0 : operand->bytes;
  return operand == NULL ? NULL : operand->data;
}

void *jaxc_host_call_argument_data(const jaxc_host_call *call, int32_t index,
                                   size_t *bytes) {
  return data_of(at(&call->arguments, index), bytes);
}

void *jaxc_host_call_result_data(const jaxc_host_call *call, int32_t index,
                                 size_t *bytes) {
  return data_of(at(&call->results, index), bytes);
}

void jaxc_host_call_poison(jaxc_host_call *call) {
  call->has_results = 0;
  for (size_t i = 0; i < call->results.count; i++) {
    const jaxci_operand *const result = &call->results.list[i];
    if (result->own.block == NULL) continue;
    memset(result->data, call->host->options.poison_byte, result->bytes);
  }
}

/* ---- what was written where nothing should be ---- */

static jaxc_status check_guard(const jaxc_host_call *call, const char *kind, size_t index,
                               const jaxci_operand *operand, jaxc_message *message) {
  int64_t distance = 0;
  int is_before = 0;
  const char *side;
  if (!jaxci_guarded_find(call->host, &operand->own, &distance, &is_before)) {
    return JAXC_OK;
  }
  side = is_before ? "before its start" : "behind its end";
  if (distance == (is_before ? -1 : 0)) {
    return JAXC_FAIL(message, JAXC_DATA_LOSS, "%s %zu was written right %s", kind, index,
                     side);
  }
  if (is_before) distance = -distance;
  return JAXC_FAIL(message, JAXC_DATA_LOSS, "%s %zu was written %lld byte%s %s", kind,
                   index, (long long)distance, distance == 1 ? "" : "s", side);
}

/* Below 8 bytes, what was computed may be the poison by chance. */
static int is_unwritten(const jaxc_host_call *call, const jaxci_operand *result) {
  const unsigned char poison = (unsigned char)call->host->options.poison_byte;
  if (!call->has_results || result->own.block == NULL || result->bytes < 8) return 0;
  return result->own.data[0] == poison &&
         memcmp(result->own.data, result->own.data + 1, result->bytes - 1) == 0;
}

static jaxc_status check_unchanged(size_t index, const jaxci_operand *operand,
                                   jaxc_message *message) {
  const unsigned char *const now = operand->own.data;
  size_t i = 0;
  if (memcmp(now, operand->snapshot, operand->bytes) == 0) return JAXC_OK;
  while (now[i] == operand->snapshot[i]) i++;
  return JAXC_FAIL(message, JAXC_DATA_LOSS,
                   "argument %zu was written: byte %zu of %zu is 0x%02x, and was 0x%02x",
                   index, i, operand->bytes, now[i], operand->snapshot[i]);
}

jaxc_status jaxc_host_call_check(const jaxc_host_call *call, jaxc_message *message) {
  for (size_t i = 0; i < call->arguments.count; i++) {
    const jaxci_operand *const argument = &call->arguments.list[i];
    JAXC_TRY(check_guard(call, "argument", i, argument, message));
    if (!call->has_run || argument->snapshot == NULL || argument->alias >= 0) continue;
    JAXC_TRY(check_unchanged(i, argument, message));
  }
  for (size_t i = 0; i < call->results.count; i++) {
    JAXC_TRY(check_guard(call, "result", i, &call->results.list[i], message));
  }
  for (size_t i = 0; i < call->results.count; i++) {
    if (!is_unwritten(call, &call->results.list[i])) continue;
    return JAXC_FAIL(message, JAXC_DATA_LOSS, "result %zu was not written", i);
  }
  return JAXC_OK;
}
