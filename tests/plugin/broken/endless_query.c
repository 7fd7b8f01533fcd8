/* SPDX-License-Identifier: MIT
 * Its query never says where its list of plugins ends. */
#define PLUGIN_NAME "endless_query"
#include "sound_profiler.h"

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  (void)index;
  return sound_query(abi_major, 0);
}
