/* fuzz_frame.c: handlers made with handler.h, called with frames in which everything may
 * be wrong.
 *
 * What must hold: an error begins with the handler's name, says something and ends with a
 * NUL; what the function gets is what the table says and what the frame has; nothing
 * outside of the call's struct is written; the runtime gets back what it gave.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wild_frame.h"

#define GUARD 64
#define GUARD_BYTE 0xA5

static const jaxc_abi_call_frame *current; /* the frame of the call */

/* ---- a handler with a field of every kind ---- */

typedef enum { RED, GREEN, BLUE } color;

typedef struct {
  int64_t depth;
  jaxc_string label;
} inner_call;

typedef struct {
  float rate;
  inner_call inner;
  jaxc_array sizes;
} settings_call;

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(const int) k;
  JAXC_VIEW(const void) mask;
  JAXC_VIEW(float) y;
  JAXC_VIEW(double) norm;
  const jaxc_abi_attrs *bag;
  color choice;
  float _Complex factor;
  double _Complex gain;
  jaxc_bf16 half;
  _Bool is_on;
  jaxc_string mode;
  int order;
  void *plan;
  settings_call settings;
  jaxc_array window;
} every_call;

static const jaxc_field inner_fields[] = {
    JAXC_ATTRIBUTE(inner_call, depth),
    JAXC_ATTRIBUTE(inner_call, label),
};
static const jaxc_field settings_fields[] = {
    JAXC_ATTRIBUTE_NESTED(settings_call, inner, inner_fields),
    JAXC_OPTIONAL_ATTRIBUTE(settings_call, rate),
    JAXC_ATTRIBUTE_ARRAY(settings_call, sizes, JAXC_S64),
};
static const jaxc_field every_fields[] = {
    JAXC_ARGUMENT(every_call, x, JAXC_AT_LEAST(2)),
    JAXC_ARGUMENT(every_call, k, 0),
    JAXC_OPTIONAL_ARGUMENT(every_call, mask, JAXC_ANY_RANK),
    JAXC_RESULT(every_call, y, 2),
    JAXC_OPTIONAL_RESULT(every_call, norm, 1),
    JAXC_ATTRIBUTE(every_call, bag),
    JAXC_ATTRIBUTE_ENUM(every_call, choice, 3),
    JAXC_ATTRIBUTE(every_call, factor),
    JAXC_ATTRIBUTE(every_call, gain),
    JAXC_ATTRIBUTE(every_call, half),
    JAXC_ATTRIBUTE(every_call, is_on),
    JAXC_ATTRIBUTE(every_call, mode),
    JAXC_OPTIONAL_ATTRIBUTE(every_call, order),
    JAXC_ATTRIBUTE(every_call, plan),
    JAXC_ATTRIBUTE_NESTED(every_call, settings, settings_fields),
    JAXC_ATTRIBUTE_ARRAY(every_call, window, JAXC_ANY),
};
static const every_call every_defaults = {.order = 77};

/* A view against its field and its place in the frame. */
static void check_view(const jaxc_field *field, const void *member, int64_t index) {
  jaxc_view view;
  const jaxc_abi_operands *const list =
      field->kind == JAXC_FIELD_ARGUMENT ? &current->args : &current->results;
  int64_t count = 1;
  memcpy(&view, member, sizeof view);
  if (view.rank == -1) {
    FUZZ_CHECK(view.data == NULL && view.count == 0);
    FUZZ_CHECK(field->is_optional || current->stage != JAXC_STAGE_EXECUTE);
    return;
  }
  FUZZ_CHECK(index < list->size);
  FUZZ_CHECK(view.data == ((const jaxc_abi_buffer *)list->data[index])->data);
  FUZZ_CHECK(field->rank >= 0 ? view.rank == field->rank
                              : view.rank >= JAXC_AT_LEAST(field->rank));
  FUZZ_CHECK(field->dtype == JAXC_ANY || view.dtype == field->dtype);
  for (int64_t i = 0; i < view.rank; i++) {
    FUZZ_CHECK(view.dims[i] >= 0);
    FUZZ_CHECK(view.dims[i] == 0 || count <= INT64_MAX / view.dims[i]);
    count *= view.dims[i];
  }
  FUZZ_CHECK(view.count == (view.dtype == JAXC_TOKEN ? 0 : count));
  if (current->stage != JAXC_STAGE_EXECUTE) return;
  FUZZ_CHECK(view.data != NULL || view.count == 0);
}

/* Number of the only attribute of that name, counted from 0; -1 where there is none. */
static int64_t find_only(const jaxc_abi_attrs *attrs, const char *name) {
  int64_t found = -1;
  for (int64_t i = 0; i < attrs->size; i++) {
    const jaxc_abi_span *const span = attrs->names[i];
    if (span == NULL || span->ptr == NULL || span->len != strlen(name)) continue;
    if (memcmp(span->ptr, name, span->len) != 0) continue;
    FUZZ_CHECK(found < 0); /* one that is given twice is refused */
    found = i;
  }
  return found;
}

/* A scalar member has the bytes of the frame's attribute. */
static void check_scalar(const char *name, const void *member, size_t size) {
  const int64_t i = find_only(&current->attrs, name);
  const void *value = NULL;
  FUZZ_CHECK(i >= 0);
  if (current->attrs.types[i] == JAXC_ABI_ATTR_ARRAY) {
    value = ((const jaxc_abi_array *)current->attrs.data[i])->data;
  } else {
    FUZZ_CHECK(current->attrs.types[i] == JAXC_ABI_ATTR_SCALAR);
    value = ((const jaxc_abi_scalar *)current->attrs.data[i])->value;
  }
  FUZZ_CHECK(value != NULL && memcmp(value, member, size) == 0);
}

static void check_nested(const every_call *call) {
  const int64_t i = find_only(&current->attrs, "settings");
  const jaxc_abi_attrs *attrs;
  int64_t k;
  FUZZ_CHECK(i >= 0);
  attrs = current->attrs.data[i];
  FUZZ_CHECK(attrs->size == 2 || attrs->size == 3);
  k = find_only(attrs, "sizes");
  FUZZ_CHECK(k >= 0 && call->settings.sizes.dtype == JAXC_S64);
  FUZZ_CHECK(call->settings.sizes.data == ((jaxc_abi_array *)attrs->data[k])->data);
  k = find_only(attrs, "inner");
  FUZZ_CHECK(k >= 0);
  attrs = attrs->data[k];
  k = find_only(attrs, "label");
  FUZZ_CHECK(attrs->size == 2 && k >= 0);
  FUZZ_CHECK(call->settings.inner.label.ptr == ((jaxc_abi_span *)attrs->data[k])->ptr);
}

static jaxc_status check_every(jaxc_context *context, const void *data) {
  const every_call *const call = data;
  int64_t plan, choice = call->choice;
  check_view(&every_fields[0], &call->x, 0);
  check_view(&every_fields[1], &call->k, 1);
  check_view(&every_fields[2], &call->mask, 2);
  check_view(&every_fields[3], &call->y, 0);
  check_view(&every_fields[4], &call->norm, 1);
  FUZZ_CHECK(call->bag->struct_size >= sizeof *call->bag);
  FUZZ_CHECK(call->bag->size == 0 || (call->bag->size > 0 && call->bag->names != NULL));
  FUZZ_CHECK(choice >= 0 && choice < 3);
  check_scalar("choice", &choice, sizeof choice);
  check_scalar("factor", &call->factor, sizeof call->factor);
  check_scalar("gain", &call->gain, sizeof call->gain);
  check_scalar("half", &call->half, sizeof call->half);
  check_scalar("is_on", &call->is_on, sizeof call->is_on);
  plan = (int64_t)(intptr_t)call->plan;
  check_scalar("plan", &plan, sizeof plan);
  if (find_only(&current->attrs, "order") < 0) FUZZ_CHECK(call->order == 77);
  FUZZ_CHECK(call->mode.ptr != NULL || call->mode.len == 0);
  FUZZ_CHECK(call->window.data != NULL || call->window.size == 0);
  check_nested(call);
  if (!fuzz_chance(fuzz_runtime.in, 8)) return JAXC_OK;
  return jaxc_fail(context, JAXC_ABORTED, "the function's own failure");
}
JAXC_HANDLER(Every, every_call, every_fields, .execute = check_every,
             .instantiate = check_every, .prepare = check_every,
             .defaults = &every_defaults);

/* ---- the rest of the operands, and all attributes ---- */

typedef struct {
  JAXC_VIEW(const void) first;
  jaxc_rest arguments;
  jaxc_rest results;
  const jaxc_abi_attrs *all;
} rest_call;
static const jaxc_field rest_fields[] = {
    JAXC_ARGUMENT(rest_call, first, JAXC_ANY_RANK),
    JAXC_REST_ARGUMENTS(rest_call, arguments),
    JAXC_REST_RESULTS(rest_call, results),
    JAXC_ALL_ATTRIBUTES(rest_call, all),
};

static jaxc_status check_rest(jaxc_context *context, const void *data) {
  const rest_call *const call = data;
  const jaxc_rest *const rest =
      fuzz_chance(fuzz_runtime.in, 2) ? &call->results : &call->arguments;
  const int64_t index = fuzz_between(fuzz_runtime.in, -1, 4);
  jaxc_view view;
  check_view(&rest_fields[0], &call->first, 0);
  FUZZ_CHECK(call->all == &current->attrs);
  FUZZ_CHECK(rest->count >= 0 && rest->count <= 8);
  JAXC_TRY(jaxc_rest_view(context, rest, index, JAXC_ANY, JAXC_ANY_RANK, &view));
  FUZZ_CHECK(index >= 0 && index < rest->count);
  FUZZ_CHECK(view.rank >= 0 && view.count >= 0);
  return JAXC_OK;
}
JAXC_HANDLER(Rest, rest_call, rest_fields, .execute = check_rest,
             .initialize = check_rest);

/* ---- a handler that asks its runtime for everything ---- */

static int destroyed;
static void destroy(void *state) {
  (void)state;
  destroyed++;
}
static jaxc_state_type state_type = JAXC_STATE_TYPE("fuzz.state", destroy);
static void task(void *data) { ++*(int *)data; }

static jaxc_status ask(jaxc_context *context, int what, jaxc_future *future) {
  void *pointer = NULL;
  int64_t number = 0;
  int32_t ordinal;
  int done = 0;
  const jaxc_abi_context_extension *extension;
  const jaxc_abi_attrs *options = NULL;
  switch (what) {
    case 0: return jaxc_context_stream(context, &pointer);
    case 1: return jaxc_context_device_ordinal(context, &ordinal);
    case 2: return jaxc_context_run_id(context, &number);
    case 3: return jaxc_context_device_memory(context, 100, &pointer);
    case 4:
      JAXC_TRY(jaxc_context_host_memory(context, fuzz_byte(fuzz_runtime.in), &pointer));
      FUZZ_CHECK((uintptr_t)pointer % 64 == 0);
      return JAXC_OK;
    case 5: return jaxc_context_thread_count(context, &number);
    case 6:
      JAXC_TRY(jaxc_context_schedule(context, task, &done));
      FUZZ_CHECK(done == 1);
      return JAXC_OK;
    case 7:
      JAXC_TRY(jaxc_context_options(context, &options));
      FUZZ_CHECK(options == &fuzz_runtime.options);
      return JAXC_OK;
    case 8: return jaxc_context_extension(context, 128, &extension);
    case 9: return jaxc_state_set(context, &state_type, &done);
    case 10:
      number = fuzz_between(fuzz_runtime.in, -1, 4);
      JAXC_TRY(jaxc_state_get(context, &state_type, (int32_t)number, &pointer));
      FUZZ_CHECK(pointer == &fuzz_runtime);
      return JAXC_OK;
    case 11: return jaxc_context_user_data(context, &state_type, &pointer);
    case 12: return jaxc_context_host_memory(context, SIZE_MAX - 3, &pointer);
    default: return jaxc_future_begin(context, future);
  }
}

static jaxc_status ask_all(jaxc_context *context, const void *data) {
  jaxc_future future = JAXC_ZERO;
  (void)data;
  for (int i = 0; i < 24; i++) {
    const uint8_t byte = fuzz_byte(fuzz_runtime.in);
    const jaxc_status status = ask(context, byte % 14, &future);
    if (status != JAXC_OK) FUZZ_CHECK(strlen(context->message.text) > 0);
    if (status != JAXC_OK && byte >= 128) return status;
  }
  if (fuzz_chance(fuzz_runtime.in, 4)) {
    return jaxc_fail(context, JAXC_ABORTED, "after all of that");
  }
  if (future.future != NULL) {
    jaxc_future_finish(&future, fuzz_chance(fuzz_runtime.in, 2) ? JAXC_INTERNAL : JAXC_OK,
                       "Asks: the work failed");
  }
  return JAXC_OK;
}

typedef struct {
  JAXC_VIEW(const void) x;
} ask_call;
static const jaxc_field ask_fields[] = {
    JAXC_OPTIONAL_ARGUMENT(ask_call, x, JAXC_ANY_RANK)};
JAXC_HANDLER(Asks, ask_call, ask_fields, .execute = ask_all, .instantiate = ask_all,
             .prepare = ask_all, .initialize = ask_all, .instantiate_state = &state_type,
             .prepare_state = &state_type, .minor = 2);

/* ---- the target ---- */

static void call_handler(fuzz_input *in, const jaxc_handler *handler) {
  jaxc_abi_call_frame *frame;
  unsigned char *block;
  fuzz_runtime_begin(in);
  frame = wild_frame(in, handler->fields, handler->field_count);
  block = fuzz_new(in, handler->call_size + 2 * GUARD);
  memset(block, GUARD_BYTE, handler->call_size + 2 * GUARD);
  current = frame;
  {
    jaxc_abi_error *const error = jaxc_handler_run(frame, handler, block + GUARD);
    const int has_future = frame->struct_size >= JAXC_ABI_FRAME_SIZE;
    fuzz_runtime_end(error, handler->name, has_future ? frame->future : NULL);
  }
  FUZZ_CHECK(fuzz_is_filled(block, GUARD_BYTE, GUARD));
  FUZZ_CHECK(fuzz_is_filled(block + GUARD + handler->call_size, GUARD_BYTE, GUARD));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const jaxc_handler *const handlers[] = {
      &jaxc_handler_Every, &jaxc_handler_Rest, &jaxc_handler_Asks};
  fuzz_input in = {data, size, 0, NULL};
  state_type.id.type_id = 0; /* each input meets a runtime that knows nothing yet */
  call_handler(&in, handlers[fuzz_byte(&in) % 3]);
  fuzz_end(&in);
  return 0;
}
