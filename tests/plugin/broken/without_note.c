/* SPDX-License-Identifier: MIT
 * A plugin as it would be without the note: what it holds could only be known by running it. */
#define PLUGIN_NAME "without_note"
#include "sound_profiler.h"

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  return sound_query(abi_major, index);
}
