/* SPDX-License-Identifier: MIT
 * What private_dependency.c brings along. */
int ciuic_test_dependency(void);
int ciuic_test_dependency(void) { return 42; }
