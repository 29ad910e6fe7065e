/* test_call.c: nothing in a frame is trusted. */
#include "check.h"
#include "frame.h"

static jaxc_message message;

static jaxc_status check(frame_t *f, int64_t arguments, int64_t results, int64_t attrs) {
  return jaxc_call_check(&f->frame, JAXC_STAGE_EXECUTE, arguments, results, attrs, &message);
}

TEST(a_whole_frame_passes) {
  frame_t f;
  float x[4];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 4);
  CHECK_INT(check(&f, 1, 0, 0), JAXC_OK);
}

TEST(counts_are_compared) {
  frame_t f;
  float x[4];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, x, 1, 4);
  CHECK_INT(check(&f, 2, 0, 0), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "called with 1 arguments, expected 2");
  CHECK_INT(check(&f, 1, 3, 0), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "called with 0 results, expected 3");
  CHECK_INT(check(&f, 1, 0, 1), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "called with 0 attributes, expected 1");
}

TEST(a_short_frame_is_refused_and_a_longer_one_is_not) {
  frame_t f;
  frame_begin(&f);
  f.frame.struct_size--;
  CHECK_INT(check(&f, 0, 0, 0), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "the call frame has 167 bytes, expected at least 168");
  f.frame.struct_size = 400;
  CHECK_INT(check(&f, 0, 0, 0), JAXC_OK);
}

TEST(short_operand_lists_are_refused) {
  frame_t f;
  frame_begin(&f);
  f.frame.results.struct_size = 8;
  CHECK_INT(check(&f, 0, 0, 0), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "the frame's operand lists are smaller than API 0.1's");
}

TEST(another_stage_is_refused) {
  frame_t f;
  frame_begin(&f);
  f.frame.stage = JAXC_STAGE_PREPARE;
  CHECK_INT(check(&f, 0, 0, 0), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "called in stage 1, expected stage 3");
}

static jaxc_status view(frame_t *f, int dtype, int32_t rank, jaxc_view *out) {
  return jaxc_call_argument(&f->frame, 0, "x", dtype, JAXC_AT_LEAST(rank), out, &message);
}

TEST(an_argument_becomes_a_view) {
  frame_t f;
  jaxc_view x;
  float data[6];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, data, 2, 2, 3);
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_OK);
  CHECK(x.data == (char *)data);
  CHECK_INT(x.rank, 2);
  CHECK_INT(x.dims[1], 3);
}

TEST(another_dtype_is_refused) {
  frame_t f;
  jaxc_view x;
  float data[6];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, data, 1, 6);
  CHECK_INT(view(&f, JAXC_F64, 1, &x), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 ('x') has dtype float32, expected float64");
}

TEST(too_few_axes_are_refused) {
  frame_t f;
  jaxc_view x;
  float data[6];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, data, 1, 6);
  CHECK_INT(view(&f, JAXC_F32, 2, &x), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 ('x') has 1 axes, expected at least 2");
  f.buffers[0][0].rank = -1;
  CHECK_INT(view(&f, JAXC_F32, 0, &x), JAXC_INVALID_ARGUMENT);
  f.buffers[0][0].rank = 1;
  f.buffers[0][0].dims = NULL;
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_INVALID_ARGUMENT);
}

TEST(null_data_is_refused_unless_empty) {
  frame_t f;
  jaxc_view x;
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, NULL, 2, 0, 3);
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_OK);
  f.dims[0][0][0] = 2;
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 ('x') has no data but 6 elements");
}

TEST(negative_and_overflowing_sizes_are_refused) {
  frame_t f;
  jaxc_view x;
  float data[1];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, data, 2, 2, -3);
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 ('x') has an impossible size -3 on axis 1");
  f.dims[0][0][0] = f.dims[0][0][1] = INT64_C(1) << 40;
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_INVALID_ARGUMENT);
  f.dims[0][0][0] = INT64_MAX / 8;
  f.dims[0][0][1] = 1;
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 ('x') has more bytes than an int64 counts");
}

TEST(what_is_no_buffer_is_refused) {
  frame_t f;
  jaxc_view x;
  float data[6];
  frame_begin(&f);
  frame_argument(&f, JAXC_F32, data, 1, 6);
  f.types[0][0] = 2;
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 ('x') is not a buffer");
  f.types[0][0] = JAXC_ABI_BUFFER;
  f.buffers[0][0].struct_size = 24;
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_INVALID_ARGUMENT);
  f.data[0][0] = NULL;
  CHECK_INT(view(&f, JAXC_F32, 1, &x), JAXC_INVALID_ARGUMENT);
}

TEST(a_result_is_named_as_one) {
  frame_t f;
  jaxc_view y;
  float data[6];
  frame_begin(&f);
  frame_result(&f, JAXC_F32, data, 1, 6);
  CHECK_INT(jaxc_call_result(&f.frame, 0, "y", JAXC_S8, JAXC_AT_LEAST(1), &y, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "result 0 ('y') has dtype float32, expected int8");
}

static jaxc_abi_metadata metadata_of(jaxc_abi_extension *first, int *answered) {
  jaxc_abi_metadata metadata = {.struct_size = 36, .state_type_id = 1234};
  jaxc_abi_metadata_extension extension = {{32, JAXC_ABI_EXTENSION_METADATA, NULL},
                                           &metadata};
  jaxc_abi_call_frame frame;
  memset(&frame, 0xAA, sizeof frame); /* nothing but the chain may be read */
  frame.struct_size = 168;
  frame.extension_start = &extension.base;
  if (first != NULL) {
    first->next = &extension.base;
    frame.extension_start = first;
  }
  *answered = jaxc_call_answer_metadata(&frame, 1);
  return metadata;
}

TEST(a_metadata_query_is_answered_with_the_lowest_version) {
  int answered;
  const jaxc_abi_metadata metadata = metadata_of(NULL, &answered);
  CHECK(answered);
  CHECK_INT(metadata.api_version.major_version, 0);
  CHECK_INT(metadata.api_version.minor_version, 1);
  CHECK_INT(metadata.traits, 1);
  CHECK_INT(metadata.state_type_id, 1234); /* not in API 0.1's struct */
}

TEST(unknown_extensions_before_it_are_skipped) {
  int answered;
  jaxc_abi_extension unknown = {24, 999, NULL};
  metadata_of(&unknown, &answered);
  CHECK(answered);
}

TEST(a_frame_without_extensions_is_no_query) {
  frame_t f;
  frame_begin(&f);
  CHECK(!jaxc_call_answer_metadata(&f.frame, 0));
}

TEST(a_query_too_small_to_answer_is_left_alone) {
  jaxc_abi_metadata metadata = {.struct_size = 20};
  jaxc_abi_metadata_extension extension = {{32, JAXC_ABI_EXTENSION_METADATA, NULL},
                                           &metadata};
  frame_t f;
  frame_begin(&f);
  f.frame.extension_start = &extension.base;
  CHECK(!jaxc_call_answer_metadata(&f.frame, 0));
  extension.metadata = NULL;
  CHECK(!jaxc_call_answer_metadata(&f.frame, 0));
}

TEST_MAIN
