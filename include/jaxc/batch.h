/* batch.h: run a described function over every row of a call.
 *
 * The generated handler is one line:
 *
 *   jaxc_abi_error *jaxc_call_rms_norm(jaxc_abi_call_frame *frame) {
 *     return jaxc_batch_handle(frame, &rms_norm_function);
 *   }
 *
 * The last axes of each array are its core dimensions; the axes before them broadcast as
 * in NumPy: aligned at the right, size 1 or absent means shared. Nothing is copied to
 * broadcast; a shared operand has stride 0. Results have all leading axes at full size.
 * Rows are called in the runtime's threads when there is work for them, in pieces of
 * neighbours; those of a serial function, or one with effects, in row-major order by the
 * calling thread. The points of a grid are divided likewise, where there are too few rows
 * for all threads. Memory is only allocated for scratch parameters and strings above 4 KiB,
 * and some 100 bytes for the threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_BATCH_H
#define JAXC_BATCH_H

#include <jaxc/rows.h>

#ifdef __cplusplus
extern "C" {
#endif

static jaxc_status jaxci_batch_run(const jaxc_abi_call_frame *frame, jaxci_batch *batch,
                                   jaxc_message *message) {
  JAXC_TRY(jaxci_batch_operands(batch, frame, message));
  JAXC_TRY(jaxci_batch_dims(batch, message));
  if (batch->index >= 0) JAXC_TRY(jaxci_points_count(batch, message));
  return jaxci_rows_run(frame, batch, message);
}

JAXC_COLD static jaxc_abi_error *jaxci_batch_error(const jaxc_abi_call_frame *frame,
                                                   const jaxc_function *function,
                                                   jaxc_status status,
                                                   const jaxc_message *message) {
  jaxc_message whole;
  status = JAXC_FAIL(&whole, status, "%s: %s", function->name, message->text);
  return jaxc_error_create(frame->api, status, whole.text);
}

/* The whole handler of `function`: answers a metadata query, checks the frame against the
 * description, calls the kernel on every row. Returns NULL or an error that the runtime
 * owns; its text begins with the function's name. May be called from several threads at
 * once as far as the kernel may. */
JAXC_UNUSED static jaxc_abi_error *jaxc_batch_handle(jaxc_abi_call_frame *frame,
                                                     const jaxc_function *function) {
  jaxci_batch batch;
  jaxc_message message;
  jaxc_status status;
  if (jaxc_call_answer_metadata(frame, 0)) return NULL;
  batch.function = function;
  status = jaxci_batch_run(frame, &batch, &message);
  if (status == JAXC_OK) return NULL;
  return jaxci_batch_error(frame, function, status, &message);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_BATCH_H */

