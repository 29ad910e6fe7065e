/* test_attrs.c: attributes by name, and every refusal. */
#include "check.h"
#include "frame.h"

static jaxc_message message;

TEST(a_scalar_is_found_among_others) {
  frame_t f;
  int32_t a = 7, out = 0;
  double b = 0.5, other = 0;
  frame_begin(&f);
  frame_scalar(&f, "alpha", JAXC_S32, &a);
  frame_scalar(&f, "beta", JAXC_F64, &b);
  CHECK_INT(jaxc_attrs_scalar(&f.frame.attrs, "beta", JAXC_F64, &other, &message), JAXC_OK);
  CHECK(other == 0.5);
  CHECK_INT(jaxc_attrs_scalar(&f.frame.attrs, "alpha", JAXC_S32, &out, &message), JAXC_OK);
  CHECK_INT(out, 7);
}

TEST(a_prefix_is_not_the_name) {
  frame_t f;
  int32_t a = 7;
  frame_begin(&f);
  frame_scalar(&f, "alpha", JAXC_S32, &a);
  CHECK_INT(jaxc_attrs_find(&f.frame.attrs, "alp"), -1);
  CHECK_INT(jaxc_attrs_find(&f.frame.attrs, "alphabet"), -1);
  CHECK_INT(jaxc_attrs_find(&f.frame.attrs, "alpha"), 0);
}

TEST(a_missing_attribute_is_named) {
  frame_t f;
  int32_t out;
  frame_begin(&f);
  CHECK_INT(jaxc_attrs_scalar(&f.frame.attrs, "mode", JAXC_S32, &out, &message),
            JAXC_NOT_FOUND);
  CHECK_TEXT(message.text, "attribute 'mode' is missing");
}

TEST(another_type_is_refused_not_converted) {
  frame_t f;
  int64_t wide = 1;
  int32_t out = 5;
  frame_begin(&f);
  frame_scalar(&f, "mode", JAXC_S64, &wide);
  CHECK_INT(jaxc_attrs_scalar(&f.frame.attrs, "mode", JAXC_S32, &out, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "attribute 'mode' has type int64, expected int32");
  CHECK_INT(out, 5);
}

TEST(a_string_is_no_scalar) {
  frame_t f;
  jaxc_abi_span text = {"abc", 3}, out;
  int32_t number;
  frame_begin(&f);
  frame_string(&f, "mode", &text);
  CHECK_INT(jaxc_attrs_scalar(&f.frame.attrs, "mode", JAXC_S32, &number, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "attribute 'mode' is a string, expected scalar");
  CHECK_INT(jaxc_attrs_string(&f.frame.attrs, "mode", &out, &message), JAXC_OK);
  CHECK_INT(out.len, 3);
  CHECK(memcmp(out.ptr, "abc", 3) == 0);
}

TEST(a_complex_scalar_is_an_array_of_two) {
  frame_t f;
  double parts[3] = {1.5, -2.5, 9}, out[2];
  frame_begin(&f);
  frame_array(&f, "z", JAXC_F64, parts, 2);
  CHECK_INT(jaxc_attrs_scalar(&f.frame.attrs, "z", JAXC_C128, out, &message), JAXC_OK);
  CHECK(out[0] == 1.5 && out[1] == -2.5);
  f.arrays[0].size = 3;
  CHECK_INT(jaxc_attrs_scalar(&f.frame.attrs, "z", JAXC_C128, out, &message),
            JAXC_INVALID_ARGUMENT);
}

TEST(null_data_and_unknown_kinds_are_refused) {
  frame_t f;
  int32_t out;
  frame_begin(&f);
  frame_name(&f, "mode", JAXC_ABI_ATTR_SCALAR, NULL);
  CHECK_INT(jaxc_attrs_scalar(&f.frame.attrs, "mode", JAXC_S32, &out, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "attribute 'mode' is a null scalar, expected scalar");
  f.attr_types[0] = 77;
  f.attrs[0] = &out;
  CHECK_INT(jaxc_attrs_scalar(&f.frame.attrs, "mode", JAXC_S32, &out, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "attribute 'mode' is an unknown, expected scalar");
}

TEST(every_type_has_its_size_and_name) {
  static const struct {
    int dtype;
    size_t size;
    const char *name;
  } table[] = {
      {JAXC_PRED, 1, "bool"},      {JAXC_S8, 1, "int8"},         {JAXC_S16, 2, "int16"},
      {JAXC_S32, 4, "int32"},      {JAXC_S64, 8, "int64"},       {JAXC_U8, 1, "uint8"},
      {JAXC_U16, 2, "uint16"},     {JAXC_U32, 4, "uint32"},      {JAXC_U64, 8, "uint64"},
      {JAXC_F16, 2, "float16"},    {JAXC_F32, 4, "float32"},     {JAXC_F64, 8, "float64"},
      {JAXC_C64, 8, "complex64"},  {JAXC_C128, 16, "complex128"}, {JAXC_BF16, 2, "bfloat16"},
      {JAXC_F8E5M2, 1, "float8_e5m2"}, {JAXC_F8E4M3FN, 1, "float8_e4m3fn"},
      {JAXC_TOKEN, 0, "token"},    {13, 0, "unknown"},           {-1, 0, "unknown"},
      {JAXC_S4, 0, "int4"}, {JAXC_F8E8M0FNU, 1, "float8_e8m0fnu"}, {99, 0, "unknown"}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    CHECK_INT(jaxc_dtype_size(table[i].dtype), table[i].size);
    CHECK_TEXT(jaxc_dtype_name(table[i].dtype), table[i].name);
  }
}

TEST_MAIN
