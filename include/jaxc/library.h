/* library.h: the table by which a kernel library describes its functions.
 *
 * A library exports one object named `jaxc_library_table` of type jaxc_library. jaxc writes it
 * beside the handlers; Python, jaxc-run and any other host read it after dlopen. All of
 * it is constant data in the library: it needs no initialisation and may be read from
 * any thread while the library is loaded.
 *
 *   const jaxc_library *library = dlsym(handle, "jaxc_library_table");
 *   if (library->abi_version != JAXC_LIBRARY_ABI) ...
 *
 * A shipped struct only grows at its end, behind struct_size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_LIBRARY_H
#define JAXC_LIBRARY_H

#include <jaxc/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Moves when a layout below changes in a way that struct_size cannot tell. */
#define JAXC_LIBRARY_ABI 1

/* Most parameters, dimensions of one function, and leading axes of one call. */
#define JAXC_MAX_PARAMETERS 64
#define JAXC_MAX_DIMS 32
#define JAXC_MAX_AXES 32

/* What a C parameter is in a call. A value that the function returns as a result is a
 * parameter too: the first output, named "return". */
typedef enum {
  JAXC_ROLE_INPUT = 1,   /* operand */
  JAXC_ROLE_OUTPUT = 2,  /* result */
  JAXC_ROLE_INOUT = 3,   /* operand and result; may be the same memory */
  JAXC_ROLE_SCRATCH = 4, /* work memory, made by the handler */
  JAXC_ROLE_STATIC = 5,  /* attribute */
  JAXC_ROLE_DIM = 6,     /* dimension, filled from shapes or sent as an int64 attribute */
  JAXC_ROLE_CONTEXT = 7, /* a jaxc_context of the call, made by the handler */
  JAXC_ROLE_DATA = 8,    /* the function's own data, not seen in Python; no C parameter */
  JAXC_ROLE_INDEX = 9    /* index of a grid: the function is called for each of its points;
                            rank 1, whose bound is the range: 0 to its value - 1 */
} jaxc_role;

#if defined(_WIN32)
#define JAXC_EXPORT __declspec(dllexport)
#elif defined(__GNUC__) || defined(__clang__)
#define JAXC_EXPORT __attribute__((visibility("default")))
#else
#define JAXC_EXPORT
#endif

/* Element type and range of a C integer type, as constant expressions: what int, long and
 * char are is the compiler's answer, not an assumption. */
#define JAXC_INTEGER_IS_SIGNED(type) ((type)-1 < (type)1)
#define JAXC_INTEGER_DTYPE(type)                                                     \
  ((JAXC_INTEGER_IS_SIGNED(type) ? JAXC_S8 : JAXC_U8) +                              \
   (sizeof(type) == 1 ? 0 : sizeof(type) == 2 ? 1 : sizeof(type) == 4 ? 2 : 3))
#define JAXC_INTEGER_MAXIMUM(type)                                                   \
  (sizeof(type) == 8                                                                 \
       ? INT64_MAX                                                                   \
       : ((int64_t)1 << (8 * (sizeof(type) % 8) -                                    \
                         (JAXC_INTEGER_IS_SIGNED(type) ? 1 : 0))) - 1)
#define JAXC_INTEGER_MINIMUM(type) \
  (JAXC_INTEGER_IS_SIGNED(type) ? -JAXC_INTEGER_MAXIMUM(type) - 1 : 0)

/* Bounds are postfix programs over int64: steps of an operator and its argument. */
typedef enum {
  JAXC_BOUND_CONSTANT = 0, /* push the argument */
  JAXC_BOUND_DIM = 1,      /* push dimension number `argument` */
  JAXC_BOUND_ADD = 2,
  JAXC_BOUND_SUBTRACT = 3,
  JAXC_BOUND_MULTIPLY = 4,
  JAXC_BOUND_DIVIDE = 5 /* C's division, towards zero */
} jaxc_bound_operator;

typedef struct {
  int64_t code; /* jaxc_bound_operator */
  int64_t argument;
} jaxc_bound_step;

/* Deepest stack of a bound's program. */
#define JAXC_MAX_BOUND_DEPTH 16

typedef struct {
  const char *text; /* as written: "n - k + 1" */
  const jaxc_bound_step *steps;
  int32_t step_count;
  int32_t dim; /* number of the dimension that the bound is, -1 when it is computed */
} jaxc_bound;

typedef struct {
  const char *name;        /* NUL-terminated, as in C */
  const char *declaration; /* "const float x[n]" */
  int32_t role;            /* jaxc_role */
  int32_t dtype;           /* jaxc_dtype, or JAXC_STRING */
  int32_t rank;            /* number of core dimensions */
  int32_t dim;             /* JAXC_ROLE_DIM: its number. JAXC_ROLE_INDEX: its place in the
                              grid, 0 for the index that changes slowest. Else -1 */
  const jaxc_bound *bounds; /* rank of them */
  uint32_t flags;           /* JAXC_PARAMETER_* */
} jaxc_parameter;

enum {
  JAXC_PARAMETER_NONDIFFERENTIABLE = 1, /* a derivative by it is an error */
  JAXC_PARAMETER_LINEAR = 2,            /* the function is linear in all such inputs */
  JAXC_PARAMETER_ZERO = 4               /* an output that is cleared before the call */
};

typedef struct {
  const char *name;
  int64_t minimum; /* of its C type, as far as int64 reaches */
  int64_t maximum;
  int32_t is_static; /* sent as an int64 attribute, not read from shapes */
} jaxc_dim;

/* How dimension `dim` is found: from the size of axis `axis` of parameter `parameter`,
 * whose bound is linear in `dim` once the dimensions of earlier steps are known. */
typedef struct {
  int32_t dim;
  int32_t parameter;
  int32_t axis;
} jaxc_solve_step;

/* What a kernel reports when it stops. */
typedef struct {
  long long row;    /* index of the row in this run of rows */
  long long status; /* the status that the C function returned; -1 beside a text where it
                       is not known which row of the run it was */
  const char *text; /* or the text that it returned; NULL when it returns a status */
} jaxc_fault;

/* Calls the C function on `count` rows. dims: the dimensions, by number. data[k]: the
 * first row of parameter k, for every role but JAXC_ROLE_DIM. strides[k]: bytes from one
 * row of it to the next, 0 when all rows share it. Returns 0, or 1 with *fault filled;
 * then rows after fault->row were not called. Written in C's own types because it is
 * compiled with the user's file, which has none of jaxc's.
 *
 * A grid has parameters of JAXC_ROLE_INDEX. data[k] of each of them points to the same
 * `long long range[2]`: of every row, the points range[0] to range[1] - 1 are called,
 * counted in row-major order of the indices' places. All ranges are positive then, and
 * fit the indices' C types; range[0] >= range[1] calls nothing. Outputs with
 * JAXC_PARAMETER_ZERO are cleared by the caller, before any point of their row. */
typedef int jaxc_rows(const long long *dims, char *const *data, const long long *strides,
                      long long count, jaxc_fault *fault);

enum {
  JAXC_FUNCTION_SERIAL = 1, /* one call at a time in the whole library */
  JAXC_FUNCTION_EFFECT = 2, /* has side effects; first operand and result are a token */
  JAXC_FUNCTION_ZERO = 4    /* has an output with JAXC_PARAMETER_ZERO */
};

/* A handler for one platform. */
typedef struct {
  const char *platform; /* "cpu", "cuda": JAX's names */
  jaxc_abi_handler *execute;
} jaxc_entry;

typedef struct {
  size_t struct_size;
  const char *name;
  const char *overload;  /* name of the Python function it is one of, or NULL */
  const char *prototype; /* the C declaration on one line */
  const char *doc;       /* the comment above it, or NULL */
  const char *file;
  int32_t line;
  uint32_t flags; /* JAXC_FUNCTION_* */
  /* Why it cannot be called, as one sentence, or NULL. Then all below is empty. */
  const char *refusal;
  int32_t parameter_count;
  int32_t dim_count;
  int32_t solve_count;
  int32_t entry_count;
  /* What a call carries, the token of an effect included. */
  int32_t argument_count;
  int32_t result_count;
  int32_t attribute_count;
  const jaxc_parameter *parameters; /* in the prototype's order */
  const jaxc_dim *dims;
  const jaxc_solve_step *solve;
  jaxc_rows *rows;
  const jaxc_entry *entries;
  /* What the parameter of JAXC_ROLE_DATA points to, such as a function's address. */
  void *data;
  /* Of a serial function, for who calls `rows` without its handler: takes the library's
   * lock, and gives it back with 0. NULL otherwise. */
  void (*lock)(int take);
} jaxc_function;

/* What a library of the first jaxc has of it. */
#define JAXC_FUNCTION_LEAST_SIZE offsetof(jaxc_function, data)

typedef struct {
  size_t struct_size;
  int32_t abi_version;      /* JAXC_LIBRARY_ABI */
  int32_t function_count;
  const char *jaxc_version; /* of the jaxc that wrote it */
  const char *name;         /* "rms_norm" */
  const char *hash;         /* of source, flags and jaxc version, in hexadecimal */
  const jaxc_function *const *functions;
} jaxc_library;

#ifdef __cplusplus
}
#endif

#endif /* JAXC_LIBRARY_H */
