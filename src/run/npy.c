/* npy.c: .npy files, versions 1 to 3, little-endian and in C order.
 *
 * A file is a magic text, a version, the length of a header, the header and the elements.
 * The header is a Python dictionary:
 *
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (8, 4), }
 *
 * Files come from anywhere: each length is compared with the file's own before memory is
 * asked for, and whatever is not understood is refused with the reason.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE ((size_t)6)
#define MAX_HEADER ((size_t)1 << 20) /* NumPy itself stops at 10,000 by default */

/* ---- the header ---- */

typedef struct {
  const char *path;
  const char *at; /* NUL-terminated */
  int32_t named;  /* type that the user names, or JAXC_DTYPE_INVALID */
  jaxci_shape *shape;
  int is_fortran;
  jaxc_message *message;
} header;

JAXC_PRINTF(2, 3)
static jaxc_status fail_header(const header *h, const char *format, ...) {
  jaxc_message text;
  va_list list;
  va_start(list, format);
  if (vsnprintf(text.text, sizeof text.text, format, list) < 0) text.text[0] = '\0';
  va_end(list);
  return JAXC_FAIL(h->message, JAXC_INVALID_ARGUMENT, "%s: %s", h->path, text.text);
}

static jaxc_status fail_damaged(const header *h, const char *expected) {
  return fail_header(h, "the header is damaged: expected %s at '%.24s'", expected, h->at);
}

static int skip(header *h, char wanted) {
  h->at += strspn(h->at, " \t\n");
  if (*h->at != wanted) return 0;
  h->at++;
  return 1;
}

/* A string without escapes; returns its start and its length, NULL when there is none. */
static const char *read_string(header *h, size_t *length) {
  const char *start;
  char quote;
  h->at += strspn(h->at, " \t\n");
  quote = *h->at;
  if (quote != '\'' && quote != '"') return NULL;
  start = h->at + 1;
  *length = strcspn(start, quote == '"' ? "\"\\" : "'\\");
  if (start[*length] != quote) return NULL;
  h->at = start + *length + 1;
  return start;
}

/* The type that a code stands for, without byte order; `void_size` for opaque bytes. */
static int32_t find_code(const char *code, size_t *void_size) {
  static const struct {
    const char *code;
    int32_t dtype;
  } codes[] = {
      {"b1", JAXC_PRED}, {"i1", JAXC_S8},    {"i2", JAXC_S16}, {"i4", JAXC_S32},
      {"i8", JAXC_S64},  {"u1", JAXC_U8},    {"u2", JAXC_U16}, {"u4", JAXC_U32},
      {"u8", JAXC_U64},  {"f2", JAXC_F16},   {"f4", JAXC_F32}, {"f8", JAXC_F64},
      {"c8", JAXC_C64},  {"c16", JAXC_C128},
  };
  *void_size = 0;
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    if (strcmp(codes[i].code, code) == 0) return codes[i].dtype;
  }
  /* ml_dtypes writes most of its types as V1 and V2, and float8_e5m2 as f1. */
  if (strcmp(code, "V1") == 0 || strcmp(code, "f1") == 0) *void_size = 1;
  if (strcmp(code, "V2") == 0) *void_size = 2;
  return JAXC_DTYPE_INVALID;
}

static jaxc_status read_descr(header *h) {
  size_t length, void_size;
  char descr[16] = "";
  const char *code = descr;
  const char *text;
  if (skip(h, '[')) {
    return fail_header(h, "holds records of several fields, which no XLA array has");
  }
  text = read_string(h, &length);
  if (text == NULL) return fail_damaged(h, "the element type as a string");
  if (length >= sizeof descr) {
    return fail_header(h, "holds elements of type '%.*s...', which no XLA array has", 15,
                       text);
  }
  memcpy(descr, text, length);
  if (strchr("<>=|", descr[0]) != NULL && descr[0] != '\0') code++;
  h->shape->dtype = find_code(code, &void_size);
  if (h->shape->dtype == JAXC_DTYPE_INVALID && void_size == 0) {
    return fail_header(h, "holds elements of type '%s', which no XLA array has", descr);
  }
  if (descr[0] == '>' && strcmp(code + 1, "1") != 0) {
    return fail_header(
        h,
        "is big-endian ('%s'); in NumPy, x.astype(x.dtype.newbyteorder('<')) "
        "makes it little-endian",
        descr);
  }
  if (h->named == JAXC_DTYPE_INVALID && h->shape->dtype == JAXC_DTYPE_INVALID) {
    return fail_header(
        h,
        "holds %zu-byte elements that NumPy has no name for ('%s'); name their "
        "type, such as '%s:%s'",
        void_size, descr, h->path, void_size == 2 ? "bf16" : "f8e4m3fn");
  }
  if (h->named == JAXC_DTYPE_INVALID) return JAXC_OK;
  if (h->shape->dtype == JAXC_DTYPE_INVALID &&
      jaxc_dtype_bits(h->named) == 8 * void_size) {
    h->shape->dtype = h->named;
  }
  if (h->shape->dtype == h->named) return JAXC_OK;
  return fail_header(h, "holds elements of type '%s', expected %s as named", descr,
                     jaxc_dtype_name(h->named));
}

static jaxc_status read_order(header *h) {
  h->at += strspn(h->at, " \t\n");
  if (strncmp(h->at, "True", 4) == 0) {
    h->is_fortran = 1;
    h->at += 4;
  } else if (strncmp(h->at, "False", 5) == 0) {
    h->at += 5;
  } else {
    return fail_damaged(h, "True or False");
  }
  return JAXC_OK;
}

static jaxc_status read_shape(header *h) {
  jaxci_shape *const shape = h->shape;
  shape->rank = 0;
  if (!skip(h, '(')) return fail_damaged(h, "a tuple of sizes");
  while (!skip(h, ')')) {
    char digits[24];
    const size_t length = strspn(h->at, "0123456789");
    if (length == 0) return fail_damaged(h, "a size");
    if (shape->rank == JAXCI_MAX_RANK) {
      return fail_header(h, "has more than %d axes", JAXCI_MAX_RANK);
    }
    if (length >= sizeof digits) return fail_damaged(h, "a size that an int64 holds");
    memcpy(digits, h->at, length);
    digits[length] = '\0';
    if (jaxci_number_parse(digits, 0, INT64_MAX, &shape->dims[shape->rank++], NULL) !=
        JAXC_OK) {
      return fail_damaged(h, "a size that an int64 holds");
    }
    h->at += length;
    if (*h->at == 'L') h->at++; /* as Python 2 wrote them */
    if (skip(h, ',')) continue;
    if (skip(h, ')')) break;
    return fail_damaged(h, "',' or ')'");
  }
  return JAXC_OK;
}

static jaxc_status read_entry(header *h, unsigned *seen) {
  static const struct {
    const char *key;
    jaxc_status (*read)(header *h);
  } keys[] = {
      {"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
  size_t length;
  const char *const key = read_string(h, &length);
  if (key == NULL) return fail_damaged(h, "a key");
  for (unsigned i = 0; i < 3; i++) {
    if (strlen(keys[i].key) != length || memcmp(keys[i].key, key, length) != 0) continue;
    if ((*seen & (1u << i)) != 0) return fail_damaged(h, "no key a second time");
    *seen |= 1u << i;
    if (!skip(h, ':')) return fail_damaged(h, "':'");
    return keys[i].read(h);
  }
  return fail_header(h, "the header has the unknown key '%.*s'",
                     (int)(length < 64 ? length : 64), key);
}

static jaxc_status read_header(header *h) {
  unsigned seen = 0;
  if (!skip(h, '{')) return fail_damaged(h, "'{'");
  while (!skip(h, '}')) {
    JAXC_TRY(read_entry(h, &seen));
    if (skip(h, ',')) continue;
    if (skip(h, '}')) break;
    return fail_damaged(h, "',' or '}'");
  }
  (void)skip(h, '\n');
  if (*h->at != '\0') return fail_damaged(h, "the end");
  if (seen != 7) return fail_damaged(h, "descr, fortran_order and shape before the end");
  if (h->is_fortran && h->shape->rank > 1) {
    return fail_header(
        h,
        "is in Fortran order; in NumPy, np.ascontiguousarray(x) makes it C "
        "order");
  }
  return JAXC_OK;
}

/* ---- the file ---- */

static jaxc_status fail_file(const char *path, const char *what, jaxc_message *message) {
  return JAXC_FAIL(message, JAXC_NOT_FOUND, "%s: %s: %s", path, what, strerror(errno));
}

/* Reads exactly `size` bytes. */
static jaxc_status read_bytes(FILE *file, const char *path, void *out, size_t size,
                              jaxc_message *message) {
  errno = 0;
  if (fread(out, 1, size, file) == size) return JAXC_OK;
  if (ferror(file)) return fail_file(path, "cannot be read", message);
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "%s: the file ends inside its header; it is no whole .npy file", path);
}

/* Reads all before the elements. `text` is the header, to be freed by the caller. */
static jaxc_status read_start(FILE *file, const char *path, char **text,
                              jaxc_message *message) {
  unsigned char start[12];
  size_t size, header_size;
  JAXC_TRY(read_bytes(file, path, start, MAGIC_SIZE, message));
  if (memcmp(start, MAGIC, MAGIC_SIZE) != 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: is no .npy file: it does not begin as numpy.save begins it",
                     path);
  }
  JAXC_TRY(read_bytes(file, path, start + MAGIC_SIZE, 2, message));
  if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: has format version %d.%d, expected 1.0, 2.0 or 3.0", path,
                     (int)start[6], (int)start[7]);
  }
  size = start[6] == 1 ? 2 : 4;
  JAXC_TRY(read_bytes(file, path, start + 8, size, message));
  header_size = (size_t)start[8] | (size_t)start[9] << 8;
  if (size == 4) header_size |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
  if (header_size > MAX_HEADER) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: the header is damaged: it claims %zu bytes", path, header_size);
  }
  *text = malloc(header_size + 1);
  if (*text == NULL) {
    return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "%s: no memory", path);
  }
  JAXC_TRY(read_bytes(file, path, *text, header_size, message));
  (*text)[header_size] = '\0';
  for (size_t i = 0; i < header_size; i++) { /* messages show parts of it */
    const unsigned byte = (unsigned char)(*text)[i];
    if ((byte >= 0x20 && byte < 0x7f) || byte == '\n' || byte == '\t') continue;
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: the header has byte 0x%02x at %zu, expected ASCII text", path,
                     byte, i);
  }
  return JAXC_OK;
}

/* Compares what follows the header with the shape. */
static jaxc_status check_size(FILE *file, const char *path, jaxci_array *out,
                              jaxc_message *message) {
  const size_t size = jaxc_dtype_bits(out->shape.dtype) / 8;
  const long begin = ftell(file);
  long end;
  int64_t count;
  if (!jaxci_shape_count(&out->shape, &count) || (uint64_t)count > SIZE_MAX / size) {
    return JAXC_FAIL(
        message, JAXC_INVALID_ARGUMENT,
        "%s: the header is damaged: its shape has more bytes than memory can "
        "have",
        path);
  }
  out->bytes = (size_t)count * size;
  if (begin < 0 || fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0 ||
      fseek(file, begin, SEEK_SET) != 0) {
    return fail_file(path, "must be a file and no pipe", message);
  }
  if ((unsigned long)(end - begin) == out->bytes) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "%s: has %ld bytes of elements, expected %zu for %s", path,
                   end - begin, out->bytes, jaxci_shape_text(&out->shape).text);
}

/* A C program may not even look at a _Bool that is neither 0 nor 1. */
static jaxc_status check_bools(const char *path, const jaxci_array *array,
                               jaxc_message *message) {
  const unsigned char *const data = array->data;
  if (array->shape.dtype != JAXC_PRED) return JAXC_OK;
  for (size_t i = 0; i < array->bytes; i++) {
    if (data[i] <= 1) continue;
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s: element %zu of the bools is %d, expected 0 or 1", path, i,
                     (int)data[i]);
  }
  return JAXC_OK;
}

jaxc_status jaxci_npy_read(const char *path, int32_t dtype, jaxci_array *out,
                           jaxc_message *message) {
  header h = {path, NULL, dtype, &out->shape, 0, message};
  char *text = NULL;
  jaxc_status status = JAXC_OK;
  FILE *const file = fopen(path, "rb");
  out->data = NULL;
  if (file == NULL) return fail_file(path, "cannot be opened", message);
  status = read_start(file, path, &text, message);
  if (status != JAXC_OK) goto done;
  h.at = text;
  status = read_header(&h);
  if (status != JAXC_OK) goto done;
  status = check_size(file, path, out, message);
  if (status != JAXC_OK) goto done;
  out->data = malloc(out->bytes + 1); /* never NULL for an empty array */
  if (out->data == NULL) {
    status = JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "%s: no memory for %zu bytes",
                       path, out->bytes);
    goto done;
  }
  status = read_bytes(file, path, out->data, out->bytes, message);
  if (status == JAXC_OK) status = check_bools(path, out, message);
done:
  free(text);
  fclose(file);
  return status;
}

/* ---- writing ---- */

static const char *code_of(int32_t dtype) {
  switch (dtype) {
    case JAXC_PRED: return "|b1";
    case JAXC_S8: return "|i1";
    case JAXC_S16: return "<i2";
    case JAXC_S32: return "<i4";
    case JAXC_S64: return "<i8";
    case JAXC_U8: return "|u1";
    case JAXC_U16: return "<u2";
    case JAXC_U32: return "<u4";
    case JAXC_U64: return "<u8";
    case JAXC_F16: return "<f2";
    case JAXC_F32: return "<f4";
    case JAXC_F64: return "<f8";
    case JAXC_C64: return "<c8";
    case JAXC_C128: return "<c16";
    default: break;
  }
  switch (jaxc_dtype_bits(dtype)) { /* opaque: NumPy knows them only with ml_dtypes */
    case 8: return "|V1";
    case 16: return "<V2";
    default: return NULL;
  }
}

jaxc_status jaxci_npy_can_write(int32_t dtype, jaxc_message *message) {
  if (code_of(dtype) != NULL) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "a .npy file cannot hold elements of type %s", jaxc_dtype_name(dtype));
}

/* The dictionary, padded so that elements begin at a multiple of 64 bytes. */
static size_t write_header(char *out, size_t room, const jaxci_shape *shape) {
  const size_t start = MAGIC_SIZE + 4;
  size_t used =
      (size_t)snprintf(out, room, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                       code_of(shape->dtype));
  for (int32_t i = 0; i < shape->rank; i++) {
    used += (size_t)snprintf(out + used, room - used, "%s%lld", i == 0 ? "" : ", ",
                             (long long)shape->dims[i]);
  }
  used +=
      (size_t)snprintf(out + used, room - used, "%s), }", shape->rank == 1 ? "," : "");
  while ((start + used + 1) % 64 != 0) out[used++] = ' ';
  out[used++] = '\n';
  return used;
}

jaxc_status jaxci_npy_write(const char *path, const jaxci_shape *shape, const void *data,
                            jaxc_message *message) {
  /* 64 sizes of 19 digits at most: never as long as version 1 allows. */
  char text[64 + JAXCI_MAX_RANK * 22 + 128];
  unsigned char start[MAGIC_SIZE + 4] = MAGIC "\x01";
  size_t length;
  int64_t count = 0;
  size_t bytes;
  int is_written;
  FILE *file;
  JAXC_TRY(jaxci_npy_can_write(shape->dtype, message));
  length = write_header(text, sizeof text, shape);
  (void)jaxci_shape_count(shape, &count); /* the array exists, so it fits */
  bytes = (size_t)count * (jaxc_dtype_bits(shape->dtype) / 8);
  start[8] = (unsigned char)(length & 0xff);
  start[9] = (unsigned char)(length >> 8);
  file = fopen(path, "wb");
  if (file == NULL) {
    return JAXC_FAIL(message, JAXC_UNAVAILABLE, "%s: cannot be written: %s", path,
                     strerror(errno));
  }
  is_written = fwrite(start, 1, sizeof start, file) == sizeof start &&
               fwrite(text, 1, length, file) == length &&
               (bytes == 0 || fwrite(data, 1, bytes, file) == bytes);
  if (fclose(file) == 0 && is_written) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_UNAVAILABLE, "%s: cannot be written: %s", path,
                   strerror(errno));
}
