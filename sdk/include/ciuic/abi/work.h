/* SPDX-License-Identifier: MIT
 *
 * Asynchronous work. Waiting on the host and making a device stream wait are two functions, never
 * one: a single wait() that means both has cost other systems years of clean-up. */
#ifndef CIUIC_ABI_WORK_H_
#define CIUIC_ABI_WORK_H_

#include <ciuic/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Frozen head; the maker's own members follow it. Whoever holds a work can wait on it without
 * knowing who made it. */
typedef struct ciuic_work {
  const struct ciuic_work_ops* ops;
} ciuic_work;

/* All [A]. A work that failed reports a new status each time it is asked. */
typedef struct ciuic_work_ops {
  uint32_t struct_size, flags;
  /* *done becomes 1 when the work has ended, well or badly. A failure is returned as a status, with
   * *done = 1. */
  ciuic_status* (*test)(ciuic_work*, int32_t* done);
  /* Blocks until the work has ended. DEADLINE leaves the work running; it may be waited for again.
   */
  ciuic_status* (*wait)(ciuic_work*, int64_t timeout_ns);
  /* Enqueues the wait on the stream; the host thread goes on. */
  ciuic_status* (*stream_wait)(ciuic_work*, const ciuic_stream*);
  /* Calls back exactly once, perhaps before this returns, from any thread; the status is borrowed,
   * NULL for success. The callback may not block. All callbacks have
   * been called when quiesce or destroy of the maker returns. */
  ciuic_status* (*on_done)(ciuic_work*, void (*callback)(void* context, const ciuic_status*),
                           void* context);
  void (*retain)(
      ciuic_work*); /* one more reference: one gather may serve two binds and its maker */
  void (*release)(ciuic_work*); /* neither waits nor cancels */
  /* Optional; once done: the bitwise OR of every rank's vote. */
  ciuic_status* (*votes)(ciuic_work*, uint32_t* bits);
  /* Optional; once done: when the last rank arrived, and when the work ended. */
  ciuic_status* (*times)(ciuic_work*, uint64_t* begin_ns, uint64_t* end_ns);
} ciuic_work_ops;

#ifdef __cplusplus
}
#endif
#endif
