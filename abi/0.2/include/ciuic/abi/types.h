/* SPDX-License-Identifier: MIT
 *
 * ciuic plugin ABI, part 1: the rules, and the value types that every other header uses.
 *
 * The boundary is plain C. It includes <stddef.h> and <stdint.h> and nothing else, so a plugin may
 * be built by another compiler, with another standard library, or as C. Rules that hold wherever a
 * comment does not say otherwise:
 *
 *   sizes    A struct that starts with struct_size grows at its end only. It travels by pointer or
 *            inside a ciuic_array (which has a stride), never embedded by value. Whoever fills a
 *            struct sets struct_size to its own sizeof; whoever reads it asks CIUIC_HAS first for
 *            members newer than the first release of its major. Structs marked "frozen" never change. There is no padding
 *            anywhere, so sizeof is exact. Unknown flag bits are 0. Numbers are never reused.
 *   threads  Each function carries a class: [Q] pure, any thread, any time; [M] the host's control
 *            thread; [I] one call at a time per instance, from any thread; [A] at any time,
 *            concurrent with everything.
 *   in       Structs, shapes, counts and strings given to a call may be gone when it returns.
 *            Tensor *data* stays until the call's work is done.
 *   out      What an out-array or out-pointer shows belongs to the callee until the next call of
 *            that function on that instance. An out-struct is the caller's: it sets struct_size and
 *            zeroes the rest; the callee fills the members that struct_size says are there.
 *   work     Counted: the receiver owns one reference and releases it. *work = NULL means done
 *            already. A failed call leaves no work behind.
 *   stream   NULL: host memory, inputs are ready at the call. Else inputs are ready in stream order,
 *            and outputs after work->wait or work->stream_wait.
 *   status   NULL means ok. A status is owned by its receiver, who frees it or returns it onward.
 *   units    Bytes, elements, nanoseconds of CLOCK_MONOTONIC. A timeout of 0 polls, < 0 has no limit.
 *   optional Functions marked so may be NULL or lie beyond struct_size (ask CIUIC_CAN). All others
 *            are required.
 *
 * Names: ciuic_x for types and functions, CIUIC_X for constants. Sizes assume LP64. */
#ifndef CIUIC_ABI_TYPES_H_
#define CIUIC_ABI_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Until 1.0, host and plugin must agree on both numbers. The SDK fills them in; an author never
 * writes them. */
#define CIUIC_ABI_MAJOR 0u
#define CIUIC_ABI_MINOR 2u

/* May the reader of *p touch member m? And, for optional functions: is it there? */
#define CIUIC_HAS(p, m) ((p)->struct_size >= offsetof(__typeof__(*(p)), m) + sizeof((p)->m))
#define CIUIC_CAN(p, m) (CIUIC_HAS(p, m) && (p)->m)

/* Status codes: the numbers of absl's StatusCode. EXHAUSTED is out of memory or out of space. */
enum {
  CIUIC_OK = 0,
  CIUIC_CANCELLED = 1,
  CIUIC_INVALID = 3,
  CIUIC_DEADLINE = 4,
  CIUIC_NOT_FOUND = 5,
  CIUIC_EXISTS = 6,
  CIUIC_PERMISSION = 7,
  CIUIC_EXHAUSTED = 8,
  CIUIC_PRECONDITION = 9,
  CIUIC_ABORTED = 10,
  CIUIC_UNIMPLEMENTED = 12,
  CIUIC_INTERNAL = 13,
  CIUIC_UNAVAILABLE = 14,
  CIUIC_DATA_LOSS = 15
};
enum { CIUIC_STATUS_RETRYABLE = 1, CIUIC_STATUS_FATAL = 2 }; /* flags of a status */

/* The seven kinds of plugin. */
enum {
  CIUIC_KIND_COMMUNICATOR = 1,
  CIUIC_KIND_SHARDING = 2,
  CIUIC_KIND_PRECISION = 3,
  CIUIC_KIND_BATCH_SCHEDULER = 4,
  CIUIC_KIND_CHECKPOINT = 5,
  CIUIC_KIND_PROFILER = 6,
  CIUIC_KIND_OPTIMIZER = 7
};

/* Option and field types. SIZE is bytes ("64MiB"), DURATION nanoseconds ("30s"), COUNT a number
 * with a decimal suffix
 * ("2B"); all three arrive as i. ENUM arrives as s, one of the choices. Lists arrive as a
 * ciuic_array of int64_t, double or ciuic_str. BOOL arrives as i, 0 or 1. */
enum {
  CIUIC_TYPE_BOOL = 1,
  CIUIC_TYPE_I64 = 2,
  CIUIC_TYPE_F64 = 3,
  CIUIC_TYPE_STRING = 4,
  CIUIC_TYPE_ENUM = 5,
  CIUIC_TYPE_SIZE = 6,
  CIUIC_TYPE_DURATION = 7,
  CIUIC_TYPE_LIST_I64 = 8,
  CIUIC_TYPE_LIST_STRING = 9,
  CIUIC_TYPE_COUNT = 10,
  CIUIC_TYPE_LIST_F64 = 11
};

enum {
  CIUIC_LOG_TRACE = 0,
  CIUIC_LOG_DEBUG = 1,
  CIUIC_LOG_INFO = 2,
  CIUIC_LOG_WARN = 3,
  CIUIC_LOG_ERROR = 4
};

/* Roles of a tensor: one list for sharding, precision and state keys. */
enum {
  CIUIC_ROLE_VALUE = 1,   /* what the layers read */
  CIUIC_ROLE_GRAD = 2,    /* what the layers add to */
  CIUIC_ROLE_REDUCE = 3,  /* the type in which gradients travel */
  CIUIC_ROLE_MASTER = 4,  /* what the optimizer updates */
  CIUIC_ROLE_MOMENT = 5,  /* the optimizer's own state */
  CIUIC_ROLE_COMPUTE = 6, /* operands of a product */
  CIUIC_ROLE_ACTIVATION = 7,
  CIUIC_ROLE_ACTIVATION_GRAD = 8
};

typedef struct ciuic_status ciuic_status;     /* made and freed by the host */
typedef struct ciuic_instance ciuic_instance; /* owned by the plugin */
typedef struct ciuic_archive
    ciuic_archive;                    /* a checkpoint being written or read; owned by the plugin */
typedef struct ciuic_file ciuic_file; /* owned by the host */

/* Frozen. UTF-8, no terminator; data may be NULL when size is 0. */
typedef struct ciuic_str {
  const char* data;
  size_t size;
} ciuic_str;

/* Frozen. Element i lies at (const char*)base + i * stride; its type stands in a comment at each
 * use. */
typedef struct ciuic_array {
  const void* base;
  uint32_t count, stride;
} ciuic_array;

/* Frozen. Layout and numbers of DLPack's DLDevice: 1 CPU, 2 CUDA, 3 pinned host memory. */
typedef struct ciuic_device {
  int32_t type, id;
} ciuic_device;
enum { CIUIC_DEVICE_CPU = 1, CIUIC_DEVICE_CUDA = 2, CIUIC_DEVICE_CUDA_HOST = 3 };

/* Frozen. Layout and numbers of DLPack's DLDataType. lanes is 1. */
typedef struct ciuic_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} ciuic_dtype;
enum {
  CIUIC_DTYPE_INT = 0,
  CIUIC_DTYPE_UINT = 1,
  CIUIC_DTYPE_FLOAT = 2,
  CIUIC_DTYPE_BFLOAT = 4,
  CIUIC_DTYPE_BOOL = 6,
  CIUIC_DTYPE_FLOAT8_E4M3FN = 10,
  CIUIC_DTYPE_FLOAT8_E5M2 = 12
};

/* Frozen. Layout of DLPack's DLTensor. Strides are in elements and always set; a tensor without
 * elements has data NULL. */
typedef struct ciuic_dl {
  void* data;
  ciuic_device device;
  int32_t ndim;
  ciuic_dtype dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} ciuic_dl;

/* A borrowed view. No alignment promise beyond that of the element type. */
typedef struct ciuic_tensor {
  uint32_t struct_size, flags;
  ciuic_dl t;
  ciuic_str name; /* for messages; may be empty */
} ciuic_tensor;
enum {
  CIUIC_TENSOR_READ_ONLY = 1,
  CIUIC_TENSOR_STABLE =
      2 /* unchanged until the owner's next step, load or destroy: a writer need not copy it */
};

typedef struct ciuic_stream {
  uint32_t struct_size, flags;
  ciuic_device device;
  void* native; /* cudaStream_t on CUDA */
} ciuic_stream;

/* Frozen. A type (CIUIC_TYPE_) stands beside it wherever it is used. */
typedef union ciuic_value {
  int64_t i;
  double f;
  ciuic_str s;
  ciuic_array list;
} ciuic_value;

/* Frozen. A named value in a log line or an event. */
typedef struct ciuic_field {
  ciuic_str key;
  ciuic_value value;
  uint32_t type, reserved;
} ciuic_field;

/* Which elements of a global tensor a local one holds: in row-major order, the elements begin,
 * begin + 1, ... of the box of extent `box` at `offset`. A whole box has begin 0; a flat shard of a
 * model-parallel piece is a range inside its box. This fits every layout in use, so any world size
 * can read what any other wrote. All three arrays have ndim elements. */
typedef struct ciuic_place {
  uint32_t struct_size, flags;
  int32_t ndim;
  uint32_t reserved;
  const int64_t *global_shape, *offset, *box;
  int64_t begin;
} ciuic_place;

#ifdef __cplusplus
}
#endif
#endif
