/* parts.h: what the files of the host share. Not installed.
 *
 * Rooms: lifetime.c (a host and what is added to it), memory.c (every allocation, and
 * memory between guards), failure.c (errors), future.c, types.c, attrs.c, operands.c,
 * frame.c (a frame in one block), call.c (stages and executions), pool.c, fpmode.c,
 * table.c and resources.c (the functions that a handler calls), probe.c and apart.c
 * (metadata).
 *
 *   jaxci_operand *operand = jaxci_allocate(host, sizeof *operand);
 *   if (operand == NULL) return jaxci_no_memory(message, sizeof *operand);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_HOST_PARTS_H
#define JAXC_HOST_PARTS_H

#include <jaxc/attrs.h>
#include <jaxc/call.h>
#include <jaxc/host.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sync.h"

typedef struct jaxci_execution jaxci_execution;

/* Types of extension nodes that no handler knows, from here on. */
#define JAXCI_UNKNOWN_TYPE 0x7A000000

/* ---- memory.c ---- */

/* Zeroed memory, or NULL: without memory, or because the host's options say that this
 * allocation fails. `host` may be NULL, in the handler's own threads. Given back with
 * free(). */
void *jaxci_allocate(jaxc_host *host, size_t size);

/* The same by a counter that is not in a host, for the host itself. */
void *jaxci_allocate_as(_Atomic int64_t *count, int64_t fail_at, size_t size);

/* A list with room for one more element of `size` bytes; moves it. Returns 0 without
 * memory, and leaves the list as it is. */
int jaxci_grow(jaxc_host *host, void **list, size_t count, size_t *capacity, size_t size);

jaxc_status jaxci_no_memory(jaxc_message *message, size_t size);

/* out = a + b, a * b; 0 when that overflows. */
static inline int jaxci_add(size_t a, size_t b, size_t *out) {
  *out = a + b;
  return *out >= a;
}
static inline int jaxci_times(size_t a, size_t b, size_t *out) {
  if (b != 0 && a > SIZE_MAX / b) return 0;
  *out = a * b;
  return 1;
}

/* `bytes` at `data` between guards, in one block. */
typedef struct {
  unsigned char *block;
  size_t block_bytes;
  unsigned char *data;
  size_t bytes;
} jaxci_guarded;

/* Counts a request of a handler; 1 when the host's options say that it fails. `host` may
 * be NULL. */
int jaxci_request_fails(jaxc_host *host);

/* data = a multiple of 64, and `misalignment`. Zeroed. Returns 0 without memory. */
int jaxci_guarded_make(jaxc_host *host, size_t bytes, size_t misalignment,
                       jaxci_guarded *out);

/* The same in a block that ends where the data end, without guards. */
int jaxci_exact_make(jaxc_host *host, size_t bytes, size_t misalignment,
                     jaxci_guarded *out);

/* Distance from the data of the first byte of a guard that was written: negative before
 * it, from 0 on behind its end. Returns 0 when none was. */
int jaxci_guarded_find(const jaxc_host *host, const jaxci_guarded *guarded,
                       int64_t *distance, int *is_before);

/* ---- failure.c ---- */

/* errors are in a list of the process, because error_destroy carries no context and
 * because what a handler returns must be known before it is followed. */
struct jaxc_abi_error {
  jaxc_abi_error *next;
  jaxc_abi_error *previous;
  jaxc_host *host; /* NULL of the handler's own threads */
  int32_t code;
  const char *text; /* behind the object */
};

/* The lists of errors and futures of the process, and what a future's end wakes. */
typedef struct {
  jaxci_mutex lock;
  jaxci_condition changed;
  jaxc_abi_error *errors;
  jaxc_abi_future *futures;
  jaxc_abi_future *ended; /* the last ones, newest first */
} jaxci_registry;
extern jaxci_registry jaxci_objects;

/* The host whose handler or task runs in this thread; NULL in any other thread. */
jaxc_host *jaxci_current(void);

/* Makes `host` the current one and returns the one before, to be put back. */
jaxc_host *jaxci_enter(jaxc_host *host);

/* Never NULL: without memory, the shared error RESOURCE_EXHAUSTED. */
jaxc_abi_error *jaxci_error_make(int32_t code, const char *format, ...) JAXC_PRINTF(2, 3);
jaxc_abi_error *jaxci_error_text(int32_t code, const char *text);
jaxc_abi_error *jaxci_error_shared(void);
void jaxci_error_end(jaxc_abi_error *error);

int jaxci_error_is_known(const jaxc_abi_error *error);

/* Takes an error out of the list, so that it belongs to the caller; 0 when it is none. */
int jaxci_error_claim(jaxc_abi_error *error);
int jaxci_error_claim_locked(jaxc_abi_error *error); /* by who holds the list's lock */

/* Turns what a handler returned into a status with its text, and destroys it. */
jaxc_status jaxci_error_settle(jaxc_abi_error *error, jaxc_message *message);

/* Errors of the host that live. */
int64_t jaxci_error_count(const jaxc_host *host);

/* Ends those. */
void jaxci_errors_clear(jaxc_host *host);

/* ---- future.c ---- */

struct jaxc_abi_future {
  jaxc_abi_future *next;
  jaxc_abi_future *previous;
  jaxc_host *host; /* NULL of the handler's own threads, and after the host's end */
  int is_done;
  int is_handed;
  int is_done_again;
  jaxc_abi_error *error; /* of a future that failed */
  /* Of one that did not finish in time: ends with it, because its work goes on. */
  jaxci_execution *abandoned;
};

jaxc_abi_error *jaxci_future_create(jaxc_abi_future **out);
jaxc_abi_error *jaxci_future_finish(jaxc_abi_future *future, jaxc_abi_error *error);

/* Waits for a future that a handler handed over. *pending is 1 when it gave up: the
 * execution then belongs to the future. */
jaxc_status jaxci_future_await(jaxc_abi_future *future, jaxci_execution *execution,
                               int32_t timeout_s, int *pending, jaxc_message *message);

/* Futures of the host that are not finished, that were not handed over, and that were
 * finished more than once. */
void jaxci_future_count(const jaxc_host *host, int64_t *unfinished, int64_t *unhanded,
                        int64_t *twice);
void jaxci_futures_clear(jaxc_host *host);

/* ---- attrs.c ---- */

typedef struct {
  char *name;
  size_t name_length;
  int32_t kind; /* JAXC_ABI_ATTR_* */
  int32_t dtype;
  size_t size; /* elements of an array, bytes of a string */
  void *data;
  jaxc_host_attrs *inner;
} jaxci_attr;

struct jaxc_host_attrs {
  jaxc_host *host;
  const int *sealed; /* of the call; NULL for options */
  jaxci_attr *list;  /* sorted */
  size_t count;
  size_t capacity;
};

jaxc_host_attrs *jaxci_attrs_make(jaxc_host *host, const int *sealed);
void jaxci_attrs_end(jaxc_host_attrs *attrs);

/* A block that is filled from its start; pieces are aligned to 16 bytes. */
typedef struct {
  char *base;
  size_t used;
  size_t size;
} jaxci_arena;
#define JAXCI_ROUND(bytes) (((bytes) + 15u) & ~(size_t)15u)
void *jaxci_arena_take(jaxci_arena *arena, size_t bytes);

/* Bytes that the dictionary takes in an arena; names and values are not copied there. */
size_t jaxci_attrs_bytes(const jaxc_host_attrs *attrs);
void jaxci_attrs_build(const jaxc_host_attrs *attrs, jaxci_arena *arena,
                       jaxc_abi_attrs *out);

/* ---- types.c ---- */

typedef struct {
  char *name;
  size_t name_length;
  int64_t id;
  void (*deleter)(void *object);
} jaxci_type;

/* Registers as XLA does; writes *id when it is 0. */
jaxc_status jaxci_type_register(jaxc_host *host, const char *name, size_t length,
                                int64_t *id, void (*deleter)(void *),
                                jaxc_message *message);

/* Copies the type of that id; 0 when there is none. */
int jaxci_type_find(jaxc_host *host, int64_t id, jaxci_type *out);

/* ---- the host ---- */

typedef struct jaxci_task {
  struct jaxci_task *next;
  jaxc_abi_task *function;
  void *data;
} jaxci_task;

typedef struct {
  jaxci_mutex lock;
  jaxci_condition changed;
  jaxci_task *first;
  jaxci_task *last;
  jaxci_thread *threads;
  int32_t thread_count; /* that run */
  int is_ending;
} jaxci_pool;

typedef struct jaxci_block {
  struct jaxci_block *next;
  void *data; /* behind it */
  size_t size;
} jaxci_block;

typedef struct {
  int64_t type_id;
  void *data;
} jaxci_user_data;

struct jaxc_host {
  jaxc_host_options options;
  jaxc_abi_api api;
  _Atomic int64_t allocation_count;
  _Atomic int64_t error_count;
  _Atomic int64_t request_count;
  int64_t twice_count; /* futures that were finished again; with jaxci_objects.lock */
  _Atomic int64_t run_count;
  int64_t stream; /* what NULL of the options points to */
  jaxci_mutex lock; /* of all that follows but the pool */
  jaxc_abi_extension *unknown; /* a chain, or NULL */
  jaxci_type *types;
  size_t type_count;
  size_t type_capacity;
  jaxci_user_data *user_data;
  size_t user_data_count;
  size_t user_data_capacity;
  const jaxc_abi_context_extension **extensions;
  size_t extension_count;
  size_t extension_capacity;
  jaxci_block *blocks;
  jaxc_abi_context *contexts; /* those not in use */
  jaxc_host_attrs *custom_options;
  jaxci_pool pool;
};

/* ---- operands.c ---- */

typedef struct {
  int32_t dtype;
  int32_t rank;
  int64_t *dims;
  size_t bytes;
  void *data;
  jaxci_guarded own;       /* block is NULL of borrowed memory */
  unsigned char *snapshot; /* of an argument in the host's memory */
  int32_t alias;           /* the operand on the other side, or -1 */
} jaxci_operand;

typedef struct {
  jaxci_operand *list;
  size_t count;
  size_t capacity;
} jaxci_operand_list;

void jaxci_operands_end(jaxci_operand_list *list);

/* ---- call.c ---- */

typedef struct {
  void *object;
  int64_t type_id;
  void (*deleter)(void *object);
} jaxci_state;

struct jaxc_host_call {
  jaxc_host *host;
  jaxc_abi_bundle handlers;
  jaxc_host_attrs *attrs;
  jaxci_operand_list arguments;
  jaxci_operand_list results;
  jaxci_state state; /* of instantiate */
  int is_instantiated;
  int has_run;
  int has_results; /* the last run succeeded, on results that were not poisoned since */
  _Atomic int references; /* the caller's, and one for each execution */
};

/* One execution, or the instantiate stage. */
struct jaxci_execution {
  jaxc_host_call *call;
  void *const *arguments; /* NULL: those of the call */
  void *const *results;
  int64_t run_id;
  jaxci_state states[2]; /* of prepare and initialize */
  char *block;           /* the frame of the stage that runs */
  size_t block_bytes;
  jaxci_task *first_late; /* of JAXC_HOST_LATE; with the pool's lock */
  jaxci_task *last_late;
};
void jaxci_execution_end(jaxci_execution *execution);

/* What a handler's context is. Contexts are used again and live as long as the host, so
 * that one which is asked after its handler has returned can say so. */
struct jaxc_abi_context {
  jaxc_abi_context *next;
  jaxc_host *host;
  jaxci_execution *execution;
  jaxc_abi_attrs options;
  int32_t stage;
  _Atomic int is_live;
};
jaxc_abi_context *jaxci_context_lend(jaxc_host *host);
void jaxci_context_return(jaxc_abi_context *context);

/* Calls the handler as the host, in its mode of arithmetic when it executes. */
jaxc_abi_error *jaxci_invoke(jaxc_host *host, jaxc_abi_handler *handler,
                             jaxc_abi_call_frame *frame, int in_mode);

/* ---- frame.c ---- */

/* Builds the frame of a stage in a new block of the execution. NULL without memory. */
jaxc_abi_call_frame *jaxci_frame_build(jaxci_execution *execution, int32_t stage,
                                       jaxc_abi_context *context);

/* ---- pool.c, fpmode.c, table.c, probe.c ---- */

void jaxci_pool_init(jaxc_host *host);
jaxc_status jaxci_pool_start(jaxc_host *host, jaxc_message *message);
void jaxci_pool_end(jaxc_host *host);
jaxc_abi_error *jaxci_pool_schedule(jaxci_execution *execution, jaxc_abi_task *task,
                                    void *data);

/* Runs the tasks that have waited for the handler's end. */
void jaxci_pool_run_late(jaxci_execution *execution);

int jaxci_flush_is_known(void);
uint64_t jaxci_flush_begin(void);
void jaxci_flush_end(uint64_t before);

void jaxci_table_fill(jaxc_host *host);

/* jaxc_host_probe_apart with the limit of time given. */
jaxc_status jaxci_probe_apart(jaxc_host *host, jaxc_abi_handler *handler, int limit_ms,
                              jaxc_host_metadata *out, jaxc_message *message);

#endif /* JAXC_HOST_PARTS_H */
