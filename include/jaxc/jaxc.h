/* jaxc.h: everything for a hand-written XLA FFI handler in C11, without C++ and without
 * linking to anything. Begin with handler.h, which shows a whole handler.
 *
 * Kernels that jaxc.load compiles need none of it: they are plain C. Those that compute
 * on bfloat16 or 8-bit floats include <jaxc/types.h> alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_JAXC_H
#define JAXC_JAXC_H

#include <jaxc/abi.h>
#include <jaxc/attrs.h>
#include <jaxc/call.h>
#include <jaxc/context.h>
#include <jaxc/error.h>
#include <jaxc/handler.h>
#include <jaxc/parallel.h>
#include <jaxc/state.h>
#include <jaxc/types.h>

#endif /* JAXC_JAXC_H */
