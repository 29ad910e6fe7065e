/* elf.c: names that a loaded library exports, read from its dynamic symbol table.
 *
 *   static void show(const char *name, int is_function, void *data) { puts(name); }
 *   jaxci_elf_symbols(handle, show, NULL);
 *
 * The loader has the library's dynamic section in memory, which says where symbols and
 * names are. How many there are is only in the hash tables: DT_HASH counts them, in
 * DT_GNU_HASH the last chain ends with the last one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dlinfo */
#endif
#include "elf.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__ELF__) && (defined(__linux__) || defined(__FreeBSD__))

#include <dlfcn.h>
#include <link.h>

typedef struct {
  const ElfW(Sym) *symbols;
  const char *names;
  size_t names_size;
  const uint32_t *hash; /* DT_HASH: words of 32 bits but on a few old systems */
  const uint32_t *gnu_hash;
} tables;

/* glibc writes addresses into the dynamic section, other loaders leave offsets there. */
static const void *resolve(const struct link_map *map, ElfW(Addr) address) {
  if (address < map->l_addr) address += map->l_addr;
  return (const void *)(uintptr_t)address;
}

static tables find_tables(const struct link_map *map) {
  tables out = {NULL, NULL, 0, NULL, NULL};
  for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
    switch (entry->d_tag) {
      case DT_SYMTAB: out.symbols = resolve(map, entry->d_un.d_ptr); break;
      case DT_STRTAB: out.names = resolve(map, entry->d_un.d_ptr); break;
      case DT_STRSZ: out.names_size = (size_t)entry->d_un.d_val; break;
      case DT_HASH: out.hash = resolve(map, entry->d_un.d_ptr); break;
      case DT_GNU_HASH: out.gnu_hash = resolve(map, entry->d_un.d_ptr); break;
      default: break;
    }
  }
  return out;
}

/* Words of the table: number of buckets, first symbol, words of the filter, a shift; then
 * filter, buckets, and a chain for each symbol, whose lowest bit ends it. */
static size_t count_gnu(const uint32_t *table) {
  const uint32_t bucket_count = table[0];
  const uint32_t first = table[1];
  const size_t filter_words = (size_t)table[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t *const buckets = table + 4 + filter_words;
  const uint32_t *const chains = buckets + bucket_count;
  uint32_t last = 0;
  for (uint32_t i = 0; i < bucket_count; i++) {
    if (buckets[i] > last) last = buckets[i];
  }
  if (last < first) return first; /* nothing is exported */
  while ((chains[last - first] & 1u) == 0) last++;
  return (size_t)last + 1;
}

int jaxci_elf_symbols(void *handle, jaxci_symbol_visitor *visit, void *data) {
  struct link_map *map = NULL;
  tables t;
  size_t count;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == NULL || map->l_ld == NULL) {
    return 0;
  }
  t = find_tables(map);
  if (t.symbols == NULL || t.names == NULL || (t.hash == NULL && t.gnu_hash == NULL)) {
    return 0;
  }
  count = t.hash != NULL ? t.hash[1] : count_gnu(t.gnu_hash);
  for (size_t i = 1; i < count; i++) {
    const ElfW(Sym) *const symbol = &t.symbols[i];
    const unsigned type = symbol->st_info & 0xfu;
    const unsigned binding = symbol->st_info >> 4;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name >= t.names_size) continue;
    if (binding != STB_GLOBAL && binding != STB_WEAK) continue;
    if (type != STT_FUNC && type != STT_OBJECT) continue;
    visit(t.names + symbol->st_name, type == STT_FUNC, data);
  }
  return 1;
}

#else

int jaxci_elf_symbols(void *handle, jaxci_symbol_visitor *visit, void *data) {
  (void)handle;
  (void)visit;
  (void)data;
  return 0;
}

#endif
