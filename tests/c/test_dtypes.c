/* test_dtypes.c: every type that a member of a handler's struct can have: C types as
 * arrays and as scalars, element types that C has no type for, strings, dictionaries, ...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"
#include "frame.h"

#include <limits.h>

static const int char_dtype = CHAR_MIN < 0 ? JAXC_S8 : JAXC_U8;
static const int long_dtype = LONG_MAX == INT64_MAX ? JAXC_S64 : JAXC_S32;
static const int ulong_dtype = LONG_MAX == INT64_MAX ? JAXC_U64 : JAXC_U32;

/* Name, C type, dtype that a frame must have, and two elements. Complex elements are made
 * of parts, so that no arithmetic on infinities comes between. */
#define TYPES(X)                                                                   \
  X(flag, _Bool, JAXC_PRED, {1, 0})                                                \
  X(letter, char, char_dtype, {'q', '\0'})                                         \
  X(s8, signed char, JAXC_S8, {-128, 127})                                         \
  X(u8, unsigned char, JAXC_U8, {255, 1})                                          \
  X(s16, short, JAXC_S16, {INT16_MIN, 2})                                          \
  X(u16, unsigned short, JAXC_U16, {UINT16_MAX, 3})                                \
  X(s32, int, JAXC_S32, {INT32_MIN, 4})                                            \
  X(u32, unsigned, JAXC_U32, {UINT32_MAX, 5})                                      \
  X(slong, long, long_dtype, {LONG_MIN, 6})                                        \
  X(ulong, unsigned long, ulong_dtype, {ULONG_MAX, 7})                             \
  X(s64, long long, JAXC_S64, {INT64_MIN, 8})                                      \
  X(u64, unsigned long long, JAXC_U64, {UINT64_MAX, 9})                            \
  X(f32, float, JAXC_F32, {-1.5f, 3e38f})                                          \
  X(f64, double, JAXC_F64, {0.1, -1e308})                                          \
  X(bf16, jaxc_bf16, JAXC_BF16, {{0x3fc0}, {0xff80}})                              \
  X(e4m3, jaxc_f8e4m3fn, JAXC_F8E4M3FN, {{0x7e}, {0x81}})                          \
  X(e5m2, jaxc_f8e5m2, JAXC_F8E5M2, {{0x7b}, {0xfc}})
#define COMPLEX_TYPES(X)                                                           \
  X(c64, float _Complex, JAXC_C64, float)                                          \
  X(c128, double _Complex, JAXC_C128, double)

#define MEMBERS(name, type, dtype, part)                                           \
  JAXC_VIEW(const type) in_##name;                                                 \
  JAXC_VIEW(type) out_##name;
typedef struct {
#define REAL_MEMBERS(name, type, dtype, ...) MEMBERS(name, type, dtype, )
  TYPES(REAL_MEMBERS)
  COMPLEX_TYPES(MEMBERS)
} swap_call;

static const jaxc_field swap_fields[] = {
#define FIELDS(name, ...)                                                          \
  JAXC_ARGUMENT(swap_call, in_##name, 1), JAXC_RESULT(swap_call, out_##name, 1),
    TYPES(FIELDS) COMPLEX_TYPES(FIELDS)};

static jaxc_status swap(jaxc_context *context, const void *data) {
  const swap_call *call = data;
  (void)context;
#define SWAP(name, ...)                                                            \
  call->out_##name.data[0] = call->in_##name.data[1];                              \
  call->out_##name.data[1] = call->in_##name.data[0];
  TYPES(SWAP)
  COMPLEX_TYPES(SWAP)
  return JAXC_OK;
}
JAXC_HANDLER(Swap, swap_call, swap_fields, .execute = swap);

/* Memory of all arrays of a Swap. */
typedef struct {
#define ARRAYS(name, type, ...) type name[2], swapped_##name[2];
  TYPES(ARRAYS)
  COMPLEX_TYPES(ARRAYS)
} arrays_t;

static void arrays_begin(arrays_t *arrays) {
  memset(arrays, 0, sizeof *arrays);
#define FILL(name, type, dtype, ...)                                               \
  {                                                                                \
    static const type values[2] = __VA_ARGS__;                                     \
    memcpy(arrays->name, values, sizeof values);                                   \
  }
  TYPES(FILL)
#define FILL_COMPLEX(name, type, dtype, part)                                      \
  {                                                                                \
    static const part values[4] = {(part)1.25, (part)-2.5, (part)0.1, (part)7};    \
    memcpy(arrays->name, values, sizeof values);                                   \
  }
  COMPLEX_TYPES(FILL_COMPLEX)
}

static void frame_swap(frame_t *f, arrays_t *arrays) {
  arrays_begin(arrays);
  frame_begin(f);
#define OPERANDS(name, type, dtype, ...)                                           \
  frame_argument(f, dtype, arrays->name, 1, 2);                                    \
  frame_result(f, dtype, arrays->swapped_##name, 1, 2);
  TYPES(OPERANDS)
  COMPLEX_TYPES(OPERANDS)
}

TEST(arrays_of_every_c_type_arrive_and_are_written) {
  frame_t f;
  arrays_t arrays;
  frame_swap(&f, &arrays);
  CHECK_TEXT(frame_call(&f, Swap), "");
#define SAME(name, type, ...)                                                      \
  CHECK(memcmp(&arrays.swapped_##name[0], &arrays.name[1], sizeof(type)) == 0);    \
  CHECK(memcmp(&arrays.swapped_##name[1], &arrays.name[0], sizeof(type)) == 0);
  TYPES(SAME)
  COMPLEX_TYPES(SAME)
}

/* The dtype that stands for the C type is refused in no other place. */
TEST(every_c_type_refuses_every_other_dtype) {
  static const int dtypes[] = {
#define NUMBER(number, name, bits) number,
      JAXCI_DTYPES(NUMBER)};
  frame_t f;
  arrays_t arrays;
  frame_swap(&f, &arrays);
  for (int64_t i = 0; i < f.frame.args.size; i++) {
    const int32_t right = f.buffers[0][i].dtype;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
      char text[200];
      const char *name = swap_fields[2 * i].name;
      if (dtypes[k] == right) continue;
      f.buffers[0][i].dtype = dtypes[k];
      snprintf(text, sizeof text,
               "Swap: argument %d ('%s') has dtype %s, expected %s", (int)i, name,
               jaxc_dtype_name(dtypes[k]), jaxc_dtype_name(right));
      CHECK_TEXT(frame_call(&f, Swap), text);
      CHECK_INT(frame_error.code, JAXC_INVALID_ARGUMENT);
    }
    f.buffers[0][i].dtype = right;
  }
  CHECK_TEXT(frame_call(&f, Swap), "");
}

/* ---- element types that C has no type for ---- */

typedef struct {
  JAXC_VIEW(const uint16_t) half;
  JAXC_VIEW(const void) nibbles;
  JAXC_VIEW(const void) any;
  JAXC_VIEW(uint16_t) half_out;
  JAXC_VIEW(void) any_out;
} odd_call;
static const jaxc_field odd_fields[] = {
    JAXC_ARGUMENT_AS(odd_call, half, JAXC_F16, 1),
    JAXC_ARGUMENT_AS(odd_call, nibbles, JAXC_S4, 1),
    JAXC_ARGUMENT(odd_call, any, JAXC_ANY_RANK),
    JAXC_RESULT_AS(odd_call, half_out, JAXC_F16, 1),
    JAXC_RESULT(odd_call, any_out, JAXC_ANY_RANK),
};
static odd_call odd_seen;
static jaxc_status odd_keep(jaxc_context *context, const void *data) {
  (void)context;
  odd_seen = *(const odd_call *)data;
  return JAXC_OK;
}
JAXC_HANDLER(Odd, odd_call, odd_fields, .execute = odd_keep);

static uint16_t halves[4] = {0x3c00, 0x4000, 0x4200, 0x4400};
static unsigned char nibbles[2] = {0x21, 0x43};

static void frame_odd(frame_t *f, int half, int nibble, int any, int half_out,
                      int any_out) {
  static double wide[4];
  frame_begin(f);
  frame_argument(f, half, halves, 1, 4);
  frame_argument(f, nibble, nibbles, 1, 4);
  frame_argument(f, any, wide, 2, 1, 2);
  frame_result(f, half_out, halves, 1, 4);
  frame_result(f, any_out, wide, 0);
}

TEST(float16_and_int4_are_asked_for_by_number) {
  frame_t f;
  frame_odd(&f, JAXC_F16, JAXC_S4, JAXC_F32, JAXC_F16, JAXC_S32);
  CHECK_TEXT(frame_call(&f, Odd), "");
  CHECK(odd_seen.half.data == halves && odd_seen.nibbles.data == (const void *)nibbles);
  CHECK_INT(odd_seen.half.dtype, JAXC_F16);
  CHECK_INT(odd_seen.half.data[3], 0x4400);
  CHECK_INT(odd_seen.nibbles.dtype, JAXC_S4);
  CHECK_INT(odd_seen.nibbles.count, 4);
  CHECK_INT(odd_seen.half_out.dtype, JAXC_F16);
}

TEST(the_integer_in_place_of_a_float16_is_refused) {
  frame_t f;
  frame_odd(&f, JAXC_U16, JAXC_U4, JAXC_F32, JAXC_BF16, JAXC_S32);
  CHECK_TEXT(frame_call(&f, Odd),
             "Odd: argument 0 ('half') has dtype uint16, expected float16; "
             "argument 1 ('nibbles') has dtype uint4, expected int4; "
             "result 0 ('half_out') has dtype bfloat16, expected float16");
}

TEST(void_takes_every_dtype_and_says_which_it_is) {
  frame_t f;
#define ANY(number, name, bits)                                                    \
  frame_odd(&f, JAXC_F16, JAXC_S4, number, JAXC_F16, number);                      \
  CHECK_TEXT(frame_call(&f, Odd), "");                                             \
  CHECK_INT(odd_seen.any.dtype, number);                                           \
  CHECK_INT(odd_seen.any_out.dtype, number);
  JAXCI_DTYPES(ANY)
  ANY(77, "unknown", 0)
  CHECK_INT(odd_seen.any.rank, 2);
  CHECK_INT(odd_seen.any.count, 2);
  CHECK_INT(odd_seen.any_out.rank, 0);
  CHECK_INT(odd_seen.any_out.count, 1);
}

TEST(a_token_has_neither_data_nor_elements) {
  frame_t f;
  frame_odd(&f, JAXC_F16, JAXC_S4, JAXC_TOKEN, JAXC_F16, JAXC_TOKEN);
  f.buffers[0][2].data = f.buffers[1][1].data = NULL;
  f.buffers[0][2].rank = 0;
  CHECK_TEXT(frame_call(&f, Odd), "");
  CHECK_INT(odd_seen.any.count, 0);
  CHECK_INT(odd_seen.any_out.count, 0);
}

/* ---- scalars ---- */

typedef struct {
#define SCALAR(name, type, ...) type name;
  TYPES(SCALAR)
  COMPLEX_TYPES(SCALAR)
} scalars_call;
static const jaxc_field scalar_fields[] = {
#define ATTRIBUTES(name, ...) JAXC_ATTRIBUTE(scalars_call, name),
    TYPES(ATTRIBUTES) COMPLEX_TYPES(ATTRIBUTES)};
static scalars_call scalars_seen;
static jaxc_status scalars_keep(jaxc_context *context, const void *data) {
  (void)context;
  memcpy(&scalars_seen, data, sizeof scalars_seen);
  return JAXC_OK;
}
JAXC_HANDLER(Scalars, scalars_call, scalar_fields, .execute = scalars_keep);

static void frame_scalars(frame_t *f, arrays_t *arrays, int which) {
  arrays_begin(arrays);
  frame_begin(f);
#define GIVE(name, type, dtype, ...) frame_scalar(f, #name, dtype, &arrays->name[which]);
  TYPES(GIVE)
  COMPLEX_TYPES(GIVE)
}

#define SAME_SCALAR(name, type, ...)                                               \
  CHECK(memcmp(&scalars_seen.name, &arrays.name[which], sizeof(type)) == 0);

TEST(scalars_of_every_c_type_arrive) {
  frame_t f;
  arrays_t arrays;
  for (int which = 0; which < 2; which++) {
    frame_scalars(&f, &arrays, which);
    CHECK_TEXT(frame_call(&f, Scalars), "");
    TYPES(SAME_SCALAR)
    COMPLEX_TYPES(SAME_SCALAR)
  }
}

TEST(every_c_type_refuses_a_scalar_of_another_type) {
  frame_t f;
  arrays_t arrays;
  frame_scalars(&f, &arrays, 0);
  for (int64_t i = 0; i < f.frame.attrs.size; i++) {
    const int32_t right = f.scalars[i].dtype;
    const int32_t wrong = right == JAXC_S32 ? JAXC_U32 : JAXC_S32;
    char text[200];
    f.scalars[i].dtype = wrong;
    snprintf(text, sizeof text, "Scalars: attribute '%s' has type %s, expected %s",
             scalar_fields[i].name, jaxc_dtype_name(wrong), jaxc_dtype_name(right));
    CHECK_TEXT(frame_call(&f, Scalars), text);
    f.scalars[i].dtype = right;
  }
  CHECK_TEXT(frame_call(&f, Scalars), "");
}

/* Turns attribute i, a scalar, into an array. */
static void make_array(frame_t *f, int64_t i, int32_t dtype, size_t size, void *data) {
  f->attr_types[i] = JAXC_ABI_ATTR_ARRAY;
  f->arrays[i].dtype = dtype;
  f->arrays[i].size = size;
  f->arrays[i].data = data;
  f->attrs[i] = &f->arrays[i];
}

TEST(a_complex_scalar_may_come_as_an_array_of_two) {
  const int which = 1;
  frame_t f;
  arrays_t arrays;
  frame_scalars(&f, &arrays, which);
  make_array(&f, f.frame.attrs.size - 2, JAXC_F32, 2, &arrays.c64[which]);
  make_array(&f, f.frame.attrs.size - 1, JAXC_F64, 2, &arrays.c128[which]);
  CHECK_TEXT(frame_call(&f, Scalars), "");
  TYPES(SAME_SCALAR)
  COMPLEX_TYPES(SAME_SCALAR)
}

TEST(a_complex_scalar_as_an_array_of_another_type_is_refused) {
  frame_t f;
  arrays_t arrays;
  frame_scalars(&f, &arrays, 0);
  make_array(&f, f.frame.attrs.size - 2, JAXC_F64, 2, arrays.c128);
  make_array(&f, f.frame.attrs.size - 1, JAXC_S64, 2, arrays.c128);
  CHECK_TEXT(frame_call(&f, Scalars),
             "Scalars: attribute 'c64' is an array of 2 float64, expected 2 float32 for "
             "complex64; attribute 'c128' is an array of 2 int64, expected 2 float64 for "
             "complex128");
}

TEST(a_complex_scalar_as_an_array_of_three_is_refused) {
  frame_t f;
  arrays_t arrays;
  double three[3] = {1, 2, 3};
  frame_scalars(&f, &arrays, 0);
  make_array(&f, f.frame.attrs.size - 1, JAXC_F64, 3, three);
  CHECK_TEXT(frame_call(&f, Scalars),
             "Scalars: attribute 'c128' is an array of 3 float64, expected 2 float64 for "
             "complex128");
}

TEST(a_real_scalar_as_an_array_is_refused) {
  frame_t f;
  arrays_t arrays;
  frame_scalars(&f, &arrays, 0);
  make_array(&f, 6, JAXC_S32, 1, arrays.s32);
  CHECK_TEXT(frame_call(&f, Scalars),
             "Scalars: attribute 's32' is an array, expected scalar");
}

/* ---- attributes that are no scalars ---- */

enum mode { MODE_A, MODE_B, MODE_C };
typedef struct {
  int depth;
  jaxc_string label;
} inner_call;
typedef struct {
  inner_call inner;
  double scale;
} nested_call;
typedef struct {
  jaxc_string text;
  jaxc_array taps, any;
  const jaxc_abi_attrs *raw;
  nested_call nested;
  void *address;
  enum mode mode;
  int level;      /* optional, with a default */
  _Bool is_exact; /* optional, without one */
} plan_call;
static const jaxc_field inner_fields[] = {
    JAXC_ATTRIBUTE(inner_call, depth),
    JAXC_ATTRIBUTE(inner_call, label),
};
static const jaxc_field nested_fields[] = {
    JAXC_ATTRIBUTE_NESTED(nested_call, inner, inner_fields),
    JAXC_ATTRIBUTE(nested_call, scale),
};
static const jaxc_field plan_fields[] = {
    JAXC_ATTRIBUTE(plan_call, text),
    JAXC_ATTRIBUTE_ARRAY(plan_call, taps, JAXC_F32),
    JAXC_ATTRIBUTE_ARRAY(plan_call, any, JAXC_ANY),
    JAXC_ATTRIBUTE(plan_call, raw),
    JAXC_ATTRIBUTE_NESTED(plan_call, nested, nested_fields),
    JAXC_ATTRIBUTE(plan_call, address),
    JAXC_ATTRIBUTE_ENUM(plan_call, mode, 3),
    JAXC_OPTIONAL_ATTRIBUTE(plan_call, level),
    JAXC_OPTIONAL_ATTRIBUTE(plan_call, is_exact),
};
static const plan_call plan_defaults = {.level = 7};
static plan_call plan_seen;
static jaxc_status plan(jaxc_context *context, const void *data) {
  (void)context;
  plan_seen = *(const plan_call *)data;
  return JAXC_OK;
}
JAXC_HANDLER(Plan, plan_call, plan_fields, .execute = plan, .defaults = &plan_defaults);

/* All attributes of a Plan, sorted as runtimes do it, with their values. */
typedef struct {
  frame_t f, raw, nested, inner;
  jaxc_abi_span text, label;
  float taps[3];
  uint16_t any[2];
  int32_t depth;
  int64_t address, mode;
  double scale;
} plan_t;

static frame_t *plan_begin(plan_t *p) {
  memset(p, 0, sizeof *p);
  p->text = (jaxc_abi_span){"a\0b!", 3};
  p->label = (jaxc_abi_span){"deep", 4};
  p->depth = 2;
  p->scale = 0.5;
  p->address = (int64_t)(intptr_t)halves;
  p->mode = MODE_C;
  p->taps[2] = 1.5f;
  frame_begin(&p->f);
  frame_begin(&p->raw);
  frame_begin(&p->nested);
  frame_begin(&p->inner);
  frame_scalar(&p->inner, "depth", JAXC_S32, &p->depth);
  frame_string(&p->inner, "label", &p->label);
  frame_dictionary(&p->nested, "inner", &p->inner);
  frame_scalar(&p->nested, "scale", JAXC_F64, &p->scale);
  frame_scalar(&p->raw, "free", JAXC_F64, &p->scale);
  frame_scalar(&p->f, "address", JAXC_S64, &p->address);
  frame_array(&p->f, "any", JAXC_U16, p->any, 2);
  frame_scalar(&p->f, "mode", JAXC_S64, &p->mode);
  frame_dictionary(&p->f, "nested", &p->nested);
  frame_dictionary(&p->f, "raw", &p->raw);
  frame_array(&p->f, "taps", JAXC_F32, p->taps, 3);
  frame_string(&p->f, "text", &p->text);
  return &p->f;
}
/* The numbers of those in the frame. */
enum { ADDRESS, ANY, MODE, NESTED, RAW, TAPS, TEXT };

TEST(a_string_keeps_its_length_and_its_nul) {
  plan_t p;
  CHECK_TEXT(frame_call(plan_begin(&p), Plan), "");
  CHECK_INT(plan_seen.text.len, 3);
  CHECK(memcmp(plan_seen.text.ptr, "a\0b", 3) == 0);
}

TEST(arrays_keep_their_type_and_size) {
  plan_t p;
  CHECK_TEXT(frame_call(plan_begin(&p), Plan), "");
  CHECK(plan_seen.taps.data == p.taps && plan_seen.any.data == p.any);
  CHECK_INT(plan_seen.taps.size, 3);
  CHECK_INT(plan_seen.any.dtype, JAXC_U16);
  CHECK_INT(plan_seen.any.size, 2);
}

TEST(dictionaries_arrive_raw_and_two_levels_deep) {
  plan_t p;
  double value = 0;
  CHECK_TEXT(frame_call(plan_begin(&p), Plan), "");
  CHECK_INT(jaxc_attrs_scalar(plan_seen.raw, "free", JAXC_F64, &value, NULL), JAXC_OK);
  CHECK(value == 0.5 && plan_seen.nested.scale == 0.5);
  CHECK_INT(plan_seen.nested.inner.depth, 2);
  CHECK_INT(plan_seen.nested.inner.label.len, 4);
}

TEST(addresses_and_enums_arrive_as_int64) {
  plan_t p;
  CHECK_TEXT(frame_call(plan_begin(&p), Plan), "");
  CHECK(plan_seen.address == halves);
  CHECK_INT(plan_seen.mode, MODE_C);
}

TEST(an_enum_has_its_range) {
  static const int64_t wrong[] = {3, -1, INT64_C(1) << 32};
  static const char *const shown[] = {"3", "-1", "4294967296"};
  plan_t p;
  plan_begin(&p);
  for (int i = 0; i < 3; i++) {
    char text[100];
    p.mode = wrong[i];
    snprintf(text, sizeof text, "Plan: attribute 'mode' is %s, expected 0 to 2",
             shown[i]);
    CHECK_TEXT(frame_call(&p.f, Plan), text);
  }
  p.mode = MODE_A;
  CHECK_TEXT(frame_call(&p.f, Plan), "");
}

TEST(absent_optional_attributes_have_their_defaults) {
  plan_t p;
  CHECK_TEXT(frame_call(plan_begin(&p), Plan), "");
  CHECK_INT(plan_seen.level, 7);
  CHECK_INT(plan_seen.is_exact, 0);
}

TEST(present_optional_attributes_arrive_and_are_checked) {
  plan_t p;
  int32_t level = 9;
  unsigned char is_exact = 1;
  plan_begin(&p);
  frame_scalar(&p.f, "level", JAXC_S32, &level);
  frame_scalar(&p.f, "is_exact", JAXC_PRED, &is_exact);
  CHECK_TEXT(frame_call(&p.f, Plan), "");
  CHECK_INT(plan_seen.level, 9);
  CHECK_INT(plan_seen.is_exact, 1);
  p.f.scalars[TEXT + 1].dtype = JAXC_U32;
  CHECK_TEXT(frame_call(&p.f, Plan),
             "Plan: attribute 'level' has type uint32, expected int32");
}

TEST(attributes_of_every_kind_are_missed_by_name) {
  frame_t f;
  frame_begin(&f);
  CHECK_TEXT(frame_call(&f, Plan),
             "Plan: attribute 'text' is missing; attribute 'taps' is missing; "
             "attribute 'any' is missing; attribute 'raw' is missing; "
             "attribute 'nested' is missing; attribute 'address' is missing; "
             "attribute 'mode' is missing");
}

TEST(attributes_of_another_kind_are_refused) {
  plan_t p;
  plan_begin(&p);
  for (int i = ADDRESS; i <= TEXT; i++) {
    p.f.attr_types[i] = i == TEXT ? JAXC_ABI_ATTR_DICTIONARY : JAXC_ABI_ATTR_STRING;
  }
  CHECK_TEXT(frame_call(&p.f, Plan),
             "Plan: attribute 'text' is a dictionary, expected string; "
             "attribute 'taps' is a string, expected array; "
             "attribute 'any' is a string, expected array; "
             "attribute 'raw' is a string, expected dictionary; "
             "attribute 'nested' is a string, expected dictionary; "
             "attribute 'address' is a string, expected scalar; "
             "attribute 'mode' is a string, expected scalar");
}

TEST(attributes_of_another_type_are_refused) {
  plan_t p;
  plan_begin(&p);
  p.f.arrays[TAPS].dtype = JAXC_F64;
  p.f.scalars[ADDRESS].dtype = JAXC_U64;
  p.f.scalars[MODE].dtype = JAXC_S32;
  CHECK_TEXT(frame_call(&p.f, Plan),
             "Plan: attribute 'taps' is an array of float64, expected float32; "
             "attribute 'address' has type uint64, expected int64; "
             "attribute 'mode' has type int32, expected int64");
}

TEST(what_is_wrong_in_a_dictionary_is_named_with_it) {
  plan_t p;
  plan_begin(&p);
  p.inner.attr_types[0] = JAXC_ABI_ATTR_STRING;
  frame_scalar(&p.inner, "more", JAXC_F64, &p.scale);
  p.nested.scalars[1].dtype = JAXC_F32;
  p.mode = 8;
  CHECK_TEXT(frame_call(&p.f, Plan),
             "Plan: in dictionary 'nested': in dictionary 'inner': "
             "attribute 'depth' is a string, expected scalar; "
             "attribute 'more' is not expected; "
             "attribute 'scale' has type float32, expected float64; "
             "attribute 'mode' is 8, expected 0 to 2");
}

/* ---- attributes that are damaged ---- */

#define CHECK_DAMAGE(damage, text)                                                 \
  do {                                                                             \
    plan_t p;                                                                      \
    plan_begin(&p);                                                                \
    damage;                                                                        \
    CHECK_TEXT(frame_call(&p.f, Plan), text);                                      \
    CHECK_INT(frame_error.code, JAXC_INVALID_ARGUMENT);                            \
  } while (0)

TEST(a_damaged_nested_dictionary_is_refused) {
  static const char text[] = "Plan: attribute 'nested' is damaged";
  CHECK_DAMAGE(p.nested.frame.attrs.struct_size = 47, text);
  CHECK_DAMAGE(p.nested.frame.attrs.size = -1, text);
  CHECK_DAMAGE(p.nested.frame.attrs.names = NULL, text);
  CHECK_DAMAGE(p.nested.frame.attrs.types = NULL, text);
  CHECK_DAMAGE(p.nested.frame.attrs.data = NULL, text);
}

TEST(a_damaged_raw_dictionary_is_refused) {
  static const char text[] = "Plan: attribute 'raw' is damaged";
  CHECK_DAMAGE(p.raw.frame.attrs.struct_size = 47, text);
  CHECK_DAMAGE(p.raw.frame.attrs.size = -1, text);
  CHECK_DAMAGE(p.raw.frame.attrs.names = NULL, text);
}

TEST(an_array_without_data_is_refused_unless_it_is_empty) {
  plan_t p;
  CHECK_DAMAGE(p.f.arrays[TAPS].data = NULL,
               "Plan: attribute 'taps' is a null array, expected array");
  plan_begin(&p);
  p.f.arrays[TAPS].data = NULL;
  p.f.arrays[TAPS].size = 0;
  CHECK_TEXT(frame_call(&p.f, Plan), "");
}

TEST(a_string_without_characters_is_refused_unless_it_is_empty) {
  plan_t p;
  CHECK_DAMAGE(p.text.ptr = NULL,
               "Plan: attribute 'text' is a null string, expected string");
  plan_begin(&p);
  p.text.ptr = NULL;
  p.text.len = 0;
  CHECK_TEXT(frame_call(&p.f, Plan), "");
}

TEST_MAIN
