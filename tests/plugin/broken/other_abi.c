/* SPDX-License-Identifier: MIT
 * A plugin from another time: everything is right but the ABI's minor number. */
#include <ciuic/abi/ciuic.h>

static ciuic_status* create(const ciuic_create_args* args, ciuic_instance** out) {
  (void)args;
  (void)out;
  return NULL;
}
static void destroy(ciuic_instance* self) { (void)self; }

static ciuic_descriptor descriptor;

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  if (abi_major != CIUIC_ABI_MAJOR || index != 0) {
    return NULL;
  }
  descriptor.struct_size = sizeof(descriptor);
  descriptor.abi_major = CIUIC_ABI_MAJOR;
  descriptor.abi_minor = 99;
  descriptor.kind = CIUIC_KIND_PROFILER;
  descriptor.name = "other_abi";
  descriptor.version = "1.0.0";
  descriptor.license = "MIT";
  descriptor.summary = "from another time";
  descriptor.create = create;
  descriptor.destroy = destroy;
  return &descriptor;
}
