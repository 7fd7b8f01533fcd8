/* SPDX-License-Identifier: MIT
 * A shared library that is no plugin. */
int ciuic_test_nothing(void) { return 0; }
