/* SPDX-License-Identifier: MIT
 *
 * Batch scheduler: which samples, on which rank, in which micro-batch?
 *
 * A plan is a function of the request, the options, the data's lengths and the reports, and of
 * nothing else: no clock, no iterator, no call order. So a run resumes from the step number alone,
 * and every rank computes the same plan. Ranks are data-parallel ranks. A sample's items are all in
 * one plan. An attempt that cannot shrink any further is EXHAUSTED.
 *
 * Features: "lengths" (rows hold samples of any length; without it all have row_tokens), "adaptive"
 * (plans depend on reports), "grows" (samples, tokens and row_tokens of a plan never shrink when step,
 * consumed_samples or consumed_tokens rise, so a host finds out by a few calls how many steps are
 * alike), "drops:epoch", "drops:long" (what an epoch may leave out). */
#ifndef CIUIC_ABI_BATCH_SCHEDULER_H_
#define CIUIC_ABI_BATCH_SCHEDULER_H_

#include <ciuic/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CIUIC_BATCH_EPOCH_END = 1
}; /* flag of an item: the highest-numbered sample of its
                                      epoch, in whatever order it is served */
enum { CIUIC_REPORT_OOM = 1 };

/* Frozen. Tokens sample[offset, offset + length) go to [row, position). Several items may share a
 * row (packing). Samples count without end: sample p is row order(seed, p / rows)[p mod rows] of
 * the data, which the host resolves. */
typedef struct ciuic_batch_item {
  uint64_t sample, offset;
  uint32_t rank, micro_batch, row, position, length, flags;
} ciuic_batch_item;

typedef struct ciuic_batch_request {
  uint32_t struct_size, flags;
  uint64_t seed, epoch, step; /* step from 1; epoch: that of the step's first sample */
  uint64_t consumed_samples, consumed_tokens;
  uint32_t attempt, world; /* attempt > 0: again, after an OOM report; same samples */
  int32_t only_rank;       /* -1: all; else items of other ranks may be left out */
  uint32_t row_tokens;
} ciuic_batch_request;

typedef struct ciuic_batch_plan {
  uint32_t struct_size, flags;
  ciuic_array items;                  /* ciuic_batch_item, by rank, micro_batch, row, position */
  uint32_t micro_batches, row_tokens; /* slots walked by every rank (a rank without items in one is
                                         idle); padded row length */
  uint64_t samples, tokens;           /* of the whole world; distinct samples */
} ciuic_batch_plan;

typedef struct ciuic_rank_report {
  uint32_t struct_size, flags;
  int32_t rank;
  uint32_t micro_batches;
  uint64_t tokens, memory_used, memory_total;
  double seconds;
} ciuic_rank_report;

typedef struct ciuic_batch_scheduler_vt {
  uint32_t struct_size, flags;
  ciuic_status* (*plan)(ciuic_instance*, const ciuic_batch_request*,
                        ciuic_batch_plan* out); /* [I] */
  /* [I] ciuic_rank_report; the same on all ranks. */
  ciuic_status* (*observe)(ciuic_instance*, uint64_t step, uint32_t attempt, ciuic_array reports);
} ciuic_batch_scheduler_vt;

#ifdef __cplusplus
}
#endif
#endif
