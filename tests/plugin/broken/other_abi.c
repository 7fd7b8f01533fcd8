/* SPDX-License-Identifier: MIT
 * A plugin from another time: everything is right but the minor number of the ABI in its note. */
#include <ciuic/abi/ciuic.h>
#include <ciuic/abi/note.h>

__attribute__((section(CIUIC_NOTE_SECTION), used,
               aligned(4))) static const ciuic_note_of_one note = {
    {6u, sizeof(ciuic_note_header) + sizeof(ciuic_note_record), CIUIC_NOTE_TYPE, "ciuic"},
    {CIUIC_NOTE_LAYOUT, 1u, CIUIC_ABI_MAJOR, 99u, "0.99.0"},
    {CIUIC_KIND_PROFILER, 0, 0, 0, "other_abi", "1.0.0", ""}};

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
