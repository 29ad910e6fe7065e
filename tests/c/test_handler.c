/* test_handler.c: a call becomes a struct, and every refusal with its whole text. Element
 * types are in test_dtypes.c; what needs a runtime is in test_context.c and test_state.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"
#include "frame.h"

/* ---- arrays: required, optional and rest ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(const int) k;
  JAXC_VIEW(const void) mask;
  JAXC_VIEW(float) y;
  JAXC_VIEW(double) norm;
} norm_call;
static const jaxc_field norm_fields[] = {
    JAXC_ARGUMENT(norm_call, x, JAXC_AT_LEAST(2)),
    JAXC_ARGUMENT(norm_call, k, 0),
    JAXC_OPTIONAL_ARGUMENT(norm_call, mask, JAXC_ANY_RANK),
    JAXC_RESULT(norm_call, y, 2),
    JAXC_OPTIONAL_RESULT(norm_call, norm, 1),
};
static norm_call norm_seen;
static int calls;
static jaxc_status norm(jaxc_context *context, const void *data) {
  (void)context;
  calls++;
  norm_seen = *(const norm_call *)data;
  return JAXC_OK;
}
JAXC_HANDLER(Norm, norm_call, norm_fields, .execute = norm);

static float x[24], y[24];
static double z[4];
static int k[1] = {5};
static unsigned char mask[6];

static void frame_norm(frame_t *f) {
  frame_begin(f);
  frame_argument(f, JAXC_F32, x, 3, 2, 3, 4);
  frame_argument(f, JAXC_S32, k, 0);
  frame_result(f, JAXC_F32, y, 2, 3, 4);
}

TEST(a_view_has_data_dims_rank_count_and_dtype) {
  frame_t f;
  frame_norm(&f);
  CHECK_TEXT(frame_call(&f, Norm), "");
  CHECK(norm_seen.x.data == x && norm_seen.k.data == k && norm_seen.y.data == y);
  CHECK_INT(norm_seen.x.rank, 3);
  CHECK_INT(norm_seen.x.dims[0], 2);
  CHECK_INT(norm_seen.x.dims[2], 4);
  CHECK_INT(norm_seen.x.count, 24);
  CHECK_INT(norm_seen.x.dtype, JAXC_F32);
  CHECK_INT(norm_seen.k.rank, 0);
  CHECK_INT(norm_seen.k.count, 1);
  CHECK_INT(norm_seen.y.count, 12);
}

TEST(absent_optional_arrays_have_rank_minus_one) {
  frame_t f;
  frame_norm(&f);
  CHECK_TEXT(frame_call(&f, Norm), "");
  CHECK(norm_seen.mask.data == NULL && norm_seen.norm.data == NULL);
  CHECK_INT(norm_seen.mask.rank, -1);
  CHECK_INT(norm_seen.mask.count, 0);
  CHECK_INT(norm_seen.mask.dtype, JAXC_DTYPE_INVALID);
  CHECK_INT(norm_seen.norm.rank, -1);
}

TEST(present_optional_arrays_arrive) {
  frame_t f;
  frame_norm(&f);
  frame_argument(&f, JAXC_PRED, mask, 1, 6);
  frame_result(&f, JAXC_F64, z, 1, 3);
  CHECK_TEXT(frame_call(&f, Norm), "");
  CHECK(norm_seen.mask.data == mask && norm_seen.norm.data == z);
  CHECK_INT(norm_seen.mask.dtype, JAXC_PRED);
  CHECK_INT(norm_seen.norm.dims[0], 3);
}

TEST(a_present_optional_array_must_be_right) {
  frame_t f;
  frame_norm(&f);
  frame_result(&f, JAXC_F32, x, 1, 3);
  CHECK_TEXT(frame_call(&f, Norm),
             "Norm: result 1 ('norm') has dtype float32, expected float64");
}

TEST(missing_arrays_are_named) {
  frame_t f;
  frame_begin(&f);
  CHECK_TEXT(frame_call(&f, Norm),
             "Norm: argument 0 ('x') is missing; argument 1 ('k') is missing; "
             "result 0 ('y') is missing");
  CHECK_INT(frame_error.code, JAXC_INVALID_ARGUMENT);
}

TEST(surplus_arrays_and_attributes_are_refused) {
  frame_t f;
  int32_t one = 1;
  frame_norm(&f);
  frame_argument(&f, JAXC_PRED, mask, 1, 6);
  frame_argument(&f, JAXC_F32, x, 0);
  frame_result(&f, JAXC_F64, z, 1, 3);
  frame_result(&f, JAXC_F64, z, 1, 3);
  frame_scalar(&f, "eps", JAXC_S32, &one);
  frame_scalar(&f, "x", JAXC_S32, &one); /* the name of an argument is none of these */
  CHECK_TEXT(frame_call(&f, Norm),
             "Norm: called with 4 arguments, expected 2 to 3; called with 3 results, "
             "expected 1 to 2; attribute 'eps' is not expected; "
             "attribute 'x' is not expected");
  f.frame.results.size = 2;
  f.frame.attrs.size = 0;
  CHECK_TEXT(frame_call(&f, Norm), "Norm: called with 4 arguments, expected 2 to 3");
  f.frame.args.size = 3;
  f.frame.results.size = 3;
  CHECK_TEXT(frame_call(&f, Norm), "Norm: called with 3 results, expected 1 to 2");
  f.frame.results.size = 2;
  f.frame.attrs.size = 1;
  CHECK_TEXT(frame_call(&f, Norm), "Norm: attribute 'eps' is not expected");
  CHECK_INT(calls, 0);
}

TEST(all_wrong_operands_are_in_one_message) {
  frame_t f;
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 3);
  frame_argument(&f, JAXC_S64, k, 0);
  frame_argument(&f, JAXC_PRED, NULL, 1, 6);
  frame_result(&f, JAXC_F32, y, 3, 1, 2, 3);
  CHECK_TEXT(frame_call(&f, Norm),
             "Norm: argument 0 ('x') has 1 axes, expected at least 2; "
             "argument 1 ('k') has dtype int64, expected int32; "
             "argument 2 ('mask') has no data but 6 elements; "
             "result 0 ('y') has 3 axes, expected 2");
}

TEST(negative_sizes_and_ranks_are_refused) {
  frame_t f;
  frame_norm(&f);
  frame_argument(&f, JAXC_PRED, mask, 1, 6);
  f.dims[0][0][1] = -3;
  f.buffers[0][2].rank = -3;
  f.buffers[1][0].rank = -2;
  CHECK_TEXT(frame_call(&f, Norm),
             "Norm: argument 0 ('x') has an impossible size -3 on axis 1; "
             "argument 2 ('mask') has -3 axes, expected at least 0; "
             "result 0 ('y') has -2 axes, expected 2");
}

TEST(sizes_that_overflow_are_refused) {
  frame_t f;
  frame_norm(&f);
  f.dims[0][0][0] = INT64_MAX / 2;
  f.dims[1][0][0] = INT64_MAX / 16;
  f.dims[1][0][1] = 2;
  CHECK_TEXT(frame_call(&f, Norm),
             "Norm: argument 0 ('x') has an impossible size 3 on axis 1; "
             "result 0 ('y') has more bytes than an int64 counts");
}

TEST(null_data_is_allowed_without_elements) {
  frame_t f;
  frame_norm(&f);
  f.buffers[0][0].data = NULL;
  CHECK_TEXT(frame_call(&f, Norm), "Norm: argument 0 ('x') has no data but 24 elements");
  f.dims[0][0][1] = 0;
  CHECK_TEXT(frame_call(&f, Norm), "");
  CHECK_INT(norm_seen.x.count, 0);
}

typedef struct {
  JAXC_VIEW(const float) x;
  jaxc_rest arguments, results;
} rest_call;
static const jaxc_field rest_fields[] = {
    JAXC_ARGUMENT(rest_call, x, 1),
    JAXC_REST_ARGUMENTS(rest_call, arguments),
    JAXC_REST_RESULTS(rest_call, results),
};
static int rest_index, rest_dtype, rest_rank, rest_of_results;
static jaxc_view rest_seen;
static int64_t rest_counts[2];
static jaxc_status rest(jaxc_context *context, const void *data) {
  const rest_call *call = data;
  rest_counts[0] = call->arguments.count;
  rest_counts[1] = call->results.count;
  return jaxc_rest_view(context, rest_of_results ? &call->results : &call->arguments,
                        rest_index, rest_dtype, rest_rank, &rest_seen);
}
JAXC_HANDLER(Rest, rest_call, rest_fields, .execute = rest, .prepare = rest);

static void frame_rest(frame_t *f) {
  frame_begin(f);
  frame_argument(f, JAXC_F32, x, 1, 4);
  frame_argument(f, JAXC_S32, k, 0);
  frame_argument(f, JAXC_PRED, mask, 2, 2, 3);
  frame_result(f, JAXC_F64, z, 1, 4);
  rest_dtype = JAXC_ANY;
  rest_rank = JAXC_ANY_RANK;
}

TEST(the_rest_is_counted_and_viewed) {
  frame_t f;
  frame_rest(&f);
  rest_index = 1;
  CHECK_TEXT(frame_call(&f, Rest), "");
  CHECK_INT(rest_counts[0], 2);
  CHECK_INT(rest_counts[1], 1);
  CHECK(rest_seen.data == mask);
  CHECK_INT(rest_seen.dtype, JAXC_PRED);
  CHECK_INT(rest_seen.count, 6);
  rest_of_results = 1;
  rest_index = 0;
  CHECK_TEXT(frame_call(&f, Rest), "");
  CHECK(rest_seen.data == z);
}

TEST(the_rest_may_be_empty_and_ends) {
  frame_t f;
  frame_rest(&f);
  rest_index = 2;
  CHECK_TEXT(frame_call(&f, Rest), "Rest: 'arguments' has 2 arguments, number 2 is asked for");
  CHECK_INT(frame_error.code, JAXC_OUT_OF_RANGE);
  rest_index = -1;
  CHECK_TEXT(frame_call(&f, Rest), "Rest: 'arguments' has 2 arguments, number -1 is asked for");
  f.frame.args.size = 1;
  rest_index = 0;
  CHECK_TEXT(frame_call(&f, Rest), "Rest: 'arguments' has 0 arguments, number 0 is asked for");
  f.frame.args.size = 0;
  CHECK_TEXT(frame_call(&f, Rest), "Rest: argument 0 ('x') is missing");
}

TEST(the_rest_is_checked_as_it_is_viewed) {
  frame_t f;
  frame_rest(&f);
  rest_index = 0;
  rest_dtype = JAXC_F32;
  CHECK_TEXT(frame_call(&f, Rest),
             "Rest: argument 1 ('arguments') has dtype int32, expected float32");
  rest_dtype = JAXC_S32;
  rest_rank = 1;
  CHECK_TEXT(frame_call(&f, Rest),
             "Rest: argument 1 ('arguments') has 0 axes, expected 1");
  rest_rank = 0;
  f.buffers[0][1].data = NULL;
  CHECK_TEXT(frame_call(&f, Rest),
             "Rest: argument 1 ('arguments') has no data but 1 elements");
}

TEST(the_rest_has_shapes_without_data_in_prepare) {
  frame_t f;
  frame_rest(&f);
  f.frame.stage = JAXC_STAGE_PREPARE;
  f.buffers[0][0].data = f.buffers[0][2].data = NULL;
  rest_index = 1;
  CHECK_TEXT(frame_call(&f, Rest), "");
  CHECK_INT(rest_seen.dims[1], 3);
  CHECK(rest_seen.data == NULL);
}

/* ---- order and surplus of attributes ---- */

typedef struct {
  int b, a, c;
} order_call;
static const jaxc_field order_fields[] = {
    JAXC_ATTRIBUTE(order_call, b),
    JAXC_ATTRIBUTE(order_call, a),
    JAXC_OPTIONAL_ATTRIBUTE(order_call, c),
};
static order_call order_seen;
static jaxc_status order(jaxc_context *context, const void *data) {
  (void)context;
  order_seen = *(const order_call *)data;
  return JAXC_OK;
}
JAXC_HANDLER(Order, order_call, order_fields, .execute = order, .instantiate = order);

typedef struct {
  int b;
  const jaxc_abi_attrs *all;
} all_call;
static const jaxc_field all_fields[] = {
    JAXC_ATTRIBUTE(all_call, b),
    JAXC_ALL_ATTRIBUTES(all_call, all),
};
static int64_t all_seen[2];
static jaxc_status all(jaxc_context *context, const void *data) {
  const all_call *call = data;
  (void)context;
  all_seen[0] = call->b;
  all_seen[1] = call->all->size;
  return JAXC_OK;
}
JAXC_HANDLER(All, all_call, all_fields, .execute = all);

static void frame_order(frame_t *f, const char *names) {
  static int32_t values[3] = {10, 20, 30};
  static const char *const texts[3] = {"a", "b", "c"};
  frame_begin(f);
  for (const char *n = names; *n != '\0'; n++) {
    frame_scalar(f, texts[*n - 'a'], JAXC_S32, &values[*n - 'a']);
  }
}

TEST(attributes_are_found_in_every_order) {
  static const char *const orders[] = {"abc", "acb", "bac", "bca", "cab", "cba"};
  frame_t f;
  for (int i = 0; i < 6; i++) {
    frame_order(&f, orders[i]);
    CHECK_TEXT(frame_call(&f, Order), "");
    CHECK_INT(order_seen.a, 10);
    CHECK_INT(order_seen.b, 20);
    CHECK_INT(order_seen.c, 30);
  }
  frame_order(&f, "ba");
  CHECK_TEXT(frame_call(&f, Order), "");
  CHECK_INT(order_seen.c, 0);
}

TEST(an_attribute_given_twice_is_refused_with_a_reason) {
  frame_t f;
  frame_order(&f, "aab");
  CHECK_TEXT(frame_call(&f, Order), "Order: attribute 'a' is given twice");
}

TEST(all_attributes_take_any_name) {
  frame_t f;
  frame_order(&f, "acb");
  CHECK_TEXT(frame_call(&f, All), "");
  CHECK_INT(all_seen[0], 20);
  CHECK_INT(all_seen[1], 3);
  frame_order(&f, "ac");
  CHECK_TEXT(frame_call(&f, All), "All: attribute 'b' is missing");
}

/* ---- more problems than the message holds ---- */

#define TEN(X, tens)                                                               \
  X(tens##0) X(tens##1) X(tens##2) X(tens##3) X(tens##4)                           \
  X(tens##5) X(tens##6) X(tens##7) X(tens##8) X(tens##9)
#define THIRTY(X)                                                                  \
  TEN(X, setting_number_0) TEN(X, setting_number_1) TEN(X, setting_number_2)
typedef struct {
#define MANY_MEMBER(name) int name;
  THIRTY(MANY_MEMBER)
} many_call;
static const jaxc_field many_fields[] = {
#define MANY_FIELD(name) JAXC_ATTRIBUTE(many_call, name),
    THIRTY(MANY_FIELD)};
static jaxc_status nothing(jaxc_context *context, const void *data) {
  (void)context;
  (void)data;
  calls++;
  return JAXC_OK;
}
JAXC_HANDLER(Many, many_call, many_fields, .execute = nothing);
JAXC_HANDLER(many_settings_and_a_name_that_says_more_than_it_has_to, many_call,
             many_fields, .execute = nothing);

typedef struct {
  many_call inside;
} outer_call;
static const jaxc_field outer_fields[] = {
    JAXC_ATTRIBUTE_NESTED(outer_call, inside, many_fields)};
JAXC_HANDLER(Outer, outer_call, outer_fields, .execute = nothing);

/* "Many: " and the first `count` of the 30 problems, then "; and N more problems". */
static const char *many_text(int count, const char *problem) {
  static char text[4096];
  size_t used = (size_t)snprintf(text, sizeof text, "Many: ");
  for (int i = 0; i < count; i++) {
    used += (size_t)snprintf(text + used, sizeof text - used, "%sattribute '%s' %s",
                             i == 0 ? "" : "; ", many_fields[i].name, problem);
  }
  snprintf(text + used, sizeof text - used, "; and %d more problems", 30 - count);
  return text;
}

static void frame_many(frame_t *f) {
  static jaxc_abi_span word = {"no", 2};
  frame_begin(f);
  for (int i = 0; i < 30; i++) frame_string(f, many_fields[i].name, &word);
}

TEST(problems_that_do_not_fit_are_counted) {
  frame_t f;
  frame_many(&f);
  CHECK_TEXT(frame_call(&f, Many), many_text(16, "is a string, expected scalar"));
}

/* 23 of them have 964 characters: none is cut in its middle. */
TEST(each_problem_in_the_message_is_whole) {
  const char *text, *end;
  frame_t f;
  frame_begin(&f);
  text = frame_call(&f, Many);
  end = strstr(text, "; and ");
  CHECK(end != NULL);
  CHECK(strncmp(end - 10, "is missing", 10) == 0);
}

TEST(a_long_name_leaves_room_for_the_count) {
  frame_t f;
  size_t length;
  const char *text;
  frame_many(&f);
  text = frame_call(&f, many_settings_and_a_name_that_says_more_than_it_has_to);
  length = strlen(text);
  CHECK(length > 14);
  CHECK_TEXT(text + length - 14, " more problems");
}

TEST(a_dictionary_with_many_problems_names_the_first) {
  frame_t f, inside;
  const char *text;
  frame_begin(&inside);
  frame_begin(&f);
  frame_dictionary(&f, "inside", &inside);
  text = frame_call(&f, Outer);
  if (strstr(text, "in dictionary 'inside': attribute 'setting_number_00'") == NULL) {
    CHECK_TEXT(text, "Outer: in dictionary 'inside': attribute 'setting_number_00'...");
  }
  CHECK(strstr(text, " more problems") != NULL);
}

/* ---- damaged frames ---- */

#define CHECK_DAMAGE(damage, handler, text)                                        \
  do {                                                                             \
    frame_t f;                                                                     \
    frame_norm(&f);                                                                \
    damage;                                                                        \
    CHECK_TEXT(frame_call(&f, handler), text);                                     \
    CHECK_INT(frame_error.code, JAXC_INVALID_ARGUMENT);                            \
  } while (0)

TEST(a_short_frame_is_refused) {
  CHECK_DAMAGE(f.frame.struct_size--, Norm,
               "Norm: the call frame has 167 bytes, expected at least 168");
}

TEST(a_longer_frame_is_read) {
  frame_t f;
  frame_norm(&f);
  f.frame.struct_size += 100;
  f.frame.args.struct_size += 8;
  CHECK_TEXT(frame_call(&f, Norm), "");
}

#define CHECK_LISTS(damage)                                                        \
  CHECK_DAMAGE(damage, Norm,                                                       \
               "Norm: the frame's operand lists are smaller than API 0.1's")

TEST(short_and_null_lists_are_refused) {
  int32_t one = 1;
  CHECK_LISTS(f.frame.args.struct_size = 39);
  CHECK_LISTS(f.frame.results.struct_size = 0);
  CHECK_LISTS(f.frame.attrs.struct_size = 47);
  CHECK_LISTS(f.frame.args.types = NULL);
  CHECK_LISTS(f.frame.args.data = NULL);
  CHECK_LISTS(f.frame.results.types = NULL);
  CHECK_LISTS(f.frame.results.data = NULL);
  CHECK_LISTS(f.frame.args.size = -1);
  CHECK_LISTS(f.frame.attrs.size = -1);
  CHECK_LISTS(frame_scalar(&f, "a", JAXC_S32, &one); f.frame.attrs.names = NULL);
  CHECK_LISTS(frame_scalar(&f, "a", JAXC_S32, &one); f.frame.attrs.types = NULL);
  CHECK_LISTS(frame_scalar(&f, "a", JAXC_S32, &one); f.frame.attrs.data = NULL);
}

TEST(an_operand_that_is_no_buffer_is_refused) {
  static const char text[] = "Norm: argument 0 ('x') is not a buffer";
  CHECK_DAMAGE(f.types[0][0] = 7, Norm, text);
  CHECK_DAMAGE(f.data[0][0] = NULL, Norm, text);
  CHECK_DAMAGE(f.buffers[0][0].struct_size = 47, Norm, text);
  CHECK_DAMAGE(f.buffers[1][0].dims = NULL, Norm,
               "Norm: result 0 ('y') has 2 axes without sizes");
}

TEST(attributes_without_a_name_are_refused) {
  frame_t f;
  frame_order(&f, "ab");
  f.name_pointers[0] = NULL;
  CHECK_TEXT(frame_call(&f, Order),
             "Order: attribute 'a' is missing; an attribute has no name");
  frame_order(&f, "ab");
  f.names[0].ptr = NULL;
  CHECK_TEXT(frame_call(&f, Order),
             "Order: attribute 'a' is missing; an attribute has no name");
}

TEST(attributes_without_data_are_refused) {
  frame_t f;
  frame_order(&f, "ab");
  f.attrs[0] = NULL;
  CHECK_TEXT(frame_call(&f, Order),
             "Order: attribute 'a' is a null scalar, expected scalar");
}

TEST(a_scalar_without_a_value_is_refused_as_null) {
  frame_t f;
  frame_order(&f, "ab");
  f.scalars[0].value = NULL;
  CHECK_TEXT(frame_call(&f, Order),
             "Order: attribute 'a' is a null scalar, expected scalar");
}

/* ---- stages ---- */

static int stage_seen;
static int64_t rank_seen, count_seen;
static jaxc_status staged(jaxc_context *context, const void *data) {
  const norm_call *call = data;
  stage_seen = jaxc_context_stage(context);
  rank_seen = call->x.rank;
  count_seen = call->x.count;
  calls++;
  return JAXC_OK;
}
JAXC_HANDLER(Stages, norm_call, norm_fields, .execute = staged, .instantiate = staged,
             .prepare = staged, .initialize = staged);

TEST(each_stage_runs_its_function) {
  frame_t f;
  frame_norm(&f);
  for (int stage = JAXC_STAGE_INSTANTIATE; stage <= JAXC_STAGE_EXECUTE; stage++) {
    f.frame.stage = stage;
    CHECK_TEXT(frame_call(&f, Stages), "");
    CHECK_INT(stage_seen, stage);
  }
  CHECK_INT(calls, 4);
}

TEST(a_stage_without_a_function_is_refused) {
  static const int stages[] = {0, 1, 2, JAXC_STAGE_RECORD, -1, 99};
  frame_t f;
  frame_norm(&f);
  for (int i = 0; i < 6; i++) {
    char text[100];
    f.frame.stage = stages[i];
    snprintf(text, sizeof text, "Norm: called in stage %d, which it lacks", stages[i]);
    CHECK_TEXT(frame_call(&f, Norm), text);
    CHECK_INT(frame_error.code, JAXC_UNIMPLEMENTED);
  }
  CHECK_INT(calls, 0);
}

TEST(arrays_may_be_absent_before_execute_and_attributes_may_not) {
  frame_t f;
  frame_begin(&f);
  f.frame.stage = JAXC_STAGE_INSTANTIATE;
  CHECK_TEXT(frame_call(&f, Stages), "");
  CHECK_INT(rank_seen, -1);
  CHECK_TEXT(frame_call(&f, Order),
             "Order: attribute 'b' is missing; attribute 'a' is missing");
  f.frame.stage = JAXC_STAGE_EXECUTE;
  CHECK(strcmp(frame_call(&f, Stages), "") != 0);
}

TEST(arrays_before_execute_have_shapes_without_data) {
  frame_t f;
  frame_norm(&f);
  f.buffers[0][0].data = NULL;
  for (int stage = JAXC_STAGE_INSTANTIATE; stage < JAXC_STAGE_EXECUTE; stage++) {
    f.frame.stage = stage;
    CHECK_TEXT(frame_call(&f, Stages), "");
    CHECK_INT(count_seen, 24);
  }
  f.frame.stage = JAXC_STAGE_EXECUTE;
  CHECK_TEXT(frame_call(&f, Stages),
             "Stages: argument 0 ('x') has no data but 24 elements");
  f.frame.stage = JAXC_STAGE_PREPARE;
  f.buffers[0][0].dtype = JAXC_F64;
  CHECK_TEXT(frame_call(&f, Stages),
             "Stages: argument 0 ('x') has dtype float64, expected float32");
}

TEST(surplus_arrays_are_refused_before_execute_too) {
  frame_t f;
  frame_norm(&f);
  f.frame.stage = JAXC_STAGE_PREPARE;
  frame_argument(&f, JAXC_PRED, mask, 1, 6);
  CHECK_TEXT(frame_call(&f, Stages), "");
  frame_argument(&f, JAXC_PRED, mask, 1, 6);
  CHECK_TEXT(frame_call(&f, Stages), "Stages: called with 4 arguments, expected 2 to 3");
}

TEST_MAIN
