/* test_batch.c: rows, broadcasting, scratch, static values, and their refusals, on
 * descriptions written by hand. */
#include <stddef.h>
#include <stdlib.h>

/* Memory of batch.h fails when `allocations_left` runs out. */
static int allocations_left = 1000;
static int allocated;
static void *test_malloc(size_t size) {
  if (allocations_left-- <= 0) return NULL;
  allocated++;
  return malloc(size);
}
static void test_free(void *data) {
  if (data != NULL) allocated--;
  free(data);
}
#define malloc test_malloc
#define free test_free
#include <jaxc/batch.h>
#undef malloc
#undef free

#include "check.h"
#include "frame.h"

static const jaxc_bound_step dim_n[] = {{JAXC_BOUND_DIM, 0}};
static const jaxc_bound_step valid[] = {{JAXC_BOUND_DIM, 0},
                                        {JAXC_BOUND_DIM, 1},
                                        {JAXC_BOUND_SUBTRACT, 0},
                                        {JAXC_BOUND_CONSTANT, 1},
                                        {JAXC_BOUND_ADD, 0}};
static const jaxc_bound_step twice_n[] = {
    {JAXC_BOUND_CONSTANT, 2}, {JAXC_BOUND_DIM, 0}, {JAXC_BOUND_MULTIPLY, 0}};
static const jaxc_bound bound_n[] = {{"n", dim_n, 1, 0}};
static const jaxc_bound bound_valid[] = {{"n - k + 1", valid, 5, -1}};
static const jaxc_bound bound_twice[] = {{"2 * n", twice_n, 3, -1}};

/* ---- y[n] = x[n] + a, counting calls ---- */

static int calls;
static long long stop_at = -1; /* row of a run that fails */

static int add_rows(const long long *dims, char *const *data, const long long *strides,
                    long long count, jaxc_fault *fault) {
  for (long long row = 0; row < count; row++) {
    const float *x = (const float *)(const void *)(data[1] + row * strides[1]);
    const float a = *(const float *)(const void *)(data[2] + row * strides[2]);
    float *y = (float *)(void *)(data[3] + row * strides[3]);
    calls++;
    if (row == stop_at) {
      fault->row = row;
      fault->status = 42;
      return 1;
    }
    for (long long i = 0; i < dims[0]; i++) y[i] = x[i] + a;
  }
  return 0;
}

static const jaxc_parameter add_parameters[] = {
    {"n", "int n", JAXC_ROLE_DIM, 0, 0, 0, NULL, 0},
    {"x", "const float x[n]", JAXC_ROLE_INPUT, JAXC_F32, 1, -1, bound_n, 0},
    {"a", "float a", JAXC_ROLE_INPUT, JAXC_F32, 0, -1, NULL, 0},
    {"y", "float y[n]", JAXC_ROLE_OUTPUT, JAXC_F32, 1, -1, bound_n, 0}};
static const jaxc_dim dim_int[] = {{"n", INT32_MIN, INT32_MAX, 0}};
static const jaxc_solve_step solve_n[] = {{0, 1, 0}};
static const jaxc_function add_function = {
    .struct_size = sizeof(jaxc_function),
    .name = "add",
    .argument_count = 2,
    .result_count = 1,
    .attribute_count = 0,
    .parameter_count = 4,
    .dim_count = 1,
    .solve_count = 1,
    .parameters = add_parameters,
    .dims = dim_int,
    .solve = solve_n,
    .rows = add_rows,
};
static jaxc_abi_error *add(jaxc_abi_call_frame *frame) {
  return jaxc_batch_handle(frame, &add_function);
}

TEST(one_row_is_one_call) {
  frame_t f;
  float x[3] = {1, 2, 3}, a = 10, y[3] = {0};
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 3);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, y, 1, 3);
  CHECK_TEXT(frame_call(&f, add), "");
  CHECK_INT(calls, 1);
  CHECK(y[0] == 11 && y[1] == 12 && y[2] == 13);
}

TEST(leading_axes_broadcast_like_numpy) {
  frame_t f;
  float x[2 * 1 * 2], a[3], y[2 * 3 * 2];
  for (int i = 0; i < 4; i++) x[i] = (float)i;
  for (int i = 0; i < 3; i++) a[i] = (float)(100 * i);
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 3, 2, 1, 2); /* leading (2, 1), core (2) */
  frame_argument(&f, JAXC_F32, a, 1, 3);       /* leading (3) */
  frame_result(&f, JAXC_F32, y, 3, 2, 3, 2);
  CHECK_TEXT(frame_call(&f, add), "");
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 3; j++) {
      for (int k = 0; k < 2; k++) {
        CHECK(y[(i * 3 + j) * 2 + k] == (float)(2 * i + k + 100 * j));
      }
    }
  }
}

TEST(axes_of_every_pattern_agree_with_a_plain_loop) {
  /* x and a each lack or share any of four leading axes of sizes 2, 3, 1, 2 */
  static const int sizes[4] = {2, 3, 1, 2};
  for (int pattern = 0; pattern < 256; pattern++) {
    frame_t f;
    int64_t dims[2][5], full[5] = {2, 3, 1, 2, 2};
    float x[24], a[12], y[24];
    for (int i = 0; i < 24; i++) x[i] = (float)(i + 1);
    for (int i = 0; i < 12; i++) a[i] = (float)(100 * (i + 1));
    for (int side = 0; side < 2; side++) {
      for (int i = 0; i < 4; i++) dims[side][i] = pattern >> (4 * side + i) & 1 ? sizes[i] : 1;
    }
    dims[0][4] = 2;
    frame_begin(&f);
    frame_operand(&f, 0, JAXC_F32, x, 5, dims[0]);
    frame_operand(&f, 0, JAXC_F32, a, 4, dims[1]);
    for (int i = 0; i < 4; i++) full[i] = dims[0][i] > dims[1][i] ? dims[0][i] : dims[1][i];
    frame_operand(&f, 1, JAXC_F32, y, 5, full);
    CHECK_TEXT(frame_call(&f, add), "");
    int row = 0;
    for (int i = 0; i < full[0] * full[1] * full[2] * full[3]; i++, row++) {
      int64_t rest = i, at[2] = {0, 0}, step[2] = {1, 1};
      for (int axis = 3; axis >= 0; axis--) {
        const int64_t index = rest % full[axis];
        rest /= full[axis];
        for (int side = 0; side < 2; side++) {
          at[side] += (dims[side][axis] == 1 ? 0 : index) * step[side];
          step[side] *= dims[side][axis];
        }
      }
      for (int k = 0; k < 2; k++) CHECK(y[2 * row + k] == x[2 * at[0] + k] + a[at[1]]);
    }
  }
}

TEST(no_rows_is_no_call) {
  frame_t f;
  float a = 1;
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, NULL, 2, 0, 3);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, NULL, 2, 0, 3);
  CHECK_TEXT(frame_call(&f, add), "");
  CHECK_INT(calls, 0);
}

TEST(an_empty_core_dimension_is_a_call_with_zero) {
  frame_t f;
  float a = 1;
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, NULL, 2, 2, 0);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, NULL, 2, 2, 0);
  CHECK_TEXT(frame_call(&f, add), "");
  CHECK_INT(calls, 2);
}

TEST(contiguous_rows_are_one_run) {
  frame_t f;
  float x[24] = {0}, a[12] = {0}, y[24];
  stop_at = 11; /* only a run of twelve rows has a row eleven */
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 4, 2, 3, 2, 2);
  frame_argument(&f, JAXC_F32, a, 3, 2, 3, 2);
  frame_result(&f, JAXC_F32, y, 4, 2, 3, 2, 2);
  CHECK_TEXT(frame_call(&f, add), "add: returned status 42 (batch row 11 of 12); 0 is success");
  CHECK_INT(frame_error.code, JAXC_UNKNOWN);
}

TEST(a_failing_row_is_counted_across_runs) {
  frame_t f;
  float x[6] = {0}, a[2] = {0}, y[12];
  stop_at = 1;
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 3, 3, 1, 2);
  frame_argument(&f, JAXC_F32, a, 1, 2);
  frame_result(&f, JAXC_F32, y, 3, 3, 2, 2);
  CHECK_TEXT(frame_call(&f, add), "add: returned status 42 (batch row 1 of 6); 0 is success");
  CHECK_INT(calls, 2);
}

TEST(a_single_row_is_not_numbered) {
  frame_t f;
  float x[2] = {0}, a = 0, y[2];
  stop_at = 0;
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 2);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, y, 1, 2);
  CHECK_TEXT(frame_call(&f, add), "add: returned status 42; 0 is success");
}

TEST(sizes_that_do_not_broadcast_are_refused) {
  frame_t f;
  float x[4] = {0}, a[3] = {0}, y[6];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 2, 2, 2);
  frame_argument(&f, JAXC_F32, a, 1, 3);
  frame_result(&f, JAXC_F32, y, 2, 3, 2);
  CHECK_TEXT(frame_call(&f, add),
             "add: leading axis -1 has size 2 in one array and 3 in another");
  CHECK_INT(calls, 0);
}

TEST(a_result_smaller_than_the_rows_is_refused) {
  frame_t f;
  float x[4] = {0}, a = 0, y[2];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 2, 2, 2);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, y, 2, 1, 2);
  CHECK_TEXT(frame_call(&f, add), "add: result 'y' lacks a leading axis of the arguments");
  f.buffers[1][0].rank = 1;
  f.dims[1][0][0] = 2;
  CHECK_TEXT(frame_call(&f, add), "add: result 'y' lacks a leading axis of the arguments");
  CHECK_INT(calls, 0);
}

TEST(core_sizes_are_compared_with_their_bounds) {
  frame_t f;
  float x[4] = {0}, a = 0, y[3];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 4);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, y, 1, 3);
  CHECK_TEXT(frame_call(&f, add), "add: 'y' has 3 elements on core axis 0, expected n = 4");
}

TEST(a_dimension_beyond_its_c_type_is_refused) {
  frame_t f;
  float x[1] = {0}, a = 0, y[1];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 1);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, y, 1, 1);
  f.dims[0][0][0] = f.dims[1][0][0] = INT64_C(3000000000);
  CHECK_TEXT(frame_call(&f, add),
             "add: dimension n is 3000000000, outside the range of its C type (0 to "
             "2147483647)");
  CHECK_INT(calls, 0);
}

TEST(too_many_leading_axes_are_refused) {
  frame_t f;
  int64_t dims[FRAME_MAX_RANK];
  float x[1] = {0}, a = 0, y[1];
  for (int i = 0; i < FRAME_MAX_RANK; i++) dims[i] = 1;
  frame_begin(&f);
  frame_operand(&f, 0, JAXC_F32, x, 34, dims);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_operand(&f, 1, JAXC_F32, y, 34, dims);
  CHECK_TEXT(frame_call(&f, add),
             "add: called with 33 leading axes, at most 32 are supported");
  CHECK_INT(frame_error.code, JAXC_UNIMPLEMENTED);
}

TEST(missing_operands_are_refused) {
  frame_t f;
  frame_begin(&f);
  CHECK_TEXT(frame_call(&f, add), "add: called with 0 arguments, expected 2");
}

TEST(metadata_is_answered_before_anything_is_read) {
  jaxc_abi_metadata metadata = {.struct_size = 36};
  jaxc_abi_metadata_extension extension = {{32, JAXC_ABI_EXTENSION_METADATA, NULL},
                                           &metadata};
  jaxc_abi_call_frame frame;
  memset(&frame, 0xAA, sizeof frame);
  frame.extension_start = &extension.base;
  CHECK(add(&frame) == NULL);
  CHECK_INT(metadata.api_version.minor_version, 1);
}

/* ---- computed sizes, static values, scratch, strings, text results ---- */

static struct {
  long long n, k;
  int32_t mode;
  double complex_[2];
  char text[64];
  uintptr_t scratch;
} seen;

static int everything_rows(const long long *dims, char *const *data,
                           const long long *strides, long long count, jaxc_fault *fault) {
  (void)count;
  seen.n = dims[0];
  seen.k = dims[1];
  memcpy(&seen.mode, data[4], sizeof seen.mode);
  memcpy(seen.complex_, data[5], sizeof seen.complex_);
  snprintf(seen.text, sizeof seen.text, "%s", *(const char *const *)(const void *)data[6]);
  seen.scratch = (uintptr_t)data[7];
  memset(data[7], 0x55, (size_t)(2 * dims[0]) * sizeof(double)); /* sanitizers look on */
  CHECK_INT(strides[4] | strides[5] | strides[6] | strides[7], 0);
  if (seen.mode == 9) {
    fault->row = 0;
    fault->text = "mode nine is bad";
    return 1;
  }
  return 0;
}

static const jaxc_parameter everything_parameters[] = {
    {"n", "int n", JAXC_ROLE_DIM, 0, 0, 0, NULL, 0},
    {"k", "int k", JAXC_ROLE_DIM, 0, 0, 1, NULL, 0},
    {"x", "const float x[n]", JAXC_ROLE_INPUT, JAXC_F32, 1, -1, bound_n, 0},
    {"y", "float y[n - k + 1]", JAXC_ROLE_OUTPUT, JAXC_F32, 1, -1, bound_valid, 0},
    {"mode", "int mode", JAXC_ROLE_STATIC, JAXC_S32, 0, -1, NULL, 0},
    {"z", "double _Complex z", JAXC_ROLE_STATIC, JAXC_C128, 0, -1, NULL, 0},
    {"text", "const char *text", JAXC_ROLE_STATIC, JAXC_STRING, 0, -1, NULL, 0},
    {"w", "double w[2 * n]", JAXC_ROLE_SCRATCH, JAXC_F64, 1, -1, bound_twice, 0}};
static const jaxc_dim everything_dims[] = {{"n", 0, INT32_MAX, 0}, {"k", 0, INT32_MAX, 1}};
static const jaxc_solve_step everything_solve[] = {{0, 2, 0}};
static const jaxc_function everything_function = {
    .struct_size = sizeof(jaxc_function),
    .name = "everything",
    .argument_count = 1,
    .result_count = 1,
    .attribute_count = 4,
    .parameter_count = 8,
    .dim_count = 2,
    .solve_count = 1,
    .parameters = everything_parameters,
    .dims = everything_dims,
    .solve = everything_solve,
    .rows = everything_rows,
};
static jaxc_abi_error *everything(jaxc_abi_call_frame *frame) {
  return jaxc_batch_handle(frame, &everything_function);
}

static float everything_x[4000], everything_y[4000];
static int64_t everything_k;
static int32_t everything_mode;
static double everything_z[2] = {1.5, -2.5};
static jaxc_abi_span everything_text = {"hello world", 5}; /* not terminated after five */

static void everything_frame(frame_t *f, int n, int k, int mode) {
  frame_begin(f);
  everything_k = k;
  everything_mode = mode;
  frame_argument(f, JAXC_F32, everything_x, 1, n);
  frame_result(f, JAXC_F32, everything_y, 1, n - k + 1);
  frame_scalar(f, "k", JAXC_S64, &everything_k);
  frame_scalar(f, "mode", JAXC_S32, &everything_mode);
  frame_string(f, "text", &everything_text);
  frame_array(f, "z", JAXC_F64, everything_z, 2);
}

TEST(static_values_and_strings_arrive) {
  frame_t f;
  everything_frame(&f, 5, 2, 3);
  CHECK_TEXT(frame_call(&f, everything), "");
  CHECK_INT(seen.n, 5);
  CHECK_INT(seen.k, 2);
  CHECK_INT(seen.mode, 3);
  CHECK(seen.complex_[0] == 1.5 && seen.complex_[1] == -2.5);
  CHECK_TEXT(seen.text, "hello");
}

TEST(scratch_is_aligned_whether_small_or_large) {
  for (int n = 0; n < 4000; n += 333) {
    frame_t f;
    everything_frame(&f, n, 1, 3);
    CHECK_TEXT(frame_call(&f, everything), "");
    CHECK_INT(seen.scratch % 64, 0);
    CHECK_INT(allocated, 0);
  }
}

TEST(small_scratch_allocates_nothing) {
  frame_t f;
  everything_frame(&f, 200, 1, 3);
  allocations_left = 0;
  CHECK_TEXT(frame_call(&f, everything), "");
}

TEST(no_memory_is_an_error_and_nothing_leaks) {
  frame_t f;
  everything_frame(&f, 4000, 1, 3);
  allocations_left = 0;
  CHECK_TEXT(frame_call(&f, everything), "everything: no memory for 64064 bytes of scratch");
  CHECK_INT(frame_error.code, JAXC_RESOURCE_EXHAUSTED);
  CHECK_INT(allocated, 0);
}

TEST(a_text_from_the_kernel_is_the_error) {
  frame_t f;
  everything_frame(&f, 4000, 1, 9);
  CHECK_TEXT(frame_call(&f, everything), "everything: mode nine is bad");
  CHECK_INT(allocated, 0);
}

TEST(a_result_of_another_computed_size_is_refused) {
  frame_t f;
  everything_frame(&f, 5, 2, 3);
  f.dims[1][0][0] = 5;
  CHECK_TEXT(frame_call(&f, everything),
             "everything: 'y' has 5 elements on core axis 0, expected n - k + 1 = 4");
}

TEST(a_missing_static_value_is_named) {
  frame_t f;
  everything_frame(&f, 5, 2, 3);
  f.names[1].ptr = "mood";
  CHECK_TEXT(frame_call(&f, everything), "everything: attribute 'mode' is missing");
  CHECK_INT(frame_error.code, JAXC_NOT_FOUND);
}

TEST(impossible_scratch_is_refused) {
  frame_t f;
  everything_frame(&f, 1, 1, 3);
  f.dims[0][0][0] = INT32_MAX; /* 32 GiB of scratch; the kernel is never called */
  f.dims[1][0][0] = INT32_MAX;
  allocations_left = 0;
  CHECK_TEXT(frame_call(&f, everything),
             "everything: no memory for 34359738432 bytes of scratch");
}

/* ---- inout ---- */

static int twice_rows(const long long *dims, char *const *data, const long long *strides,
                      long long count, jaxc_fault *fault) {
  (void)fault;
  for (long long row = 0; row < count; row++) {
    float *x = (float *)(void *)(data[1] + row * strides[1]);
    for (long long i = 0; i < dims[0]; i++) x[i] *= 2;
  }
  return 0;
}
static const jaxc_parameter twice_parameters[] = {
    {"n", "int n", JAXC_ROLE_DIM, 0, 0, 0, NULL, 0},
    {"x", "float x[n]", JAXC_ROLE_INOUT, JAXC_F32, 1, -1, bound_n, 0},
    {"a", "float a", JAXC_ROLE_INPUT, JAXC_F32, 0, -1, NULL, 0}};
static const jaxc_function twice_function = {
    .struct_size = sizeof(jaxc_function),
    .name = "twice",
    .argument_count = 2,
    .result_count = 1,
    .attribute_count = 0,
    .parameter_count = 3,
    .dim_count = 1,
    .solve_count = 1,
    .parameters = twice_parameters,
    .dims = dim_int,
    .solve = solve_n,
    .rows = twice_rows,
};
static jaxc_abi_error *twice(jaxc_abi_call_frame *frame) {
  return jaxc_batch_handle(frame, &twice_function);
}

TEST(an_aliased_inout_is_changed_in_place) {
  frame_t f;
  float x[4] = {1, 2, 3, 4}, a = 0;
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 2, 2, 2);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, x, 2, 2, 2);
  CHECK_TEXT(frame_call(&f, twice), "");
  CHECK(x[0] == 2 && x[3] == 8);
}

TEST(an_inout_without_alias_is_copied_first) {
  frame_t f;
  float x[4] = {1, 2, 3, 4}, y[4] = {9, 9, 9, 9}, a = 0;
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 2, 2, 2);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, y, 2, 2, 2);
  CHECK_TEXT(frame_call(&f, twice), "");
  CHECK(x[0] == 1 && x[3] == 4);
  CHECK(y[0] == 2 && y[1] == 4 && y[2] == 6 && y[3] == 8);
}

TEST(a_broadcast_inout_gives_each_row_its_own_copy) {
  frame_t f;
  float x[2] = {1, 2}, a[3] = {0}, y[6];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 2);
  frame_argument(&f, JAXC_F32, a, 1, 3);
  frame_result(&f, JAXC_F32, y, 2, 3, 2);
  CHECK_TEXT(frame_call(&f, twice), "");
  for (int i = 0; i < 6; i++) CHECK(y[i] == 2 * x[i % 2]);
  CHECK(x[0] == 1);
}

TEST(the_operand_and_the_result_of_an_inout_are_both_checked) {
  frame_t f;
  float x[4] = {0}, y[4], a = 0;
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 4);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, y, 1, 3);
  CHECK_TEXT(frame_call(&f, twice),
             "twice: 'x' has 3 elements on core axis 0, expected n = 4");
}

/* ---- effect: a token comes first ---- */

static jaxc_abi_error *add_with_token(jaxc_abi_call_frame *frame) {
  static jaxc_function function;
  function = add_function;
  function.flags = JAXC_FUNCTION_EFFECT;
  function.argument_count++;
  function.result_count++;
  return jaxc_batch_handle(frame, &function);
}

TEST(a_token_is_passed_over) {
  frame_t f;
  float x[2] = {1, 2}, a = 1, y[2];
  frame_begin(&f);
  frame_argument(&f, JAXC_TOKEN, NULL, 0);
  frame_argument(&f, JAXC_F32, x, 1, 2);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_TOKEN, NULL, 0);
  frame_result(&f, JAXC_F32, y, 1, 2);
  CHECK_TEXT(frame_call(&f, add_with_token), "");
  CHECK(y[1] == 3);
}

/* x[2 * n] gives n; an odd size gives none. */
static const jaxc_parameter half_parameters[] = {
    {"n", "int n", JAXC_ROLE_DIM, 0, 0, 0, NULL, 0},
    {"x", "const float x[2 * n]", JAXC_ROLE_INPUT, JAXC_F32, 1, -1, bound_twice, 0},
    {"a", "float a", JAXC_ROLE_INPUT, JAXC_F32, 0, -1, NULL, 0},
    {"y", "float y[2 * n]", JAXC_ROLE_OUTPUT, JAXC_F32, 1, -1, bound_twice, 0}};
static const jaxc_function half_function = {
    .struct_size = sizeof(jaxc_function),
    .name = "half",
    .argument_count = 2,
    .result_count = 1,
    .attribute_count = 0,
    .parameter_count = 4,
    .dim_count = 1,
    .solve_count = 1,
    .parameters = half_parameters,
    .dims = dim_int,
    .solve = solve_n,
    .rows = add_rows,
};
static jaxc_abi_error *half(jaxc_abi_call_frame *frame) {
  return jaxc_batch_handle(frame, &half_function);
}

TEST(a_dimension_is_solved_from_a_linear_bound) {
  frame_t f;
  float x[6] = {1, 2, 3, 4, 5, 6}, a = 1, y[6] = {0};
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 6);
  frame_argument(&f, JAXC_F32, &a, 0);
  frame_result(&f, JAXC_F32, y, 1, 6);
  CHECK_TEXT(frame_call(&f, half), "");
  CHECK(y[2] == 4 && y[3] == 0); /* the rows saw n = 3 */
  f.dims[0][0][0] = 5;
  CHECK_TEXT(frame_call(&f, half), "half: 'x' has 5 elements on core axis 0, which no n "
                                   "gives (C: const float x[2 * n])");
}

TEST_MAIN
