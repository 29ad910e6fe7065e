/* input.h: values from the bytes that a fuzzer makes, and memory for what they describe.
 *
 *   fuzz_input in = {data, size, 0, NULL};
 *   const int64_t rank = fuzz_between(&in, 0, 4);
 *   int64_t *dims = fuzz_new(&in, (size_t)rank * sizeof *dims);    ends with the input
 *   FUZZ_CHECK(view.rank == rank);
 *   fuzz_end(&in);
 *
 * Where bytes have run out, each function gives its least value, so that short inputs
 * mean something simple. Every object is a block of its own and of its exact size: a
 * sanitizer or valgrind sees each byte beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_FUZZ_INPUT_H
#define JAXC_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold for every input. */
#define FUZZ_CHECK(condition)                                                     \
  do {                                                                            \
    if (!(condition)) fuzz_fail(__FILE__, __LINE__, #condition);                  \
  } while (0)

static inline void fuzz_fail(const char *file, int line, const char *condition) {
  fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
  fflush(stderr);
  abort();
}

/* Blocks of memory of one input. */
typedef struct fuzz_block {
  struct fuzz_block *next;
  void *data;
} fuzz_block;

typedef struct {
  const uint8_t *data;
  size_t size;
  size_t at;
  fuzz_block *blocks;
} fuzz_input;

static inline uint8_t fuzz_byte(fuzz_input *in) {
  return in->at < in->size ? in->data[in->at++] : 0;
}

/* A number from `least` to `most`, which lie less than 256 apart. */
static inline int64_t fuzz_between(fuzz_input *in, int64_t least, int64_t most) {
  return least + fuzz_byte(in) % (most - least + 1);
}

/* True once in about `one_in` times, and never where bytes have run out. */
static inline int fuzz_chance(fuzz_input *in, int one_in) {
  return fuzz_byte(in) > 255 - 256 / one_in;
}

static inline uint64_t fuzz_word(fuzz_input *in) {
  uint64_t word = 0;
  for (int i = 0; i < 8; i++) word |= (uint64_t)fuzz_byte(in) << (8 * i);
  return word;
}

/* Any int64: small ones, those at the edges of types, and random bits. */
static inline int64_t fuzz_wide(fuzz_input *in) {
  static const int64_t edges[] = {INT64_MIN,
                                  INT64_MIN + 1,
                                  INT64_MAX,
                                  INT32_MAX,
                                  INT32_MIN,
                                  UINT32_MAX,
                                  INT64_MAX / 2,
                                  INT64_MAX / 16,
                                  INT64_C(1) << 40,
                                  INT64_C(1) << 31,
                                  -1,
                                  255};
  const uint8_t kind = fuzz_byte(in);
  if (kind < 128) return kind % 16;
  if (kind < 160) return -(int64_t)(kind % 8);
  if (kind < 240) return edges[kind % (sizeof edges / sizeof *edges)];
  return (int64_t)fuzz_word(in);
}

/* Zeroed memory until fuzz_end; of one byte where none is asked for. */
static inline void *fuzz_new(fuzz_input *in, size_t size) {
  fuzz_block *const block = malloc(sizeof *block);
  if (block == NULL) exit(2);
  block->data = calloc(1, size == 0 ? 1 : size);
  if (block->data == NULL) exit(2);
  block->next = in->blocks;
  in->blocks = block;
  return block->data;
}

static inline void fuzz_end(fuzz_input *in) {
  while (in->blocks != NULL) {
    fuzz_block *const block = in->blocks;
    in->blocks = block->next;
    free(block->data);
    free(block);
  }
}

/* Whether all `size` bytes are `value`. */
static inline int fuzz_is_filled(const void *data, int value, size_t size) {
  const unsigned char *const bytes = data;
  for (size_t i = 0; i < size; i++) {
    if (bytes[i] != value) return 0;
  }
  return 1;
}

#endif /* JAXC_FUZZ_INPUT_H */
