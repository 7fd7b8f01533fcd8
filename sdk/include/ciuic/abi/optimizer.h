/* SPDX-License-Identifier: MIT
 *
 * Optimizer: the update rule over a flat shard. A rule works on what it is handed and keeps no
 * tensor of its own: its state is declared by state_spec and owned, placed and saved by the
 * sharding plugin. So any rule runs under any sharding. A float type that it does not take is
 * UNIMPLEMENTED. Features: "rule:adamw", "rule:sgd", "rule:lion" (the published rule, bit noise
 * apart), "rounding:stochastic" (narrow copies are rounded by the seed, not to even). */
#ifndef CIUIC_ABI_OPTIMIZER_H_
#define CIUIC_ABI_OPTIMIZER_H_

#include <ciuic/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CIUIC_PARAM_EXPERT = 1,     /* one of a layer's routed experts */
  CIUIC_PARAM_FROZEN = 2,     /* no gradient, no state */
  CIUIC_PARAM_REPLICATED = 4, /* the same on every model-parallel rank */
  CIUIC_PARAM_IN_NORM =
      8 /* set on one model-parallel copy only, so that the global norm counts each element once */
};

typedef struct ciuic_param {
  uint32_t struct_size, flags;
  uint64_t id; /* dense, from 0: the index in the plan's array */
  ciuic_str name;
  uint32_t unit;      /* what is gathered and reduced together */
  uint32_t group;     /* data-parallel group: shards live here, gradients are summed here (experts:
                         their own) */
  uint32_t sum_group; /* also sum the gradient here (tied over pipeline stages, sequence-parallel
                         norms); 0: none */
  int32_t tied_to;    /* index of the parameter whose storage this is; -1: none */
  ciuic_dtype value, grad, reduce,
      master; /* from the precision policy; master equal to value: no separate copy */
  int32_t ndim;
  uint32_t reserved;
  const int64_t* shape;                 /* this rank's model-parallel piece: the box in ... */
  const int64_t *global_shape, *offset; /* ... the logical parameter */
  int64_t num_elements;
  int64_t granule; /* shards start and end on multiples of it: 1, a quantisation block, a matrix */
  double weight_decay,
      lr_scale; /* factors on the rule's own decay and on the step's lr; 1 by default */
} ciuic_param;

/* One state tensor per parameter: each granule of the parameter has per_granule state elements (1
 * and 1: moments; 256 and 1: block scales). Placed like the parameter if both are 1, else in one
 * dimension of num_elements / granule * per_granule. */
typedef struct ciuic_state_spec {
  uint32_t struct_size, flags;
  ciuic_str name;
  ciuic_dtype dtype;
  uint32_t reserved;
  int64_t granule, per_granule;
  double initial;
} ciuic_state_spec;

/* A range of one parameter. weight_decay is param.weight_decay times the step's weight_decay_scale, 1 by
 * default: the rule multiplies it by its own option. lr and grad_scale are final. */
typedef struct ciuic_update {
  uint32_t struct_size, flags;
  const ciuic_param* param;
  int64_t begin, num_elements;
  uint64_t update, seed; /* applied updates, from 1; seed for stochastic rounding, used with the
                            element's index */
  double lr, weight_decay, grad_scale; /* gradient = grad * grad_scale: unscale and clip in one */
  const ciuic_tensor *grad, *master,
      *value; /* one-dimensional, any float dtypes; master NULL: value is the master */
  const ciuic_tensor* const* state; /* in state_spec's order */
  uint32_t num_state, reserved;
} ciuic_update;

typedef struct ciuic_optimizer_vt {
  uint32_t struct_size, flags;
  /* [Q] How many elements the rule needs whole: 1 for element-wise rules, rows * columns for a
   * matrix rule. */
  ciuic_status* (*granule)(ciuic_instance*, const ciuic_param*, int64_t* elements);
  /* [I] ciuic_state_spec; lives until destroy. */
  ciuic_status* (*state_spec)(ciuic_instance*, const ciuic_param*, ciuic_array* specs);
  /* [A] ciuic_update. Disjoint shards; one launch. Done when it returns, or in stream order. */
  ciuic_status* (*update)(ciuic_instance*, ciuic_array updates, const ciuic_stream*);
} ciuic_optimizer_vt;

#ifdef __cplusplus
}
#endif
#endif
