/* replay.c: runs a fuzz target on files, without a fuzzer, so that each corpus is a test.
 *
 *   fuzz_frame fuzz/corpus/frame          every file of the folder, in order of names
 *   fuzz_frame crash-1f2e                 one file
 *
 * The name of a file that fails stands before the failure: it is kept in a place that the
 * handler of SIGABRT, SIGSEGV, ... and the sanitizers' end print.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input.h"

static char current[4096];

static void print_current(void) {
  static const char text[] = "the input is ";
  if (current[0] == '\0') return;
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0 ||
      write(STDERR_FILENO, current, strlen(current)) < 0 ||
      write(STDERR_FILENO, "\n", 1) < 0) {
    return;
  }
}

/* Called by the sanitizers before the process ends, where there are any. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void on_signal(int number) {
  print_current();
  signal(number, SIG_DFL);
  raise(number);
}

static int replay_file(const char *path) {
  uint8_t *data = NULL;
  FILE *const file = fopen(path, "rb");
  long size;
  int failed = 1;
  if (file == NULL) goto done;
  if (fseek(file, 0, SEEK_END) != 0) goto done;
  size = ftell(file);
  if (size < 0 || fseek(file, 0, SEEK_SET) != 0) goto done;
  data = malloc(size == 0 ? 1 : (size_t)size); /* its exact size, for sanitizers */
  if (data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size) goto done;
  snprintf(current, sizeof current, "%s", path);
  (void)LLVMFuzzerTestOneInput(data, (size_t)size);
  current[0] = '\0';
  failed = 0;

done:
  if (failed) fprintf(stderr, "%s cannot be read\n", path);
  if (file != NULL) fclose(file);
  free(data);
  return failed;
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* Returns the number of files, -1 when one cannot be read. */
static int replay_folder(const char *path) {
  struct dirent **entries = NULL;
  const int count = scandir(path, &entries, is_visible, alphasort);
  int failed = count < 0;
  for (int i = 0; i < count; i++) {
    char name[4096];
    const int length = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
    failed |= length < 0 || (size_t)length >= sizeof name || replay_file(name);
    free(entries[i]);
  }
  free(entries);
  return failed ? -1 : count;
}

int main(int argc, char **argv) {
  static const int signals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
  int total = 0;
  if (__sanitizer_set_death_callback != NULL) {
    __sanitizer_set_death_callback(print_current);
  } else {
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
      signal(signals[i], on_signal);
    }
  }
  for (int i = 1; i < argc; i++) {
    struct stat status;
    int count = 1;
    if (stat(argv[i], &status) == 0 && S_ISDIR(status.st_mode)) {
      count = replay_folder(argv[i]);
    } else if (replay_file(argv[i])) {
      count = -1;
    }
    if (count < 0) return 1;
    total += count;
  }
  printf("%d inputs\n", total);
  return total == 0; /* a folder without inputs tests nothing */
}
