/* SPDX-License-Identifier: MIT
 *
 * Sharding: who owns which part of values, gradients and optimizer state; when is it gathered and
 * reduced?
 *
 * Gradients are summed, never averaged: where every partial sum is exact, the result is exact. A
 * second step without begin_step is PRECONDITION.
 *
 * A unit is what is gathered and reduced together: usually one layer. All experts of a layer are in
 * one unit, which always takes part, also when no token reached an expert. Order of calls:
 *
 *   create -> plan -> setup -> state_load -> { begin_step, (bind, drop | grad_ready)*,
 * end_backward, grad_stats, step }*
 *
 * Every rank walks every unit of its schedule, with data or without (an idle slot computes nothing
 * and leaves zeros). A step that only evaluates is begin_step (EVALUATE), then binds and drops. */
#ifndef CIUIC_ABI_SHARDING_H_
#define CIUIC_ABI_SHARDING_H_

#include <ciuic/abi/communicator.h>
#include <ciuic/abi/optimizer.h>
#include <ciuic/abi/state.h>
#include <ciuic/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CIUIC_PASS_FORWARD = 1,
  CIUIC_PASS_RECOMPUTE = 2,
  CIUIC_PASS_BACKWARD = 3,
  CIUIC_PASS_BACKWARD_INPUT = 4, /* shows no gradient views and has no grad_ready */
  CIUIC_PASS_BACKWARD_WEIGHT = 5
};
enum {
  CIUIC_USE_LAST_GRAD = 1, /* the unit's last gradient of this step: its reduction may start */
  CIUIC_USE_IDLE = 2 /* no data on this rank (may be raised after begin_step, as when this rank is
                        out of memory): the plugin contributes zeros */
};
enum {
  CIUIC_STEP_EVALUATE = 1,
  CIUIC_STEP_ANY_WORLD = 2 /* sum gradients as a balanced binary tree over global slots */
};
enum {
  CIUIC_BINDING_OVERWRITE = 1
}; /* the gradient view holds garbage: write all of it (zeros if unused), do not add */
enum { CIUIC_UPDATE_SKIP = 1 }; /* drop the gradients, change nothing */
enum { CIUIC_EXTENT_HOST = 1 }; /* in host memory (offload) */
enum { CIUIC_PLAN_OWN = 1 };    /* only what rank itself holds */

typedef struct ciuic_use {
  uint32_t struct_size, flags, index, unit, pass, micro_batch; /* index: in ciuic_step.uses */
} ciuic_use;

typedef struct ciuic_step {
  uint32_t struct_size, flags;
  uint64_t step;
  uint32_t attempt, micro_batches, first_slot, num_slots; /* slots: the world's micro-batches */
  ciuic_array
      uses; /* ciuic_use: the binds to come, in order; empty: unknown. Until the next begin_step */
} ciuic_step;

typedef struct ciuic_binding {
  uint32_t struct_size, flags;
  uint64_t param;
  const ciuic_tensor *value, *grad; /* of the parameter's shape; grad NULL: none wanted */
} ciuic_binding;

/* Frozen. [begin, end): elements of the parameter that `owner`, a rank in the parameter's group,
 * holds in this role. Of MOMENT one per state tensor and replica. */
typedef struct ciuic_extent {
  uint64_t param;
  int64_t begin, end;
  int32_t owner;
  uint32_t role;
  ciuic_dtype dtype;
  uint32_t flags;
} ciuic_extent;

typedef struct ciuic_shard_plan {
  uint32_t struct_size, flags;
  ciuic_array params, groups; /* ciuic_param; ciuic_group, as rank sees them */
  int32_t rank, world;
} ciuic_shard_plan;

/* Which norm of the whole gradient: the square root of the sum of squares, the sum of magnitudes,
 * the largest magnitude. */
enum { CIUIC_NORM_L2 = 1, CIUIC_NORM_L1 = 2, CIUIC_NORM_MAX = 3 };

typedef struct ciuic_grad_request {
  uint32_t struct_size, flags;
  double grad_scale; /* every gradient element times this: the loss scale removed */
  uint32_t norm;     /* CIUIC_NORM_; one that the plugin cannot give is UNIMPLEMENTED */
  /* Of these parameters only: ids as in setup, ascending, each rank's own for what it holds a piece
   * of; NULL: of all. Asked for of plugins with the feature "norm:params" alone. */
  uint32_t num_params;
  const int64_t* params;
} ciuic_grad_request;

typedef struct ciuic_grad_stats {
  uint32_t struct_size, flags;
  double norm; /* after grad_scale and before clipping; means nothing unless non_finite is 0 */
  uint64_t non_finite, first_bad_param; /* the lowest id; all bits set if none */
  int32_t first_bad_rank;               /* -1: unknown */
  uint32_t reserved;
} ciuic_grad_stats;

typedef struct ciuic_step_update {
  uint32_t struct_size, flags;
  uint64_t update, seed;
  double lr, weight_decay_scale, grad_scale;
} ciuic_step_update;

typedef struct ciuic_sharding_vt {
  uint32_t struct_size, flags;
  /* [I] Pure. Fills ciuic_extent: one per replica. Also serves an estimate, where no group has a
   * vt. */
  ciuic_status* (*plan)(ciuic_instance*, const ciuic_shard_plan*, ciuic_array* extents);
  /* [M] Allocates what steps need. Params and groups stay valid until destroy. */
  ciuic_status* (*setup)(ciuic_instance*, const ciuic_shard_plan*);
  ciuic_status* (*begin_step)(ciuic_instance*, const ciuic_step*); /* [I] */
  /* [I] Makes the unit's values (and gradient views, in backward passes) present. Bindings come in
   * the order of the unit's parameters and stand until the matching drop; usable after work. Binds
   * of one unit nest. */
  ciuic_status* (*bind)(ciuic_instance*, const ciuic_use*, const ciuic_stream*,
                        ciuic_array* bindings, ciuic_work**);
  ciuic_status* (*drop)(ciuic_instance*, const ciuic_use*,
                        const ciuic_stream*); /* [I] may go once stream is past this */
  /* [I] Before drop: this use's gradients are written; may start a reduction. */
  ciuic_status* (*grad_ready)(ciuic_instance*, const ciuic_use*, const ciuic_stream*);
  ciuic_status* (*end_backward)(ciuic_instance*,
                                const ciuic_stream*); /* [I] flushes the last buckets */
  /* [I] Waits; global, the same on all ranks. */
  ciuic_status* (*grad_stats)(ciuic_instance*, const ciuic_grad_request*, const ciuic_stream*,
                              ciuic_grad_stats*);
  /* [I] The point of no return. */
  ciuic_status* (*step)(ciuic_instance*, const ciuic_step_update*, const ciuic_stream*,
                        ciuic_work**);
  /* [I] All ranks at the same use, before step: drain, unbind, forget gradients. */
  ciuic_status* (*rollback)(ciuic_instance*, int64_t timeout_ns);
  /* [M] Optional: writes the chosen roles (bit 1 << CIUIC_ROLE_) as state: grad/<param> and so on.
   */
  ciuic_status* (*export_roles)(ciuic_instance*, uint32_t role_bits, const ciuic_writer*);
} ciuic_sharding_vt;

#ifdef __cplusplus
}
#endif
#endif
