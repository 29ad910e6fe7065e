/* decode_main.c: calls a handler many times, for instructions.py to count what it costs.
 *
 *   decode_main LIBRARY CALL COUNT
 *
 * CALL is `four`, `one`, or `error`, which is `four` with an argument of another type.
 * The handler is that of a function that the library describes, else an exported symbol.
 * The frame is as XLA gives it. Exit status 1 when a call did not do what it should have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <jaxc/abi.h>
#include <jaxc/error.h>
#include <jaxc/library.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, COLUMNS = 5, SIZES = ROWS + COLUMNS + ROWS * COLUMNS, BUFFERS = 4 };

/* What XLA's error object is does not matter to a handler. */
struct jaxc_abi_error {
  int32_t code;
};

static struct jaxc_abi_error last_error;

static jaxc_abi_error *error_create(jaxc_abi_error_create_args *args) {
  last_error.code = args->code;
  return &last_error;
}

/* The table as a runtime of API 0.3 has it. */
static const jaxc_abi_api api = {
    .struct_size = offsetof(jaxc_abi_api, find_extension),
    .api_version = {sizeof(jaxc_abi_version), NULL, 0, 3},
    .error_create = error_create,
};

/* All that a frame points to; the result is the last buffer. */
typedef struct {
  jaxc_abi_call_frame frame;
  jaxc_abi_buffer buffers[BUFFERS];
  void *pointers[BUFFERS];
  int32_t buffer_types[BUFFERS];
  int64_t dims[BUFFERS][2];
  float data[BUFFERS][ROWS * COLUMNS];
  jaxc_abi_span names[2];
  jaxc_abi_span *name_pointers[2];
  jaxc_abi_scalar scalars[2];
  void *attrs[2];
  int32_t attr_types[2];
  float eps;
  int64_t mode;
} call_t;

static jaxc_abi_operands operands(call_t *call, int first, int count) {
  const jaxc_abi_operands list = {sizeof list, NULL, count, call->buffer_types + first,
                                  call->pointers + first};
  return list;
}

/* Arguments 1, 2, 4 with a result behind them. */
static void add_buffers(call_t *call, int arguments) {
  for (int i = 0; i <= arguments; i++) {
    jaxc_abi_buffer *const buffer = &call->buffers[i];
    call->dims[i][0] = ROWS;
    call->dims[i][1] = COLUMNS;
    call->data[i][0] = (float)(1 << i);
    buffer->struct_size = sizeof *buffer;
    buffer->dtype = JAXC_F32;
    buffer->data = call->data[i];
    buffer->rank = 2;
    buffer->dims = call->dims[i];
    call->buffer_types[i] = JAXC_ABI_BUFFER;
    call->pointers[i] = buffer;
  }
  call->frame.args = operands(call, 0, arguments);
  call->frame.results = operands(call, arguments, 1);
}

/* eps = 0.5 and mode = 7, sorted by name. */
static void add_attributes(call_t *call) {
  call->eps = 0.5f;
  call->mode = 7;
  call->names[0] = (jaxc_abi_span){"eps", 3};
  call->names[1] = (jaxc_abi_span){"mode", 4};
  call->scalars[0] = (jaxc_abi_scalar){JAXC_F32, &call->eps};
  call->scalars[1] = (jaxc_abi_scalar){JAXC_S64, &call->mode};
  for (int i = 0; i < 2; i++) {
    call->name_pointers[i] = &call->names[i];
    call->attr_types[i] = JAXC_ABI_ATTR_SCALAR;
    call->attrs[i] = &call->scalars[i];
  }
  call->frame.attrs.size = 2;
}

static void begin(call_t *call, const char *kind) {
  const int is_one = strcmp(kind, "one") == 0;
  memset(call, 0, sizeof *call);
  call->frame.struct_size = JAXC_ABI_FRAME_SIZE;
  call->frame.api = &api;
  call->frame.stage = JAXC_STAGE_EXECUTE;
  call->frame.attrs.struct_size = sizeof call->frame.attrs;
  call->frame.attrs.types = call->attr_types;
  call->frame.attrs.names = call->name_pointers;
  call->frame.attrs.data = call->attrs;
  add_buffers(call, is_one ? 1 : 3);
  if (!is_one) add_attributes(call);
  if (strcmp(kind, "error") == 0) call->buffers[1].dtype = JAXC_F64;
}

/* The handler `name` of a library; NULL when it has none. */
static jaxc_abi_handler *find(void *library, const char *name) {
  const jaxc_library *const table = dlsym(library, "jaxc_library_table");
  jaxc_abi_handler *handler = NULL;
  if (table != NULL) {
    for (int32_t i = 0; i < table->function_count; i++) {
      const jaxc_function *const function = table->functions[i];
      if (strcmp(function->name, name) == 0 && function->entry_count > 0) {
        return function->entries[0].execute;
      }
    }
    return NULL;
  }
  *(void **)&handler = dlsym(library, name);
  return handler;
}

/* Returns how many calls ended as they should. */
static long run(call_t *call, jaxc_abi_handler *handler, long count, int fails) {
  long right = 0;
  for (long i = 0; i < count; i++) {
    right += (handler(&call->frame) != NULL) == fails;
  }
  return right;
}

/* True when the result, or the error, of the last call is right. */
static int is_right(const call_t *call, const char *kind) {
  if (strcmp(kind, "error") == 0) return last_error.code == JAXC_INVALID_ARGUMENT;
  if (strcmp(kind, "one") == 0) return call->data[1][0] == 1 + 2 * SIZES;
  return call->data[3][0] == 1 + 2 + 4 + 0.5f + 7 + 4 * SIZES;
}

int main(int argc, char **argv) {
  call_t call;
  void *library;
  jaxc_abi_handler *handler;
  long count, right;
  if (argc != 4 || (strcmp(argv[2], "four") != 0 && strcmp(argv[2], "one") != 0 &&
                    strcmp(argv[2], "error") != 0)) {
    fprintf(stderr, "usage: %s LIBRARY four|one|error COUNT\n", argv[0]);
    return 2;
  }
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  handler = find(library, strcmp(argv[2], "one") == 0 ? "decode_one" : "decode_four");
  if (handler == NULL) {
    fprintf(stderr, "%s has no handler for '%s'\n", argv[1], argv[2]);
    return 1;
  }
  count = strtol(argv[3], NULL, 10);
  begin(&call, argv[2]);
  right = run(&call, handler, count, strcmp(argv[2], "error") == 0);
  if (right != count || !is_right(&call, argv[2])) {
    fprintf(stderr, "%ld of %ld calls of '%s' ended right; result %g, error %d\n", right,
            count, argv[2], (double)call.data[argv[2][0] == 'o' ? 1 : 3][0],
            (int)last_error.code);
    return 1;
  }
  return 0;
}
