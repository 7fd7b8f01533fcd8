/* SPDX-License-Identifier: MIT
 *
 * Communicator: how do ranks exchange tensors?
 *
 * An instance is one group of ranks. The host creates the group of all ranks, with rendezvous
 * through the "ciuic.kv" service; smaller ones come from split. All ranks of an instance submit the
 * same collectives in the same order.
 *
 * Every operation has a deadline (timeout_ns, or the plugin's own option): at the deadline the work
 * fails with DEADLINE, or with UNAVAILABLE and the peer's rank when the peer is known to be gone.
 * Nothing waits for ever.
 *
 * Results: all ranks get the same bits. AVG is a true average, rounded once per element for floats;
 * where a plugin cannot give one for a type, capabilities denies it. NaN and infinities propagate.
 *
 * Shapes: tensors are dense, in row-major order; only the number of elements matters, n below
 * (world = ranks of the group).
 *   ALL_REDUCE      in [n]         out [n]         in place: the same memory
 *   REDUCE          in [n]         out [n] at peer
 *   REDUCE_SCATTER  in [n * world] out [n]         in place: out is this rank's part of in
 *   ALL_GATHER      in [n]         out [n * world] in place: in is this rank's part of out
 *   BROADCAST       out [n]        from peer, in place everywhere; in is NULL
 *   GATHER, SCATTER as their names say, root = peer
 *   ALL_TO_ALL      in [n * world] out [n * world]
 *   SEND, RECV      in, out [n]    with peer
 *   BARRIER         neither
 *
 * Messages match by (peer, tag) in the order of submission; members of one array may match in any
 * order. A message to oneself needs both halves in one array. In rooted operations counts are given
 * on all ranks. Elements of out that lie between parts are not written; after an in-place
 * REDUCE_SCATTER the rest of in is unspecified. In errors, also of a split, the peer is a global
 * rank. A submit that is refused as INVALID or UNIMPLEMENTED leaves the group usable. With vote set,
 * a plugin that has VOTE returns a work. */
#ifndef CIUIC_ABI_COMMUNICATOR_H_
#define CIUIC_ABI_COMMUNICATOR_H_

#include <ciuic/abi/types.h>
#include <ciuic/abi/work.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CIUIC_OP_ALL_REDUCE = 1,
  CIUIC_OP_REDUCE = 2,
  CIUIC_OP_REDUCE_SCATTER = 3,
  CIUIC_OP_ALL_GATHER = 4,
  CIUIC_OP_BROADCAST = 5,
  CIUIC_OP_GATHER = 6,
  CIUIC_OP_SCATTER = 7,
  CIUIC_OP_ALL_TO_ALL = 8,
  CIUIC_OP_SEND = 9,
  CIUIC_OP_RECV = 10,
  CIUIC_OP_BARRIER = 11
};
enum {
  CIUIC_REDUCE_SUM = 1,
  CIUIC_REDUCE_AVG = 2,
  CIUIC_REDUCE_MIN = 3,
  CIUIC_REDUCE_MAX = 4,
  CIUIC_REDUCE_PROD = 5,
  CIUIC_REDUCE_OR = 6, /* bitwise */
  CIUIC_REDUCE_AND = 7 /* bitwise */
};

/* Capability bits. SUPPORTED is the answer; the others qualify it. */
enum {
  CIUIC_COMM_SUPPORTED = 1,
  CIUIC_COMM_ASYNC = 2,         /* submit returns before the peers have arrived */
  CIUIC_COMM_STREAM = 4,        /* works in stream order */
  CIUIC_COMM_DETERMINISTIC = 8, /* same inputs, same world: same bits, run after run */
  CIUIC_COMM_TREE = 16,         /* honours CIUIC_COLLECTIVE_TREE */
  CIUIC_COMM_UNEVEN = 32,       /* honours counts and offsets; without it the caller pads */
  CIUIC_COMM_FACTOR = 64,       /* honours factor */
  CIUIC_COMM_VOTE = 128,        /* honours vote */
  CIUIC_COMM_WIDE = 256         /* honours CIUIC_COLLECTIVE_WIDE */
};
enum {
  CIUIC_COLLECTIVE_TREE = 1, /* sum as ((0+1)+(2+3))+... over group ranks */
  CIUIC_COLLECTIVE_WIDE = 2  /* sums of 16-bit floats are kept in fp32 */
};
enum {
  CIUIC_MEMORY_COLLECTIVE = 1
}; /* all ranks of the group ask for the same bytes in the same order */

typedef struct ciuic_collective {
  uint32_t struct_size, flags, op, reduce, tag, vote;
  int32_t peer; /* root or partner, a group rank */
  uint32_t reserved;
  uint64_t sequence;            /* the caller's, equal on all ranks; for reports */
  int64_t timeout_ns;           /* 0: the plugin's option */
  double factor;                /* inputs times this before the sum (needs FACTOR); 0 or 1: none */
  const ciuic_tensor *in, *out; /* NULL where the op has none */
  /* Elements per group rank; NULL: even parts in rank order. Counts may be 0. Need UNEVEN. */
  const int64_t *in_counts, *in_offsets, *out_counts, *out_offsets;
  ciuic_str label; /* for reports: "gradients layer 3" */
} ciuic_collective;

typedef struct ciuic_split {
  uint32_t struct_size, flags;
  const int32_t* ranks; /* the parent's rank numbers, in the new order */
  uint32_t count, reserved;
  ciuic_str name;
  int64_t timeout_ns;
} ciuic_split;

typedef struct ciuic_communicator_vt {
  uint32_t struct_size, flags;
  /* [Q] bits: CIUIC_COMM_. 0 for what it cannot do. reduce is 0 for operations that do not reduce.
   */
  ciuic_status* (*capabilities)(ciuic_instance*, uint32_t op, uint32_t reduce, ciuic_dtype,
                                ciuic_device, uint64_t* bits);
  /* [I] One array of ciuic_collective is one group: its members run concurrently and complete
   * together. Same order on all ranks of the instance; the caller keeps order between instances.
   * Structs, shapes and counts are copied. An operation that capabilities denies is UNIMPLEMENTED.
   */
  ciuic_status* (*submit)(ciuic_instance*, ciuic_array collectives, const ciuic_stream*,
                          ciuic_work**);
  /* [M] All ranks of the parent call, each with its own group. count 0: no group for this rank,
   * *out = NULL. The child is a full instance and is destroyed before its parent. */
  ciuic_status* (*split)(ciuic_instance*, const ciuic_split*, ciuic_instance** out);
  /* [A] ok, or UNAVAILABLE naming the peer. */
  ciuic_status* (*health)(ciuic_instance*);
  /* [A] Pending and later works fail with code within 1 s. */
  void (*abort)(ciuic_instance*, int32_t code);
  /* [M] Optional: memory that needs no staging. */
  ciuic_status* (*memory_alloc)(ciuic_instance*, ciuic_device, size_t bytes, uint32_t flags,
                                void** out);
  void (*memory_free)(ciuic_instance*, void*, size_t bytes); /* [M] with memory_alloc */
  /* [M] Optional: the caller's own memory. */
  ciuic_status* (*memory_register)(ciuic_instance*, ciuic_device, void*, size_t bytes,
                                   uint32_t flags);
  void (*memory_unregister)(ciuic_instance*, void*, size_t bytes); /* [M] with memory_register */
} ciuic_communicator_vt;

/* A group as other plugins see it: the host's own functions around the communicator, so that
 * decorators, accounting and swaps stay invisible. vt is NULL in an estimate. */
typedef struct ciuic_group {
  uint32_t struct_size, flags, id, reserved;
  int32_t rank, size;
  const int32_t *ranks, *nodes; /* per group rank: its global rank, and its machine's index */
  ciuic_str name;
  const ciuic_communicator_vt* vt;
  ciuic_instance* self;
} ciuic_group;

#ifdef __cplusplus
}
#endif
#endif
