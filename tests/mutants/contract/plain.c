/* SPDX-License-Identifier: MIT
 *
 * A profiler in plain C with nothing optional in it: no validate, quiesce or state. One of the
 * FAULT_ macros, defined by the build, breaks one thing of the library as a whole. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ciuic/abi/ciuic.h>

#ifndef FLAGS
#define FLAGS 0
#endif

struct ciuic_instance {
  const ciuic_host* host;
  unsigned long events;
};

static ciuic_status* create(const ciuic_create_args* args, ciuic_instance** out) {
  static const char kText[] = "plain: out of memory";
  const ciuic_str text = {kText, sizeof(kText) - 1};
  *out = malloc(sizeof(**out));
  if (*out == NULL) {
    return args->host->status_new(args->host->ctx, CIUIC_EXHAUSTED, 0, -1, text);
  }
  (*out)->host = args->host;
  (*out)->events = 0;
  return NULL;
}

static void destroy(ciuic_instance* self) { free(self); }

static uint64_t mask(ciuic_instance* self) {
  (void)self;
  return ~(uint64_t)0;
}

static void emit(ciuic_instance* self, ciuic_array events) {
  __atomic_fetch_add(&self->events, events.count, __ATOMIC_RELAXED);
}

static ciuic_status* flush(ciuic_instance* self, int64_t timeout_ns) {
  (void)self;
  (void)timeout_ns;
#if defined(FAULT_SYMBOL_OF_THE_HOST)
  extern char* __cxa_demangle(const char*, char*, size_t*, int*); /* of libstdc++, not linked */
  int status = 0;
  free(__cxa_demangle("_Z1fv", NULL, NULL, &status));
#endif
  return NULL;
}

static const ciuic_profiler_vt kTable = {sizeof(kTable), 0, mask, emit, flush};

#define DESCRIPTOR                                                                                \
  {                                                                                               \
    .struct_size = sizeof(ciuic_descriptor), .flags = FLAGS, .abi_major = CIUIC_ABI_MAJOR,        \
    .abi_minor = CIUIC_ABI_MINOR, .min_host_minor = CIUIC_ABI_MINOR, .kind = CIUIC_KIND_PROFILER, \
    .state_schema = 1, .state_schema_min = 1, .name = PLUGIN, .version = "1.0.0", .vendor = "",   \
    .license = "MIT", .summary = "counts events, in plain C", .build = "", .vt = &kTable,         \
    .create = create, .destroy = destroy                                                          \
  }

static const ciuic_descriptor kDescriptor = DESCRIPTOR;

#if defined(FAULT_NOTE_DIFFERS)
CIUIC_NOTE_1(CIUIC_KIND_PROFILER, FLAGS, 1, 1, PLUGIN, "1.0.1", "");
#elif !defined(FAULT_NO_NOTE)
CIUIC_NOTE_1(CIUIC_KIND_PROFILER, FLAGS, 1, 1, PLUGIN, "1.0.0", "");
#endif

#if defined(FAULT_CHANGES_SIGNALS_WHEN_LOADED)
__attribute__((constructor)) static void on_load(void) { signal(SIGINT, SIG_IGN); }
#elif defined(FAULT_CRASHES_WHEN_LOADED)
__attribute__((constructor)) static void on_load(void) { abort(); }
#elif defined(FAULT_PRINTS_WHEN_LOADED)
__attribute__((constructor)) static void on_load(void) {
  puts("hello from a constructor");
  fflush(stdout);
}
#elif defined(FAULT_WRITES_INTO_FILES) || defined(FAULT_CLOSES_FILES)
/* Into, or of, every descriptor that it did not open. */
__attribute__((constructor)) static void on_load(void) {
  static const char kText[] = "a line that nobody asked for\n";
  for (int fd = 3; fd < 64; ++fd) {
#if defined(FAULT_CLOSES_FILES)
    close(fd);
#else
    if (write(fd, kText, sizeof(kText) - 1) < 0) {
      continue;
    }
#endif
  }
  (void)kText;
}
#elif defined(FAULT_CRASHES_AT_EXIT)
__attribute__((destructor)) static void on_exit_of_the_process(void) { abort(); }
#endif

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
#if defined(FAULT_QUERY_ALLOCATES)
  static ciuic_descriptor* made;
  if (made == NULL) {
    made = malloc(sizeof(*made));
    memcpy(made, &kDescriptor, sizeof(*made));
  }
  return abi_major == CIUIC_ABI_MAJOR && index == 0 ? made : NULL;
#elif defined(FAULT_OTHER_DESCRIPTOR_EACH_TIME)
  static ciuic_descriptor two[2];
  static unsigned turn;
  ciuic_descriptor* next = &two[turn++ % 2];
  memcpy(next, &kDescriptor, sizeof(*next));
  return abi_major == CIUIC_ABI_MAJOR && index == 0 ? next : NULL;
#elif defined(FAULT_ANY_MAJOR)
  (void)abi_major;
  return index == 0 ? &kDescriptor : NULL;
#elif defined(FAULT_NO_END)
  (void)index;
  return abi_major == CIUIC_ABI_MAJOR ? &kDescriptor : NULL;
#else
  return abi_major == CIUIC_ABI_MAJOR && index == 0 ? &kDescriptor : NULL;
#endif
}
