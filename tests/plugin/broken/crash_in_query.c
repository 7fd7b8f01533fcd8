/* SPDX-License-Identifier: MIT
 * Its query follows a null pointer. */
#define PLUGIN_NAME "crash_in_query"
#include "sound_profiler.h"

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");

static const ciuic_descriptor* volatile* volatile nowhere;

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  return abi_major == CIUIC_ABI_MAJOR ? nowhere[index] : NULL;
}
