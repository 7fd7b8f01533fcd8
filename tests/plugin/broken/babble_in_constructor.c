/* SPDX-License-Identifier: MIT
 * Its constructor writes into the answers of the process that looks at it. */
#include <unistd.h>

#define PLUGIN_NAME "babble_in_constructor"
#include "sound_profiler.h"

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");

__attribute__((constructor)) static void babble(void) {
  static const char text[] = "{\"id\": 0, \"descriptors\": \"lies\"}\n";
  if (write(3, text, sizeof(text) - 1) < 0) {
    _exit(1);
  }
}

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  return sound_query(abi_major, index);
}
