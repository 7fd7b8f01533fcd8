/* SPDX-License-Identifier: MIT
 *
 * Services: host tables found by name through ciuic_host.service. All functions are [A] unless
 * marked; ctx is always the table's own. A service that is not there (no communicator yet, no data)
 * is NULL, and a plugin that cannot do without it says so in a status. */
#ifndef CIUIC_ABI_SERVICES_H_
#define CIUIC_ABI_SERVICES_H_

#include <ciuic/abi/communicator.h>
#include <ciuic/abi/precision.h>
#include <ciuic/abi/types.h>
#include <ciuic/abi/work.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "ciuic.comm": groups of the process mesh; they live until the asker's destroy. Use a shared group
 * only in the thread that called you; in any other thread use a split of your own. A group's
 * memory_alloc dies with its communicator: a swap takes its holders through state_save and
 * state_load. */
typedef struct ciuic_comm_service {
  uint32_t struct_size, flags;
  void* ctx;
  /* "world" "data" "expert_data" "model" "node" ...; "control": always in host memory. */
  ciuic_status* (*find)(void* ctx, ciuic_str name, const ciuic_group**);
  ciuic_status* (*by_id)(void* ctx, uint32_t id, const ciuic_group**);
  ciuic_status* (*split)(void* ctx, uint32_t parent, const ciuic_split*,
                         const ciuic_group**); /* [M] */
} ciuic_comm_service;

/* "ciuic.optimizer", "ciuic.precision": the run's plugin of that kind, through the host's
 * functions. */
typedef struct ciuic_kind_service {
  uint32_t struct_size, kind;
  const void* vt;
  ciuic_instance* self;
} ciuic_kind_service;

/* "ciuic.tensor": any float dtype, strides, device. A NULL stream blocks. */
typedef struct ciuic_tensor_service {
  uint32_t struct_size, flags;
  void* ctx;
  ciuic_status* (*fill)(void* ctx, const ciuic_tensor* out, double value, const ciuic_stream*);
  ciuic_status* (*copy)(void* ctx, const ciuic_tensor* in, const ciuic_tensor* out,
                        const ciuic_stream*); /* casts, crosses devices */
  /* out = alpha * in + beta * out */
  ciuic_status* (*add)(void* ctx, double alpha, const ciuic_tensor* in, double beta,
                       const ciuic_tensor* out, const ciuic_stream*);
  /* out, f64[2], on in's device: += sum of squares, number of non-finite elements. */
  ciuic_status* (*stats)(void* ctx, const ciuic_tensor* in, const ciuic_tensor* out,
                         const ciuic_stream*);
  ciuic_status* (*gemm)(void* ctx, const ciuic_gemm*, const ciuic_stream*); /* pass 0: plain */
} ciuic_tensor_service;

/* "ciuic.stream" */
typedef struct ciuic_stream_service {
  uint32_t struct_size, flags;
  void* ctx;
  ciuic_status* (*open)(void* ctx, ciuic_device, int32_t priority, const ciuic_stream**);
  void (*close)(void* ctx, const ciuic_stream*);
  ciuic_status* (*record)(void* ctx, const ciuic_stream*,
                          ciuic_work**); /* done when the stream gets here; joins two streams */
} ciuic_stream_service;

/* "ciuic.threads": a plugin starts its threads here, so that they block all signals, are named, and
 * are joined in time. */
typedef struct ciuic_thread_service {
  uint32_t struct_size, flags;
  void* ctx;
  uint32_t (*count)(void* ctx);
  /* Splits [0, count) into ranges of at least grain over the compute threads; blocks. The body may
   * not fail. */
  ciuic_status* (*parallel)(void* ctx, int64_t count, int64_t grain,
                            void (*body)(void* context, int64_t begin, int64_t end), void* context);
  ciuic_status* (*run)(void* ctx, ciuic_status* (*body)(void* context), void* context,
                       ciuic_work**); /* pool; short, may not
                                         block on a peer */
  ciuic_status* (*start)(void* ctx, ciuic_str name, ciuic_status* (*body)(void* context),
                         void* context, ciuic_work**); /* a thread of its own; work: joined */
  ciuic_status* (*all)(void* ctx, ciuic_array works,
                       ciuic_work**); /* ciuic_work*; done when all are, with the first error */
  ciuic_status* (*promise)(
      void* ctx,
      ciuic_work**); /* a host-made work, two references: the caller's, and the one that ... */
  void (*fulfil)(void* ctx, ciuic_work*,
                 ciuic_status*); /* ... this takes, exactly once, with the status; NULL: success */
} ciuic_thread_service;

/* "ciuic.kv": rendezvous. Small values; keys are private to the plugin's name and the run's
 * generation. */
typedef struct ciuic_kv_service {
  uint32_t struct_size, flags;
  void* ctx;
  ciuic_status* (*set)(void* ctx, ciuic_str key, ciuic_str value);
  /* Waits for the key. *size: in, the buffer's; out, the value's. EXHAUSTED: the buffer is too
   * small. */
  ciuic_status* (*get)(void* ctx, ciuic_str key, int64_t timeout_ns, void* buffer, size_t* size);
  ciuic_status* (*add)(void* ctx, ciuic_str key, int64_t delta, int64_t* result);
  ciuic_status* (*remove)(void* ctx, ciuic_str key);
} ciuic_kv_service;

enum {
  CIUIC_IO_READ = 1,
  CIUIC_IO_CREATE = 2,
  CIUIC_IO_DIRECT = 4
}; /* CREATE: a new file, EXISTS if it is there */

/* "ciuic.io": all file access of checkpoint plugins; blocks; full transfers or an error. Errors:
 * NOT_FOUND, EXISTS, PERMISSION, EXHAUSTED (no space), else DATA_LOSS with the path and errno in
 * the text. */
typedef struct ciuic_io_service {
  uint32_t struct_size, flags;
  void* ctx;
  ciuic_status* (*open)(void* ctx, ciuic_str path, uint32_t flags, ciuic_file**);
  ciuic_status* (*read)(void* ctx, ciuic_file*, uint64_t offset, void*, size_t);
  ciuic_status* (*write)(void* ctx, ciuic_file*, uint64_t offset, const void*, size_t);
  ciuic_status* (*size)(void* ctx, ciuic_file*, uint64_t*);
  ciuic_status* (*sync)(void* ctx, ciuic_file*);
  void (*close)(void* ctx, ciuic_file*);
  ciuic_status* (*rename)(void* ctx, ciuic_str from, ciuic_str to); /* atomic; replaces */
  ciuic_status* (*remove)(void* ctx, ciuic_str path, uint32_t recursive);
  /* Parents too; what it made is durable when it returns. */
  ciuic_status* (*make_directory)(void* ctx, ciuic_str path);
  ciuic_status* (*sync_directory)(void* ctx, ciuic_str path);
  ciuic_status* (*list)(void* ctx, ciuic_str path,
                        void (*each)(void* context, ciuic_str name, uint64_t bytes),
                        void* context); /* sorted by name */
  ciuic_status* (*space)(void* ctx, ciuic_str path,
                         uint64_t* free_bytes); /* of the file system that path is on */
} ciuic_io_service;

/* "ciuic.data": equal on all ranks. lengths counts samples as plans do: without end, in the run's
 * order, so that a packing plan knows what it packs; samples is how many make one epoch. */
typedef struct ciuic_data_service {
  uint32_t struct_size, flags;
  void* ctx;
  uint64_t (*samples)(void* ctx);
  /* The tokens of samples first, first + 1, ... */
  ciuic_status* (*lengths)(void* ctx, uint64_t first, uint64_t count, uint64_t* tokens);
} ciuic_data_service;

/* "ciuic.metrics" */
typedef struct ciuic_metrics_service {
  uint32_t struct_size, flags;
  void* ctx;
  uint64_t (*mask)(void* ctx); /* what any profiler listens to */
  ciuic_str (*intern)(void* ctx, ciuic_str);
  uint64_t (*new_ids)(void* ctx, uint32_t count); /* first of count span ids */
  void (*emit)(void* ctx, ciuic_array events); /* ciuic_event. time 0: now; parent 0: the thread's
                                                  open span; thread 0: this one */
  void (*set)(void* ctx, ciuic_str name, ciuic_str unit,
              double value); /* a field of this step's metrics line */
} ciuic_metrics_service;

#ifdef __cplusplus
}
#endif
#endif
