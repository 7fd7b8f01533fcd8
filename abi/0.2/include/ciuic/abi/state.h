/* SPDX-License-Identifier: MIT
 *
 * State: named blobs and placed tensors. One stream serves checkpoints, hot swaps and first values
 * alike, so whatever a plugin can save it can load at another world size.
 *
 * Keys: value/<param>  master/<param>  moment/<state>/<param>  grad/<param>; anything else is the
 * plugin's own. The reader may be the initialiser: first values come through state_load too. It
 * serves value for a missing master, and master for a missing value; a missing moment starts at its
 * state_spec's initial. */
#ifndef CIUIC_ABI_STATE_H_
#define CIUIC_ABI_STATE_H_

#include <ciuic/abi/types.h>
#include <ciuic/abi/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a checkpoint or a state holds under one key. */
typedef struct ciuic_entry {
  uint32_t struct_size, flags;
  ciuic_str key;
  ciuic_dtype dtype; /* all zero for a blob */
  int32_t ndim;
  const int64_t* global_shape;
  uint64_t bytes; /* of the whole tensor or blob */
} ciuic_entry;
enum { CIUIC_ENTRY_BLOB = 1 };

/* Made by the host, used inside state_save only. */
typedef struct ciuic_writer {
  uint32_t struct_size, flags;
  void* ctx;
  ciuic_status* (*blob)(void* ctx, ciuic_str key, const void*,
                        size_t); /* copied; one rank only writes a key */
  /* The part of key's tensor that this rank writes; each element is written by one rank. Copied
   * unless the tensor is STABLE. */
  ciuic_status* (*tensor)(void* ctx, ciuic_str key, const ciuic_place*, const ciuic_tensor*,
                          const ciuic_stream*);
} ciuic_writer;

/* Made by the host, used inside state_load only. */
typedef struct ciuic_reader {
  uint32_t struct_size, flags;
  void* ctx;
  ciuic_str plugin;                                       /* who wrote it; empty: the initialiser */
  uint64_t schema;                                        /* the writer's state_schema */
  ciuic_status* (*list)(void* ctx, ciuic_array* entries); /* ciuic_entry */
  ciuic_status* (*blob)(void* ctx, ciuic_str key, const void**,
                        size_t*); /* lives until state_load returns */
  /* Fills `into` with the elements at place, converting dtype and device. A missing key is
   * NOT_FOUND. */
  ciuic_status* (*tensor)(void* ctx, ciuic_str key, const ciuic_place*, const ciuic_tensor* into,
                          const ciuic_stream*, ciuic_work**);
} ciuic_reader;

#ifdef __cplusplus
}
#endif
#endif
