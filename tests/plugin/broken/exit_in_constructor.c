/* SPDX-License-Identifier: MIT
 * Its constructor ends the process as if all were well. */
#include <unistd.h>

#define PLUGIN_NAME "exit_in_constructor"
#include "sound_profiler.h"

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");

__attribute__((constructor)) static void leave(void) { _exit(0); }

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  return sound_query(abi_major, index);
}
