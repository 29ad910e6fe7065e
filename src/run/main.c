/* main.c: jaxc-run, the order of its work. options.c has the usage.
 *
 *   options -> library -> what the name stands for -> arguments, attributes, results ->
 *   the check against a description -> host -> calls, each checked -> files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#ifndef JAXC_VERSION
#define JAXC_VERSION "(version unknown)"
#endif

/* All that is owned. */
typedef struct {
  jaxci_options options;
  jaxci_library library;
  jaxci_target target;
  jaxci_request request;
  jaxc_host *host;
  jaxc_host_call *call;
} program;

static const char *status_name(jaxc_status status) {
  static const char *const names[] = {"OK",
                                      "CANCELLED",
                                      "UNKNOWN",
                                      "INVALID_ARGUMENT",
                                      "DEADLINE_EXCEEDED",
                                      "NOT_FOUND",
                                      "ALREADY_EXISTS",
                                      "PERMISSION_DENIED",
                                      "RESOURCE_EXHAUSTED",
                                      "FAILED_PRECONDITION",
                                      "ABORTED",
                                      "OUT_OF_RANGE",
                                      "UNIMPLEMENTED",
                                      "INTERNAL",
                                      "UNAVAILABLE",
                                      "DATA_LOSS",
                                      "UNAUTHENTICATED"};
  const size_t number = (size_t)status;
  return number < sizeof names / sizeof *names ? names[number] : "UNKNOWN";
}

static int fail_usage(const jaxc_message *message) {
  fprintf(stderr, "jaxc-run: %s\n", message->text);
  return JAXCI_EXIT_USAGE;
}

static int fail_error(jaxc_status status, const jaxc_message *message) {
  fprintf(stderr, "%s: %s\n", status_name(status), message->text);
  return JAXCI_EXIT_ERROR;
}

/* What the host says before a handler has run: its memory fails as the runtime's would,
 * everything else is a call that cannot be made. */
static int fail_setup(jaxc_status status, const jaxc_message *message) {
  return status == JAXC_RESOURCE_EXHAUSTED ? fail_error(status, message)
                                           : fail_usage(message);
}

static jaxc_status read_operands(program *p, jaxc_message *message) {
  const jaxci_options *const options = &p->options;
  jaxci_request *const request = &p->request;
  jaxc_message inner;
  request->arguments =
      calloc((size_t)options->args.count + 1, sizeof *request->arguments);
  request->results = calloc((size_t)options->results.count + 1, sizeof *request->results);
  if (request->arguments == NULL || request->results == NULL) {
    return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  }
  for (int i = 0; i < options->args.count; i++) {
    const jaxc_status status =
        jaxci_array_parse(options->args.items[i], &request->arguments[i], &inner);
    request->argument_count++;
    if (status != JAXC_OK) return JAXC_FAIL(message, status, "--arg %s", inner.text);
  }
  request->results_are_given = options->results.count > 0;
  for (int i = 0; i < options->results.count; i++) {
    const char *rest = "";
    const jaxc_status status =
        jaxci_shape_parse(options->results.items[i],
                          &request->results[request->result_count++], &rest, &inner);
    if (status != JAXC_OK) return JAXC_FAIL(message, status, "--result: %s", inner.text);
    if (*rest == '\0') continue;
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "--result %s: expected a type such as f32[8,4], got '%s' after it",
                     options->results.items[i], rest);
  }
  return JAXC_OK;
}

static jaxc_status check_outputs(const program *p, jaxc_message *message) {
  const jaxci_list *const outputs = &p->options.outputs;
  jaxc_message inner;
  if (outputs->count > p->request.result_count) {
    return JAXC_FAIL(
        message, JAXC_INVALID_ARGUMENT,
        "-o %s: expected at most %d of them, one for each result, got %d%s",
        outputs->items[outputs->count - 1], p->request.result_count, outputs->count,
        p->target.function == NULL || p->options.no_check != 0
            ? "; --result says what a result is"
            : "");
  }
  for (int i = 0; i < outputs->count; i++) {
    const jaxc_status status = jaxci_npy_can_write(p->request.results[i].dtype, &inner);
    if (status == JAXC_OK) continue;
    return JAXC_FAIL(message, status, "-o %s: %s", outputs->items[i], inner.text);
  }
  return JAXC_OK;
}

/* Everything before the host. */
static jaxc_status prepare(program *p, jaxc_message *message) {
  JAXC_TRY(jaxci_library_find(&p->library, &p->options, &p->target, message));
  JAXC_TRY(jaxci_call_check_platform(&p->options, &p->target, message));
  JAXC_TRY(read_operands(p, message));
  JAXC_TRY(
      jaxci_attributes_parse(&p->options, &p->target, &p->request.attributes, message));
  if (p->options.no_check != 0) {
    /* the handler does it */
  } else if (p->target.function != NULL) {
    JAXC_TRY(jaxci_function_check(p->target.function, &p->request, message));
  } else if (p->target.handler != NULL) {
    JAXC_TRY(jaxci_fields_check(p->target.handler, &p->request, message));
  }
  return check_outputs(p, message);
}

/* Says so when there was less to fail than was asked for. */
static void report_fault(const char *option, int64_t k, const char *what, int64_t count) {
  if (k <= count) return;
  fprintf(stderr, "jaxc-run: %s %lld: no %s failed, there were %lld\n", option,
          (long long)k, what, (long long)count);
}

/* What the host found, with the name of the operand that it is about:
 * "result 0 ('y') was not written". The host counts the token of an effect. */
static int fail_damage(const program *p, const jaxc_message *damage) {
  const int is_result = strncmp(damage->text, "result ", 7) == 0;
  const int is_argument = strncmp(damage->text, "argument ", 9) == 0;
  const char *const digits = damage->text + (is_result ? 7 : 9);
  const char *name = "";
  char *rest = NULL;
  long index;
  if (is_result || is_argument) {
    index = strtol(digits, &rest, 10) - jaxci_call_tokens(&p->target);
    if (rest != digits && index >= 0) {
      name = jaxci_operand_name(&p->target, is_result, (int)index);
      fprintf(stderr, "jaxc-run: %s %ld", is_result ? "result" : "argument", index);
      if (name[0] != '\0') fprintf(stderr, " ('%s')", name);
      fprintf(stderr, "%s\n", rest);
      return JAXCI_EXIT_DAMAGE;
    }
  }
  fprintf(stderr, "jaxc-run: %s\n", damage->text);
  return JAXCI_EXIT_DAMAGE;
}

/* Calls as often as is asked for, and looks at the memory after each. */
static int run_calls(program *p) {
  jaxc_message message = {""};
  jaxc_message damage = {""};
  jaxc_status status;
  for (int64_t i = 0; i < p->options.repeat; i++) {
    if (i > 0) { /* an argument with an alias was overwritten */
      jaxci_call_fill(p->call, &p->target, &p->request);
      jaxc_host_call_poison(p->call);
    }
    status = jaxc_host_call_run(p->call, &message);
    jaxci_watch_nothing();
    if (jaxc_host_call_check(p->call, &damage) != JAXC_OK) {
      if (status != JAXC_OK) (void)fail_error(status, &message);
      return fail_damage(p, &damage);
    }
    if (status != JAXC_OK) return fail_error(status, &message);
  }
  report_fault("--fail-allocation", p->options.fail_allocation, "allocation",
               jaxc_host_allocation_count(p->host));
  report_fault("--fail-request", p->options.fail_request, "request",
               jaxc_host_request_count(p->host));
  report_fault("--fail-error", p->options.fail_error, "error",
               jaxc_host_error_count(p->host));
  return JAXCI_EXIT_DONE;
}

static int write_results(const program *p) {
  const int32_t first = jaxci_call_tokens(&p->target);
  jaxc_message message;
  for (int i = 0; i < p->request.result_count; i++) {
    const jaxci_shape *const shape = &p->request.results[i];
    const void *const data = jaxc_host_call_result_data(p->call, first + i, NULL);
    const char *const name = jaxci_operand_name(&p->target, 1, i);
    int64_t count = 0;
    if (i < p->options.outputs.count) {
      if (jaxci_npy_write(p->options.outputs.items[i], shape, data, &message) !=
          JAXC_OK) {
        fprintf(stderr, "jaxc-run: -o %s\n", message.text);
        return JAXCI_EXIT_USAGE;
      }
      continue;
    }
    (void)jaxci_shape_count(shape, &count);
    printf("result %d%s%s: %s", i, name[0] == '\0' ? "" : " ", name,
           jaxci_shape_text(shape).text);
    jaxci_values_print(stdout, shape->dtype, count, data);
    putchar('\n');
  }
  return JAXCI_EXIT_DONE;
}

static int run(program *p) {
  const jaxc_host_options options = jaxci_call_options(&p->options);
  jaxc_message message = {""};
  int code = JAXCI_EXIT_DONE;
  int has_begun = 0;
  jaxc_status status = jaxc_host_create(&options, &p->host, &message);
  if (status != JAXC_OK) return fail_setup(status, &message);
  status = jaxci_call_probe(p->host, &p->target, &message);
  if (status == JAXC_OK) status = jaxci_watch_start(&p->options, &p->target, &message);
  if (status != JAXC_OK) return fail_setup(status, &message);
  if (p->options.bench != 0) {
    status =
        jaxci_bench(p->host, &p->target, &p->options, &p->request, &has_begun, &message);
    jaxci_watch_nothing();
    if (status != JAXC_OK) {
      code = has_begun ? fail_error(status, &message) : fail_setup(status, &message);
    }
  } else {
    status = jaxci_call_create(p->host, &p->target, &p->options, &p->request, &p->call,
                               &message);
    if (status != JAXC_OK) return fail_setup(status, &message);
    code = run_calls(p);
    if (code == JAXCI_EXIT_DONE) code = write_results(p);
  }
  jaxc_host_call_destroy(p->call); /* its states go before leaks are looked for */
  p->call = NULL;
  if (jaxc_host_leaks(p->host, &message) == JAXC_OK) return code;
  fprintf(stderr, "jaxc-run: %s\n", message.text);
  return JAXCI_EXIT_DAMAGE;
}

static int work(program *p, int argc, const char *const *argv) {
  jaxc_message message = {""};
  if (jaxci_options_parse(argc, argv, &p->options, &message) != JAXC_OK) {
    return fail_usage(&message);
  }
  if (p->options.help != 0) {
    fputs(jaxci_options_help, stdout);
    return JAXCI_EXIT_DONE;
  }
  if (p->options.version != 0) {
    printf("jaxc-run %s, XLA FFI API 0.1 to 0.%d\n", JAXC_VERSION, JAXC_ABI_MINOR_KNOWN);
    return JAXCI_EXIT_DONE;
  }
  if (jaxci_library_open(p->options.library, &p->library, &message) != JAXC_OK) {
    return fail_usage(&message);
  }
  if (p->options.list != 0) {
    return jaxci_describe(&p->library, &p->options, &message) == JAXC_OK
               ? JAXCI_EXIT_DONE
               : fail_usage(&message);
  }
  if (prepare(p, &message) != JAXC_OK) return fail_usage(&message);
  if (p->options.check != 0) {
    jaxci_describe_request(&p->target, &p->request);
    return JAXCI_EXIT_DONE;
  }
  return run(p);
}

int main(int argc, char **argv) {
  program p;
  int code;
  memset(&p, 0, sizeof p);
  code = work(&p, argc, (const char *const *)argv);
  jaxc_host_call_destroy(p.call);
  jaxci_watch_tasks();
  jaxc_host_destroy(p.host); /* after the tasks that its threads have */
  jaxci_watch_nothing();
  for (int i = 0; i < p.request.argument_count; i++) free(p.request.arguments[i].data);
  free(p.request.arguments);
  free(p.request.results);
  jaxci_attributes_free(&p.request.attributes);
  jaxci_library_close(&p.library);
  jaxci_options_free(&p.options);
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fputs("jaxc-run: the output cannot be written\n", stderr);
    if (code == JAXCI_EXIT_DONE) code = JAXCI_EXIT_USAGE;
  }
  return code;
}
