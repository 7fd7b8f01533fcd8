/* SPDX-License-Identifier: MIT
 * A plugin that calls what nobody defines: found at load (RTLD_NOW), not at step 10 000. */
#include <ciuic/abi/ciuic.h>
#include <ciuic/abi/note.h>

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, "undefined_symbol", "1.0.0", "");

extern int ciuic_test_defined_nowhere(void);

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  (void)abi_major;
  (void)index;
  return ciuic_test_defined_nowhere() ? NULL : NULL;
}
