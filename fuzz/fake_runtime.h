/* fake_runtime.h: a function table that keeps account of what a handler does with it.
 *
 *   fuzz_runtime_begin(&in);                     a table of any minor and any length
 *   error = handler(frame);
 *   fuzz_runtime_end(error, "Handler");          what must hold after each call
 *
 * Some functions fail where the bytes say so. There is one runtime at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_FUZZ_FAKE_RUNTIME_H
#define JAXC_FUZZ_FAKE_RUNTIME_H

#include <jaxc/jaxc.h>

#include "input.h"

struct jaxc_abi_error {
  struct jaxc_abi_error *next;
  int32_t code;
  char *text;
};

struct jaxc_abi_future {
  int finished;
};

static struct {
  fuzz_input *in;
  jaxc_abi_api *api;
  jaxc_abi_error *errors; /* that live */
  jaxc_abi_future future;
  int futures;            /* created in this call */
  int64_t blocks;         /* of device memory that live */
  int64_t types;
  jaxc_abi_attrs options;
  int64_t error_count;    /* of all created */
} fuzz_runtime;

static jaxc_abi_error *fuzz_error_new(int32_t code, const char *text) {
  jaxc_abi_error *const error = malloc(sizeof *error);
  const size_t length = strlen(text); /* reads until the NUL, which must be there */
  if (error == NULL) exit(2);
  error->text = malloc(length + 1);
  if (error->text == NULL) exit(2);
  memcpy(error->text, text, length + 1);
  error->code = code;
  error->next = fuzz_runtime.errors;
  fuzz_runtime.errors = error;
  fuzz_runtime.error_count++;
  return error;
}

static void fuzz_error_free(jaxc_abi_error *error) {
  jaxc_abi_error **at = &fuzz_runtime.errors;
  while (*at != NULL && *at != error) at = &(*at)->next;
  FUZZ_CHECK(*at != NULL); /* one that lives, destroyed once */
  *at = error->next;
  free(error->text);
  free(error);
}

static jaxc_abi_error *fuzz_error_create(jaxc_abi_error_create_args *args) {
  FUZZ_CHECK(args->struct_size >= 28 && args->message != NULL);
  return fuzz_error_new(args->code, args->message);
}

static void fuzz_error_details(jaxc_abi_error_details_args *args) {
  FUZZ_CHECK(args->struct_size >= 32);
  args->message = args->error->text;
  if (fuzz_runtime.api->api_version.minor_version >= 4) args->code = args->error->code;
}

static void fuzz_error_destroy(jaxc_abi_error_destroy_args *args) {
  FUZZ_CHECK(args->struct_size >= 24);
  fuzz_error_free(args->error);
}

/* NULL, or an error where the bytes say so. */
static jaxc_abi_error *fuzz_error_maybe(const char *text) {
  if (!fuzz_chance(fuzz_runtime.in, 8)) return NULL;
  return fuzz_error_new(fuzz_byte(fuzz_runtime.in) % 20, text);
}

static jaxc_abi_error *fuzz_stream(jaxc_abi_stream_args *args) {
  FUZZ_CHECK(args->struct_size >= 32);
  args->stream = &fuzz_runtime;
  return fuzz_error_maybe("no stream");
}

static jaxc_abi_error *fuzz_type_register(jaxc_abi_type_register_args *args) {
  FUZZ_CHECK(args->struct_size >= 40 && args->name.ptr != NULL);
  if (args->type_id->type_id == 0) args->type_id->type_id = ++fuzz_runtime.types;
  return fuzz_error_maybe("type is known");
}

static jaxc_abi_error *fuzz_user_data(jaxc_abi_user_data_args *args) {
  FUZZ_CHECK(args->struct_size >= 40 && args->type_id != NULL);
  args->data = NULL;
  return fuzz_error_maybe("no data");
}

/* The id lies where this minor's layout has it. */
static void fuzz_state_check(const jaxc_abi_state_args *args) {
  const int staged = fuzz_runtime.api->api_version.minor_version >= 3;
  const jaxc_abi_type_id *const id =
      staged ? args->u.staged.type_id : args->u.single.type_id;
  FUZZ_CHECK(args->struct_size >= (staged ? 48 : 40));
  FUZZ_CHECK(id != NULL && id->type_id >= 0);
  if (staged) FUZZ_CHECK(args->u.staged.stage >= 0 && args->u.staged.stage <= 2);
}

static jaxc_abi_error *fuzz_state_set(jaxc_abi_state_args *args) {
  fuzz_state_check(args);
  return fuzz_error_maybe("State is already set");
}

static jaxc_abi_error *fuzz_state_get(jaxc_abi_state_args *args) {
  fuzz_state_check(args);
  if (fuzz_runtime.api->api_version.minor_version >= 3) {
    args->u.staged.state = &fuzz_runtime;
  } else {
    args->u.single.state = &fuzz_runtime;
  }
  return fuzz_error_maybe("State is not set");
}

static jaxc_abi_error *fuzz_memory_allocate(jaxc_abi_memory_allocate_args *args) {
  jaxc_abi_error *const error = fuzz_error_maybe("no device memory");
  FUZZ_CHECK(args->struct_size >= 48 && args->size != 0 && args->alignment <= 16);
  if (error != NULL) return error;
  args->data = malloc(1);
  if (args->data == NULL) exit(2);
  fuzz_runtime.blocks++;
  return NULL;
}

static jaxc_abi_error *fuzz_memory_free(jaxc_abi_memory_free_args *args) {
  FUZZ_CHECK(args->struct_size >= 40 && args->size != 0);
  free(args->data);
  fuzz_runtime.blocks--;
  return fuzz_error_maybe("cannot free");
}

static jaxc_abi_error *fuzz_schedule(jaxc_abi_schedule_args *args) {
  jaxc_abi_error *const error = fuzz_error_maybe("no pool");
  FUZZ_CHECK(args->struct_size >= 40);
  if (error == NULL) args->task(args->data);
  return error;
}

static jaxc_abi_error *fuzz_thread_count(jaxc_abi_thread_count_args *args) {
  FUZZ_CHECK(args->struct_size >= 32);
  *args->thread_count = 1;
  return fuzz_error_maybe("no pool");
}

static jaxc_abi_error *fuzz_future_create(jaxc_abi_future_create_args *args) {
  jaxc_abi_error *const error = fuzz_error_maybe("no future");
  FUZZ_CHECK(args->struct_size >= 16 && fuzz_runtime.futures == 0);
  if (error != NULL) return error;
  fuzz_runtime.futures = 1;
  fuzz_runtime.future.finished = 0;
  args->future = &fuzz_runtime.future;
  return NULL;
}

/* Only a future of this call, and once. */
static void fuzz_future_check(const jaxc_abi_future *future) {
  FUZZ_CHECK(fuzz_runtime.futures == 1 && future == &fuzz_runtime.future);
  FUZZ_CHECK(future->finished == 0);
}

static jaxc_abi_error *fuzz_future_available(jaxc_abi_future_available_args *args) {
  fuzz_future_check(args->future);
  args->future->finished = 1;
  return NULL;
}

static jaxc_abi_error *fuzz_future_error(jaxc_abi_future_error_args *args) {
  fuzz_future_check(args->future);
  FUZZ_CHECK(args->error != NULL);
  args->future->finished = 1;
  fuzz_error_free(args->error);
  return NULL;
}

static jaxc_abi_error *fuzz_run_id(jaxc_abi_run_id_args *args) {
  args->run_id = 7;
  return fuzz_error_maybe("no run id");
}

static jaxc_abi_error *fuzz_device_ordinal(jaxc_abi_device_ordinal_args *args) {
  args->device_ordinal = -1;
  return fuzz_error_maybe("no device");
}

static jaxc_abi_error *fuzz_find_extension(jaxc_abi_find_extension_args *args) {
  args->extension = NULL;
  return fuzz_error_maybe("no extension");
}

static jaxc_abi_error *fuzz_options(jaxc_abi_options_args *args) {
  args->attrs = &fuzz_runtime.options;
  return fuzz_error_maybe("no options");
}

static const jaxc_abi_api fuzz_table = {
    .error_create = fuzz_error_create,
    .error_details = fuzz_error_details,
    .error_destroy = fuzz_error_destroy,
    .stream = fuzz_stream,
    .type_register = fuzz_type_register,
    .user_data = fuzz_user_data,
    .state_set = fuzz_state_set,
    .state_get = fuzz_state_get,
    .memory_allocate = fuzz_memory_allocate,
    .memory_free = fuzz_memory_free,
    .schedule = fuzz_schedule,
    .thread_count = fuzz_thread_count,
    .future_create = fuzz_future_create,
    .future_available = fuzz_future_available,
    .future_error = fuzz_future_error,
    .run_id = fuzz_run_id,
    .device_ordinal = fuzz_device_ordinal,
    .find_extension = fuzz_find_extension,
    .options = fuzz_options,
};

/* A table that ends behind one of its slots, in a block that ends there too. All have the
 * functions for errors: no runtime of 0.1 lacks them, and nothing can be said without. */
static inline void fuzz_runtime_begin(fuzz_input *in) {
  static const size_t sizes[] = {192, 200, 208, 72, 80, 96, 120, 144, 168, 184};
  const int minor = (int)fuzz_between(in, 0, 9);
  const size_t size = fuzz_chance(in, 4) ? sizes[fuzz_byte(in) % 10]
                      : minor <= 3       ? 192
                                         : 208;
  memset(&fuzz_runtime, 0, sizeof fuzz_runtime);
  fuzz_runtime.in = in;
  fuzz_runtime.api = fuzz_new(in, size);
  memcpy(fuzz_runtime.api, &fuzz_table, size);
  fuzz_runtime.api->struct_size = size;
  fuzz_runtime.api->api_version.struct_size = sizeof(jaxc_abi_version);
  fuzz_runtime.api->api_version.minor_version = minor;
  fuzz_runtime.options.struct_size = sizeof fuzz_runtime.options;
}

/* Looks at what came back, and ends it. `has_future` is the frame's. */
static inline void fuzz_runtime_end(jaxc_abi_error *error, const char *name,
                             const jaxc_abi_future *future) {
  if (error != NULL) {
    const size_t length = strlen(name);
    FUZZ_CHECK(strlen(error->text) < sizeof(jaxc_message));
    FUZZ_CHECK(strncmp(error->text, name, length) == 0);
    FUZZ_CHECK(strncmp(error->text + length, ": ", 2) == 0);
    FUZZ_CHECK(error->text[length + 2] != '\0'); /* each refusal says why */
    FUZZ_CHECK(error->code > JAXC_OK && error->code <= JAXC_UNAUTHENTICATED);
    FUZZ_CHECK(fuzz_runtime.futures == 0); /* an error, or a future, not both */
    fuzz_error_free(error);
  }
  if (fuzz_runtime.futures != 0) {
    FUZZ_CHECK(future == &fuzz_runtime.future && fuzz_runtime.future.finished == 1);
  }
  FUZZ_CHECK(fuzz_runtime.errors == NULL); /* none is left behind */
  FUZZ_CHECK(fuzz_runtime.blocks == 0);
}

#endif /* JAXC_FUZZ_FAKE_RUNTIME_H */
