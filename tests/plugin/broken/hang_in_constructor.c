/* SPDX-License-Identifier: MIT
 * Its constructor never returns. */
#include <unistd.h>

#define PLUGIN_NAME "hang_in_constructor"
#include "sound_profiler.h"

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");

__attribute__((constructor)) static void wait_for_ever(void) {
  while (1) {
    pause();
  }
}

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  return sound_query(abi_major, index);
}
