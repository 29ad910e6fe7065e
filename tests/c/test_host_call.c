/* test_host_call.c: operands, stages and executions, and what a call's check finds. */
#include <jaxc/handler.h>
#include <pthread.h>

#include "test_host_common.h"

static jaxc_host *host;
static jaxc_host_call *call;

static void begin(int profile) {
  host = make_host(0, profile);
  call = make_call(host);
}

static jaxc_status argument(int dtype, int rank, const int64_t *dims, void *data) {
  return jaxc_host_call_argument(call, dtype, rank, dims, data, &message);
}
static jaxc_status result(int dtype, int rank, const int64_t *dims, void *data) {
  return jaxc_host_call_result(call, dtype, rank, dims, data, &message);
}

/* ---- a handler of handler.h ---- */

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  float factor;
} scale_call;
static const jaxc_field scale_fields[] = {
    JAXC_ARGUMENT(scale_call, x, JAXC_AT_LEAST(0)),
    JAXC_RESULT(scale_call, y, JAXC_AT_LEAST(0)),
    JAXC_ATTRIBUTE(scale_call, factor),
};
static jaxc_status scale(jaxc_context *context, const void *data) {
  const scale_call *const c = (const scale_call *)data;
  if (c->x.count != c->y.count) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in size");
  }
  for (int64_t i = 0; i < c->x.count; i++) c->y.data[i] = c->x.data[i] * c->factor;
  return JAXC_OK;
}
JAXC_HANDLER(Scale, scale_call, scale_fields, .execute = scale);

static void begin_scale(int minor, int profile) {
  const jaxc_abi_bundle handlers = {.execute = Scale};
  const float factor = 2;
  host = make_host(minor, profile);
  CHECK_INT(jaxc_host_call_create(host, &handlers, &call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_scalar(jaxc_host_call_attrs(call), "factor", JAXC_F32, &factor,
                                   &message),
            JAXC_OK);
}

TEST(a_handler_runs_on_every_minor_and_profile) {
  const int64_t dims[2] = {2, 2};
  float x[4] = {1, 2, 3, 4};
  for (int minor = 1; minor <= 5; minor++) {
    for (int profile = 0; profile <= 1; profile++) {
      const float *y;
      size_t bytes;
      begin_scale(minor, profile);
      CHECK_INT(argument(JAXC_F32, 2, dims, x), JAXC_OK);
      CHECK_INT(result(JAXC_F32, 2, dims, NULL), JAXC_OK);
      CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
      y = (const float *)jaxc_host_call_result_data(call, 0, &bytes);
      CHECK_INT(bytes, 16);
      CHECK(y[3] == 8);
      CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK);
      end(host, call);
    }
  }
}

TEST(the_handlers_error_comes_back_with_its_text) {
  const int64_t two = 2, three = 3;
  begin_scale(0, JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_F32, 1, &two, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &three, NULL), JAXC_OK);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "Scale: x and y differ in size");
  end(host, call);
}

/* ---- operands ---- */

TEST(impossible_operands_are_refused) {
  const int64_t negative[2] = {3, -1};
  const int64_t large[2] = {INT64_MAX, 2};
  const int64_t many = INT64_MAX / 4;
  begin(JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_F32, 2, negative, NULL), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 has an impossible size -1 on axis 1");
  CHECK_INT(result(JAXC_F32, 2, large, NULL), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "result 0 has an impossible size 2 on axis 1");
  CHECK_INT(result(JAXC_F32, 1, &many, NULL), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "result 0 has more bytes than can be addressed");
  CHECK_INT(argument(13, 0, NULL, NULL), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 has the unknown dtype 13");
  CHECK_INT(argument(JAXC_F32, -1, NULL, NULL), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 has -1 axes");
  CHECK_INT(argument(JAXC_F32, 2, NULL, NULL), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 has 2 axes but no sizes");
  end(host, call);
}

TEST(operands_come_before_instantiate) {
  begin(JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_F32, 0, NULL, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 0, NULL, NULL), JAXC_OK);
  CHECK_INT(jaxc_host_call_instantiate(call, &message), JAXC_OK);
  CHECK_INT(argument(JAXC_F32, 0, NULL, NULL), JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text, "argument 1 comes after the call was instantiated");
  CHECK_INT(jaxc_host_call_alias(call, 0, 0, &message), JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text, "an alias comes after the call was instantiated");
  end(host, call);
}

TEST(the_hosts_memory_is_aligned_and_filled) {
  const int64_t dims = 5;
  size_t bytes;
  unsigned char *x, *y;
  begin(JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_S16, 1, &dims, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_S4, 1, &dims, NULL), JAXC_OK);
  x = (unsigned char *)jaxc_host_call_argument_data(call, 0, &bytes);
  CHECK_INT((uintptr_t)x % 64, 0);
  CHECK_INT(bytes, 10);
  for (size_t i = 0; i < bytes; i++) CHECK_INT(x[i], 0);
  y = (unsigned char *)jaxc_host_call_result_data(call, 0, &bytes);
  CHECK_INT((uintptr_t)y % 64, 0);
  CHECK_INT(bytes, 3); /* of two elements a byte */
  for (size_t i = 0; i < bytes; i++) CHECK_INT(y[i], 0xCB);
  CHECK(jaxc_host_call_result_data(call, 1, &bytes) == NULL);
  CHECK_INT(bytes, 0);
  CHECK(jaxc_host_call_argument_data(call, -1, NULL) == NULL);
  y[1] = 0;
  jaxc_host_call_poison(call);
  CHECK_INT(y[1], 0xCB);
  end(host, call);
}

static jaxc_abi_error *see_token(jaxc_abi_call_frame *frame) {
  const jaxc_abi_buffer *token = (const jaxc_abi_buffer *)frame->args.data[0];
  const jaxc_abi_buffer *empty = (const jaxc_abi_buffer *)frame->args.data[1];
  CHECK_INT(token->dtype, JAXC_TOKEN);
  CHECK(token->data == NULL);
  CHECK_INT(empty->rank, 2);
  CHECK_INT(empty->dims[1], 7);
  return NULL;
}

TEST(tokens_have_no_data_and_arrays_may_be_empty) {
  const int64_t dims[2] = {0, 7};
  begin(JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_TOKEN, 0, NULL, NULL), JAXC_OK);
  CHECK_INT(argument(JAXC_F64, 2, dims, NULL), JAXC_OK);
  act = see_token;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(stage_calls[JAXC_STAGE_EXECUTE], 1);
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK);
  end(host, call);
}

/* ---- what a check finds ---- */

static int write_offset, write_side;
static jaxc_abi_error *write_byte(jaxc_abi_call_frame *frame) {
  const jaxc_abi_operands *const list = write_side == 0 ? &frame->args : &frame->results;
  ((char *)((jaxc_abi_buffer *)list->data[0])->data)[write_offset] = 1;
  return NULL;
}

static void check_write(int side, int offset, const char *text) {
  const int64_t dims = 4;
  begin(JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_F32, 1, &dims, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &dims, NULL), JAXC_OK);
  act = write_byte;
  write_side = side;
  write_offset = offset;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_check(call, &message), text == NULL ? JAXC_OK : JAXC_DATA_LOSS);
  if (text != NULL) CHECK_TEXT(message.text, text);
  end(host, call);
}

TEST(writes_around_operands_are_found) {
  check_write(1, 16, "result 0 was written right behind its end");
  check_write(1, 17, "result 0 was written 1 byte behind its end");
  check_write(1, 21, "result 0 was written 5 bytes behind its end");
  check_write(1, -1, "result 0 was written right before its start");
  check_write(1, -3, "result 0 was written 3 bytes before its start");
  check_write(0, -8, "argument 0 was written 8 bytes before its start");
  check_write(0, 16, "argument 0 was written right behind its end");
  check_write(1, 15, NULL);
}

/* ---- results that are not written ---- */

static jaxc_status run_and_check(void) {
  message.text[0] = '\0';
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  return jaxc_host_call_check(call, &message);
}

TEST(a_result_that_is_not_written_is_found) {
  const int64_t two = 2;
  begin(JAXC_HOST_CPU);
  CHECK_INT(result(JAXC_F32, 1, &two, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &two, NULL), JAXC_OK);
  act = write_byte;
  write_side = 1;
  write_offset = 7;
  CHECK_INT(run_and_check(), JAXC_DATA_LOSS);
  CHECK_TEXT(message.text, "result 1 was not written");
  end(host, call);
}

TEST(a_write_beyond_a_result_says_more_than_that_it_was_not_written) {
  check_write(1, 19, "result 0 was written 3 bytes behind its end");
}

TEST(results_that_are_small_or_empty_or_tokens_need_not_be_written) {
  const int64_t seven = 7, none = 0;
  begin(JAXC_HOST_CPU);
  CHECK_INT(result(JAXC_U8, 1, &seven, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F64, 1, &none, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_TOKEN, 0, NULL, NULL), JAXC_OK);
  CHECK_INT(run_and_check(), JAXC_OK);
  end(host, call);
}

TEST(results_in_other_memory_or_with_an_alias_need_not_be_written) {
  const int64_t two = 2;
  unsigned char y[8];
  memset(y, 0xCB, sizeof y);
  begin(JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_F32, 1, &two, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &two, y), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &two, NULL), JAXC_OK);
  CHECK_INT(jaxc_host_call_alias(call, 0, 1, &message), JAXC_OK);
  memset(jaxc_host_call_argument_data(call, 0, NULL), 0xCB, 8);
  CHECK_INT(run_and_check(), JAXC_OK);
  end(host, call);
}

static jaxc_abi_error *abort_call(jaxc_abi_call_frame *frame) {
  return jaxc_error_create(frame->api, JAXC_ABORTED, "no");
}

TEST(only_a_call_that_succeeded_must_have_written) {
  const int64_t two = 2;
  begin(JAXC_HOST_CPU);
  CHECK_INT(result(JAXC_F32, 1, &two, NULL), JAXC_OK);
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK); /* none was made */
  act = abort_call;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_ABORTED);
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK);
  act = NULL;
  CHECK_INT(run_and_check(), JAXC_DATA_LOSS);
  jaxc_host_call_poison(call);
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK); /* none was made since */
  act = abort_call;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_ABORTED);
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK);
  end(host, call);
}

TEST(a_write_into_an_argument_is_found) {
  check_write(0, 5, "argument 0 was written: byte 5 of 16 is 0x01, and was 0x00");
}

TEST(what_was_in_an_argument_before_the_last_run_is_right) {
  const int64_t dims = 4;
  float *x;
  begin(JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_F32, 1, &dims, NULL), JAXC_OK);
  x = (float *)jaxc_host_call_argument_data(call, 0, NULL);
  x[0] = 1;
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK);
  x[0] = 2;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK);
  end(host, call);
}

/* ---- aliases ---- */

static jaxc_abi_error *see_alias(jaxc_abi_call_frame *frame) {
  const jaxc_abi_buffer *x = (const jaxc_abi_buffer *)frame->args.data[0];
  const jaxc_abi_buffer *y = (const jaxc_abi_buffer *)frame->results.data[0];
  CHECK(x->data == y->data);
  ((char *)y->data)[0] = 9;
  return NULL;
}

TEST(an_alias_is_the_arguments_memory_and_may_be_written) {
  const int64_t dims = 4;
  begin(JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_F32, 1, &dims, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_S32, 1, &dims, NULL), JAXC_OK);
  CHECK_INT(jaxc_host_call_alias(call, 0, 0, &message), JAXC_OK);
  act = see_alias;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_check(call, &message), JAXC_OK);
  CHECK_INT(((char *)jaxc_host_call_result_data(call, 0, NULL))[0], 9);
  jaxc_host_call_poison(call); /* not the argument */
  CHECK_INT(((char *)jaxc_host_call_argument_data(call, 0, NULL))[0], 9);
  end(host, call);
}

TEST(impossible_aliases_are_refused) {
  const int64_t four = 4, five = 5;
  begin(JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_F32, 1, &four, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &five, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &four, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &four, NULL), JAXC_OK);
  CHECK_INT(jaxc_host_call_alias(call, 1, 0, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "there is no argument 1, the call has 1");
  CHECK_INT(jaxc_host_call_alias(call, 0, -1, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "there is no result -1, the call has 3");
  CHECK_INT(jaxc_host_call_alias(call, 0, 0, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 has 16 bytes but result 0 20: they cannot be the "
                           "same memory");
  CHECK_INT(jaxc_host_call_alias(call, 0, 1, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_alias(call, 0, 2, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 has an alias already");
  end(host, call);
}

/* ---- stages ---- */

static jaxc_abi_error *see_stage(jaxc_abi_call_frame *frame) {
  const int on_gpu = jaxc_call_metadata(frame) == NULL && frame->args.size > 0;
  CHECK_INT(frame->struct_size, 168);
  CHECK(frame->future == NULL);
  CHECK(frame->context != NULL);
  CHECK_INT(frame->attrs.size, 1);
  CHECK_INT(frame->args.struct_size, sizeof frame->args);
  CHECK_INT(frame->results.struct_size, sizeof frame->results);
  if (frame->stage == JAXC_STAGE_INSTANTIATE && !on_gpu) {
    CHECK_INT(frame->results.size, 0);
    return NULL;
  }
  CHECK_INT(frame->args.size, 1);
  CHECK_INT(frame->results.size, 1);
  CHECK_INT(((const jaxc_abi_buffer *)frame->args.data[0])->dims[0], 3);
  CHECK((((const jaxc_abi_buffer *)frame->args.data[0])->data != NULL) ==
        (frame->stage >= JAXC_STAGE_INITIALIZE));
  CHECK((((const jaxc_abi_buffer *)frame->results.data[0])->data != NULL) ==
        (frame->stage >= JAXC_STAGE_INITIALIZE));
  return NULL;
}

static void check_stages(int minor, int profile) {
  const int64_t dims = 3;
  const int32_t n = 1;
  const int on_gpu = profile == JAXC_HOST_GPU;
  memset(stage_calls, 0, sizeof stage_calls);
  act = see_stage;
  only_stage = -1;
  host = make_host(minor, profile);
  call = make_call(host);
  CHECK_INT(jaxc_host_attrs_scalar(jaxc_host_call_attrs(call), "n", JAXC_S32, &n,
                                   &message),
            JAXC_OK);
  CHECK_INT(argument(JAXC_F32, 1, &dims, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &dims, NULL), JAXC_OK);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_instantiate(call, &message), JAXC_OK); /* once all the same */
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(stage_calls[JAXC_STAGE_INSTANTIATE], 1);
  CHECK_INT(stage_calls[JAXC_STAGE_PREPARE], on_gpu ? 2 : 0);
  CHECK_INT(stage_calls[JAXC_STAGE_INITIALIZE], on_gpu ? 2 : 0);
  CHECK_INT(stage_calls[JAXC_STAGE_EXECUTE], 2);
  end(host, call);
}

TEST(stages_are_those_of_the_profile_on_every_minor) {
  for (int minor = 1; minor <= 5; minor++) {
    check_stages(minor, JAXC_HOST_CPU);
    check_stages(minor, JAXC_HOST_GPU);
  }
}

static jaxc_abi_error *fail_stage(jaxc_abi_call_frame *frame) {
  return jaxc_error_create(frame->api, JAXC_ABORTED, "no");
}

TEST(a_stage_that_fails_ends_the_execution) {
  begin(JAXC_HOST_GPU);
  act = fail_stage;
  only_stage = JAXC_STAGE_INITIALIZE;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_ABORTED);
  CHECK_TEXT(message.text, "no");
  CHECK_INT(stage_calls[JAXC_STAGE_PREPARE], 1);
  CHECK_INT(stage_calls[JAXC_STAGE_EXECUTE], 0);
  end(host, call);
}

TEST(instantiate_that_fails_can_be_tried_again) {
  begin(JAXC_HOST_CPU);
  act = fail_stage;
  only_stage = JAXC_STAGE_INSTANTIATE;
  CHECK_INT(jaxc_host_call_instantiate(call, &message), JAXC_ABORTED);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_ABORTED);
  CHECK_INT(stage_calls[JAXC_STAGE_EXECUTE], 0);
  act = NULL;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  end(host, call);
}

TEST(a_call_has_an_execute_handler) {
  const jaxc_abi_bundle none = {.instantiate = by_hand};
  host = make_host(0, JAXC_HOST_CPU);
  CHECK_INT(jaxc_host_call_create(host, &none, &call, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "FFI handler must provide an execute implementation");
  CHECK(call == NULL);
  CHECK_INT(jaxc_host_call_create(host, NULL, &call, &message), JAXC_INVALID_ARGUMENT);
  end(host, NULL);
}

/* ---- run_on ---- */

TEST(run_on_needs_instantiate_and_memory) {
  const int64_t dims = 4;
  float x[4] = {0};
  void *const arguments[1] = {x};
  void *const nothing[1] = {NULL};
  begin_scale(0, JAXC_HOST_CPU);
  CHECK_INT(argument(JAXC_F32, 1, &dims, NULL), JAXC_OK);
  CHECK_INT(result(JAXC_F32, 1, &dims, NULL), JAXC_OK);
  CHECK_INT(jaxc_host_call_run_on(call, arguments, arguments, &message),
            JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text, "the call was not instantiated yet");
  CHECK_INT(jaxc_host_call_instantiate(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_run_on(call, NULL, arguments, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "argument 0 has no memory for 16 bytes");
  CHECK_INT(jaxc_host_call_run_on(call, arguments, nothing, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "result 0 has no memory for 16 bytes");
  end(host, call);
}

static void *run_many(void *number) {
  const float start = (float)*(const int *)number;
  for (int i = 0; i < 200; i++) {
    float x[4] = {start, start + 1, (float)i, 0};
    float y[4] = {0};
    void *const arguments[1] = {x};
    void *const results[1] = {y};
    if (jaxc_host_call_run_on(call, arguments, results, NULL) != JAXC_OK) return number;
    for (int j = 0; j < 4; j++) {
      if (y[j] != 2 * x[j]) return number;
    }
  }
  return NULL;
}

TEST(run_on_works_from_many_threads_at_once) {
  const int64_t dims = 4;
  for (int profile = 0; profile <= 1; profile++) {
    int numbers[4] = {0, 1, 2, 3};
    pthread_t threads[4];
    begin_scale(0, profile);
    CHECK_INT(argument(JAXC_F32, 1, &dims, NULL), JAXC_OK);
    CHECK_INT(result(JAXC_F32, 1, &dims, NULL), JAXC_OK);
    CHECK_INT(jaxc_host_call_instantiate(call, &message), JAXC_OK);
    for (int i = 0; i < 4; i++) {
      CHECK_INT(pthread_create(&threads[i], NULL, run_many, &numbers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
      void *failed;
      CHECK_INT(pthread_join(threads[i], &failed), 0);
      CHECK(failed == NULL);
    }
    end(host, call);
  }
}

/* ---- the mode of arithmetic ---- */

static volatile float tiny = 1e-39f; /* subnormal */
static float product;
static jaxc_abi_error *multiply(jaxc_abi_call_frame *frame) {
  (void)frame;
  product = tiny * 0.5f;
  return NULL;
}

TEST(denormals_are_flushed_while_the_handler_executes_only) {
  jaxc_host_options options = {.struct_size = sizeof options, .flush_denormals = 1};
  host = make_host_as(&options);
  expect(host, JAXC_STAGE_EXECUTE, multiply, JAXC_OK, NULL);
  CHECK(product == 0);
  CHECK(tiny * 0.5f != 0);
  expect(host, JAXC_STAGE_INSTANTIATE, multiply, JAXC_OK, NULL);
  CHECK(product != 0);
  end(host, NULL);
  host = make_host(0, JAXC_HOST_CPU);
  expect(host, JAXC_STAGE_EXECUTE, multiply, JAXC_OK, NULL);
  CHECK(product != 0);
  end(host, NULL);
}

TEST_MAIN
