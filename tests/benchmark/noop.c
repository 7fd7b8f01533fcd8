/* SPDX-License-Identifier: MIT
 * A precision plugin in C that does nothing, so that what is measured is the way there and back. */
#include <ciuic/abi/ciuic.h>

struct ciuic_instance {
  int unused;
};
static struct ciuic_instance the_instance;

static ciuic_status* create(const ciuic_create_args* args, ciuic_instance** out) {
  (void)args;
  *out = &the_instance;
  return NULL;
}
static void destroy(ciuic_instance* self) { (void)self; }
static ciuic_status* dtype_for(ciuic_instance* self, ciuic_str module, uint32_t role,
                               ciuic_dtype* out) {
  (void)self;
  (void)module;
  (void)role;
  out->code = CIUIC_DTYPE_FLOAT;
  out->bits = 32;
  out->lanes = 1;
  return NULL;
}
static ciuic_status* attach(ciuic_instance* self, ciuic_array modules) {
  (void)self;
  (void)modules;
  return NULL;
}
static uint32_t hooks(ciuic_instance* self, uint32_t module, ciuic_device device) {
  (void)self;
  (void)module;
  (void)device;
  return 0;
}
static double loss_scale(ciuic_instance* self) {
  (void)self;
  return 1.0;
}
static ciuic_status* update(ciuic_instance* self, const ciuic_precision_update* step) {
  (void)self;
  (void)step;
  return NULL;
}

static const ciuic_precision_vt table = {.struct_size = sizeof(ciuic_precision_vt),
                                         .dtype_for = dtype_for,
                                         .attach = attach,
                                         .hooks = hooks,
                                         .loss_scale = loss_scale,
                                         .update = update};
static const ciuic_descriptor descriptor = {.struct_size = sizeof(ciuic_descriptor),
                                            .abi_major = CIUIC_ABI_MAJOR,
                                            .abi_minor = CIUIC_ABI_MINOR,
                                            .kind = CIUIC_KIND_PRECISION,
                                            .state_schema = 1,
                                            .state_schema_min = 1,
                                            .name = "noop",
                                            .version = "1.0.0",
                                            .license = "MIT",
                                            .summary = "does nothing",
                                            .vt = &table,
                                            .create = create,
                                            .destroy = destroy};

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  return abi_major == CIUIC_ABI_MAJOR && index == 0 ? &descriptor : NULL;
}
