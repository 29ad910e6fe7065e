/* types.c: the types of states and user data that handlers register.
 *
 * XLA numbers types as they come, once for the process. Handlers keep the number in a
 * static variable, which outlives a host; so that it means the same in the next host
 * without state of the process, a number is made from the type's name.
 *
 *   JAXC_TRY(jaxci_type_register(host, "lib.plan", 8, &id, destroy, message));
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

/* 64-bit FNV-1a, made positive and not 0, which means unknown. */
static int64_t number_of(const char *name, size_t length) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < length; i++) {
    hash = (hash ^ (unsigned char)name[i]) * 1099511628211u;
  }
  return (int64_t)(hash >> 2) + 1;
}

static jaxci_type *find_name(jaxc_host *host, const char *name, size_t length) {
  for (size_t i = 0; i < host->type_count; i++) {
    jaxci_type *const type = &host->types[i];
    if (type->name_length == length && memcmp(type->name, name, length) == 0) return type;
  }
  return NULL;
}

static jaxci_type *find_id(jaxc_host *host, int64_t id) {
  for (size_t i = 0; i < host->type_count; i++) {
    if (host->types[i].id == id) return &host->types[i];
  }
  return NULL;
}

static jaxc_status add(jaxc_host *host, const char *name, size_t length, int64_t *id,
                       void (*deleter)(void *), jaxc_message *message) {
  void *list = host->types;
  jaxci_type *type;
  char *copy;
  if (!jaxci_grow(host, &list, host->type_count, &host->type_capacity, sizeof *type)) {
    return jaxci_no_memory(message, sizeof *type);
  }
  host->types = (jaxci_type *)list;
  copy = (char *)jaxci_allocate(host, length + 1);
  if (copy == NULL) return jaxci_no_memory(message, length);
  if (length > 0) memcpy(copy, name, length);
  if (*id == 0) {
    *id = number_of(name, length);
    while (find_id(host, *id) != NULL) ++*id;
  }
  type = &host->types[host->type_count++];
  type->name = copy;
  type->name_length = length;
  type->id = *id;
  type->deleter = deleter;
  return JAXC_OK;
}

jaxc_status jaxci_type_register(jaxc_host *host, const char *name, size_t length,
                                int64_t *id, void (*deleter)(void *),
                                jaxc_message *message) {
  jaxc_status status = JAXC_OK;
  const jaxci_type *known;
  jaxci_lock(&host->lock);
  known = find_name(host, name, length);
  if (known == NULL) {
    status = add(host, name, length, id, deleter, message);
  } else if (*id == 0) {
    status = JAXC_FAIL(message, JAXC_INTERNAL,
                       "Type name %s already registered with type id %lld", known->name,
                       (long long)known->id);
  } else if (known->id != *id) {
    /* The last character is XLA's. */
    status = JAXC_FAIL(message, JAXC_INTERNAL,
                       "Type name %s already registered with type id %lld vs %lld)",
                       known->name, (long long)known->id, (long long)*id);
  }
  jaxci_unlock(&host->lock);
  return status;
}

int jaxci_type_find(jaxc_host *host, int64_t id, jaxci_type *out) {
  const jaxci_type *type;
  jaxci_lock(&host->lock);
  type = find_id(host, id);
  if (type != NULL) *out = *type;
  jaxci_unlock(&host->lock);
  return type != NULL;
}
