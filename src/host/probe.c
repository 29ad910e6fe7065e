/* probe.c: ask a handler for its metadata, as a runtime does when it is registered.
 *
 *   jaxc_host_metadata metadata;
 *   JAXC_TRY(jaxc_host_probe(host, RmsNorm, &metadata, &message));
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

/* What the fields hold until the handler writes them: no version is negative. */
#define UNANSWERED (-1)

/* The memory of a query. The metadata lie at the end of theirs, before a guard: in API
 * 0.1 they have no state_type_id, which a handler that writes it must not find there. */
typedef struct {
  jaxci_guarded memory;
  jaxc_abi_metadata *metadata;
  jaxc_abi_metadata_extension extension;
  jaxc_abi_extension *nodes; /* unknown ones, half before and half after */
  jaxc_abi_call_frame frame;
} query;

static jaxc_status make_chain(jaxc_host *host, query *q, jaxc_message *message) {
  const size_t count = (size_t)host->options.faults.unknown_extensions;
  q->extension.base.struct_size = sizeof q->extension;
  q->extension.base.type = JAXC_ABI_EXTENSION_METADATA;
  q->extension.metadata = q->metadata;
  q->frame.extension_start = &q->extension.base;
  if (count == 0) return JAXC_OK;
  q->nodes = (jaxc_abi_extension *)jaxci_allocate(host, 2 * count * sizeof *q->nodes);
  if (q->nodes == NULL) return jaxci_no_memory(message, 2 * count * sizeof *q->nodes);
  for (size_t i = 0; i < 2 * count; i++) {
    q->nodes[i].struct_size = sizeof *q->nodes;
    q->nodes[i].type = JAXCI_UNKNOWN_TYPE + (int32_t)i;
    q->nodes[i].next = i + 1 < 2 * count ? &q->nodes[i + 1] : NULL;
  }
  q->nodes[count - 1].next = &q->extension.base;
  q->extension.base.next = &q->nodes[count];
  q->frame.extension_start = &q->nodes[0];
  return JAXC_OK;
}

static jaxc_status begin(jaxc_host *host, query *q, jaxc_message *message) {
  const size_t bytes = host->options.minor >= 2
                           ? sizeof(jaxc_abi_metadata)
                           : offsetof(jaxc_abi_metadata, state_type_id);
  if (!jaxci_guarded_make(host, bytes, 0, &q->memory)) {
    return jaxci_no_memory(message, bytes);
  }
  q->metadata = (jaxc_abi_metadata *)(void *)q->memory.data;
  q->metadata->struct_size = JAXC_ABI_SIZE(jaxc_abi_metadata, traits);
  q->metadata->api_version.struct_size = sizeof q->metadata->api_version;
  q->metadata->api_version.major_version = UNANSWERED;
  q->metadata->api_version.minor_version = UNANSWERED;
  q->frame.struct_size = JAXC_ABI_FRAME_SIZE - host->options.faults.short_frame;
  /* Runtimes of API 0.1 ask without a table (seen in jaxlib 0.6.1). */
  q->frame.api = host->options.minor >= 2 ? &host->api : NULL;
  q->frame.stage = JAXC_STAGE_EXECUTE;
  q->frame.args.struct_size = q->frame.results.struct_size = sizeof q->frame.args;
  q->frame.attrs.struct_size = sizeof q->frame.attrs;
  return make_chain(host, q, message);
}

static jaxc_status read_answer(const jaxc_host *host, const query *q,
                               jaxc_host_metadata *out, jaxc_message *message) {
  const jaxc_abi_version *const version = &q->metadata->api_version;
  int64_t distance = 0;
  int is_before = 0;
  if (version->major_version == UNANSWERED && version->minor_version == UNANSWERED) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "the function does not answer the query for metadata: it is no "
                     "handler of XLA FFI 0.1 or later");
  }
  /* Also of one that is refused. */
  out->major_version = version->major_version;
  out->minor_version = version->minor_version;
  out->traits = q->metadata->traits;
  if (host->options.minor >= 2) out->state_type_id = q->metadata->state_type_id;
  if (version->major_version != JAXC_ABI_MAJOR || version->minor_version < 1 ||
      version->minor_version > host->options.minor) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "the handler's API version (%d.%d) is incompatible with the "
                     "framework's API version (%d.%d). Minimum supported API version is "
                     "(0.1).",
                     version->major_version, version->minor_version, JAXC_ABI_MAJOR,
                     (int)host->options.minor);
  }
  /* Handlers of API 0.2 write state_type_id always; the version above says more of them.
   */
  if (jaxci_guarded_find(host, &q->memory, &distance, &is_before)) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "the handler wrote outside the metadata, %lld bytes %s%s",
                     (long long)(is_before ? -distance : distance),
                     is_before ? "before their start" : "behind their end",
                     host->options.minor >= 2 || is_before
                         ? ""
                         : ": state_type_id is not there before API 0.2");
  }
  return JAXC_OK;
}

jaxc_status jaxc_host_probe(jaxc_host *host, jaxc_abi_handler *handler,
                            jaxc_host_metadata *out, jaxc_message *message) {
  query q;
  jaxc_abi_error *error;
  jaxc_status status;
  memset(out, 0, sizeof *out);
  if (handler == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "the handler is NULL");
  }
  memset(&q, 0, sizeof q);
  status = begin(host, &q, message);
  if (status != JAXC_OK) goto done;
  error = jaxci_invoke(host, handler, &q.frame, 0);
  /* A function that is no handler returns anything: no error of the runtime then, but
   * what the answer says is more to the point. */
  if (error != NULL && (jaxci_error_is_known(error) ||
                        q.metadata->api_version.minor_version != UNANSWERED)) {
    status = jaxci_error_settle(error, message);
    if (status != JAXC_OK) goto done;
  }
  status = read_answer(host, &q, out, message);
done:
  free(q.nodes);
  free(q.memory.block);
  return status;
}
