/* SPDX-License-Identifier: MIT
 *
 * Checkpoint: how do named tensors become files and come back?
 *
 * All ranks call begin, commit, close and open together; put and get are each rank's own. All file
 * access goes through the "ciuic.io" service. Where the "ciuic.comm" service is absent there is one
 * rank.
 *
 * A save is a transaction: until commit's work is done the uri does not exist (or still is what it
 * was), after it the new one is durable. open of something that is not this format returns
 * UNIMPLEMENTED, so that the host can ask the next plugin; NOT_FOUND means that there is nothing at
 * all; DATA_LOSS that it is ours and damaged.
 *
 * What a plugin does not serve (this key, type, box or number of ranks) is UNIMPLEMENTED; one that
 * does not replace a checkpoint returns EXISTS from begin or commit. Features: "writer:rank0" (rank
 * 0 puts all tensors; a put of another rank fails the put, or the commit on all ranks),
 * "checksums:none" (the format has none: changed data may read as it is).
 *
 * Keys are those of state.h; "config.json" (a blob) is the model's configuration in Hugging Face's
 * form. */
#ifndef CIUIC_ABI_CHECKPOINT_H_
#define CIUIC_ABI_CHECKPOINT_H_

#include <ciuic/abi/state.h>
#include <ciuic/abi/types.h>
#include <ciuic/abi/work.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ciuic_save_request {
  uint32_t struct_size, flags;
  ciuic_str uri;
  uint64_t step;
  ciuic_array entries; /* ciuic_entry: the whole save's, equal on all ranks, so that headers and
                          sizes are known first; may be empty (unknown) */
} ciuic_save_request;

typedef struct ciuic_open_request {
  uint32_t struct_size, flags;
  ciuic_str uri;
} ciuic_open_request;

typedef struct ciuic_checkpoint_vt {
  uint32_t struct_size, flags;
  ciuic_status* (*begin)(ciuic_instance*, const ciuic_save_request*, ciuic_archive**); /* [M] */
  /* [I] work: the source may change again. Each element is put by one rank. */
  ciuic_status* (*put)(ciuic_archive*, ciuic_str key, const ciuic_place*, const ciuic_tensor*,
                       const ciuic_stream*, ciuic_work**);
  ciuic_status* (*put_blob)(ciuic_archive*, ciuic_str key, const void*, size_t); /* [I] copied */
  /* [M] Returns at once; work: durable and visible on all ranks, or failed on all. */
  ciuic_status* (*commit)(ciuic_archive*, ciuic_work**);
  void (*close)(ciuic_archive*); /* [M] without a finished commit: cancel, leave nothing, drain */
  ciuic_status* (*open)(ciuic_instance*, const ciuic_open_request*, ciuic_archive**); /* [M] */
  ciuic_status* (*list)(ciuic_archive*, ciuic_array* entries); /* [I] ciuic_entry; until close */
  ciuic_status* (*verify)(ciuic_archive*, ciuic_str key);      /* [I] blocks; empty key: all */
  /* [I] Same dtype as stored. */
  ciuic_status* (*get)(ciuic_archive*, ciuic_str key, const ciuic_place*, const ciuic_tensor* into,
                       const ciuic_stream*, ciuic_work**);
  ciuic_status* (*get_blob)(ciuic_archive*, ciuic_str key, const void**,
                            size_t*);                      /* [I] until close */
  ciuic_status* (*remove)(ciuic_instance*, ciuic_str uri); /* [M] optional; one rank calls */
} ciuic_checkpoint_vt;

#ifdef __cplusplus
}
#endif
#endif
