/* SPDX-License-Identifier: MIT
 * Needs a library of its own, which it finds beside itself through $ORIGIN. */
#define PLUGIN_NAME "private_dependency"
#include "sound_profiler.h"

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");

extern int ciuic_test_dependency(void);

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  return ciuic_test_dependency() == 42 ? sound_query(abi_major, index) : NULL;
}
