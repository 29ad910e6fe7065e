/* ask_api.cc: asks the handler RmsNorm from C++ what it is of, as a runtime does first.
 * Prints "ok", or what is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/jaxc.h>

#include <cstdio>
#include <cstring>

extern "C" jaxc_abi_error *RmsNorm(jaxc_abi_call_frame *frame);
extern "C" const jaxc_handler jaxc_handler_RmsNorm;

int main() {
  jaxc_abi_metadata metadata = {};
  jaxc_abi_metadata_extension extension = {};
  jaxc_abi_call_frame frame = {};
  metadata.struct_size = sizeof metadata;
  metadata.api_version.minor_version = -1;
  extension.base.struct_size = sizeof extension;
  extension.base.type = JAXC_ABI_EXTENSION_METADATA;
  extension.metadata = &metadata;
  frame.struct_size = JAXC_ABI_FRAME_SIZE;
  frame.extension_start = &extension.base;
  if (RmsNorm(&frame) != nullptr ||
      metadata.api_version.minor_version != JAXC_ABI_MINOR) {
    std::printf("API 0.%d\n", metadata.api_version.minor_version);
    return 1;
  }
  if (std::strcmp(jaxc_handler_RmsNorm.name, "RmsNorm") != 0 ||
      jaxc_handler_RmsNorm.field_count != 3) {
    std::printf("%s\n", jaxc_handler_RmsNorm.name);
    return 1;
  }
  std::puts("ok");
  return 0;
}
