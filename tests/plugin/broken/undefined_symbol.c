/* SPDX-License-Identifier: MIT
 * A plugin that calls what nobody defines: found at load (RTLD_NOW), not at step 10 000. */
#include <ciuic/abi/ciuic.h>

extern int ciuic_test_defined_nowhere(void);

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  (void)abi_major;
  (void)index;
  return ciuic_test_defined_nowhere() ? NULL : NULL;
}
