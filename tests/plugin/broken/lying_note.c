/* SPDX-License-Identifier: MIT
 * Its note says version 1.0.0, its descriptor 2.0.0. */
#define PLUGIN_NAME "lying_note"
#define PLUGIN_VERSION "2.0.0"
#include "sound_profiler.h"

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  return sound_query(abi_major, index);
}
