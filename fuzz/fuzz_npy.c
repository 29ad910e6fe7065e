/* fuzz_npy.c: .npy files of any bytes.
 *
 * What must hold: a file that is taken has as many bytes as its shape says, and what is
 * written from it reads back the same; a refusal names the file and says why; nothing is
 * left allocated.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "../src/run/run.h"
#include "input.h"

/* Two files of this process, deleted at its end. */
static char paths[2][64];
static void remove_files(void) {
  unlink(paths[0]);
  unlink(paths[1]);
}

static void make_files(void) {
  for (int i = 0; i < 2; i++) {
    const char *const folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    int file;
    snprintf(paths[i], sizeof paths[i], "%s/jaxc-fuzz-XXXXXX", folder);
    file = mkstemp(paths[i]);
    if (file < 0) exit(2);
    close(file);
  }
  atexit(remove_files);
}

static void write_file(const char *path, const uint8_t *data, size_t size) {
  FILE *const file = fopen(path, "wb");
  if (file == NULL) exit(2);
  if (size != 0 && fwrite(data, 1, size, file) != size) exit(2);
  if (fclose(file) != 0) exit(2);
}

static int is_taken(jaxc_status status, const char *path, const jaxc_message *message) {
  if (status == JAXC_OK) return 1;
  FUZZ_CHECK(memchr(message->text, '\0', sizeof message->text) != NULL);
  FUZZ_CHECK(strncmp(message->text, path, strlen(path)) == 0);
  FUZZ_CHECK(strlen(message->text) > strlen(path) + 2);
  return 0;
}

static void check_again(const jaxci_array *array) {
  jaxci_array again;
  jaxc_message message;
  memset(&again, 0, sizeof again);
  FUZZ_CHECK(jaxci_npy_write(paths[1], &array->shape, array->data, &message) == JAXC_OK);
  FUZZ_CHECK(jaxci_npy_read(paths[1], array->shape.dtype, &again, &message) == JAXC_OK);
  FUZZ_CHECK(again.shape.dtype == array->shape.dtype);
  FUZZ_CHECK(again.shape.rank == array->shape.rank && again.bytes == array->bytes);
  FUZZ_CHECK(memcmp(again.shape.dims, array->shape.dims,
                    (size_t)array->shape.rank * sizeof *array->shape.dims) == 0);
  FUZZ_CHECK(memcmp(again.data, array->data, array->bytes) == 0);
  free(again.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int32_t named[] = {JAXC_DTYPE_INVALID, JAXC_BF16, JAXC_F8E4M3FN,
                                  JAXC_F8E5M2,        JAXC_F32,  JAXC_S4,
                                  JAXC_TOKEN,         JAXC_C128};
  jaxci_array array;
  jaxc_message message;
  const int32_t dtype = named[size > 0 ? data[0] % 8 : 0];
  jaxc_status status;
  if (paths[0][0] == '\0') make_files();
  write_file(paths[0], data + (size > 0), size > 0 ? size - 1 : 0);
  memset(&array, 0, sizeof array);
  status = jaxci_npy_read(paths[0], dtype, &array, &message);
  if (is_taken(status, paths[0], &message)) {
    int64_t count = 0;
    FUZZ_CHECK(jaxci_shape_count(&array.shape, &count));
    FUZZ_CHECK(array.bytes == (size_t)count * jaxc_dtype_size(array.shape.dtype));
    FUZZ_CHECK(array.data != NULL);
    check_again(&array);
  }
  free(array.data); /* whatever came back: --arg gives it back too */
  return 0;
}
