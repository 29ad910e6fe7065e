/* test_host_table.c: what the functions of the table give, and refuse as XLA refuses. */
#include "test_host_common.h"

#define CPU JAXC_HOST_CPU
#define GPU JAXC_HOST_GPU

/* Does `work` in a stage on every minor of a profile. */
static void on_all_minors(int profile, int stage, action *work, int status,
                          const char *text) {
  for (int minor = 1; minor <= 5; minor++) {
    jaxc_host *const host = make_host(minor, profile);
    expect(host, stage, work, status, text);
    end(host, NULL);
  }
}

TEST(the_table_has_the_slots_of_its_minor) {
  static const size_t sizes[6] = {0, 192, 192, 192, 200, 208};
  for (int minor = 1; minor <= 5; minor++) {
    jaxc_host *const host = make_host(minor, CPU);
    const jaxc_abi_api *const api = jaxc_host_api(host);
    CHECK_INT(api->struct_size, sizes[minor]);
    CHECK_INT(api->api_version.major_version, 0);
    CHECK_INT(api->api_version.minor_version, minor);
    CHECK_INT(api->api_version.struct_size, 24);
    CHECK(api->device_ordinal != NULL);
    CHECK((api->find_extension != NULL) == (minor >= 4));
    CHECK((api->options != NULL) == (minor >= 5));
    end(host, NULL);
  }
}

TEST(options_that_mean_nothing_are_refused) {
  jaxc_host_options options = {.struct_size = sizeof options};
  jaxc_host *host;
  options.minor = 6;
  CHECK_INT(jaxc_host_create(&options, &host, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "options.minor is 6, expected 1 to 5");
  CHECK(host == NULL);
  options.minor = 0;
  options.profile = 2;
  CHECK_INT(jaxc_host_create(&options, &host, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "options.profile is 2, expected 0 to 1");
  options.profile = 0;
  options.thread_count = -4;
  CHECK_INT(jaxc_host_create(&options, &host, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "options.thread_count is -4, expected -3 to 4096");
  options.thread_count = 0;
  options.faults.short_frame = SIZE_MAX;
  CHECK_INT(jaxc_host_create(&options, &host, &message), JAXC_INVALID_ARGUMENT);
  options.faults.short_frame = 0;
  options.faults.misalignment = 64;
  CHECK_INT(jaxc_host_create(&options, &host, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "options.faults.misalignment is 64, expected 0 to 63");
  options.faults.misalignment = 0;
  options.faults.fail_request = -1;
  CHECK_INT(jaxc_host_create(&options, &host, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "options.faults.fail_request is -1, expected 0 to "
                           "9223372036854775807");
  options.faults.fail_request = 0;
  options.exact_memory = 2;
  CHECK_INT(jaxc_host_create(&options, &host, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "options.exact_memory is 2, expected 0 to 1");
  options.struct_size = sizeof options + 1;
  CHECK_INT(jaxc_host_create(&options, &host, NULL), JAXC_INVALID_ARGUMENT);
}

/* ---- sizes ---- */

static size_t given_size;
static int which_function;

/* Calls one function with a struct that says it has `given_size` bytes. */
static jaxc_abi_error *with_size(jaxc_abi_call_frame *frame) {
  union {
    jaxc_abi_error_create_args error;
    jaxc_abi_handler_register_args handler;
    jaxc_abi_stream_args stream;
    jaxc_abi_type_register_args type;
    jaxc_abi_user_data_args data;
    jaxc_abi_state_args state;
    jaxc_abi_memory_allocate_args allocate;
    jaxc_abi_memory_free_args release;
    jaxc_abi_schedule_args schedule;
    jaxc_abi_thread_count_args count;
    jaxc_abi_future_create_args create;
    jaxc_abi_future_available_args available;
    jaxc_abi_future_error_args fail;
    jaxc_abi_run_id_args run;
    jaxc_abi_device_ordinal_args device;
    jaxc_abi_find_extension_args find;
    jaxc_abi_options_args options;
  } args;
  memset(&args, 0, sizeof args);
  args.error.struct_size = given_size;
  switch (which_function) {
    case 0: return frame->api->error_create(&args.error);
    case 1: return frame->api->handler_register(&args.handler);
    case 2: return frame->api->stream(&args.stream);
    case 3: return frame->api->type_register(&args.type);
    case 4: return frame->api->user_data(&args.data);
    case 5: return frame->api->state_set(&args.state);
    case 6: return frame->api->state_get(&args.state);
    case 7: return frame->api->memory_allocate(&args.allocate);
    case 8: return frame->api->memory_free(&args.release);
    case 9: return frame->api->schedule(&args.schedule);
    case 10: return frame->api->thread_count(&args.count);
    case 11: return frame->api->future_create(&args.create);
    case 12: return frame->api->future_available(&args.available);
    case 13: return frame->api->future_error(&args.fail);
    case 14: return frame->api->run_id(&args.run);
    case 15: return frame->api->device_ordinal(&args.device);
    case 16: return frame->api->find_extension(&args.find);
    default: return frame->api->options(&args.options);
  }
}

/* As the header of the minor writes each size. */
static size_t expected_size(int function, int minor) {
  static const size_t sizes[] = {28, 84, 32, 40, 40, 48, 48, 48, 40,
                                 40, 32, 16, 24, 32, 32, 28, 40, 32};
  if (function == 1 && minor >= 4) return 92;
  if (function == 5 && minor == 2) return 40;
  if (function == 6 && minor <= 2) return 40;
  return sizes[function];
}

TEST(structs_that_are_too_small_are_refused_in_xlas_words) {
  static const char *const names[] = {
      "XLA_FFI_Error_Create", "XLA_FFI_Handler_Register", "XLA_FFI_Stream_Get",
      "XLA_FFI_ExecutionContext_Get_Args", "XLA_FFI_ExecutionContext_Get_Args",
      "XLA_FFI_State_Set_Args", "XLA_FFI_State_Get_Args",
      "XLA_FFI_DeviceMemory_Allocate_Args", "XLA_FFI_DeviceMemory_Free_Args",
      "XLA_FFI_ThreadPool_Schedule_Args", "XLA_FFI_ThreadPool_NumThreads_Args",
      "XLA_FFI_Future_Create", "XLA_FFI_Future_SetAvailable", "XLA_FFI_Future_SetError",
      "XLA_FFI_RunId_Get", "XLA_FFI_DeviceOrdinal_Get",
      "XLA_FFI_InvokeContext_FindExtension_Args", "XLA_FFI_CustomOptions_Get_Args"};
  for (int minor = 1; minor <= 5; minor++) {
    jaxc_host *const host = make_host(minor, GPU);
    const int count = minor >= 5 ? 18 : minor == 4 ? 17 : 16;
    for (which_function = 0; which_function < count; which_function++) {
      char text[256];
      const size_t expected = expected_size(which_function, minor);
      given_size = expected - 1;
      snprintf(text, sizeof text,
               "Unexpected %s size: expected %zu, got %zu. Check installed software "
               "versions. The framework XLA FFI API version is 0.%d.",
               names[which_function], expected, given_size, minor);
      expect(host, JAXC_STAGE_EXECUTE, with_size, JAXC_INVALID_ARGUMENT, text);
    }
    end(host, NULL);
  }
}

static jaxc_abi_error *larger_run_id(jaxc_abi_call_frame *frame) {
  struct {
    jaxc_abi_run_id_args args;
    int64_t more;
  } larger = {{sizeof larger, NULL, frame->context, 0}, 5};
  CHECK(frame->api->run_id(&larger.args) == NULL);
  CHECK_INT(larger.args.run_id, 0);
  return NULL;
}

TEST(structs_that_are_larger_are_accepted) {
  on_all_minors(CPU, JAXC_STAGE_EXECUTE, larger_run_id, JAXC_OK, NULL);
}

/* ---- errors ---- */

static jaxc_abi_error *see_details(jaxc_abi_call_frame *frame) {
  jaxc_abi_error *const error = jaxc_error_create(frame->api, JAXC_OUT_OF_RANGE, "far");
  jaxc_abi_error_details_args args = {sizeof args, NULL, error, NULL, -7};
  frame->api->error_details(&args);
  CHECK_TEXT(args.message, "far");
  CHECK_INT(args.code, frame->api->api_version.minor_version >= 4 ? JAXC_OUT_OF_RANGE : -7);
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_error_details_args, message);
  args.code = -7;
  frame->api->error_details(&args);
  CHECK_INT(args.code, -7);
  drop(frame, error);
  return NULL;
}

TEST(the_code_of_an_error_is_told_from_api_4_on) {
  on_all_minors(CPU, JAXC_STAGE_EXECUTE, see_details, JAXC_OK, NULL);
}

static jaxc_abi_error *return_ok_error(jaxc_abi_call_frame *frame) {
  return jaxc_error_create(frame->api, JAXC_OK, "fine");
}

TEST(an_error_of_code_ok_is_success) {
  on_all_minors(CPU, JAXC_STAGE_EXECUTE, return_ok_error, JAXC_OK, NULL);
}

static jaxc_abi_error *return_strange_code(jaxc_abi_call_frame *frame) {
  return jaxc_error_create(frame->api, (jaxc_status)99, "strange");
}

TEST(an_error_of_no_known_code_is_unknown) {
  on_all_minors(CPU, JAXC_STAGE_EXECUTE, return_strange_code, JAXC_UNKNOWN, "strange");
}

static jaxc_abi_error *return_garbage(jaxc_abi_call_frame *frame) {
  return (jaxc_abi_error *)(void *)frame;
}

static jaxc_abi_error *return_destroyed(jaxc_abi_call_frame *frame) {
  jaxc_abi_error *const error = jaxc_error_create(frame->api, JAXC_ABORTED, "gone");
  drop(frame, error);
  drop(frame, error);
  return error;
}

TEST(a_pointer_that_is_no_error_is_not_followed) {
  static const char text[] = "the handler returned a pointer that is no error of the "
                             "runtime, or one that it has destroyed";
  jaxc_host *const host = make_host(0, CPU);
  expect(host, JAXC_STAGE_EXECUTE, return_garbage, JAXC_FAILED_PRECONDITION, text);
  expect(host, JAXC_STAGE_EXECUTE, return_destroyed, JAXC_FAILED_PRECONDITION, text);
  end(host, NULL);
}

static jaxc_abi_error *leak_error(jaxc_abi_call_frame *frame) {
  CHECK(jaxc_error_create(frame->api, JAXC_ABORTED, "lost") != NULL);
  return NULL;
}

TEST(errors_neither_returned_nor_destroyed_are_counted) {
  jaxc_host *const host = make_host(0, CPU);
  expect(host, JAXC_STAGE_EXECUTE, leak_error, JAXC_OK, NULL);
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_DATA_LOSS);
  CHECK_TEXT(message.text, "left behind: 1 error neither returned nor destroyed");
  jaxc_host_destroy(host);
}

/* ---- the device ---- */

static void *seen_stream;
static jaxc_abi_error *ask_stream(jaxc_abi_call_frame *frame) {
  jaxc_abi_stream_args args = {sizeof args, NULL, frame->context, NULL};
  jaxc_abi_error *const error = frame->api->stream(&args);
  seen_stream = args.stream;
  return error;
}

TEST(a_stream_is_there_on_a_gpu_from_initialize_on) {
  int mine;
  jaxc_host_options options = {.struct_size = sizeof options, .profile = GPU};
  jaxc_host *host;
  on_all_minors(CPU, JAXC_STAGE_EXECUTE, ask_stream, JAXC_UNIMPLEMENTED,
                "XLA FFI GPU context is not available");
  on_all_minors(GPU, JAXC_STAGE_INSTANTIATE, ask_stream, JAXC_UNIMPLEMENTED,
                "XLA FFI GPU stream is not available");
  on_all_minors(GPU, JAXC_STAGE_PREPARE, ask_stream, JAXC_UNIMPLEMENTED,
                "XLA FFI GPU stream is not available");
  on_all_minors(GPU, JAXC_STAGE_INITIALIZE, ask_stream, JAXC_OK, NULL);
  CHECK(seen_stream != NULL);
  options.stream = &mine;
  host = make_host_as(&options);
  expect(host, JAXC_STAGE_EXECUTE, ask_stream, JAXC_OK, NULL);
  CHECK(seen_stream == &mine);
  end(host, NULL);
}

static size_t asked_size, asked_alignment, freed_size;
static int frees, frees_again;
static jaxc_abi_error *use_memory(jaxc_abi_call_frame *frame) {
  jaxc_abi_memory_allocate_args args = {sizeof args, NULL, frame->context, asked_size,
                                        asked_alignment, NULL};
  jaxc_abi_memory_free_args back = {sizeof back, NULL, frame->context, freed_size, NULL};
  jaxc_abi_error *error = frame->api->memory_allocate(&args);
  if (error != NULL) return error;
  CHECK((args.data != NULL) == (asked_size > 0));
  if (asked_size > 0) CHECK_INT(((unsigned char *)args.data)[asked_size - 1], 0xCB);
  back.data = args.data;
  if (!frees) return NULL;
  error = frame->api->memory_free(&back);
  if (error != NULL || !frees_again) return error;
  return frame->api->memory_free(&back);
}

static jaxc_abi_error *only_free(jaxc_abi_call_frame *frame) {
  jaxc_abi_memory_free_args back = {sizeof back, NULL, frame->context, 8, &back};
  return frame->api->memory_free(&back);
}

TEST(device_memory_is_had_on_a_gpu_from_initialize_on) {
  asked_size = freed_size = 100;
  asked_alignment = 16;
  frees = 1;
  on_all_minors(GPU, JAXC_STAGE_INITIALIZE, use_memory, JAXC_OK, NULL);
  on_all_minors(GPU, JAXC_STAGE_EXECUTE, use_memory, JAXC_OK, NULL);
  on_all_minors(GPU, JAXC_STAGE_PREPARE, use_memory, JAXC_UNIMPLEMENTED,
                "No device memory allocator available on this platform");
  on_all_minors(GPU, JAXC_STAGE_INSTANTIATE, only_free, JAXC_UNIMPLEMENTED,
                "No device memory allocator available on this platform");
  on_all_minors(CPU, JAXC_STAGE_EXECUTE, use_memory, JAXC_INVALID_ARGUMENT,
                "XLA FFI GPU context is not available");
  on_all_minors(CPU, JAXC_STAGE_EXECUTE, only_free, JAXC_UNIMPLEMENTED,
                "XLA FFI GPU context is not available");
  asked_size = freed_size = 0;
  on_all_minors(GPU, JAXC_STAGE_EXECUTE, use_memory, JAXC_OK, NULL);
}

TEST(device_memory_is_refused_as_it_is_asked_or_freed_wrongly) {
  jaxc_host *const host = make_host(0, GPU);
  asked_size = 100;
  frees = 1;
  asked_alignment = 32;
  expect(host, JAXC_STAGE_EXECUTE, use_memory, JAXC_INVALID_ARGUMENT,
         "Unsupported alignment: 32");
  asked_alignment = 0;
  expect(host, JAXC_STAGE_EXECUTE, use_memory, JAXC_INVALID_ARGUMENT,
         "Unsupported alignment: 0");
  asked_alignment = 12;
  expect(host, JAXC_STAGE_EXECUTE, use_memory, JAXC_INVALID_ARGUMENT,
         "Unsupported alignment: 12");
  asked_alignment = 1;
  freed_size = 100;
  frees_again = 1;
  expect(host, JAXC_STAGE_EXECUTE, use_memory, JAXC_INVALID_ARGUMENT,
         "device memory is freed that was not allocated, or twice");
  asked_size = SIZE_MAX - 8;
  expect(host, JAXC_STAGE_EXECUTE, use_memory, JAXC_RESOURCE_EXHAUSTED, NULL);
  asked_size = 100;
  frees_again = 0;
  freed_size = 99;
  expect(host, JAXC_STAGE_EXECUTE, use_memory, JAXC_INVALID_ARGUMENT,
         "device memory of 100 bytes is freed as 99 bytes");
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_DATA_LOSS);
  CHECK_TEXT(message.text, "left behind: 100 bytes of device memory in 1 block");
  jaxc_host_destroy(host);
}

static int64_t seen_run;
static int32_t seen_device;
static jaxc_abi_error *see_numbers(jaxc_abi_call_frame *frame) {
  jaxc_abi_run_id_args run = {sizeof run, NULL, frame->context, -9};
  jaxc_abi_device_ordinal_args device = {sizeof device, NULL, frame->context, -9};
  CHECK(frame->api->run_id(&run) == NULL);
  CHECK(frame->api->device_ordinal(&device) == NULL);
  seen_run = run.run_id;
  seen_device = device.device_ordinal;
  return NULL;
}

TEST(run_id_and_device_are_those_of_the_execution) {
  jaxc_host_options options = {.struct_size = sizeof options};
  jaxc_host *host;
  options.device_ordinal = 3;
  options.run_id = 70;
  host = make_host_as(&options);
  expect(host, JAXC_STAGE_INSTANTIATE, see_numbers, JAXC_OK, NULL);
  CHECK_INT(seen_run, 0);
  CHECK_INT(seen_device, -1);
  expect(host, JAXC_STAGE_EXECUTE, see_numbers, JAXC_OK, NULL);
  CHECK_INT(seen_run, 71); /* the second execution */
  CHECK_INT(seen_device, 3);
  end(host, NULL);
}

/* ---- extensions and registration ---- */

static const jaxc_abi_context_extension *seen_extension;
static jaxc_abi_error *ask_extension(jaxc_abi_call_frame *frame) {
  jaxc_abi_find_extension_args args = {sizeof args, NULL, frame->context, 200,
                                       (const jaxc_abi_context_extension *)frame};
  jaxc_abi_error *const error = frame->api->find_extension(&args);
  seen_extension = args.extension;
  return error;
}

TEST(an_extension_of_the_context_is_found_by_its_type) {
  static const jaxc_abi_context_extension extension = {32, {200, 0, 1}, NULL};
  static const jaxc_abi_context_extension small = {31, {201, 0, 1}, NULL};
  jaxc_host *const host = make_host(4, CPU);
  expect(host, JAXC_STAGE_EXECUTE, ask_extension, JAXC_OK, NULL);
  CHECK(seen_extension == NULL);
  CHECK_INT(jaxc_host_add_extension(host, &extension, &message), JAXC_OK);
  expect(host, JAXC_STAGE_EXECUTE, ask_extension, JAXC_OK, NULL);
  CHECK(seen_extension == &extension);
  CHECK_INT(jaxc_host_add_extension(host, &extension, &message), JAXC_ALREADY_EXISTS);
  CHECK_TEXT(message.text, "there is an extension of type 200 already");
  CHECK_INT(jaxc_host_add_extension(host, &small, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "an extension of the context has at least 32 bytes");
  end(host, NULL);
}

TEST(handlers_are_not_registered) {
  jaxc_host *const host = make_host(5, CPU);
  which_function = 1;
  given_size = 96;
  expect(host, JAXC_STAGE_EXECUTE, with_size, JAXC_UNIMPLEMENTED,
         "the host has no registry of handlers: call them by jaxc_host_call_create");
  end(host, NULL);
}

static jaxc_abi_error *without_context(jaxc_abi_call_frame *frame) {
  frame->context = NULL;
  return ask_stream(frame);
}

static jaxc_abi_context *kept_context;
static jaxc_abi_error *keep_context(jaxc_abi_call_frame *frame) {
  kept_context = frame->context;
  return NULL;
}

TEST(a_context_that_is_null_or_over_is_an_error) {
  jaxc_host *const host = make_host(0, CPU);
  jaxc_abi_stream_args args = {sizeof args, NULL, NULL, NULL};
  jaxc_abi_error_details_args details = {sizeof details, NULL, NULL, NULL, 0};
  jaxc_abi_call_frame frame = {.api = jaxc_host_api(host)};
  expect(host, JAXC_STAGE_EXECUTE, without_context, JAXC_FAILED_PRECONDITION,
         "the context is NULL, as in a query for metadata; XLA crashes here");
  expect(host, JAXC_STAGE_EXECUTE, keep_context, JAXC_OK, NULL);
  args.context = kept_context;
  details.error = frame.api->stream(&args); /* in a thread in which no handler runs */
  CHECK(details.error != NULL);
  frame.api->error_details(&details);
  CHECK_INT(details.code, JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(details.message,
             "the context is of a handler that has returned; XLA crashes here");
  drop(&frame, details.error);
  end(host, NULL);
}

TEST_MAIN
