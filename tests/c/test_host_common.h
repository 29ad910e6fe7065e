/* test_host_common.h: a handler written by hand, whose work a test chooses.
 *
 *   static jaxc_abi_error *work(jaxc_abi_call_frame *frame) { ... }
 *   ...
 *   call = make_call(host);
 *   act = work;
 *   CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
 *
 * A process runs one test, so that what is static here belongs to one test alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_TESTS_HOST_COMMON_H
#define JAXC_TESTS_HOST_COMMON_H

#include <jaxc/host.h>
#include <jaxc/jaxc.h>

#include "check.h"

typedef jaxc_abi_error *action(jaxc_abi_call_frame *frame);

static jaxc_message message;
static int announced_minor = 1;
static int only_stage = JAXC_STAGE_EXECUTE; /* in which the work is done; -1: in all */
static action *act;
static int stage_calls[5];

/* All stages of all calls. */
JAXC_UNUSED static jaxc_abi_error *by_hand(jaxc_abi_call_frame *frame) {
  jaxc_abi_metadata *const metadata = jaxc_call_metadata(frame);
  if (metadata != NULL) {
    metadata->api_version.major_version = 0;
    metadata->api_version.minor_version = announced_minor;
    metadata->traits = 0;
    return NULL;
  }
  stage_calls[frame->stage]++;
  if (act == NULL || (only_stage >= 0 && frame->stage != only_stage)) return NULL;
  return act(frame);
}

JAXC_UNUSED static jaxc_host *make_host_as(const jaxc_host_options *options) {
  jaxc_host *host;
  const jaxc_status status = jaxc_host_create(options, &host, &message);
  if (status != JAXC_OK) CHECK_TEXT(message.text, "");
  return host;
}

JAXC_UNUSED static jaxc_host *make_host(int minor, int profile) {
  jaxc_host_options options = {.struct_size = sizeof options};
  options.minor = minor;
  options.profile = profile;
  return make_host_as(&options);
}

JAXC_UNUSED static jaxc_host_call *make_call(jaxc_host *host) {
  const jaxc_abi_bundle all = {by_hand, by_hand, by_hand, by_hand};
  jaxc_host_call *call;
  const jaxc_status status = jaxc_host_call_create(host, &all, &call, &message);
  if (status != JAXC_OK) CHECK_TEXT(message.text, "");
  return call;
}

JAXC_UNUSED static void end(jaxc_host *host, jaxc_host_call *call) {
  jaxc_host_call_destroy(call);
  if (jaxc_host_leaks(host, &message) != JAXC_OK) CHECK_TEXT(message.text, "");
  jaxc_host_destroy(host);
}

/* Runs `work` in one stage of a new call of the host; `text` is of the error that it
 * returned, NULL for none. */
JAXC_UNUSED static void expect(jaxc_host *host, int stage, action *work, int status,
                               const char *text) {
  jaxc_host_call *const call = make_call(host);
  only_stage = stage;
  act = work;
  message.text[0] = '\0';
  CHECK_INT(jaxc_host_call_run(call, &message), status);
  if (text != NULL) CHECK_TEXT(message.text, text);
  jaxc_host_call_destroy(call);
  act = NULL;
}

/* Destroys an error in a handler; its code is seen from API 0.4 on. */
JAXC_UNUSED static void drop(const jaxc_abi_call_frame *frame, jaxc_abi_error *error) {
  jaxc_abi_error_destroy_args args = {
      JAXC_ABI_SIZE(jaxc_abi_error_destroy_args, error), NULL, error};
  frame->api->error_destroy(&args);
}

#endif /* JAXC_TESTS_HOST_COMMON_H */
