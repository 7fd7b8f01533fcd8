/* SPDX-License-Identifier: MIT
 *
 * Profiler: what happens to events and counters? Several may run at once. A profiler never blocks
 * the step and never changes a number of it. What it does not know (a type, a category, a parent)
 * it passes over. Names live until destroy, everything else of an event only during emit. Features:
 * "output:csv", "output:json" (what it writes parses as that), "events:all" (none is dropped). */
#ifndef CIUIC_ABI_PROFILER_H_
#define CIUIC_ABI_PROFILER_H_

#include <ciuic/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CIUIC_EVENT_BEGIN = 1,
  CIUIC_EVENT_END = 2, /* carries BEGIN's id */
  CIUIC_EVENT_INSTANT = 3,
  CIUIC_EVENT_COUNTER = 4, /* value */
  CIUIC_EVENT_STEP = 5     /* a = step, b = attempt */
};
enum {
  CIUIC_CATEGORY_STEP = 1,
  CIUIC_CATEGORY_DATA = 2,
  CIUIC_CATEGORY_FORWARD = 3,
  CIUIC_CATEGORY_BACKWARD = 4,
  CIUIC_CATEGORY_OPTIMIZER = 5,
  CIUIC_CATEGORY_COMMUNICATION = 6, /* a = bytes, b = op | group << 32 */
  CIUIC_CATEGORY_CHECKPOINT = 7,
  CIUIC_CATEGORY_MEMORY = 8, /* a = bytes, b = device */
  CIUIC_CATEGORY_PLUGIN = 9,
  CIUIC_CATEGORY_ERROR = 10
};

typedef struct ciuic_event {
  uint32_t struct_size, type, category, thread;
  uint64_t id, parent, time_ns, a, b;
  double value;
  ciuic_str name;     /* interned: same pointer = same name, until destroy */
  ciuic_array fields; /* ciuic_field, rare */
} ciuic_event;

typedef struct ciuic_profiler_vt {
  uint32_t struct_size, flags;
  uint64_t (*mask)(ciuic_instance*); /* [Q] bits 1 << CIUIC_CATEGORY_; re-read at each step */
  void (*emit)(ciuic_instance*,
               ciuic_array events); /* [A] ciuic_event; never blocks; must be cheap */
  ciuic_status* (*flush)(ciuic_instance*, int64_t timeout_ns); /* [I] */
} ciuic_profiler_vt;

#ifdef __cplusplus
}
#endif
#endif
