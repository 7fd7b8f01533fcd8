/* SPDX-License-Identifier: MIT
 * Its query shows another descriptor each time. */
#define PLUGIN_NAME "fickle_query"
#include "sound_profiler.h"

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  static ciuic_descriptor copies[16];
  static uint32_t next;
  if (abi_major != CIUIC_ABI_MAJOR || index != 0) {
    return NULL;
  }
  next = (next + 1) % 16;
  copies[next] = sound_descriptor;
  return &copies[next];
}
