/* handler.h: an XLA FFI handler in C, declared by a struct and a table.
 *
 *   typedef struct {
 *     JAXC_VIEW(const float) x;
 *     JAXC_VIEW(float) y;
 *     float eps;
 *   } rms_norm_call;
 *
 *   static const jaxc_field rms_norm_fields[] = {
 *       JAXC_ARGUMENT(rms_norm_call, x, JAXC_AT_LEAST(1)),
 *       JAXC_RESULT(rms_norm_call, y, JAXC_AT_LEAST(1)),
 *       JAXC_ATTRIBUTE(rms_norm_call, eps),
 *   };
 *
 *   static jaxc_status rms_norm(jaxc_context *context, const void *data) {
 *     const rms_norm_call *call = data;
 *     if (call->x.count != call->y.count) {
 *       return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in size");
 *     }
 *     ...call->x.data[i], call->x.dims[call->x.rank - 1], call->eps...
 *     return JAXC_OK;
 *   }
 *
 *   JAXC_HANDLER(RmsNorm, rms_norm_call, rms_norm_fields, .execute = rms_norm);
 *
 * The struct's own types say what the call must look like: `const float` is a float32
 * array, `float eps` a float32 attribute. Arguments and results are in the order of the
 * table, attributes are found by name. Nothing is converted. All that is wrong with a
 * call is reported in one error, by name. Fields live as long as the call.
 *
 * JAXC_HANDLER uses designated initialisers: C11, or C++20.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_HANDLER_H
#define JAXC_HANDLER_H

#include <jaxc/decode.h>
#include <jaxc/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the handler ---- */

/* The work of one stage. `call` is the struct; in instantiate, arrays may be absent, and
 * in prepare they have shapes but no data. */
typedef jaxc_status jaxc_handler_function(jaxc_context *context, const void *call);

/* Moves when a layout below changes in a way that struct_size cannot tell. */
#define JAXC_HANDLER_ABI 1

/* Designated initialisers leave out members, of which g++ warns where they have none. */
#ifdef __cplusplus
#define JAXCI_OR_ZERO = {}
#else
#define JAXCI_OR_ZERO
#endif

/* What JAXC_HANDLER writes: constant, exported as jaxc_handler_<symbol>, and read by
 * jaxc.register and jaxc-run. NULL and 0 are right for all that is left out. */
typedef struct jaxc_handler {
  size_t struct_size;
  int32_t abi_version; /* JAXC_HANDLER_ABI */
  int32_t field_count;
  const char *name; /* of the symbol: begins every message */
  const jaxc_field *fields;
  size_t call_size; /* of the struct */
  jaxc_handler_function *execute JAXCI_OR_ZERO;
  /* Once for each call site of a compiled program: on CPUs with attributes alone. */
  jaxc_handler_function *instantiate JAXCI_OR_ZERO;
  /* Before each execution, on GPUs only. */
  jaxc_handler_function *prepare JAXCI_OR_ZERO;
  jaxc_handler_function *initialize JAXCI_OR_ZERO;
  /* Types of the states that those stages set. */
  jaxc_state_type *instantiate_state JAXCI_OR_ZERO;
  jaxc_state_type *prepare_state JAXCI_OR_ZERO;
  jaxc_state_type *initialize_state JAXCI_OR_ZERO;
  /* JAXC_TRAIT_* */
  uint32_t traits JAXCI_OR_ZERO;
  /* lowest API minor that will do; a runtime below it refuses */
  int32_t minor JAXCI_OR_ZERO;
  /* a struct with the values of absent optional attributes */
  const void *defaults JAXCI_OR_ZERO;
  /* "cpu", "cuda", "rocm"; NULL is "cpu" */
  const char *platform JAXCI_OR_ZERO;
} jaxc_handler;

/* Defines and exports the handler `symbol` for the struct `type` and its table. The rest
 * are members of jaxc_handler: .execute = f, .instantiate = g, ... */
#define JAXC_HANDLER(symbol, type, field_list, ...)                                \
  JAXCI_EXTERN_C JAXC_EXPORT const jaxc_handler jaxc_handler_##symbol;             \
  const jaxc_handler jaxc_handler_##symbol = {                                     \
      .struct_size = sizeof(jaxc_handler),                                         \
      .abi_version = JAXC_HANDLER_ABI,                                             \
      .field_count = (int32_t)(sizeof(field_list) / sizeof *(field_list)),         \
      .name = #symbol,                                                             \
      .fields = field_list,                                                        \
      .call_size = sizeof(type),                                                   \
      __VA_ARGS__};                                                                \
  JAXCI_EXTERN_C JAXC_EXPORT jaxc_abi_error *symbol(jaxc_abi_call_frame *frame);   \
  jaxc_abi_error *symbol(jaxc_abi_call_frame *frame) {                             \
    type call;                                                                     \
    return jaxc_handler_run(frame, &jaxc_handler_##symbol, &call);                 \
  }                                                                                \
  JAXCI_EXTERN_C JAXC_EXPORT const jaxc_handler jaxc_handler_##symbol

/* ---- running ---- */

JAXC_UNUSED JAXC_COLD static jaxc_abi_error *jaxci_handler_error(
    const jaxc_abi_call_frame *frame, const jaxc_handler *handler, jaxc_status status,
    const jaxc_message *message) {
  jaxc_message whole;
  if (status < JAXC_OK || status > JAXC_UNAUTHENTICATED) {
    (void)JAXC_FAIL(&whole, JAXC_UNKNOWN, "%s: returned %d, which is no status%s%s",
                    handler->name, (int)status, message->text[0] != '\0' ? ": " : "",
                    message->text);
    return jaxc_error_create(frame->api, JAXC_UNKNOWN, whole.text);
  }
  status = JAXC_FAIL(&whole, status, "%s: %s", handler->name,
                     message->text[0] != '\0' ? message->text : "failed without a text");
  return jaxc_error_create(frame->api, status, whole.text);
}

/* Answers the metadata query. The types of states are registered here, since that must
 * come before the handler and this is the runtime's first word to it. */
JAXC_UNUSED JAXC_NOINLINE static jaxc_abi_error *jaxci_handler_metadata(
    jaxc_abi_call_frame *frame, const jaxc_handler *handler, jaxc_abi_metadata *metadata) {
  jaxc_state_type *const types[3] = {handler->instantiate_state, handler->prepare_state,
                                     handler->initialize_state};
  jaxc_message message;
  jaxc_status status;
  for (int i = 0; i < 3; i++) {
    if (types[i] == NULL || (i > 0 && types[i] == types[i - 1])) continue;
    if (frame->api == NULL) continue; /* a probe, not a runtime */
    status = jaxci_state_register(frame->api, types[i], &message);
    if (status != JAXC_OK) return jaxci_handler_error(frame, handler, status, &message);
  }
  metadata->api_version.major_version = JAXC_ABI_MAJOR;
  metadata->api_version.minor_version =
      handler->minor > JAXC_ABI_MINOR ? handler->minor : JAXC_ABI_MINOR;
  metadata->traits = handler->traits;
  /* API 0.1 has no such field, and its struct_size does not tell. */
  if (frame->api != NULL && frame->api->api_version.minor_version >= 2) {
    metadata->state_type_id =
        handler->instantiate_state != NULL ? handler->instantiate_state->id.type_id : 0;
  }
  return NULL;
}

/* The error of a function that has begun a future belongs to the future. */
JAXC_UNUSED JAXC_COLD static jaxc_abi_error *jaxci_handler_failed(
    jaxc_context *context, const jaxc_handler *handler, jaxc_status status) {
  jaxc_future future;
  if (!context->has_future) {
    return jaxci_handler_error(context->frame, handler, status, &context->message);
  }
  future.api = context->frame->api;
  future.name = handler->name;
  future.future = context->frame->future;
  jaxc_future_finish(&future, status, context->message.text);
  return NULL;
}

/* A stage before execute, or a frame that cannot be read as far as its stage. */
JAXC_UNUSED JAXC_NOINLINE static jaxc_status jaxci_handler_stage(
    jaxc_context *context, const jaxc_handler *handler, void *call) {
  jaxc_abi_call_frame *const frame = context->frame;
  jaxc_handler_function *function = NULL;
  jaxci_decoder decoder;
  JAXC_TRY(jaxc_call_check_frame(frame, &context->message));
  switch (frame->stage) {
    case JAXC_STAGE_INSTANTIATE: function = handler->instantiate; break;
    case JAXC_STAGE_PREPARE: function = handler->prepare; break;
    case JAXC_STAGE_INITIALIZE: function = handler->initialize; break;
    default: break;
  }
  if (function == NULL) {
    return jaxc_fail(context, JAXC_UNIMPLEMENTED, "called in stage %d, which it lacks",
                     (int)frame->stage);
  }
  jaxci_decoder_begin(&decoder, frame);
  decoder.before = strlen(handler->name) + 2;
  decoder.asks_data = 0;
  if (frame->args.size == 0 && frame->results.size == 0) {
    decoder.args = decoder.results = NULL;
  }
  JAXC_TRY(jaxci_handler_decode(&decoder, handler->fields, handler->field_count,
                                (char *)call, &context->message));
  return function(context, call);
}

/* Says what is wrong with a call that did not fit. */
JAXC_UNUSED JAXC_COLD static jaxc_status jaxci_handler_refuse(jaxc_context *context,
                                                              const jaxc_handler *handler,
                                                              void *call) {
  jaxci_decoder decoder;
  JAXC_TRY(jaxc_call_check_frame(context->frame, &context->message));
  jaxci_decoder_begin(&decoder, context->frame);
  decoder.before = strlen(handler->name) + 2;
  return jaxci_handler_report(decoder, handler->fields, handler->field_count, (char *)call,
                              &context->message);
}

static JAXC_INLINE jaxc_status jaxci_handler_call(jaxc_context *context,
                                                  const jaxc_handler *handler,
                                                  void *call) {
  jaxc_abi_call_frame *const frame = context->frame;
  jaxci_decoder decoder;
  if (handler->defaults != NULL) {
    memcpy(call, handler->defaults, handler->call_size);
  } else {
    memset(call, 0, handler->call_size);
  }
  if (!JAXC_ABI_HAS(frame, jaxc_abi_call_frame, attrs) ||
      frame->stage != JAXC_STAGE_EXECUTE || handler->execute == NULL) {
    return jaxci_handler_stage(context, handler, call);
  }
  if (!jaxci_handler_sizes_fit(frame, handler->fields, handler->field_count)) {
    return jaxci_handler_refuse(context, handler, call);
  }
  jaxci_decoder_begin(&decoder, frame);
  decoder.sizes_known = 1;
  if (!jaxci_handler_fits(&decoder, handler->fields, handler->field_count, (char *)call)) {
    return jaxci_handler_refuse(context, handler, call);
  }
  return handler->execute(context, call);
}

/* The whole handler: answers a metadata query, decodes the frame into `call`
 * (handler->call_size bytes of the caller), runs the function of the frame's stage and
 * frees the memory that it took. Returns NULL or an error that the runtime owns; its text
 * begins with the handler's name. From any thread. */
JAXC_UNUSED static JAXC_INLINE jaxc_abi_error *jaxc_handler_run(
    jaxc_abi_call_frame *frame, const jaxc_handler *handler, void *call) {
  jaxc_context context;
  jaxc_status status;
  if (frame->extension_start != NULL) {
    jaxc_abi_metadata *const metadata = jaxc_call_metadata(frame);
    if (metadata != NULL) return jaxci_handler_metadata(frame, handler, metadata);
  }
  jaxci_context_begin(&context, frame, handler->name);
  status = jaxci_handler_call(&context, handler, call);
  if (context.block_count > 0) {
    /* A failure to free matters less than the failure that came before it, and nothing
     * where the call's future, which may be finished already, has its outcome. */
    const jaxc_message kept = context.message;
    const jaxc_status freed = jaxci_context_free(&context);
    if (status != JAXC_OK) {
      context.message = kept;
    } else if (!context.has_future) {
      status = freed;
    }
  }
  if (status == JAXC_OK) return NULL;
  return jaxci_handler_failed(&context, handler, status);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_HANDLER_H */
