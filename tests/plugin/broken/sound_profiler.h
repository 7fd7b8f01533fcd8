/* SPDX-License-Identifier: MIT
 *
 * A profiler that is right, in plain C, for plugins that are broken elsewhere. Define PLUGIN_NAME
 * first; call sound_query from your own ciuic_plugin_query. */
#ifndef CIUIC_TESTS_SOUND_PROFILER_H_
#define CIUIC_TESTS_SOUND_PROFILER_H_

#include <ciuic/abi/ciuic.h>
#include <ciuic/abi/note.h>

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION "1.0.0"
#endif

static ciuic_status* create(const ciuic_create_args* args, ciuic_instance** out) {
  (void)args;
  *out = (ciuic_instance*)(void*)out;
  return NULL;
}
static void destroy(ciuic_instance* self) { (void)self; }
static uint64_t mask(ciuic_instance* self) {
  (void)self;
  return 0;
}
static void emit(ciuic_instance* self, ciuic_array events) {
  (void)self;
  (void)events;
}
static ciuic_status* flush(ciuic_instance* self, int64_t timeout_ns) {
  (void)self;
  (void)timeout_ns;
  return NULL;
}

static const ciuic_profiler_vt sound_table = {
    .struct_size = sizeof(ciuic_profiler_vt), .mask = mask, .emit = emit, .flush = flush};

static const ciuic_descriptor sound_descriptor = {.struct_size = sizeof(ciuic_descriptor),
                                                  .abi_major = CIUIC_ABI_MAJOR,
                                                  .abi_minor = CIUIC_ABI_MINOR,
                                                  .kind = CIUIC_KIND_PROFILER,
                                                  .name = PLUGIN_NAME,
                                                  .version = PLUGIN_VERSION,
                                                  .license = "MIT",
                                                  .summary = "a test",
                                                  .vt = &sound_table,
                                                  .create = create,
                                                  .destroy = destroy};

static inline const ciuic_descriptor* sound_query(uint32_t abi_major, uint32_t index) {
  return abi_major == CIUIC_ABI_MAJOR && index == 0 ? &sound_descriptor : NULL;
}

#endif
