/* SPDX-License-Identifier: MIT
 *
 * What the host gives to every instance: eight functions. Everything else is asked for by name
 * (services.h), so that the table stays small for ever. There is one table per instance: memory,
 * logs and services are accounted to it. */
#ifndef CIUIC_ABI_HOST_H_
#define CIUIC_ABI_HOST_H_

#include <ciuic/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All [A]. The table and what it gave live until the instance's destroy returns. */
typedef struct ciuic_host {
  uint32_t struct_size, abi_minor;
  void* ctx;
  /* peer: the global rank that is to blame, or -1. flags: CIUIC_STATUS_. The message is copied.
   * Never NULL: when memory is out it is a static status of code EXHAUSTED. */
  ciuic_status* (*status_new)(void* ctx, int32_t code, uint32_t flags, int32_t peer,
                              ciuic_str message);
  /* Returns the code. Each out-pointer may be NULL; the text lives as long as the status. */
  int32_t (*status_get)(void* ctx, const ciuic_status*, uint32_t* flags, int32_t* peer,
                        ciuic_str* message);
  void (*status_free)(void* ctx, ciuic_status*);
  int32_t (*log_enabled)(void* ctx, int32_t level);
  void (*log)(void* ctx, int32_t level, ciuic_str message, ciuic_array fields); /* ciuic_field */
  /* Bytes of device memory, aligned to `align` (a power of two; 0: the device's default, at least
   * 64). NULL: out of memory, which a plugin that cannot go on
   * without reports as EXHAUSTED. */
  void* (*alloc)(void* ctx, ciuic_device, size_t bytes, size_t align, const ciuic_stream*);
  void (*dealloc)(void* ctx, ciuic_device, void*, size_t bytes,
                  const ciuic_stream*); /* reuse is ordered after stream */
  /* A table of services.h, valid until destroy returns. NULL: not here, or older than min_version.
   */
  const void* (*service)(void* ctx, const char* name, uint32_t min_version);
} ciuic_host;

#ifdef __cplusplus
}
#endif
#endif
