/* test_context.c: what a handler asks of the runtime, on every API minor, on a CPU and on
 * a GPU, and memory that ends with the call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stddef.h>
#include <stdlib.h>

/* Memory of context.h fails when `allocations_left` runs out. */
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
#include <jaxc/jaxc.h>
#undef malloc
#undef free

#include <jaxc/host.h>
#include <stdatomic.h>

#include "check.h"

/* ---- a handler that does the job which the test gives it in each stage ---- */

typedef jaxc_status job_t(jaxc_context *context);
static job_t *jobs[4];

typedef struct {
  const jaxc_abi_attrs *all;
} ask_call;
static const jaxc_field ask_fields[] = {JAXC_ALL_ATTRIBUTES(ask_call, all)};
static jaxc_status ask(jaxc_context *context, const void *data) {
  job_t *const job = jobs[jaxc_context_stage(context)];
  (void)data;
  return job == NULL ? JAXC_OK : job(context);
}
JAXC_HANDLER(Ask, ask_call, ask_fields, .execute = ask, .instantiate = ask,
             .prepare = ask, .initialize = ask);

typedef struct {
  jaxc_host_options options;
  jaxc_host *host;
  jaxc_host_call *call;
  jaxc_message message;
} site_t;

/* A host with the options of the site, and a call of Ask. */
static void site_open(site_t *site) {
  const jaxc_abi_bundle handlers = {Ask, Ask, Ask, Ask};
  site->options.struct_size = sizeof site->options;
  CHECK_INT(jaxc_host_create(&site->options, &site->host, &site->message), JAXC_OK);
  CHECK_INT(jaxc_host_call_create(site->host, &handlers, &site->call, &site->message),
            JAXC_OK);
}

static void site_begin(site_t *site, int minor, int profile) {
  *site = (site_t){.options = {.minor = minor, .profile = profile}};
  site_open(site);
}

/* What the handler's functions took must be given back by now. */
static void site_end(site_t *site) {
  jaxc_host_call_destroy(site->call);
  CHECK_INT(jaxc_host_leaks(site->host, &site->message), JAXC_OK);
  jaxc_host_destroy(site->host);
  CHECK_INT(allocated, 0);
}

#define CHECK_RUNS(site) \
  CHECK_TEXT(jaxc_host_call_run((site)->call, &(site)->message) == JAXC_OK \
                 ? "" : (site)->message.text, "")

/* `code` is what the runtime says; runtimes up to 0.3 do not tell it. */
#define CHECK_REFUSED(site, code, expected)                                        \
  do {                                                                             \
    CHECK_INT(jaxc_host_call_run((site)->call, &(site)->message),                  \
              (site)->options.minor >= 4 ? code : JAXC_UNKNOWN);                   \
    CHECK_TEXT((site)->message.text, expected);                                    \
  } while (0)

/* What jaxc itself refuses has its code on all. */
#define CHECK_OWN_REFUSAL(site, code, expected)                                    \
  do {                                                                             \
    CHECK_INT(jaxc_host_call_run((site)->call, &(site)->message), code);           \
    CHECK_TEXT((site)->message.text, expected);                                    \
  } while (0)

#define EVERY_MINOR(minor) for (int minor = 1; minor <= JAXC_ABI_MINOR_KNOWN; minor++)
#define EVERY_PROFILE(p) for (int p = JAXC_HOST_CPU; p <= JAXC_HOST_GPU; p++)

static int minor_seen;
static jaxc_status take_minor(jaxc_context *context) {
  minor_seen = jaxc_context_minor(context);
  return JAXC_OK;
}

TEST(the_minor_is_the_runtimes) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = take_minor;
  EVERY_MINOR(minor) EVERY_PROFILE(profile) {
    site_begin(&site, minor, profile);
    CHECK_RUNS(&site);
    CHECK_INT(minor_seen, minor);
    site_end(&site);
  }
}

/* ---- failures of the function ---- */

static jaxc_status fail(jaxc_context *context) {
  return jaxc_fail(context, JAXC_NOT_FOUND, "no table for %d", 12);
}
static jaxc_status fail_silently(jaxc_context *context) {
  (void)context;
  return JAXC_ABORTED;
}

TEST(the_status_and_text_of_the_function_are_the_errors) {
  EVERY_MINOR(minor) for (int stage = 0; stage < 4; stage++) {
    site_t site;
    memset(jobs, 0, sizeof jobs);
    jobs[stage] = fail;
    site_begin(&site, minor, JAXC_HOST_GPU);
    CHECK_OWN_REFUSAL(&site, JAXC_NOT_FOUND, "Ask: no table for 12");
    site_end(&site);
  }
}

/* Leaves words on the stack where the handler's frame will be. */
JAXC_NOINLINE static void paint_stack(void) {
  volatile char words[1 << 16];
  for (size_t i = 0; i < sizeof words; i++) words[i] = i % 1000 == 999 ? '\0' : 'Z';
}

TEST(a_status_without_a_text_shows_no_older_memory) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = fail_silently;
  site_begin(&site, 5, JAXC_HOST_CPU);
  paint_stack();
  CHECK_INT(jaxc_host_call_run(site.call, &site.message), JAXC_ABORTED);
  CHECK(strncmp(site.message.text, "Ask: ", 5) == 0);
  CHECK(strchr(site.message.text, 'Z') == NULL);
  site_end(&site);
}

/* ---- the device ---- */

static void *stream_seen;
static int32_t ordinal_seen;
static int64_t run_seen;
static jaxc_status take_stream(jaxc_context *context) {
  return jaxc_context_stream(context, &stream_seen);
}
static jaxc_status take_ordinal(jaxc_context *context) {
  return jaxc_context_device_ordinal(context, &ordinal_seen);
}
static jaxc_status take_run_id(jaxc_context *context) {
  return jaxc_context_run_id(context, &run_seen);
}

TEST(a_gpu_has_the_stream) {
  int stream = 0;
  EVERY_MINOR(minor) for (int stage = 2; stage <= 3; stage++) {
    site_t site = {.options = {.minor = minor, .profile = JAXC_HOST_GPU}};
    site.options.stream = &stream;
    memset(jobs, 0, sizeof jobs);
    jobs[stage] = take_stream;
    stream_seen = NULL;
    site_open(&site);
    CHECK_RUNS(&site);
    CHECK(stream_seen == &stream);
    site_end(&site);
  }
}

TEST(a_cpu_has_no_stream) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = take_stream;
  EVERY_MINOR(minor) {
    site_begin(&site, minor, JAXC_HOST_CPU);
    CHECK_REFUSED(&site, JAXC_UNIMPLEMENTED,
                  "Ask: stream: XLA FFI GPU context is not available");
    site_end(&site);
  }
}

TEST(a_gpu_has_no_stream_before_initialize) {
  site_t site;
  EVERY_MINOR(minor) for (int stage = 0; stage < 2; stage++) {
    memset(jobs, 0, sizeof jobs);
    jobs[stage] = take_stream;
    site_begin(&site, minor, JAXC_HOST_GPU);
    CHECK_REFUSED(&site, JAXC_UNIMPLEMENTED,
                  "Ask: stream: XLA FFI GPU stream is not available");
    site_end(&site);
  }
}

TEST(the_device_ordinal_is_known_when_it_runs) {
  EVERY_MINOR(minor) EVERY_PROFILE(profile) {
    site_t site = {.options = {.minor = minor, .profile = profile, .device_ordinal = 3}};
    memset(jobs, 0, sizeof jobs);
    jobs[JAXC_STAGE_INSTANTIATE] = take_ordinal;
    site_open(&site);
    ordinal_seen = 77;
    CHECK_RUNS(&site);
    CHECK_INT(ordinal_seen, -1);
    jobs[JAXC_STAGE_EXECUTE] = take_ordinal;
    CHECK_RUNS(&site);
    CHECK_INT(ordinal_seen, 3);
    site_end(&site);
  }
}

TEST(the_run_id_is_one_more_each_run) {
  jobs[JAXC_STAGE_EXECUTE] = take_run_id;
  EVERY_MINOR(minor) EVERY_PROFILE(profile) {
    site_t site = {.options = {.minor = minor, .profile = profile, .run_id = 1000}};
    site_open(&site);
    for (int i = 0; i < 3; i++) {
      CHECK_RUNS(&site);
      CHECK_INT(run_seen, 1000 + i);
    }
    site_end(&site);
  }
}

/* ---- memory ---- */

static size_t sizes[JAXC_MAX_BLOCKS + 1];
static int size_count;
static int fails_after;
static uintptr_t addresses[JAXC_MAX_BLOCKS + 1];

static jaxc_status take_memory(jaxc_context *context,
                               jaxc_status (*take)(jaxc_context *, size_t, void **)) {
  for (int i = 0; i < size_count; i++) {
    void *data;
    JAXC_TRY(take(context, sizes[i], &data));
    addresses[i] = (uintptr_t)data;
    memset(data, 0x5a, sizes[i]); /* a sanitizer sees what is too short */
  }
  if (fails_after) return jaxc_fail(context, JAXC_ABORTED, "gave up");
  return JAXC_OK;
}
static jaxc_status take_host_memory(jaxc_context *context) {
  return take_memory(context, jaxc_context_host_memory);
}
static jaxc_status take_device_memory(jaxc_context *context) {
  return take_memory(context, jaxc_context_device_memory);
}
static void ask_sizes(int count) {
  size_count = count;
  for (int i = 0; i < count; i++) sizes[i] = (size_t)(i * 37 % 101);
}

TEST(host_memory_is_aligned_and_freed_on_return) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = jobs[JAXC_STAGE_INSTANTIATE] = take_host_memory;
  jobs[JAXC_STAGE_PREPARE] = jobs[JAXC_STAGE_INITIALIZE] = take_host_memory;
  ask_sizes(JAXC_MAX_BLOCKS);
  EVERY_MINOR(minor) EVERY_PROFILE(profile) {
    site_begin(&site, minor, profile);
    CHECK_RUNS(&site);
    CHECK_INT(allocated, 0);
    for (int i = 0; i < size_count; i++) CHECK_INT(addresses[i] % 64, 0);
    CHECK_RUNS(&site);
    site_end(&site);
  }
}

TEST(host_memory_is_freed_when_the_function_fails) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = take_host_memory;
  ask_sizes(3);
  fails_after = 1;
  site_begin(&site, 5, JAXC_HOST_CPU);
  CHECK_OWN_REFUSAL(&site, JAXC_ABORTED, "Ask: gave up");
  CHECK_INT(allocated, 0);
  site_end(&site);
}

TEST(device_memory_is_aligned_and_freed_on_return) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = jobs[JAXC_STAGE_INITIALIZE] = take_device_memory;
  ask_sizes(JAXC_MAX_BLOCKS);
  EVERY_MINOR(minor) {
    site_begin(&site, minor, JAXC_HOST_GPU);
    CHECK_RUNS(&site);
    CHECK_INT(jaxc_host_leaks(site.host, &site.message), JAXC_OK);
    for (int i = 0; i < size_count; i++) CHECK_INT(addresses[i] % 16, 0);
    site_end(&site);
  }
}

TEST(device_memory_is_freed_when_the_function_fails) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = take_device_memory;
  ask_sizes(5);
  fails_after = 1;
  EVERY_MINOR(minor) {
    site_begin(&site, minor, JAXC_HOST_GPU);
    CHECK_OWN_REFUSAL(&site, JAXC_ABORTED, "Ask: gave up");
    CHECK_INT(jaxc_host_leaks(site.host, &site.message), JAXC_OK);
    site_end(&site);
  }
}

TEST(a_cpu_has_no_device_memory) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = take_device_memory;
  ask_sizes(1);
  EVERY_MINOR(minor) {
    site_begin(&site, minor, JAXC_HOST_CPU);
    CHECK_REFUSED(&site, JAXC_INVALID_ARGUMENT,
                  "Ask: device memory: XLA FFI GPU context is not available");
    site_end(&site);
  }
}

TEST(a_gpu_has_no_device_memory_in_instantiate) {
  site_t site;
  jobs[JAXC_STAGE_INSTANTIATE] = take_device_memory;
  ask_sizes(1);
  EVERY_MINOR(minor) {
    site_begin(&site, minor, JAXC_HOST_GPU);
    CHECK_REFUSED(
        &site, JAXC_UNIMPLEMENTED,
        "Ask: device memory: No device memory allocator available on this platform");
    site_end(&site);
  }
}

TEST(more_than_sixteen_blocks_are_refused_and_all_freed) {
  EVERY_PROFILE(profile) {
    site_t site;
    jobs[JAXC_STAGE_EXECUTE] =
        profile == JAXC_HOST_CPU ? take_host_memory : take_device_memory;
    ask_sizes(JAXC_MAX_BLOCKS + 1);
    sizes[JAXC_MAX_BLOCKS] = 99;
    site_begin(&site, 5, profile);
    CHECK_OWN_REFUSAL(
        &site, JAXC_RESOURCE_EXHAUSTED,
        "Ask: 99 bytes asked for while 16 blocks are held, the most a call may");
    site_end(&site);
  }
}

/* Frees a block behind jaxc's back, so that the runtime refuses to free it again. */
static jaxc_status free_too_early(jaxc_context *context) {
  jaxc_abi_memory_free_args args = {.size = 8};
  void *data;
  JAXC_TRY(jaxc_context_device_memory(context, 8, &data));
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_memory_free_args, data);
  args.context = context->frame->context;
  args.data = data;
  CHECK(context->frame->api->memory_free(&args) == NULL);
  if (fails_after) return jaxc_fail(context, JAXC_ABORTED, "gave up");
  return JAXC_OK;
}

TEST(a_failure_to_free_is_told_unless_the_function_failed) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = free_too_early;
  site_begin(&site, 5, JAXC_HOST_GPU);
  CHECK_REFUSED(&site, JAXC_INVALID_ARGUMENT,
                "Ask: freeing device memory: device memory is freed that was not "
                "allocated, or twice");
  fails_after = 1;
  CHECK_OWN_REFUSAL(&site, JAXC_ABORTED, "Ask: gave up");
  site_end(&site);
}

TEST(host_memory_that_there_is_not_is_refused) {
  site_t site;
  jobs[JAXC_STAGE_EXECUTE] = take_host_memory;
  size_count = 3;
  sizes[0] = sizes[1] = sizes[2] = 100;
  site_begin(&site, 5, JAXC_HOST_CPU);
  for (int i = 0; i < 3; i++) {
    allocations_left = i;
    CHECK_OWN_REFUSAL(&site, JAXC_RESOURCE_EXHAUSTED, "Ask: no memory for 100 bytes");
    CHECK_INT(allocated, 0);
  }
  allocations_left = 3;
  CHECK_RUNS(&site);
  allocations_left = 1000;
  sizes[0] = SIZE_MAX - 10; /* with room for alignment it would wrap to a small one */
  CHECK_OWN_REFUSAL(&site, JAXC_RESOURCE_EXHAUSTED,
                    "Ask: no memory for 18446744073709551605 bytes");
  CHECK_INT(allocations_left, 1000);
  site_end(&site);
}

TEST(device_memory_that_there_is_not_is_refused) {
  site_t site;
  int64_t last, failures = 0;
  jobs[JAXC_STAGE_EXECUTE] = take_device_memory;
  ask_sizes(3);
  site_begin(&site, 5, JAXC_HOST_GPU);
  CHECK_RUNS(&site);
  last = jaxc_host_allocation_count(site.host);
  site_end(&site);
  for (int64_t k = 1; k <= last; k++) {
    jaxc_host_options options = {.struct_size = sizeof options};
    const jaxc_abi_bundle handlers = {.execute = Ask};
    jaxc_status status;
    options.profile = JAXC_HOST_GPU;
    options.faults.fail_allocation = k;
    memset(&site, 0, sizeof site);
    if (jaxc_host_create(&options, &site.host, &site.message) != JAXC_OK) continue;
    status = jaxc_host_call_create(site.host, &handlers, &site.call, &site.message);
    if (status == JAXC_OK) status = jaxc_host_call_run(site.call, &site.message);
    if (status != JAXC_OK) CHECK_INT(status, JAXC_RESOURCE_EXHAUSTED);
    if (strncmp(site.message.text, "Ask: device memory: ", 20) == 0) failures++;
    site_end(&site);
  }
  CHECK_INT(failures, 3);
}

/* ---- threads ---- */

static int64_t threads_seen;
static atomic_int tasks_run;
static int tasks_at_return;
static jaxc_status take_threads(jaxc_context *context) {
  return jaxc_context_thread_count(context, &threads_seen);
}
static void task(void *data) {
  atomic_fetch_add((atomic_int *)data, 1);
}
static jaxc_status schedule(jaxc_context *context) {
  for (int i = 0; i < 50; i++) JAXC_TRY(jaxc_context_schedule(context, task, &tasks_run));
  tasks_at_return = atomic_load(&tasks_run);
  return JAXC_OK;
}

static const int pools[] = {0, JAXC_HOST_INLINE, 1, 3};
static const int pool_sizes[] = {0, 1, 1, 3};

TEST(the_thread_count_is_the_pools) {
  jobs[JAXC_STAGE_EXECUTE] = take_threads;
  EVERY_MINOR(minor) for (int i = 0; i < 4; i++) {
    site_t site = {.options = {.minor = minor, .thread_count = pools[i]}};
    threads_seen = -7;
    site_open(&site);
    CHECK_RUNS(&site);
    CHECK_INT(threads_seen, pool_sizes[i]);
    site_end(&site);
  }
}

TEST(every_scheduled_task_runs_once) {
  jobs[JAXC_STAGE_EXECUTE] = schedule;
  EVERY_MINOR(minor) for (int i = 0; i < 4; i++) {
    site_t site = {.options = {.minor = minor, .thread_count = pools[i]}};
    atomic_store(&tasks_run, 0);
    site_open(&site);
    CHECK_RUNS(&site);
    site_end(&site);
    CHECK_INT(atomic_load(&tasks_run), 50);
    if (pools[i] <= 0) CHECK_INT(tasks_at_return, 50);
  }
}

TEST(there_is_no_pool_in_instantiate_nor_where_there_is_none) {
  job_t *const both[] = {take_threads, schedule};
  EVERY_MINOR(minor) for (int i = 0; i < 4; i++) {
    site_t site = {.options = {.minor = minor, .thread_count = 2}};
    memset(jobs, 0, sizeof jobs);
    jobs[i < 2 ? JAXC_STAGE_INSTANTIATE : JAXC_STAGE_EXECUTE] = both[i % 2];
    if (i >= 2) site.options.thread_count = JAXC_HOST_NO_POOL;
    site_open(&site);
    CHECK_REFUSED(
        &site, JAXC_UNIMPLEMENTED,
        "Ask: thread pool: No intra-op thread pool available on this platform");
    site_end(&site);
  }
}

TEST(a_gpu_has_no_pool) {
  job_t *const both[] = {take_threads, schedule};
  EVERY_MINOR(minor) for (int i = 0; i < 2; i++) {
    site_t site;
    jobs[JAXC_STAGE_EXECUTE] = both[i];
    site_begin(&site, minor, JAXC_HOST_GPU);
    CHECK_REFUSED(&site, JAXC_UNIMPLEMENTED,
                  "Ask: thread pool: XLA FFI CPU context is not available");
    site_end(&site);
  }
}

/* ---- options and extensions ---- */

static double option_seen;
static int64_t option_count;
static jaxc_status take_options(jaxc_context *context) {
  const jaxc_abi_attrs *options;
  JAXC_TRY(jaxc_context_options(context, &options));
  option_count = options->size;
  if (option_count == 0) return JAXC_OK;
  return jaxc_attrs_scalar(options, "tolerance", JAXC_F64, &option_seen,
                           &context->message);
}

TEST(custom_options_arrive) {
  const double tolerance = 0.125;
  jobs[JAXC_STAGE_EXECUTE] = take_options;
  EVERY_PROFILE(profile) {
    site_t site;
    site_begin(&site, 5, profile);
    CHECK_RUNS(&site);
    CHECK_INT(option_count, 0);
    CHECK_INT(jaxc_host_attrs_scalar(jaxc_host_custom_options(site.host), "tolerance",
                                     JAXC_F64, &tolerance, &site.message),
              JAXC_OK);
    CHECK_RUNS(&site);
    CHECK(option_seen == tolerance);
    site_end(&site);
  }
}

TEST(custom_options_need_the_fifth_minor) {
  jobs[JAXC_STAGE_EXECUTE] = take_options;
  for (int minor = 1; minor < 5; minor++) {
    site_t site;
    char text[100];
    site_begin(&site, minor, JAXC_HOST_CPU);
    snprintf(text, sizeof text,
             "Ask: custom options: needs XLA FFI API 0.5, the runtime has 0.%d", minor);
    CHECK_OWN_REFUSAL(&site, JAXC_UNIMPLEMENTED, text);
    site_end(&site);
  }
}

static const jaxc_abi_context_extension *extension_seen;
static int64_t extension_type;
static jaxc_status take_extension(jaxc_context *context) {
  return jaxc_context_extension(context, extension_type, &extension_seen);
}

TEST(an_extension_is_found_by_its_type) {
  static const jaxc_abi_context_extension extensions[] = {
      {sizeof *extensions, {500, 0, 1}, NULL}, {sizeof *extensions, {501, 2, 3}, NULL}};
  jobs[JAXC_STAGE_EXECUTE] = take_extension;
  for (int minor = 4; minor <= 5; minor++) EVERY_PROFILE(profile) {
    site_t site;
    site_begin(&site, minor, profile);
    for (int i = 0; i < 2; i++) {
      CHECK_INT(jaxc_host_add_extension(site.host, &extensions[i], &site.message),
                JAXC_OK);
    }
    extension_type = 501;
    CHECK_RUNS(&site);
    CHECK(extension_seen != NULL);
    CHECK_INT(extension_seen->id.extension_type, 501);
    CHECK_INT(extension_seen->id.minor_version, 3);
    extension_type = 502;
    CHECK_RUNS(&site);
    CHECK(extension_seen == NULL);
    site_end(&site);
  }
}

TEST(extensions_need_the_fourth_minor) {
  jobs[JAXC_STAGE_EXECUTE] = take_extension;
  for (int minor = 1; minor < 4; minor++) {
    site_t site;
    char text[100];
    site_begin(&site, minor, JAXC_HOST_CPU);
    snprintf(text, sizeof text,
             "Ask: a context extension: needs XLA FFI API 0.4, the runtime has 0.%d",
             minor);
    CHECK_OWN_REFUSAL(&site, JAXC_UNIMPLEMENTED, text);
    site_end(&site);
  }
}

TEST_MAIN
