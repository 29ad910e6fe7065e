/* check.h: a C test framework in one page.
 *
 * A test file has TEST(name) { ... } blocks and ends with TEST_MAIN. The program runs the
 * test named by its argument and lists them without one; ctest starts one process for each (see CMakeLists.txt,
 * which finds the names), so a crash is one failed test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_TESTS_CHECK_H
#define JAXC_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_entry {
  const char *name;
  void (*run)(void);
  struct test_entry *next;
} test_entry;

static test_entry *test_list;

#define TEST(title)                                                           \
  static void test_##title(void);                                             \
  static test_entry entry_##title = {#title, test_##title, NULL};             \
  __attribute__((constructor)) static void add_##title(void) {                \
    entry_##title.next = test_list;                                           \
    test_list = &entry_##title;                                               \
  }                                                                           \
  static void test_##title(void)

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#define CHECK_INT(actual, expected)                                           \
  do {                                                                        \
    const long long check_a = (long long)(actual);                            \
    const long long check_b = (long long)(expected);                          \
    if (check_a != check_b) {                                                 \
      fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__,         \
              __LINE__, #actual, check_a, check_b);                           \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#define CHECK_TEXT(actual, expected)                                          \
  do {                                                                        \
    const char *check_a = (actual);                                           \
    if (check_a == NULL || strcmp(check_a, (expected)) != 0) {                \
      fprintf(stderr, "%s:%d: %s is\n  \"%s\", expected\n  \"%s\"\n", __FILE__, \
              __LINE__, #actual, check_a == NULL ? "(null)" : check_a, (expected)); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#define TEST_MAIN                                                             \
  int main(int argc, char **argv) {                                           \
    for (const test_entry *t = test_list; t != NULL; t = t->next) {           \
      if (argc != 2) {                                                        \
        puts(t->name);                                                        \
      } else if (strcmp(argv[1], t->name) == 0) {                             \
        t->run();                                                             \
        return 0;                                                             \
      }                                                                       \
    }                                                                         \
    if (argc == 2) fprintf(stderr, "no test is called %s\n", argv[1]);        \
    return argc == 2;                                                         \
  }

#endif /* JAXC_TESTS_CHECK_H */
