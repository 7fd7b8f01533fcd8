/* SPDX-License-Identifier: MIT
 * A profiler whose table lacks a required function. */
#include <ciuic/abi/ciuic.h>
#include <ciuic/abi/note.h>

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, "missing_function", "1.0.0", "");

static ciuic_status* create(const ciuic_create_args* args, ciuic_instance** out) {
  (void)args;
  (void)out;
  return NULL;
}
static void destroy(ciuic_instance* self) { (void)self; }
static uint64_t mask(ciuic_instance* self) {
  (void)self;
  return 0;
}

static ciuic_profiler_vt table;
static ciuic_descriptor descriptor;

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  if (abi_major != CIUIC_ABI_MAJOR || index != 0) {
    return NULL;
  }
  table.struct_size = sizeof(table);
  table.mask = mask; /* no emit, no flush */
  descriptor.struct_size = sizeof(descriptor);
  descriptor.abi_major = CIUIC_ABI_MAJOR;
  descriptor.abi_minor = CIUIC_ABI_MINOR;
  descriptor.kind = CIUIC_KIND_PROFILER;
  descriptor.name = "missing_function";
  descriptor.version = "1.0.0";
  descriptor.license = "MIT";
  descriptor.summary = "half a profiler";
  descriptor.vt = &table;
  descriptor.create = create;
  descriptor.destroy = destroy;
  return &descriptor;
}
