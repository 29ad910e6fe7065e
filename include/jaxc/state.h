/* state.h: objects that a handler keeps between calls, and those that the program's caller
 * attaches to an execution.
 *
 *   static void plan_destroy(void *plan) { free(plan); }
 *   static jaxc_state_type plan_type = JAXC_STATE_TYPE("my_library.plan", plan_destroy);
 *
 *   instantiate:   JAXC_TRY(jaxc_state_set(context, &plan_type, plan));
 *   execute:       JAXC_TRY(jaxc_state_get(context, &plan_type, JAXC_STAGE_INSTANTIATE,
 *                                          &plan));
 *
 * The state of instantiate belongs to one call site of one compiled program: it is made
 * once and destroyed with the program. The states of prepare and initialize belong to one
 * execution, on GPUs only, and need API 0.3. Calls of several threads and devices share
 * a state of instantiate at the same time: it must be constant or protect itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_STATE_H
#define JAXC_STATE_H

#include <jaxc/context.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A type of states. One object for the process, not constant: the runtime writes its id
 * when the handler is registered, or when the first state is set (API 0.1). */
typedef struct {
  const char *name;        /* unique in the process: "library.type" */
  jaxc_abi_type_id id;     /* 0 until it is registered */
  jaxc_abi_type_info info; /* read by the runtime as long as the process lives */
} jaxc_state_type;

/* `destroy` is called once for each state that was set, in any thread. */
#define JAXC_STATE_TYPE(name, destroy)                                              \
  {name, {0}, {JAXC_ABI_SIZE(jaxc_abi_type_info, deleter), NULL, destroy}}

/* Registers the type with the runtime that the frame belongs to, in its metadata query;
 * a runtime that knows it already checks that it is the same. */
JAXC_UNUSED JAXC_NOINLINE static jaxc_status jaxci_state_register(const jaxc_abi_api *api,
                                                                  jaxc_state_type *type,
                                                                  jaxc_message *message) {
  jaxc_abi_type_register_args args = JAXC_ZERO;
  jaxc_abi_error *error;
  if (!JAXC_ABI_HAS(api, jaxc_abi_api, type_register) || api->type_register == NULL) {
    return JAXC_FAIL(message, JAXC_UNIMPLEMENTED, "the runtime cannot register type '%s'",
                     type->name);
  }
  /* XLA compares with the size up to type_id, whose value is 40. */
  args.struct_size = offsetof(jaxc_abi_type_register_args, type_info);
  args.name.ptr = type->name;
  args.name.len = strlen(type->name);
  args.type_id = &type->id;
  args.type_info = &type->info;
  error = api->type_register(&args);
  if (error == NULL) return JAXC_OK;
  return jaxci_error_take(api, error, "type registration", message);
}

/* Whether the call runs on a CPU, where prepare and initialize do not run: it has a pool
 * of threads, or is refused one in words that are not those of a GPU. */
JAXC_UNUSED JAXC_COLD static int jaxci_state_is_cpu(jaxc_context *context) {
  int64_t threads;
  return jaxc_context_thread_count(context, &threads) == JAXC_OK ||
         strstr(context->message.text, "thread pool available") != NULL;
}

/* Refuses a stage whose state the runtime cannot have: it does not look, and follows a
 * null pointer. */
static inline jaxc_status jaxci_state_stage(jaxc_context *context, int32_t stage) {
  static const char *const names[] = {"instantiate", "prepare", "initialize"};
  if (stage < JAXC_STAGE_INSTANTIATE || stage > JAXC_STAGE_INITIALIZE) {
    return jaxc_fail(context, JAXC_FAILED_PRECONDITION,
                     "instantiate, prepare and initialize have a state, not stage %d",
                     (int)stage);
  }
  if (stage == JAXC_STAGE_INSTANTIATE) return JAXC_OK;
  if (jaxc_context_minor(context) < 3) {
    return jaxc_fail(context, JAXC_UNIMPLEMENTED,
                     "a state of %s needs XLA FFI API 0.3, the runtime has 0.%d",
                     names[stage], jaxc_context_minor(context));
  }
  if (jaxci_state_is_cpu(context)) {
    return jaxc_fail(context, JAXC_FAILED_PRECONDITION,
                     "there is no state of %s on a CPU, where that stage does not run",
                     names[stage]);
  }
  if (stage > context->frame->stage) {
    return jaxc_fail(context, JAXC_FAILED_PRECONDITION,
                     "there is no state of %s before that stage", names[stage]);
  }
  context->message.text[0] = '\0';
  return JAXC_OK;
}

/* Fills the struct in the layout of the runtime's version; the value of its size. */
static inline void jaxci_state_args(const jaxc_context *context, jaxc_abi_state_args *args,
                                    jaxc_state_type *type, int32_t stage, void *state) {
  memset(args, 0, sizeof *args);
  args->struct_size = JAXC_ABI_STATE_SIZE;
  args->context = context->frame->context;
  if (jaxc_context_minor(context) >= 3) {
    args->u.staged.stage = stage;
    args->u.staged.type_id = &type->id;
    args->u.staged.state = state;
  } else {
    args->u.single.type_id = &type->id;
    args->u.single.state = state;
    args->u.single.deleter = type->info.deleter;
  }
}

/* Gives `state` to the runtime as the state of the stage that runs: instantiate, prepare
 * or initialize. The runtime owns it when JAXC_OK comes back, and destroys it by the
 * type; before, it is still the caller's. FAILED_PRECONDITION when there is one already
 * or in another stage, UNIMPLEMENTED where the runtime has no such state. */
JAXC_UNUSED static jaxc_status jaxc_state_set(jaxc_context *context, jaxc_state_type *type,
                                              void *state) {
  jaxc_abi_state_args args;
  JAXCI_CONTEXT_NEED(context, state_set, 1, "a state");
  JAXC_TRY(jaxci_state_stage(context, context->frame->stage));
  if (type->id.type_id == 0) {
    /* Runtimes of API 0.1 have no table in their metadata query, so this is the first
     * chance. Of two threads that come here at once the second may be told that the type
     * is registered, which is what was wanted. */
    const jaxc_status status =
        jaxci_state_register(context->frame->api, type, &context->message);
    if (status != JAXC_OK && type->id.type_id == 0) return status;
  }
  jaxci_state_args(context, &args, type, context->frame->stage, state);
  return jaxci_context_take(context, context->frame->api->state_set(&args), "state");
}

/* The state that `stage` has set. It belongs to the runtime. An error when that stage set
 * none, or one of another type. */
JAXC_UNUSED static jaxc_status jaxc_state_get(jaxc_context *context, jaxc_state_type *type,
                                              int32_t stage, void **out) {
  jaxc_abi_state_args args;
  *out = NULL;
  JAXCI_CONTEXT_NEED(context, state_get, 1, "a state");
  JAXC_TRY(jaxci_state_stage(context, stage));
  jaxci_state_args(context, &args, type, stage, NULL);
  if (jaxc_context_minor(context) < 3) args.struct_size = JAXC_ABI_STATE_SIZE_GET_SINGLE;
  JAXC_TRY(jaxci_context_take(context, context->frame->api->state_get(&args), "state"));
  *out = jaxc_context_minor(context) >= 3 ? args.u.staged.state : args.u.single.state;
  return JAXC_OK;
}

/* The object of that type that the program's caller attached to this execution. It
 * belongs to the caller. Ask only in a program whose caller attaches objects: a runtime
 * without any may not check. FAILED_PRECONDITION in instantiate and prepare. */
JAXC_UNUSED static jaxc_status jaxc_context_user_data(jaxc_context *context,
                                                      jaxc_state_type *type, void **out) {
  jaxc_abi_user_data_args args = JAXC_ZERO;
  *out = NULL;
  JAXCI_CONTEXT_NEED(context, user_data, 1, "user data");
  if (context->frame->stage < JAXC_STAGE_INITIALIZE) {
    return jaxc_fail(context, JAXC_FAILED_PRECONDITION,
                     "user data belongs to an execution: ask in initialize or execute");
  }
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_user_data_args, data);
  args.context = context->frame->context;
  args.type_id = &type->id;
  JAXC_TRY(jaxci_context_take(context, context->frame->api->user_data(&args),
                              "user data"));
  *out = args.data;
  return JAXC_OK;
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_STATE_H */
