/* test_bound.c: bounds have C's value or none. */
#include <jaxc/bound.h>

#include "check.h"

TEST(bounds_refuse_what_has_no_value) {
  static const struct {
    jaxc_bound_step steps[5];
    int32_t count;
    int works;
    int64_t value;
  } table[] = {
      {{{0, 7}, {0, -2}, {JAXC_BOUND_DIVIDE, 0}}, 3, 1, -3},
      {{{0, 7}, {0, 0}, {JAXC_BOUND_DIVIDE, 0}}, 3, 0, 0},
      {{{0, INT64_MIN}, {0, -1}, {JAXC_BOUND_DIVIDE, 0}}, 3, 0, 0},
      {{{0, INT64_MAX}, {0, 1}, {JAXC_BOUND_ADD, 0}}, 3, 0, 0},
      {{{0, INT64_MIN}, {0, -1}, {JAXC_BOUND_ADD, 0}}, 3, 0, 0},
      {{{0, INT64_MIN}, {0, 1}, {JAXC_BOUND_SUBTRACT, 0}}, 3, 0, 0},
      {{{0, 5}, {0, 8}, {JAXC_BOUND_SUBTRACT, 0}}, 3, 1, -3},
      {{{0, -4}, {0, 8}, {JAXC_BOUND_MULTIPLY, 0}}, 3, 1, -32},
      {{{0, INT64_MAX}, {0, 2}, {JAXC_BOUND_MULTIPLY, 0}}, 3, 0, 0},
      {{{0, INT64_MIN}, {0, 1}, {JAXC_BOUND_MULTIPLY, 0}}, 3, 0, 0},
      {{{0, 1}, {JAXC_BOUND_ADD, 0}}, 2, 0, 0},
      {{{0, 1}, {0, 2}}, 2, 0, 0},
      {{{0, 1}, {0, 2}, {17, 0}}, 3, 0, 0},
      {{{0, 1}}, 0, 0, 0}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const jaxc_bound bound = {"", table[i].steps, table[i].count, -1};
    int64_t value = 0;
    CHECK_INT(jaxc_bound_value(&bound, NULL, &value), table[i].works);
    if (table[i].works) CHECK_INT(value, table[i].value);
  }
}

TEST_MAIN
