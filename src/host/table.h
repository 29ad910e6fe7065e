/* table.h: what table.c and resources.c share. Not installed.
 *
 *   JAXCI_CHECK_SIZE(args, jaxc_abi_run_id_args, run_id, "XLA_FFI_RunId_Get");
 *   JAXCI_CHECK_CONTEXT(args->context);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_HOST_TABLE_H
#define JAXC_HOST_TABLE_H

#include "parts.h"

jaxc_abi_error *jaxci_size_error(const char *name, size_t expected, size_t actual);
jaxc_abi_error *jaxci_context_error(const jaxc_abi_context *context);

/* Fills the slots of resources.c. */
void jaxci_table_fill_resources(jaxc_abi_api *api, int32_t minor);

/* Returns XLA's error for a struct that ends before `field` does; longer ones are right.
 */
#define JAXCI_CHECK_SIZE(args, type, field, name)                                   \
  do {                                                                              \
    if (!JAXC_ABI_HAS(args, type, field)) {                                         \
      return jaxci_size_error(name, JAXC_ABI_SIZE(type, field), (args)->struct_size); \
    }                                                                               \
  } while (0)

#define JAXCI_CHECK_CONTEXT(context)                              \
  do {                                                            \
    jaxc_abi_error *const jaxci_error = jaxci_context_error(context); \
    if (jaxci_error != NULL) return jaxci_error;                  \
  } while (0)

#endif /* JAXC_HOST_TABLE_H */
