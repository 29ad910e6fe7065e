/* fuzz_values.c: what the command line of jaxc-run says of arrays: TYPE[SIZES]=VALUE.
 *
 * What must hold: a shape that is taken has sizes from 0 on whose bytes fit an int64, and
 * reads back from its own text; a value fills its element alone; an integer reads back
 * from what is printed; a refusal says why.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L
#include "../src/run/run.h"
#include "input.h"

static const int32_t dtypes[] = {
    JAXC_PRED, JAXC_S8,  JAXC_S16,   JAXC_S32,    JAXC_S64,      JAXC_U8,  JAXC_U16,
    JAXC_U32,  JAXC_U64, JAXC_F16,   JAXC_F32,    JAXC_F64,      JAXC_C64, JAXC_BF16,
    JAXC_C128, JAXC_S4,  JAXC_TOKEN, JAXC_F8E5M2, JAXC_F8E4M3FN, 99};

/* A message that says something; the status is handed on. */
static int is_taken(jaxc_status status, const jaxc_message *message) {
  if (status == JAXC_OK) return 1;
  FUZZ_CHECK(message->text[0] != '\0');
  FUZZ_CHECK(memchr(message->text, '\0', sizeof message->text) != NULL);
  return 0;
}

static void check_shape(const char *text) {
  jaxci_shape shape, again;
  const char *rest = NULL;
  jaxc_message message;
  jaxci_text printed;
  int64_t count = -1;
  if (!is_taken(jaxci_shape_parse(text, &shape, &rest, &message), &message)) return;
  FUZZ_CHECK(rest >= text && rest <= text + strlen(text));
  FUZZ_CHECK(shape.rank >= 0 && shape.rank <= JAXCI_MAX_RANK);
  for (int32_t i = 0; i < shape.rank; i++) FUZZ_CHECK(shape.dims[i] >= 0);
  FUZZ_CHECK(jaxci_shape_count(&shape, &count) && count >= 0);
  FUZZ_CHECK(jaxci_shape_is_meant(text));
  printed = jaxci_shape_text(&shape);
  if (strlen(printed.text) + 1 == sizeof printed.text) return; /* it was cut */
  FUZZ_CHECK(jaxci_shape_parse(printed.text, &again, &rest, &message) == JAXC_OK);
  FUZZ_CHECK(*rest == '\0' && again.dtype == shape.dtype && again.rank == shape.rank);
  FUZZ_CHECK(memcmp(again.dims, shape.dims, (size_t)shape.rank * sizeof *shape.dims) ==
             0);
}

/* Prints elements in a buffer of the caller. */
static void print(int32_t dtype, int64_t count, const void *data, char *out,
                  size_t size) {
  FILE *const file = fmemopen(out, size, "w");
  if (file == NULL) exit(2);
  jaxci_values_print(file, dtype, count, data);
  fclose(file);
}

static void check_value(fuzz_input *in, const char *text, size_t length) {
  const int32_t dtype = dtypes[fuzz_byte(in) % (sizeof dtypes / sizeof *dtypes)];
  unsigned char *const out = fuzz_new(in, JAXCI_MAX_ELEMENT);
  unsigned char *const again = fuzz_new(in, JAXCI_MAX_ELEMENT);
  char printed[128] = "";
  const size_t size = jaxc_dtype_size(dtype);
  jaxc_message message;
  if (!is_taken(jaxci_value_parse(dtype, text, length, out, &message), &message)) return;
  FUZZ_CHECK(jaxci_value_has_text(dtype));
  FUZZ_CHECK(fuzz_is_filled(out + size, 0, JAXCI_MAX_ELEMENT - size));
  print(dtype, 1, out, printed, sizeof printed);
  FUZZ_CHECK(printed[0] == ' ' && printed[1] != '\0');
  FUZZ_CHECK(jaxci_value_parse(dtype, printed + 1, strlen(printed + 1), again,
                               &message) == JAXC_OK);
  if (dtype <= JAXC_U64) FUZZ_CHECK(memcmp(out, again, size) == 0);
}

static void check_number(fuzz_input *in, const char *text) {
  const int64_t least = fuzz_wide(in), most = fuzz_wide(in);
  int64_t out = 0;
  jaxc_message message;
  if (!is_taken(jaxci_number_parse(text, least, most, &out, &message), &message)) return;
  FUZZ_CHECK(out >= least && out <= most);
}

/* Only where no file is meant. */
static void check_array(const char *text) {
  jaxci_array array;
  jaxc_message message;
  int64_t count;
  if (!jaxci_shape_is_meant(text)) return;
  if (!is_taken(jaxci_array_parse(text, &array, &message), &message)) return;
  FUZZ_CHECK(jaxci_shape_count(&array.shape, &count));
  FUZZ_CHECK(array.bytes == (size_t)count * jaxc_dtype_size(array.shape.dtype));
  FUZZ_CHECK(array.data == NULL);
}

/* Each half is the float that it reads as. */
static void check_half(fuzz_input *in) {
  const uint16_t bits = (uint16_t)(fuzz_byte(in) | fuzz_byte(in) << 8);
  const float value = jaxci_half_to(bits);
  if (value == value) FUZZ_CHECK(jaxci_half_from(value) == bits);
}

static void check_elements(fuzz_input *in) {
  const int32_t dtype = dtypes[fuzz_byte(in) % (sizeof dtypes / sizeof *dtypes)];
  const int64_t count = fuzz_between(in, 0, 40);
  const size_t bytes = (size_t)count * jaxc_dtype_size(dtype);
  unsigned char *const data = fuzz_new(in, bytes);
  char *const out = fuzz_new(in, 8192);
  for (size_t i = 0; i < bytes; i++) data[i] = fuzz_byte(in);
  print(dtype, count, data, out, 8192);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size, 0, NULL};
  const uint8_t what = fuzz_byte(&in) % 6;
  /* The numbers of a check come first, then the text. */
  const size_t head = what == 1 ? 1 : what == 2 ? 18 : 0;
  const size_t length = size > 1 + head ? size - 1 - head : 0;
  char *const text = fuzz_new(&in, length + 1);
  if (length != 0) memcpy(text, data + 1 + head, length);
  in.size = size < 1 + head ? size : 1 + head;
  switch (what) {
    case 0: check_shape(text); break;
    case 1: check_value(&in, text, strlen(text)); break;
    case 2: check_number(&in, text); break;
    case 3: check_array(text); break;
    case 4: in.size = size; check_half(&in); break;
    default: in.size = size; check_elements(&in); break;
  }
  fuzz_end(&in);
  return 0;
}
