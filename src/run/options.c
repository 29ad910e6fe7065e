/* options.c: the command line, from one table of options.
 *
 * Values come as "--repeat 3" or "--repeat=3". Texts stay in argv.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char jaxci_options_help[] =
    "usage: jaxc-run LIBRARY HANDLER [options]\n"
    "       jaxc-run LIBRARY [HANDLER] --list\n"
    "\n"
    "Calls an XLA FFI handler of a shared library, without XLA and without Python.\n"
    "\n"
    "  jaxc-run rms_norm.so rms_norm --arg x.npy --arg f32[]=1e-5 -o y.npy\n"
    "  jaxc-run lib.so RmsNorm --arg f32[8,4]=2 --attr eps=1e-5 --result f32[8,4]\n"
    "\n"
    "HANDLER is a function of a library that jaxc built, a handler that is written in C\n"
    "with jaxc/handler.h, or any other symbol that is a handler, such as one in C++.\n"
    "\n"
    "Operands, each option once for each, in order:\n"
    "  --arg FILE.npy        an array; FILE.npy:bf16 names a type that NumPy does not "
    "know\n"
    "  --arg f32[8,4]        zeros; types by the names of NumPy or XLA\n"
    "  --arg f32[8,4]=1.5    one value in all places\n"
    "  --result f32[8,4]     not needed for a function of jaxc, which says it itself\n"
    "  -o FILE.npy           where the next result goes; without, it is printed\n"
    "  --alias ARG:RESULT    the result has the memory of the argument; from 0\n"
    "\n"
    "Attributes:\n"
    "  --attr eps=f32:1e-5   bool, i8 to i64, u8 to u64, f32, f64, c64, c128\n"
    "  --attr name=str:text\n"
    "  --attr w=f32[]:1,2,3  an array\n"
    "  --attr a.k=i64:3      k in the dictionary a; a=dict: is an empty one\n"
    "  --attr k=3            where the handler says which type it has\n"
    "\n"
    "What runs:\n"
    "  --instantiate SYMBOL, --prepare SYMBOL, --initialize SYMBOL\n"
    "                        further stages of a handler that does not say them itself\n"
    "  --platform cpu|gpu    as which the host behaves; a handler for GPUs needs gpu,\n"
    "                        and gets memory of this machine as the device's\n"
    "  --api MINOR           version of the API, 1 to 5\n"
    "  --threads N|inline|late|none\n"
    "                        size of the thread pool; inline: one that runs tasks at "
    "once;\n"
    "                        late: one that runs them when the handler has returned\n"
    "  --timeout SECONDS     for the handler to return, and for its future; else 60 for\n"
    "                        the future alone\n"
    "  --flush-denormals     as XLA does on a CPU\n"
    "  --repeat N            calls; each is checked\n"
    "  --bench [SECONDS]     measures instead, beside a handler that does nothing\n"
    "  --check               compares the call with the handler's description only\n"
    "  --no-check            does not compare it, so that the handler itself refuses;\n"
    "                        --result then says what the results are\n"
    "  --list                what the library has\n"
    "\n"
    "For valgrind and the address sanitizer:\n"
    "  --exact               arrays end where their memory does, without guards, so\n"
    "                        that reads beyond them are seen\n"
    "\n"
    "What goes wrong on purpose:\n"
    "  --fail-allocation K   the K-th allocation of host and runtime fails\n"
    "  --fail-request K      the K-th time that the handler takes memory of the runtime\n"
    "                        fails: device memory, an error, future, task, state, type\n"
    "  --fail-error K        the K-th error that the handler makes fails\n"
    "  --short-frame N       frames say that they lack their last N bytes\n"
    "  --unknown-extensions N\n"
    "                        nodes of unknown types around those of each chain\n"
    "  --misalign N          bytes by which arguments miss their alignment\n"
    "\n"
    "Status: 0 done; 1 the handler's error, printed as CODE: text; 2 wrong usage;\n"
    "3 the call wrote where it must not, did not write a result, or kept what it must\n"
    "give back.\n";

typedef enum {
  KIND_FLAG,     /* int64_t becomes 1 */
  KIND_NUMBER,   /* int64_t between the limits */
  KIND_TEXT,     /* const char * */
  KIND_LIST,     /* jaxci_list */
  KIND_PLATFORM, /* const char *, "cpu" or "gpu" */
  KIND_THREADS,
  KIND_BENCH
} kind;

typedef struct {
  const char *name;
  kind kind;
  size_t offset;
  int64_t least, most;
} option;

#define PLACE(member) offsetof(jaxci_options, member)

static const option table[] = {
    {"--arg", KIND_LIST, PLACE(args), 0, 0},
    {"--attr", KIND_LIST, PLACE(attrs), 0, 0},
    {"--result", KIND_LIST, PLACE(results), 0, 0},
    {"--output", KIND_LIST, PLACE(outputs), 0, 0},
    {"-o", KIND_LIST, PLACE(outputs), 0, 0},
    {"--alias", KIND_LIST, PLACE(aliases), 0, 0},
    {"--instantiate", KIND_TEXT, PLACE(instantiate), 0, 0},
    {"--prepare", KIND_TEXT, PLACE(prepare), 0, 0},
    {"--initialize", KIND_TEXT, PLACE(initialize), 0, 0},
    {"--platform", KIND_PLATFORM, PLACE(platform), 0, 0},
    {"--api", KIND_NUMBER, PLACE(minor), 1, JAXC_ABI_MINOR_KNOWN},
    {"--threads", KIND_THREADS, PLACE(threads), 0, 1024},
    {"--flush-denormals", KIND_FLAG, PLACE(flush_denormals), 0, 0},
    {"--timeout", KIND_NUMBER, PLACE(timeout), 1, 1000000},
    {"--exact", KIND_FLAG, PLACE(exact), 0, 0},
    {"--fail-allocation", KIND_NUMBER, PLACE(fail_allocation), 1, INT64_MAX},
    {"--fail-request", KIND_NUMBER, PLACE(fail_request), 1, INT64_MAX},
    {"--fail-error", KIND_NUMBER, PLACE(fail_error), 1, INT64_MAX},
    {"--short-frame", KIND_NUMBER, PLACE(short_frame), 0, (int64_t)JAXC_ABI_FRAME_SIZE},
    {"--unknown-extensions", KIND_NUMBER, PLACE(unknown_extensions), 0, 1000},
    {"--misalign", KIND_NUMBER, PLACE(misalign), 0, 63},
    {"--repeat", KIND_NUMBER, PLACE(repeat), 1, INT64_MAX},
    {"--bench", KIND_BENCH, PLACE(bench), 0, 0},
    {"--check", KIND_FLAG, PLACE(check), 0, 0},
    {"--no-check", KIND_FLAG, PLACE(no_check), 0, 0},
    {"--list", KIND_FLAG, PLACE(list), 0, 0},
    {"--help", KIND_FLAG, PLACE(help), 0, 0},
    {"-h", KIND_FLAG, PLACE(help), 0, 0},
    {"--version", KIND_FLAG, PLACE(version), 0, 0},
};

static int takes_value(const option *o) {
  return o->kind != KIND_FLAG && o->kind != KIND_BENCH;
}

static jaxc_status store_number(const option *o, const char *value, int64_t *out,
                                jaxc_message *message) {
  jaxc_message inner;
  if (jaxci_number_parse(value, o->least, o->most, out, &inner) == JAXC_OK)
    return JAXC_OK;
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s: %s", o->name, inner.text);
}

static jaxc_status store_bench(const char *value, jaxci_options *out,
                               jaxc_message *message) {
  char *end;
  out->bench = 1;
  if (value == NULL) return JAXC_OK;
  out->bench_seconds = strtod(value, &end);
  if (end != value && *end == '\0' && out->bench_seconds > 0 &&
      out->bench_seconds <= 86400) {
    return JAXC_OK;
  }
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "--bench: expected seconds above 0 and up to 86400, got '%s'", value);
}

static jaxc_status store(const option *o, const char *value, jaxci_options *out,
                         jaxc_message *message) {
  void *const place = (char *)out + o->offset;
  jaxci_list *const list = place;
  switch (o->kind) {
    case KIND_FLAG: *(int64_t *)place = 1; return JAXC_OK;
    case KIND_NUMBER: return store_number(o, value, place, message);
    case KIND_LIST:
      list->items[list->count++] = value; /* there is room for all of argv */
      return JAXC_OK;
    case KIND_THREADS:
      if (strcmp(value, "inline") != 0 && strcmp(value, "late") != 0 &&
          strcmp(value, "none") != 0 &&
          store_number(o, value, &out->thread_count, NULL) != JAXC_OK) {
        return JAXC_FAIL(
            message, JAXC_INVALID_ARGUMENT,
            "--threads: expected a number from 0 to 1024, 'inline', 'late' or 'none', "
            "got '%s'",
            value);
      }
      break;
    case KIND_PLATFORM:
      if (strcmp(value, "cpu") != 0 && strcmp(value, "gpu") != 0) {
        return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                         "--platform: expected 'cpu' or 'gpu', got '%s'", value);
      }
      break;
    case KIND_BENCH: return store_bench(value, out, message);
    default: break;
  }
  *(const char **)place = value;
  return JAXC_OK;
}

static const option *find(const char *text, size_t length) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strlen(table[i].name) == length && memcmp(table[i].name, text, length) == 0) {
      return &table[i];
    }
  }
  return NULL;
}

static jaxc_status positional(const char *text, jaxci_options *out,
                              jaxc_message *message) {
  if (out->library == NULL) {
    out->library = text;
  } else if (out->handler == NULL) {
    out->handler = text;
  } else {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "'%s' is one word too many, after library '%s' and handler '%s'; "
                     "arrays are given by --arg",
                     text, out->library, out->handler);
  }
  return JAXC_OK;
}

static int is_number(const char *text) {
  char *end;
  (void)strtod(text, &end);
  return end != text && *end == '\0';
}

/* What is asked for only makes sense together. */
static jaxc_status check_options(const jaxci_options *o, jaxc_message *message) {
  if (o->help != 0 || o->version != 0) return JAXC_OK;
  if (o->library == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "no library is given; expected jaxc-run LIBRARY HANDLER, and --help "
                     "shows more");
  }
  if (o->handler == NULL && o->list == 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "no handler is given after library '%s'; --list shows what it has",
                     o->library);
  }
  if (o->check != 0 && o->no_check != 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "--no-check: --check does nothing but compare; expected one of "
                     "them");
  }
  if (o->bench != 0 && o->repeat != 1) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "--repeat: --bench finds the number of calls itself, got %lld",
                     (long long)o->repeat);
  }
  if (o->bench != 0 && o->outputs.count != 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "-o: --bench writes no results, got '%s'", o->outputs.items[0]);
  }
  return JAXC_OK;
}

jaxc_status jaxci_options_parse(int argc, const char *const *argv, jaxci_options *out,
                                jaxc_message *message) {
  jaxci_list *const lists[] = {&out->args, &out->results, &out->outputs, &out->attrs,
                               &out->aliases};
  memset(out, 0, sizeof *out);
  out->repeat = 1;
  out->bench_seconds = 1;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    lists[i]->items = malloc(((size_t)argc + 1) * sizeof *lists[i]->items);
    if (lists[i]->items == NULL) {
      return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory for the options");
    }
  }
  for (int i = 1; i < argc; i++) {
    const char *const text = argv[i];
    const char *const equals = strchr(text, '=');
    const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const char *value = equals != NULL ? equals + 1 : NULL;
    const option *o;
    if (text[0] != '-' || text[1] == '\0') {
      JAXC_TRY(positional(text, out, message));
      continue;
    }
    o = find(text, length);
    if (o == NULL) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "there is no option '%s'; --help shows all", text);
    }
    if (o->kind == KIND_FLAG && value != NULL) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s takes no value, got '%s'",
                       o->name, value);
    }
    if (value == NULL && i + 1 < argc &&
        (takes_value(o) || (o->kind == KIND_BENCH && is_number(argv[i + 1])))) {
      value = argv[++i];
    }
    if (value == NULL && takes_value(o)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s needs a value after it",
                       o->name);
    }
    JAXC_TRY(store(o, value, out, message));
  }
  return check_options(out, message);
}

void jaxci_options_free(jaxci_options *options) {
  free(options->args.items);
  free(options->results.items);
  free(options->outputs.items);
  free(options->attrs.items);
  free(options->aliases.items);
}
