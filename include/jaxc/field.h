/* field.h: the table that says what a handler's call looks like, and the struct that the
 * call is decoded into.
 *
 *   typedef struct {
 *     JAXC_VIEW(const float) x;
 *     JAXC_VIEW(float) y;
 *     float eps;
 *   } rms_norm_call;
 *
 *   static const jaxc_field rms_norm_fields[] = {
 *       JAXC_ARGUMENT(rms_norm_call, x, JAXC_AT_LEAST(1)),
 *       JAXC_RESULT(rms_norm_call, y, JAXC_AT_LEAST(1)),
 *       JAXC_ATTRIBUTE(rms_norm_call, eps),
 *   };
 *
 * The struct's own types say what the call must look like: `const float` is a float32
 * array, `float eps` a float32 attribute. Arguments and results are in the order of the
 * table, attributes are found by name; fastest when they are in the order of their names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_FIELD_H
#define JAXC_FIELD_H

#include <jaxc/call.h>
#include <jaxc/context.h>
#include <jaxc/library.h>
#include <jaxc/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- members of the struct ---- */

/* An array of `type`: const for an argument, void for any element type. rank is -1 when an
 * optional array is absent, or the stage has no arrays. */
#define JAXC_VIEW(type)    \
  struct {                 \
    type *data;            \
    const int64_t *dims;   \
    int64_t rank;          \
    int64_t count;         \
    int32_t dtype;         \
  }

/* A JAXC_VIEW of any type as a jaxc_view, to be given to functions. C only. */
#define JAXC_AS_VIEW(view) \
  ((jaxc_view){(void *)(uintptr_t)(view).data, (view).dims, (view).rank, (view).count, \
               (view).dtype})

/* Whether two views, each a jaxc_view or a JAXC_VIEW, have the same sizes. */
#define JAXC_SAME_SHAPE(a, b) jaxci_same_shape((a).rank, (a).dims, (b).rank, (b).dims)
JAXC_UNUSED static inline int jaxci_same_shape(int64_t a_rank, const int64_t *a,
                                               int64_t b_rank, const int64_t *b) {
  int64_t axis = 0;
  if (a_rank != b_rank) return 0;
  while (axis < a_rank && a[axis] == b[axis]) axis++;
  return axis >= a_rank;
}

/* Elements along the last axis of a view, 1 when it has none; and how many such rows it
 * has, 0 when they are empty. */
#define JAXC_LAST_AXIS(view) ((view).rank > 0 ? (view).dims[(view).rank - 1] : 1)
#define JAXC_ROWS(view) jaxci_rows((view).count, JAXC_LAST_AXIS(view))
JAXC_UNUSED static inline int64_t jaxci_rows(int64_t count, int64_t last) {
  return last == 0 ? 0 : count / last;
}

/* The arrays behind those that the table names, for jaxc_rest_view. */
typedef struct {
  int64_t count;
  /* For jaxc_rest_view: */
  const jaxc_abi_operands *operands;
  int64_t first;
  const char *kind;
  const char *name;
} jaxc_rest;

/* Views array `index` of the rest; `dtype` may be JAXC_ANY, `rank` JAXC_AT_LEAST(n).
 * OUT_OF_RANGE, or INVALID_ARGUMENT for another type or rank. */
JAXC_UNUSED static jaxc_status jaxc_rest_view(jaxc_context *context, const jaxc_rest *rest,
                                              int64_t index, int32_t dtype, int32_t rank,
                                              jaxc_view *out) {
  if (index < 0 || index >= rest->count) {
    return jaxc_fail(context, JAXC_OUT_OF_RANGE, "'%s' has %lld %ss, number %lld is asked for",
                     rest->name, (long long)rest->count, rest->kind, (long long)index);
  }
  /* Before execute there may be no data, as for the arrays that the table names. */
  return (context->frame->stage == JAXC_STAGE_EXECUTE ? jaxc_call_operand
                                                      : jaxc_call_shape)(
      rest->operands, rest->first + index, rest->kind, rest->name, dtype, rank, out,
      &context->message);
}

/* ---- the table ---- */

typedef enum {
  JAXC_FIELD_ARGUMENT = 1,
  JAXC_FIELD_RESULT = 2,
  JAXC_FIELD_REST_ARGUMENTS = 3,
  JAXC_FIELD_REST_RESULTS = 4,
  JAXC_FIELD_ATTRIBUTE = 5,
  JAXC_FIELD_ARRAY = 6,
  JAXC_FIELD_NESTED = 7,
  JAXC_FIELD_ALL_ATTRIBUTES = 8
} jaxc_field_kind;

typedef struct jaxc_field {
  const char *name;
  int16_t name_length;
  int8_t kind;        /* jaxc_field_kind */
  int8_t is_optional;
  int32_t dtype;      /* jaxc_dtype, or JAXC_STRING, ... */
  int32_t rank;       /* of an array; an enum's or a nested table's count */
  int32_t reserved;
  size_t offset;      /* in the struct */
  const struct jaxc_field *fields; /* of a nested dictionary */
} jaxc_field;

/* Types that stand for an element type, and are spelled alike in C and C++. */
#define JAXCI_C_TYPES(X)                                                          \
  X(char, JAXC_INTEGER_DTYPE(char)) X(signed char, JAXC_S8)                       \
  X(unsigned char, JAXC_U8) X(short, JAXC_INTEGER_DTYPE(short))                   \
  X(unsigned short, JAXC_INTEGER_DTYPE(unsigned short))                           \
  X(int, JAXC_INTEGER_DTYPE(int)) X(unsigned, JAXC_INTEGER_DTYPE(unsigned))       \
  X(long, JAXC_INTEGER_DTYPE(long))                                               \
  X(unsigned long, JAXC_INTEGER_DTYPE(unsigned long))                             \
  X(long long, JAXC_INTEGER_DTYPE(long long))                                     \
  X(unsigned long long, JAXC_INTEGER_DTYPE(unsigned long long))                   \
  X(float, JAXC_F32) X(double, JAXC_F64) X(jaxc_bf16, JAXC_BF16)                  \
  X(jaxc_f8e4m3fn, JAXC_F8E4M3FN) X(jaxc_f8e5m2, JAXC_F8E5M2)

/* Type number of an attribute's, an argument's and a result's member, by its type. A
 * compile error here means that the member's type stands for no element type, that an
 * argument's is not const, or that a result's is. */
#ifndef __cplusplus
#define JAXCI_ALL_C_TYPES(X)                                                       \
  JAXCI_C_TYPES(X) X(_Bool, JAXC_PRED) X(float _Complex, JAXC_C64)                 \
  X(double _Complex, JAXC_C128)
#define JAXCI_VALUE_TYPE(type, number) type: number,
#define JAXCI_INPUT_TYPE(type, number) const type *: number,
#define JAXCI_OUTPUT_TYPE(type, number) type *: number,
#define JAXCI_ATTRIBUTE_DTYPE(value)                                               \
  _Generic((value), JAXCI_ALL_C_TYPES(JAXCI_VALUE_TYPE) jaxc_string: JAXC_STRING,  \
           const jaxc_abi_attrs *: JAXC_DICTIONARY, void *: JAXC_POINTER,          \
           const void *: JAXC_POINTER)
#define JAXCI_INPUT_DTYPE(pointer)                                                 \
  _Generic((pointer), JAXCI_ALL_C_TYPES(JAXCI_INPUT_TYPE) const void *: JAXC_ANY)
#define JAXCI_OUTPUT_DTYPE(pointer)                                                \
  _Generic((pointer), JAXCI_ALL_C_TYPES(JAXCI_OUTPUT_TYPE) void *: JAXC_ANY)
#define JAXCI_EXTERN_C extern
#else
extern "C++" {
template <class Type, class = void>
struct jaxci_dtype {
  static_assert(sizeof(Type) == 0, "the member's type stands for no element type");
  static constexpr int32_t value = JAXC_DTYPE_INVALID;
};
template <class Type>
const Type &jaxci_some();
template <class Part>
struct jaxci_complex_dtype : jaxci_dtype<Part *> {};

#define JAXCI_TRAIT(trait, type, number)            \
  template <>                                       \
  struct trait<type> {                              \
    static constexpr int32_t value = number;        \
  };
#define JAXCI_DTYPE_TRAIT(type, number) JAXCI_TRAIT(jaxci_dtype, type, number)
JAXCI_C_TYPES(JAXCI_DTYPE_TRAIT)
JAXCI_TRAIT(jaxci_dtype, bool, JAXC_PRED)
JAXCI_TRAIT(jaxci_complex_dtype, float, JAXC_C64)
JAXCI_TRAIT(jaxci_complex_dtype, double, JAXC_C128)

/* What has imag() is complex: std::complex and those of device libraries, without
 * <complex>, which takes a compiler longer to read than all of jaxc. */
template <class Type>
struct jaxci_dtype<Type, decltype((void)jaxci_some<Type>().imag())>
    : jaxci_complex_dtype<decltype(jaxci_some<Type>().imag())> {};

template <class Member>
struct jaxci_input_dtype; /* of a member that is no pointer to const */
template <class Type>
struct jaxci_input_dtype<const Type *> : jaxci_dtype<Type> {};
JAXCI_TRAIT(jaxci_input_dtype, const void *, JAXC_ANY)

template <class Member>
struct jaxci_output_dtype;
template <class Type>
struct jaxci_output_dtype<Type *> : jaxci_dtype<Type> {};
template <class Type>
struct jaxci_output_dtype<const Type *>;
JAXCI_TRAIT(jaxci_output_dtype, void *, JAXC_ANY)

template <class Member>
struct jaxci_attribute_dtype;
template <class Type>
struct jaxci_attribute_dtype<Type &> : jaxci_dtype<Type> {};
JAXCI_TRAIT(jaxci_attribute_dtype, jaxc_string &, JAXC_STRING)
JAXCI_TRAIT(jaxci_attribute_dtype, const jaxc_abi_attrs *&, JAXC_DICTIONARY)
JAXCI_TRAIT(jaxci_attribute_dtype, void *&, JAXC_POINTER)
JAXCI_TRAIT(jaxci_attribute_dtype, const void *&, JAXC_POINTER)
}
#define JAXCI_ATTRIBUTE_DTYPE(member) (jaxci_attribute_dtype<decltype(member)>::value)
#define JAXCI_INPUT_DTYPE(pointer) (jaxci_input_dtype<decltype(pointer)>::value)
#define JAXCI_OUTPUT_DTYPE(pointer) (jaxci_output_dtype<decltype(pointer)>::value)
#define JAXCI_EXTERN_C extern "C"
#endif

#define JAXCI_MEMBER(type, member) (((type *)0)->member)
#define JAXCI_FIELD(type, member, kind, is_optional, dtype, rank, fields)          \
  {#member, (int16_t)(sizeof #member - 1), kind, is_optional, dtype, rank, 0,      \
   offsetof(type, member), fields}

/* The next argument or result, into a JAXC_VIEW member. `rank` is a number of axes,
 * JAXC_AT_LEAST(n) or JAXC_ANY_RANK. */
#define JAXC_ARGUMENT(type, member, rank)                                          \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARGUMENT, 0,                                \
              JAXCI_INPUT_DTYPE(JAXCI_MEMBER(type, member).data), rank, NULL)
#define JAXC_RESULT(type, member, rank)                                            \
  JAXCI_FIELD(type, member, JAXC_FIELD_RESULT, 0,                                  \
              JAXCI_OUTPUT_DTYPE(JAXCI_MEMBER(type, member).data), rank, NULL)

/* May be absent; behind those that may not. */
#define JAXC_OPTIONAL_ARGUMENT(type, member, rank)                                 \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARGUMENT, 1,                                \
              JAXCI_INPUT_DTYPE(JAXCI_MEMBER(type, member).data), rank, NULL)
#define JAXC_OPTIONAL_RESULT(type, member, rank)                                   \
  JAXCI_FIELD(type, member, JAXC_FIELD_RESULT, 1,                                  \
              JAXCI_OUTPUT_DTYPE(JAXCI_MEMBER(type, member).data), rank, NULL)

/* With the type number given, for element types that C has no type for: JAXC_F16 in a
 * JAXC_VIEW(const uint16_t), JAXC_S4 in a JAXC_VIEW(const void). */
#define JAXC_ARGUMENT_AS(type, member, dtype, rank)                                \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARGUMENT, 0, dtype, rank, NULL)
#define JAXC_RESULT_AS(type, member, dtype, rank)                                  \
  JAXCI_FIELD(type, member, JAXC_FIELD_RESULT, 0, dtype, rank, NULL)

#define JAXC_OPTIONAL_ARGUMENT_AS(type, member, dtype, rank)                       \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARGUMENT, 1, dtype, rank, NULL)
#define JAXC_OPTIONAL_RESULT_AS(type, member, dtype, rank)                         \
  JAXCI_FIELD(type, member, JAXC_FIELD_RESULT, 1, dtype, rank, NULL)

/* All further ones, into a jaxc_rest member; last of its kind. */
#define JAXC_REST_ARGUMENTS(type, member)                                          \
  JAXCI_FIELD(type, member, JAXC_FIELD_REST_ARGUMENTS, 1, JAXC_ANY, 0, NULL)
#define JAXC_REST_RESULTS(type, member)                                            \
  JAXCI_FIELD(type, member, JAXC_FIELD_REST_RESULTS, 1, JAXC_ANY, 0, NULL)

/* The attribute of the member's name: a scalar of the member's type, a jaxc_string, a
 * dictionary (const jaxc_abi_attrs *, for attrs.h), or an address (void *), which comes as
 * an int64. */
#define JAXC_ATTRIBUTE(type, member)                                               \
  JAXCI_FIELD(type, member, JAXC_FIELD_ATTRIBUTE, 0,                               \
              JAXCI_ATTRIBUTE_DTYPE(JAXCI_MEMBER(type, member)), 0, NULL)

/* May be absent; then the member is as in the handler's `defaults`, or zero. */
#define JAXC_OPTIONAL_ATTRIBUTE(type, member)                                      \
  JAXCI_FIELD(type, member, JAXC_FIELD_ATTRIBUTE, 1,                               \
              JAXCI_ATTRIBUTE_DTYPE(JAXCI_MEMBER(type, member)), 0, NULL)

/* An enum member, which comes as an int64 from 0 to count - 1. A compile error here means
 * that the member has not the size of an int. */
#define JAXCI_ENUM_FIELD(type, member, is_optional, count)                         \
  JAXCI_FIELD(type, member, JAXC_FIELD_ATTRIBUTE, is_optional, JAXC_ENUM,          \
              (count) + 0 * (int)sizeof(char[sizeof(JAXCI_MEMBER(type, member)) == \
                                                     sizeof(int)                   \
                                                 ? 1                               \
                                                 : -1]),                           \
              NULL)
#define JAXC_ATTRIBUTE_ENUM(type, member, count) JAXCI_ENUM_FIELD(type, member, 0, count)
#define JAXC_OPTIONAL_ATTRIBUTE_ENUM(type, member, count)                          \
  JAXCI_ENUM_FIELD(type, member, 1, count)

/* A jaxc_array member: an array of `dtype`, or JAXC_ANY. */
#define JAXC_ATTRIBUTE_ARRAY(type, member, dtype)                                  \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARRAY, 0, dtype, 0, NULL)
#define JAXC_OPTIONAL_ATTRIBUTE_ARRAY(type, member, dtype)                         \
  JAXCI_FIELD(type, member, JAXC_FIELD_ARRAY, 1, dtype, 0, NULL)

/* A struct member, filled from the dictionary of its name by a table of attributes. */
#define JAXCI_NESTED_FIELD(type, member, is_optional, field_list)                  \
  JAXCI_FIELD(type, member, JAXC_FIELD_NESTED, is_optional, JAXC_DICTIONARY,       \
              (int32_t)(sizeof(field_list) / sizeof *(field_list)), field_list)
#define JAXC_ATTRIBUTE_NESTED(type, member, field_list)                            \
  JAXCI_NESTED_FIELD(type, member, 0, field_list)
#define JAXC_OPTIONAL_ATTRIBUTE_NESTED(type, member, field_list)                   \
  JAXCI_NESTED_FIELD(type, member, 1, field_list)

/* All attributes, whatever their names, into a const jaxc_abi_attrs * member. */
#define JAXC_ALL_ATTRIBUTES(type, member)                                          \
  JAXCI_FIELD(type, member, JAXC_FIELD_ALL_ATTRIBUTES, 1, JAXC_DICTIONARY, 0, NULL)

#ifdef __cplusplus
}
#endif

#endif /* JAXC_FIELD_H */
