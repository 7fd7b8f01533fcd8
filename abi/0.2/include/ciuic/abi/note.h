/* SPDX-License-Identifier: MIT
 *
 * The ELF note of a plugin library: what it holds, readable before any of its code runs.
 *
 * Section .note.ciuic, one ELF note: name "ciuic", type CIUIC_NOTE_TYPE, and as its description a
 * ciuic_note_header and header.count records, without gaps. The host reads it with a parser of its
 * own, refuses a library that has none, and refuses one whose descriptors say something else. The
 * C++ layer's CIUIC_PLUGINS writes it; a plugin in C writes one line per library:
 *
 *   CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 1, 1, "csv", "1.0.0", "");
 *
 * Texts are UTF-8, end with NUL, and are cut by the compiler's error when too long. */
#ifndef CIUIC_ABI_NOTE_H_
#define CIUIC_ABI_NOTE_H_

#include <ciuic/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CIUIC_NOTE_TYPE 1u
#define CIUIC_NOTE_LAYOUT 1u
#define CIUIC_NOTE_SECTION ".note.ciuic"
/* The SDK that compiled the plugin; for messages, never compared. */
#define CIUIC_SDK_VERSION "0.2.0"
/* A note of more plugins than this is damaged. */
#define CIUIC_NOTE_MAX_PLUGINS 256u

/* Frozen. */
typedef struct ciuic_note_header {
  uint32_t layout; /* CIUIC_NOTE_LAYOUT */
  uint32_t count;  /* records that follow */
  uint32_t abi_major, abi_minor;
  char sdk[32];
} ciuic_note_header;

/* Frozen. The same values as in the descriptor; features are joined by commas. */
typedef struct ciuic_note_record {
  uint32_t kind, flags, state_schema, state_schema_min;
  char name[64];
  char version[32];
  char features[128];
} ciuic_note_record;

/* Frozen: the ELF note's own head, with the name padded to four bytes. */
typedef struct ciuic_note_head {
  uint32_t name_bytes, description_bytes, type;
  char name[8]; /* "ciuic\0\0\0" */
} ciuic_note_head;

/* A library of one plugin, in C. */
typedef struct ciuic_note_of_one {
  ciuic_note_head head;
  ciuic_note_header header;
  ciuic_note_record record;
} ciuic_note_of_one;

#define CIUIC_NOTE_1(kind_, flags_, state_schema_, state_schema_min_, name_, version_, features_) \
  __attribute__((section(CIUIC_NOTE_SECTION), used,                                               \
                 aligned(4))) static const ciuic_note_of_one ciuic_note_of_this_library = {       \
      {6u, sizeof(ciuic_note_header) + sizeof(ciuic_note_record), CIUIC_NOTE_TYPE, "ciuic"},      \
      {CIUIC_NOTE_LAYOUT, 1u, CIUIC_ABI_MAJOR, CIUIC_ABI_MINOR, CIUIC_SDK_VERSION},               \
      {kind_, flags_, state_schema_, state_schema_min_, name_, version_, features_}}

#ifdef __cplusplus
}
#endif
#endif
