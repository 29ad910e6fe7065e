/* fuzz_host.c: sequences of calls of host.h with any options, and a handler that does
 * what its bytes say: good things, refusals, and writes where nothing may be written.
 *
 * What must hold: a refusal says why; operands and attributes come to the handler as they
 * were given, attributes sorted; damage is found, and nothing else is; what is left
 * behind is named; states are destroyed once; all memory is given back, also when the
 * k-th allocation fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/host.h>
#include <jaxc/jaxc.h>
#include <stdatomic.h>

#include "input.h"

#define MAX_OPERANDS 6
#define MAX_BYTES 4096
#define MAX_STEPS 40

static fuzz_input *in;

/* What was done with the one host and the one call of an input. */
static struct {
  jaxc_host *host;
  jaxc_host_call *call;
  int short_frame;
  int has_faults; /* an error may be the shared one, which nobody can leave behind */
  int64_t counts[2];
  int64_t ranks[2][MAX_OPERANDS];
  int is_own[2][MAX_OPERANDS]; /* memory of the host */
  int is_aliased[2][MAX_OPERANDS];
  int is_instantiated;
  int may_be_instantiated; /* by a run that failed later */
  int guard_is_broken;    /* once broken, for ever */
  int argument_is_broken; /* until the next execution */
  int has_left;           /* something that the handler owes */
  int64_t states;         /* that live */
} h;
static _Atomic int64_t tasks_started, tasks_done;

/* ---- the handler ---- */

typedef struct {
  jaxc_rest arguments;
  jaxc_rest results;
  const jaxc_abi_attrs *all;
} act_call;
static const jaxc_field act_fields[] = {
    JAXC_REST_ARGUMENTS(act_call, arguments),
    JAXC_REST_RESULTS(act_call, results),
    JAXC_ALL_ATTRIBUTES(act_call, all),
};

static void destroy_state(void *state) {
  h.states--;
  free(state);
}
static jaxc_state_type state_type = JAXC_STATE_TYPE("fuzz.state", destroy_state);

static void task(void *data) {
  (void)data;
  atomic_fetch_add(&tasks_done, 1);
}

/* Names sorted bytewise, at each level. */
static void check_attrs(const jaxc_abi_attrs *attrs) {
  FUZZ_CHECK(attrs->size >= 0);
  for (int64_t i = 0; i < attrs->size; i++) {
    if (i > 0) {
      FUZZ_CHECK(strcmp(attrs->names[i - 1]->ptr, attrs->names[i]->ptr) < 0);
    }
    FUZZ_CHECK(attrs->data[i] != NULL);
    if (attrs->types[i] == JAXC_ABI_ATTR_DICTIONARY) check_attrs(attrs->data[i]);
  }
}

static void check_operands(const jaxc_rest *rest, int side, int stage) {
  if (stage == JAXC_STAGE_INSTANTIATE && rest->count == 0) return;
  FUZZ_CHECK(rest->count == h.counts[side]);
  for (int64_t i = 0; i < rest->count; i++) {
    const jaxc_abi_buffer *const buffer = rest->operands->data[rest->first + i];
    FUZZ_CHECK(buffer->rank == h.ranks[side][i]);
    if (stage < JAXC_STAGE_INITIALIZE) FUZZ_CHECK(buffer->data == NULL);
  }
}

/* Writes a result, or a byte behind it, or a byte of an argument. */
static void write_somewhere(jaxc_context *context, const jaxc_rest *rest, int side) {
  const int64_t i = fuzz_between(in, 0, MAX_OPERANDS - 1);
  const int is_bad = fuzz_chance(in, 4);
  jaxc_view view;
  size_t bytes;
  if (jaxc_context_stage(context) != JAXC_STAGE_EXECUTE) return;
  if (jaxc_rest_view(context, rest, i, JAXC_ANY, JAXC_ANY_RANK, &view) != JAXC_OK) return;
  if (view.data == NULL) return;
  bytes = ((size_t)view.count * jaxc_dtype_bits(view.dtype) + 7) / 8;
  if (side == 1 && !is_bad) memset(view.data, fuzz_byte(in), bytes);
  if (!is_bad || !h.is_own[side][i] || h.is_aliased[side][i]) return;
  if (side == 0 && bytes > 0 && fuzz_chance(in, 2)) {
    ((unsigned char *)view.data)[bytes - 1] ^= 0xff;
    h.argument_is_broken ^= 1 << i; /* done twice, it is as before */
  } else {
    ((unsigned char *)view.data)[bytes] = 0; /* no guard byte is 0 */
    h.guard_is_broken = 1;
  }
}

static jaxc_status set_state(jaxc_context *context) {
  void *const state = malloc(1);
  jaxc_status status;
  if (state == NULL) exit(2);
  status = jaxc_state_set(context, &state_type, state);
  if (status == JAXC_OK) {
    h.states++;
  } else {
    free(state);
  }
  return status;
}

/* Memory or an error that is not given back, or a future that is not handed over. */
static jaxc_status leave_something(jaxc_context *context) {
  const jaxc_abi_api *const api = context->frame->api;
  jaxc_future future = {0};
  if (fuzz_chance(in, 2)) {
    if (jaxc_error_create(api, JAXC_INTERNAL, "left") != NULL) h.has_left = 1;
    return JAXC_OK;
  }
  JAXC_TRY(jaxc_future_begin(context, &future));
  context->frame->future = NULL;
  jaxc_future_finish(&future, JAXC_OK, NULL);
  h.has_left = 1;
  return JAXC_OK;
}

static jaxc_status act_once(jaxc_context *context, const act_call *call,
                            jaxc_future *future) {
  void *pointer;
  int64_t number;
  int32_t ordinal;
  const jaxc_abi_attrs *options;
  const jaxc_abi_context_extension *extension;
  switch (fuzz_byte(in) % 15) {
    case 0: write_somewhere(context, &call->results, 1); return JAXC_OK;
    case 1: write_somewhere(context, &call->arguments, 0); return JAXC_OK;
    case 2: return jaxc_context_stream(context, &pointer);
    case 3: return jaxc_context_device_ordinal(context, &ordinal);
    case 4: return jaxc_context_run_id(context, &number);
    case 5: return jaxc_context_device_memory(context, fuzz_byte(in), &pointer);
    case 6: return jaxc_context_host_memory(context, fuzz_byte(in), &pointer);
    case 7: return jaxc_context_thread_count(context, &number);
    case 8:
      JAXC_TRY(jaxc_context_schedule(context, task, NULL));
      atomic_fetch_add(&tasks_started, 1);
      return JAXC_OK;
    case 9:
      JAXC_TRY(jaxc_context_options(context, &options));
      check_attrs(options);
      return JAXC_OK;
    case 10: return jaxc_context_extension(context, fuzz_between(in, 0, 3), &extension);
    case 11: return set_state(context);
    case 12:
      return jaxc_state_get(context, &state_type, (int32_t)fuzz_between(in, -1, 4),
                            &pointer);
    case 13: return jaxc_context_user_data(context, &state_type, &pointer);
    default:
      if (fuzz_chance(in, 2)) return leave_something(context);
      return jaxc_future_begin(context, future);
  }
}

static jaxc_status act(jaxc_context *context, const void *data) {
  const act_call *const call = data;
  jaxc_future future = {0};
  FUZZ_CHECK(!h.short_frame);
  check_attrs(call->all);
  check_operands(&call->arguments, 0, jaxc_context_stage(context));
  check_operands(&call->results, 1, jaxc_context_stage(context));
  for (int64_t i = fuzz_between(in, 0, 7); i > 0; i--) {
    const int gives_up = fuzz_chance(in, 4);
    const jaxc_status status = act_once(context, call, &future);
    if (status != JAXC_OK && gives_up) return status;
  }
  if (fuzz_chance(in, 8)) return jaxc_fail(context, JAXC_ABORTED, "gives up");
  if (future.future != NULL && context->frame->future != NULL) {
    jaxc_future_finish(&future, fuzz_chance(in, 2) ? JAXC_DATA_LOSS : JAXC_OK,
                       "Act: late");
  }
  return JAXC_OK;
}
JAXC_HANDLER(Act, act_call, act_fields, .execute = act, .instantiate = act,
             .prepare = act, .initialize = act, .instantiate_state = &state_type,
             .prepare_state = &state_type, .initialize_state = &state_type);

/* ---- what a user does ---- */

/* A refusal has a text; the status is handed on. */
static jaxc_status said(jaxc_status status, const jaxc_message *message) {
  if (status == JAXC_OK) return status;
  FUZZ_CHECK(memchr(message->text, '\0', sizeof message->text) != NULL);
  FUZZ_CHECK(status > 0 && status <= JAXC_UNAUTHENTICATED);
  return status;
}

/* Sizes of few bytes, or of more than there can be. */
static int32_t make_dims(int64_t *dims) {
  int32_t rank = (int32_t)fuzz_between(in, -1, 4);
  const int is_wide = fuzz_chance(in, 8);
  int64_t product = 1;
  for (int32_t i = 0; i < rank; i++) {
    dims[i] = is_wide ? fuzz_wide(in) : fuzz_between(in, 0, 5);
    if (dims[i] > 256) dims[i] = INT64_MAX / 2;
    if (dims[i] < 1 || dims[i] > 256) continue;
    if (product * dims[i] > MAX_BYTES / 16) dims[i] = 1;
    product *= dims[i];
  }
  return rank;
}

static void add_operand(int side) {
  int64_t dims[5] = {1, 1, 1, 1, 1};
  const int32_t dtype = (int32_t)fuzz_between(in, 0, 35);
  const int32_t rank = make_dims(dims);
  void *const data = fuzz_chance(in, 4) ? fuzz_new(in, MAX_BYTES * 16) : NULL;
  jaxc_message message = {""};
  jaxc_status status;
  int64_t *const count = &h.counts[side];
  if (*count == MAX_OPERANDS) return;
  status = side == 0
               ? jaxc_host_call_argument(h.call, dtype, rank, dims, data, &message)
               : jaxc_host_call_result(h.call, dtype, rank, dims, data, &message);
  if (said(status, &message) != JAXC_OK) return;
  FUZZ_CHECK(!h.is_instantiated && rank >= 0 && jaxc_dtype_name(dtype)[0] != '\0');
  h.ranks[side][*count] = rank;
  h.is_own[side][*count] = data == NULL && dtype != JAXC_TOKEN;
  ++*count;
}

static void alias(void) {
  const int64_t from = fuzz_between(in, -1, MAX_OPERANDS);
  const int64_t to = fuzz_between(in, -1, MAX_OPERANDS);
  jaxc_message message = {""};
  if (said(jaxc_host_call_alias(h.call, (int32_t)from, (int32_t)to, &message),
           &message) != JAXC_OK) {
    return;
  }
  FUZZ_CHECK(from >= 0 && from < h.counts[0] && to >= 0 && to < h.counts[1]);
  FUZZ_CHECK(!h.is_instantiated && !h.is_aliased[0][from] && !h.is_aliased[1][to]);
  h.is_aliased[0][from] = h.is_aliased[1][to] = 1;
  h.is_own[1][to] = h.is_own[0][from];
}

static void add_attribute(jaxc_host_attrs **dictionary) {
  static const char *const names[] = {"a", "b", "ab", "", "zz", "\xff", "B", "longer"};
  const char *const name = names[fuzz_byte(in) % 8];
  const int32_t dtype = (int32_t)fuzz_between(in, 0, 35);
  const size_t size = fuzz_chance(in, 16) ? SIZE_MAX / 2 : fuzz_byte(in) % 8;
  unsigned char value[128] = {0};
  jaxc_message message = {""};
  jaxc_status status;
  switch (fuzz_byte(in) % 4) {
    case 0:
      status = jaxc_host_attrs_scalar(*dictionary, name, dtype, value, &message);
      break;
    case 1:
      status = jaxc_host_attrs_array(*dictionary, name, dtype, size,
                                     size > 8 ? NULL : value, &message);
      break;
    case 2:
      status = jaxc_host_attrs_string(*dictionary, name, (const char *)value,
                                      size > 8 ? 128 : size, &message);
      break;
    default: {
      jaxc_host_attrs *inner = NULL;
      status = jaxc_host_attrs_dictionary(*dictionary, name, &inner, &message);
      if (status == JAXC_OK) *dictionary = inner;
      break;
    }
  }
  (void)said(status, &message);
}

static void instantiate(void) {
  jaxc_message message = {""};
  const jaxc_status status = jaxc_host_call_instantiate(h.call, &message);
  if (said(status, &message) == JAXC_OK) h.is_instantiated = 1;
}

static void run(void) {
  jaxc_message message = {""};
  h.argument_is_broken = 0;
  h.may_be_instantiated = 1;
  if (said(jaxc_host_call_run(h.call, &message), &message) == JAXC_OK) {
    h.is_instantiated = 1;
  }
}

/* Other memory for all operands, larger than any. */
static void run_on(void) {
  void *data[2][MAX_OPERANDS];
  int own[2][MAX_OPERANDS];
  jaxc_message message = {""};
  jaxc_status status;
  for (int side = 0; side < 2; side++) {
    for (int i = 0; i < MAX_OPERANDS; i++) {
      data[side][i] = fuzz_chance(in, 16) ? NULL : fuzz_new(in, MAX_BYTES * 16);
    }
  }
  memcpy(own, h.is_own, sizeof own);
  memset(h.is_own, 0, sizeof h.is_own); /* nothing of the host's is written */
  status = jaxc_host_call_run_on(h.call, data[0], data[1], &message);
  memcpy(h.is_own, own, sizeof own);
  if (said(status, &message) != JAXC_OK) return;
  FUZZ_CHECK(h.is_instantiated || h.may_be_instantiated);
}

static void check(void) {
  jaxc_message message = {""};
  const jaxc_status status = jaxc_host_call_check(h.call, &message);
  const int is_broken = h.guard_is_broken || h.argument_is_broken;
  if (said(status, &message) == JAXC_DATA_LOSS && !is_broken) {
    /* Act need not write its results. */
    FUZZ_CHECK(strncmp(message.text, "result ", 7) == 0 &&
               strstr(message.text, " was not written") != NULL);
    return;
  }
  FUZZ_CHECK(status == (is_broken ? JAXC_DATA_LOSS : JAXC_OK));
}

static void check_leaks(void) {
  jaxc_message message = {""};
  const jaxc_status status = said(jaxc_host_leaks(h.host, &message), &message);
  if (h.has_left && h.has_faults) return;
  FUZZ_CHECK(status == (h.has_left ? JAXC_DATA_LOSS : JAXC_OK));
}

static void add_to_host(void) {
  static int object;
  jaxc_abi_context_extension *const extension = fuzz_new(in, sizeof *extension);
  int64_t id = fuzz_between(in, 0, 3);
  jaxc_message message = {""};
  jaxc_host_attrs *options = jaxc_host_custom_options(h.host);
  extension->struct_size = fuzz_chance(in, 8) ? 8 : sizeof *extension;
  extension->id.extension_type = id;
  switch (fuzz_byte(in) % 4) {
    case 0:
      (void)said(jaxc_host_add_user_data(h.host, id, &object, &message), &message);
      break;
    case 1:
      (void)said(jaxc_host_add_extension(h.host, extension, &message), &message);
      break;
    case 2:
      add_attribute(&options);
      break;
    default:
      (void)said(
          jaxc_host_type_id(h.host, id == 0 ? "fuzz.state" : "none", &id, &message),
          &message);
      break;
  }
}

/* Numbers beyond the operands have no memory. */
static void look(void) {
  const int64_t i = fuzz_between(in, -1, MAX_OPERANDS);
  size_t bytes = 77;
  const void *const data = fuzz_chance(in, 2)
                               ? jaxc_host_call_argument_data(h.call, (int32_t)i, &bytes)
                               : jaxc_host_call_result_data(h.call, (int32_t)i, &bytes);
  if (data == NULL) return;
  FUZZ_CHECK(i >= 0 && i < MAX_OPERANDS && bytes <= MAX_BYTES);
  if (bytes > 0) (void)fuzz_is_filled(data, 0, bytes); /* all of it can be read */
}

static void probe(void) {
  jaxc_host_metadata metadata;
  jaxc_message message = {""};
  if (said(jaxc_host_probe(h.host, Act, &metadata, &message), &message) != JAXC_OK)
    return;
  FUZZ_CHECK(metadata.major_version == 0 && metadata.minor_version == JAXC_ABI_MINOR);
}

static jaxc_host_options make_options(void) {
  jaxc_host_options options = {.struct_size = sizeof options};
  options.minor = (int32_t)fuzz_between(in, 0, 5);
  options.profile = (int32_t)fuzz_between(in, 0, 1);
  options.thread_count = fuzz_chance(in, 16) ? 2 : (int32_t)fuzz_between(in, -2, 0);
  options.flush_denormals = fuzz_chance(in, 8);
  options.run_id = fuzz_byte(in);
  options.timeout_s = 1;
  if (fuzz_chance(in, 2)) options.faults.fail_allocation = fuzz_byte(in) % 64;
  if (fuzz_chance(in, 4)) options.faults.fail_error = fuzz_byte(in) % 4;
  if (fuzz_chance(in, 4)) options.faults.fail_request = fuzz_byte(in) % 16;
  if (fuzz_chance(in, 4)) options.thread_count = JAXC_HOST_LATE;
  if (fuzz_chance(in, 8)) options.faults.short_frame = fuzz_byte(in) % 130;
  if (fuzz_chance(in, 8)) options.faults.short_table = fuzz_byte(in) % 130;
  if (fuzz_chance(in, 8)) options.faults.unknown_extensions = fuzz_byte(in) % 5;
  if (fuzz_chance(in, 8)) options.faults.misalignment = fuzz_byte(in) % 66;
  if (!fuzz_chance(in, 16)) return options;
  options.guard_byte = fuzz_byte(in) - 1;
  options.struct_size = fuzz_byte(in) % 160;
  options.minor = (int32_t)fuzz_between(in, -1, 9);
  options.thread_count = -(int32_t)fuzz_between(in, 0, 5);
  return options;
}

static void step(jaxc_host_attrs **dictionary) {
  switch (fuzz_byte(in) % 14) {
    case 0: case 1: add_operand(0); break;
    case 2: case 3: add_operand(1); break;
    case 4: alias(); break;
    case 5: add_attribute(dictionary); break;
    case 6: instantiate(); break;
    case 7: run(); break;
    case 8: run_on(); break;
    case 9: check(); break;
    case 10: jaxc_host_call_poison(h.call); break;
    case 11: add_to_host(); break;
    case 12: look(); break;
    default: probe(); break;
  }
}

/* The steps of one call; all that it owns is ended. */
static void use_call(void) {
  const jaxc_abi_bundle handlers = {.instantiate = fuzz_chance(in, 8) ? NULL : Act,
                                    .prepare = fuzz_chance(in, 8) ? NULL : Act,
                                    .initialize = fuzz_chance(in, 8) ? NULL : Act,
                                    .execute = fuzz_chance(in, 32) ? NULL : Act};
  jaxc_message message = {""};
  jaxc_host_attrs *dictionary;
  if (said(jaxc_host_call_create(h.host, &handlers, &h.call, &message), &message) !=
      JAXC_OK) {
    FUZZ_CHECK(h.call == NULL);
    return;
  }
  dictionary = jaxc_host_call_attrs(h.call);
  for (int i = 0; i < MAX_STEPS && in->at < in->size; i++) step(&dictionary);
  check();
  jaxc_host_call_destroy(h.call);
  FUZZ_CHECK(h.states == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {data, size, 0, NULL};
  jaxc_host_options options;
  const jaxc_host_options *given = &options;
  jaxc_message message = {""};
  in = &input;
  memset(&h, 0, sizeof h);
  state_type.id.type_id = 0;
  atomic_store(&tasks_started, 0);
  atomic_store(&tasks_done, 0);
  options = make_options();
  if (fuzz_chance(in, 8)) given = NULL;
  h.short_frame = given != NULL && options.faults.short_frame != 0 &&
                  options.struct_size == sizeof options;
  h.has_faults = given != NULL &&
                 (options.faults.fail_allocation != 0 || options.faults.fail_request != 0 ||
                  options.faults.fail_error != 0);
  if (said(jaxc_host_create(given, &h.host, &message), &message) == JAXC_OK) {
    use_call();
    check_leaks();
    jaxc_host_destroy(h.host);
    FUZZ_CHECK(atomic_load(&tasks_done) == atomic_load(&tasks_started));
  } else {
    FUZZ_CHECK(h.host == NULL);
  }
  fuzz_end(in);
  return 0;
}
