/* SPDX-License-Identifier: MIT
 *
 * A library with nothing in it. */
extern int ciuic_empty_library;
int ciuic_empty_library;
