/* headers.c: every header alone is complete, in strict C11 and in C++. */
#include <jaxc/abi.h>
#include <jaxc/attrs.h>
#include <jaxc/axes.h>
#include <jaxc/batch.h>
#include <jaxc/bound.h>
#include <jaxc/call.h>
#include <jaxc/context.h>
#include <jaxc/decode.h>
#include <jaxc/error.h>
#include <jaxc/field.h>
#include <jaxc/grid.h>
#include <jaxc/handler.h>
#include <jaxc/host.h>
#include <jaxc/jaxc.h>
#include <jaxc/library.h>
#include <jaxc/lock.h>
#include <jaxc/parallel.h>
#include <jaxc/points.h>
#include <jaxc/rows.h>
#include <jaxc/runtime.h>
#include <jaxc/signature.h>
#include <jaxc/state.h>
#include <jaxc/types.h>

static jaxc_function nothing; /* all zero */

jaxc_abi_error *handler(jaxc_abi_call_frame *frame);
jaxc_abi_error *handler(jaxc_abi_call_frame *frame) {
  jaxc_abi_error *error;
  jaxc_lock_acquire();
  error = jaxc_batch_handle(frame, &nothing);
  jaxc_lock_release();
  return error;
}
