/* SPDX-License-Identifier: MIT
 *
 * Precision: which dtype where; the loss scale; casts and products of a format that the host's
 * tensor library lacks.
 *
 * hooks says beforehand which products a policy takes; an error from gemm is an error, never a
 * reason to fall back. gemm of a pass that is not hooked, format of a cast that it does not have, and
 * groups where it has none are UNIMPLEMENTED.
 *
 * Features: "loss_scale:dynamic", ":static", ":deepspeed", ":megatron" (the published automata, with
 * the options initial_scale, window, hysteresis, minimum_scale), ":power_of_two"; "cast:row_major"
 * (a cast's numbers lie in rows as the source's), "cast:saturates"; "scale:power_of_two",
 * "scale:delayed". */
#ifndef CIUIC_ABI_PRECISION_H_
#define CIUIC_ABI_PRECISION_H_

#include <ciuic/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Passes of a linear module y = x W^T, W [out, in]: a, b are x, W^T; dy, W; dy^T, x. */
enum { CIUIC_GEMM_FORWARD = 1, CIUIC_GEMM_GRAD_INPUT = 2, CIUIC_GEMM_GRAD_WEIGHT = 3 };
enum { CIUIC_GEMM_TRANS_A = 1, CIUIC_GEMM_TRANS_B = 2 };

typedef struct ciuic_module {
  uint32_t struct_size, flags, id, reserved;
  ciuic_str name; /* of the parameter without ".weight": model.layers.3.mlp.gate */
} ciuic_module;

/* What to allocate for a cast's out and scale; the layout inside is the plugin's own. */
typedef struct ciuic_format {
  uint32_t struct_size, flags;
  ciuic_dtype dtype, scale_dtype;
  int64_t block_rows, block_cols, elements, scale_elements;
} ciuic_format;

/* role is what `in` is: VALUE, ACTIVATION or ACTIVATION_GRAD. out has the shape of in where
 * format.elements is its product, else one dimension; scale has one dimension. */
typedef struct ciuic_cast {
  uint32_t struct_size, flags, module, pass, role, reserved;
  const ciuic_tensor *in, *out, *scale;
} ciuic_cast;

/* out = alpha * op(a) op(b) + beta * out; with beta 0, out is not read. b_version counts within one
 * module and pass. */
typedef struct ciuic_gemm {
  uint32_t struct_size, flags, module, pass;
  double alpha, beta;
  const ciuic_tensor *a, *b, *out, *a_scale,
      *b_scale; /* scale NULL: not cast yet, the plugin casts */
  /* NULL, or int64 [groups]: row ends of each expert in a (and in out, or in b for weights). */
  const ciuic_tensor* group_ends;
  uint64_t b_version; /* changes with b's values: a cast of b may be kept; 0: do not keep */
} ciuic_gemm;

/* What a step came to, the same on all ranks. A step whose gradients hold anything non-finite is
 * skipped: update counts applied updates, step counts all. */
typedef struct ciuic_precision_update {
  uint32_t struct_size, flags;
  uint64_t step, update; /* both from 1; update: of this step, or of the last one applied */
  uint64_t non_finite;   /* gradient elements that were NaN or infinite; 0: the step was applied */
  double grad_norm;      /* unscaled, before clipping; means nothing unless non_finite is 0 */
} ciuic_precision_update;

typedef struct ciuic_precision_vt {
  uint32_t struct_size, flags;
  /* [Q] The dtype of a role in a module. Roles: VALUE, GRAD, REDUCE, MASTER, ACTIVATION, ... The
   * module "model" stands for the residual stream. */
  ciuic_status* (*dtype_for)(ciuic_instance*, ciuic_str module, uint32_t role, ciuic_dtype*);
  ciuic_status* (*attach)(ciuic_instance*,
                          ciuic_array modules); /* [M] ciuic_module: ids for the calls below */
  uint32_t (*hooks)(ciuic_instance*, uint32_t module,
                    ciuic_device);       /* [Q] bits 1 << CIUIC_GEMM_: passes it takes */
  double (*loss_scale)(ciuic_instance*); /* [I] */
  /* [I] Once a step, with the same values on all ranks. */
  ciuic_status* (*update)(ciuic_instance*, const ciuic_precision_update*);
  ciuic_status* (*format)(ciuic_instance*, const ciuic_cast*,
                          ciuic_format*); /* [Q] optional; reads in's shape only */
  ciuic_status* (*cast)(ciuic_instance*, const ciuic_cast*, const ciuic_stream*); /* [I] optional */
  ciuic_status* (*gemm)(ciuic_instance*, const ciuic_gemm*, const ciuic_stream*); /* [I] optional */
} ciuic_precision_vt;

#ifdef __cplusplus
}
#endif
#endif
