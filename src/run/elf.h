/* elf.h: names that a loaded library exports.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_RUN_ELF_H
#define JAXC_RUN_ELF_H

typedef void jaxci_symbol_visitor(const char *name, int is_function, void *data);

/* Visits the names that the library defines for others. Returns 0 on systems where they
 * cannot be read from memory. */
int jaxci_elf_symbols(void *handle, jaxci_symbol_visitor *visit, void *data);

#endif /* JAXC_RUN_ELF_H */
