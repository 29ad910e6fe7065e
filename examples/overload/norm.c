/* norm.c: one kernel for two types, as a file that is included once for each. */
/* SPDX-License-Identifier: Apache-2.0
 *
 *   norm = jaxc.load("norm.c").norm
 *
 * Lines of a template file are where a compiler's messages and a debugger say they are,
 * which those of a long macro are not. Functions that come from an included file are not
 * exposed, because headers are full of them; a prototype in this file exposes one.
 */
#include <math.h>

#define T float
#define NAME norm_float
#define SQRT sqrtf
#include "norm_template.h"

#define T double
#define NAME norm_double
#define SQRT sqrt
#include "norm_template.h"

#pragma jaxc overload(norm)
float norm_float(int n, const float x[n]);
#pragma jaxc overload(norm)
double norm_double(int n, const double x[n]);
