/* memory.c: the one place where the host allocates, and memory between guards.
 *
 *   void *object = jaxci_allocate(host, sizeof *object);     zeroed; freed by free()
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

/* At least so many bytes of guard lie on each side. */
#define GUARD 256

void *jaxci_allocate_as(_Atomic int64_t *count, int64_t fail_at, size_t size) {
  const int64_t number = atomic_fetch_add(count, 1) + 1;
  if (number == fail_at) return NULL;
  return calloc(1, size == 0 ? 1 : size);
}

void *jaxci_allocate(jaxc_host *host, size_t size) {
  if (host == NULL) return calloc(1, size == 0 ? 1 : size);
  return jaxci_allocate_as(&host->allocation_count, host->options.faults.fail_allocation,
                           size);
}

int jaxci_request_fails(jaxc_host *host) {
  if (host == NULL) return 0;
  return atomic_fetch_add(&host->request_count, 1) + 1 ==
         host->options.faults.fail_request;
}

jaxc_status jaxci_no_memory(jaxc_message *message, size_t size) {
  return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory for %zu bytes", size);
}

int jaxci_grow(jaxc_host *host, void **list, size_t count, size_t *capacity,
               size_t size) {
  size_t wanted = *capacity < 4 ? 4 : *capacity;
  size_t bytes;
  void *moved;
  if (count < *capacity) return 1;
  if (*capacity > 0 && !jaxci_times(*capacity, 2, &wanted)) return 0;
  if (!jaxci_times(wanted, size, &bytes)) return 0;
  moved = jaxci_allocate(host, bytes);
  if (moved == NULL) return 0;
  if (count > 0) memcpy(moved, *list, count * size);
  free(*list);
  *list = moved;
  *capacity = wanted;
  return 1;
}

int jaxci_guarded_make(jaxc_host *host, size_t bytes, size_t misalignment,
                       jaxci_guarded *out) {
  const size_t alignment = 64;
  size_t total;
  uintptr_t start;
  memset(out, 0, sizeof *out);
  if (!jaxci_add(bytes, 2 * GUARD + alignment + misalignment, &total)) return 0;
  out->block = (unsigned char *)jaxci_allocate(host, total);
  if (out->block == NULL) return 0;
  out->block_bytes = total;
  start = (uintptr_t)out->block + GUARD;
  start += (alignment - start % alignment) % alignment + misalignment;
  out->data = out->block + (start - (uintptr_t)out->block);
  out->bytes = bytes;
  memset(out->block, host->options.guard_byte, (size_t)(out->data - out->block));
  memset(out->data + bytes, host->options.guard_byte,
         total - (size_t)(out->data - out->block) - bytes);
  return 1;
}

/* Zeroed memory of exactly that size, which is above 0. calloc aligns to 16 bytes, which
 * may hide that a handler relies on the 64 that results have in XLA; aligned_alloc would
 * round the size up. */
static void *allocate_exactly(jaxc_host *host, size_t bytes) {
#ifdef _WIN32
  return jaxci_allocate(host, bytes);
#else
  const int64_t number = atomic_fetch_add(&host->allocation_count, 1) + 1;
  void *out;
  if (number == host->options.faults.fail_allocation) return NULL;
  if (posix_memalign(&out, 64, bytes) != 0) return NULL;
  return memset(out, 0, bytes);
#endif
}

int jaxci_exact_make(jaxc_host *host, size_t bytes, size_t misalignment,
                     jaxci_guarded *out) {
  /* An empty operand lies at the end of something, so that any read of it is seen. */
  const size_t before = misalignment + (bytes == 0 ? 64 : 0);
  size_t total;
  memset(out, 0, sizeof *out);
  if (!jaxci_add(bytes, before, &total)) return 0;
  out->block = (unsigned char *)allocate_exactly(host, total);
  if (out->block == NULL) return 0;
  out->block_bytes = total;
  out->data = out->block + before;
  out->bytes = bytes;
  memset(out->block, host->options.guard_byte, before);
  return 1;
}

int jaxci_guarded_find(const jaxc_host *host, const jaxci_guarded *guarded,
                       int64_t *distance, int *is_before) {
  const unsigned char guard = (unsigned char)host->options.guard_byte;
  const unsigned char *end, *p;
  if (guarded->block == NULL) return 0;
  end = guarded->data + guarded->bytes;
  /* From the data outwards: the nearest byte says most. */
  for (p = end; p < guarded->block + guarded->block_bytes; p++) {
    if (*p == guard) continue;
    *distance = p - end;
    *is_before = 0;
    return 1;
  }
  for (p = guarded->data; p > guarded->block; p--) {
    if (p[-1] == guard) continue;
    *distance = p - 1 - guarded->data;
    *is_before = 1;
    return 1;
  }
  return 0;
}
