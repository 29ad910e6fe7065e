/* error.h: a status code with an optional message, and the one place where they become
 * an error object of XLA.
 *
 *   static jaxc_status check(int n, jaxc_message *out) {
 *     if (n < 3) return JAXC_FAIL(out, JAXC_INVALID_ARGUMENT, "n is %d, expected 3", n);
 *     return JAXC_OK;
 *   }
 *   ...
 *   JAXC_TRY(check(n, &message));
 *
 * A message belongs to the caller, has a fixed size and is cut, never overrun. NULL is
 * allowed in its place. No function here allocates except through the runtime.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_ERROR_H
#define JAXC_ERROR_H

#include <jaxc/abi.h>
#include <stdarg.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Status codes; the numbers are XLA_FFI_Error_Code's, which are absl::StatusCode's. */
typedef enum {
  JAXC_OK = 0,
  JAXC_CANCELLED = 1,
  JAXC_UNKNOWN = 2,
  JAXC_INVALID_ARGUMENT = 3,
  JAXC_DEADLINE_EXCEEDED = 4,
  JAXC_NOT_FOUND = 5,
  JAXC_ALREADY_EXISTS = 6,
  JAXC_PERMISSION_DENIED = 7,
  JAXC_RESOURCE_EXHAUSTED = 8,
  JAXC_FAILED_PRECONDITION = 9,
  JAXC_ABORTED = 10,
  JAXC_OUT_OF_RANGE = 11,
  JAXC_UNIMPLEMENTED = 12,
  JAXC_INTERNAL = 13,
  JAXC_UNAVAILABLE = 14,
  JAXC_DATA_LOSS = 15,
  JAXC_UNAUTHENTICATED = 16
} jaxc_status;

#if defined(__GNUC__) || defined(__clang__)
#define JAXC_MUST_USE __attribute__((warn_unused_result))
#define JAXC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define JAXC_COLD __attribute__((cold, noinline))
#define JAXC_NOINLINE __attribute__((noinline))
#define JAXC_UNUSED __attribute__((unused))
#define JAXC_INLINE inline __attribute__((always_inline))
/* Before a loop over a constant table. */
#define JAXC_UNROLL _Pragma("GCC unroll 64")
#else
#define JAXC_MUST_USE
#define JAXC_PRINTF(text, first)
#define JAXC_COLD
#define JAXC_NOINLINE
#define JAXC_UNUSED
#define JAXC_INLINE inline
#define JAXC_UNROLL
#endif

/* The text that goes with a status other than JAXC_OK. */
typedef struct {
  char text[1024];
} jaxc_message;

/* Writes the message, cut to its size, and returns `code`. `message` may be NULL. */
JAXC_UNUSED JAXC_COLD JAXC_PRINTF(3, 4) static jaxc_status
    jaxc_message_set(jaxc_message *message, jaxc_status code, const char *format, ...) {
  va_list list;
  if (message == NULL) return code;
  va_start(list, format);
  if (vsnprintf(message->text, sizeof message->text, format, list) < 0) {
    message->text[0] = '\0';
  }
  va_end(list);
  return code;
}

/* A failure is never JAXC_OK, and the compiler may know it. */
JAXC_UNUSED static JAXC_INLINE jaxc_status jaxci_not_ok(jaxc_status status) {
  return status == JAXC_OK ? JAXC_INTERNAL : status;
}

/* Makes a status with its text. */
#define JAXC_FAIL(message, ...) jaxci_not_ok(jaxc_message_set(message, __VA_ARGS__))

/* Returns from the calling function when `expression` is not JAXC_OK. */
#define JAXC_TRY(expression)                               \
  do {                                                     \
    const jaxc_status jaxci_status = (expression);         \
    if (jaxci_status != JAXC_OK) return jaxci_status;      \
  } while (0)

/* Makes the runtime's error object; the handler returns it and the runtime owns it.
 * `text` is copied. Returns NULL only when the table is too small to have error_create,
 * which no supported runtime is. */
JAXC_UNUSED JAXC_COLD static jaxc_abi_error *jaxc_error_create(const jaxc_abi_api *api,
                                                               jaxc_status code,
                                                               const char *text) {
  jaxc_abi_error_create_args args;
  if (api == NULL || !JAXC_ABI_HAS(api, jaxc_abi_api, error_create) ||
      api->error_create == NULL) {
    return NULL;
  }
  /* XLA counts the size up to the last field, without the padding behind it. */
  args.struct_size =
      offsetof(jaxc_abi_error_create_args, code) + sizeof args.code;
  args.extension_start = NULL;
  args.message = text;
  args.code = (int32_t)code;
  return api->error_create(&args);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_ERROR_H */
