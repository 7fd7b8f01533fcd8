/* SPDX-License-Identifier: MIT
 * Has no ciuic_plugin_query; a library that it needs has one, which dlsym would find. */
extern const void* ciuic_plugin_query(unsigned abi_major, unsigned index);

const void* ciuic_test_use(void);
const void* ciuic_test_use(void) { return ciuic_plugin_query(0, 0); }
