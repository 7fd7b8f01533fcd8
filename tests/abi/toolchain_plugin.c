/* SPDX-License-Identifier: MIT
 *
 * The plugin of toolchain_plugin.cpp in plain C: the tables by hand, the note by one line. */
#include <stdio.h>
#include <string.h>

#include <ciuic/abi/ciuic.h>

CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 1, 1, "matrix", "1.0.0", "");

struct ciuic_instance {
  const ciuic_host* host;
  int fails_in_flush;
  unsigned seen;
};

static ciuic_str text(const char* s) {
  ciuic_str out;
  out.data = s;
  out.size = strlen(s);
  return out;
}

static ciuic_status* fail(const ciuic_host* host, const char* what) {
  return host->status_new(host->ctx, CIUIC_DATA_LOSS, 0, 3, text(what));
}

static int is_option(const ciuic_create_args* args, const char* value) {
  const ciuic_option* o = (const ciuic_option*)args->options.base;
  return o->value.s.size == strlen(value) && memcmp(o->value.s.data, value, o->value.s.size) == 0;
}

static ciuic_status* create(const ciuic_create_args* args, ciuic_instance** out) {
  ciuic_device cpu = {CIUIC_DEVICE_CPU, 0};
  ciuic_instance* self;
  *out = NULL;
  if (is_option(args, "create")) {
    return fail(args->host, "failed on request in create");
  }
  self = (ciuic_instance*)args->host->alloc(args->host->ctx, cpu, sizeof(*self), 0, NULL);
  if (self == NULL) {
    return args->host->status_new(args->host->ctx, CIUIC_EXHAUSTED, 0, -1, text("out of memory"));
  }
  self->host = args->host;
  self->fails_in_flush = is_option(args, "flush");
  self->seen = 0;
  *out = self;
  return NULL;
}

static void destroy(ciuic_instance* self) {
  ciuic_device cpu = {CIUIC_DEVICE_CPU, 0};
  self->host->dealloc(self->host->ctx, cpu, self, sizeof(*self), NULL);
}

static uint64_t mask(ciuic_instance* self) {
  (void)self;
  return ~(uint64_t)0;
}

static void emit(ciuic_instance* self, ciuic_array events) {
  __atomic_fetch_add(&self->seen, events.count, __ATOMIC_RELAXED);
}

static ciuic_status* flush(ciuic_instance* self, int64_t timeout_ns) {
  char line[32];
  ciuic_array none = {NULL, 0, 0};
  (void)timeout_ns;
  if (self->fails_in_flush) {
    return fail(self->host, "failed on request in flush");
  }
  snprintf(line, sizeof(line), "seen %u", self->seen);
  self->host->log(self->host->ctx, CIUIC_LOG_INFO, text(line), none);
  return NULL;
}

static const char* const kWhere[] = {"never", "create", "flush", NULL};
static const ciuic_option_spec kOptions[] = {{sizeof(ciuic_option_spec),
                                              0,
                                              CIUIC_TYPE_ENUM,
                                              0,
                                              "fail",
                                              "Which call fails",
                                              "",
                                              NULL,
                                              {0},
                                              {0},
                                              {0},
                                              kWhere}};

static const ciuic_profiler_vt kTable = {sizeof(ciuic_profiler_vt), 0, mask, emit, flush};

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  static ciuic_option_spec options[1];
  static ciuic_descriptor d;
  if (abi_major != CIUIC_ABI_MAJOR || index != 0) {
    return NULL;
  }
  options[0] = kOptions[0];
  options[0].def.s = text("never");
  d.struct_size = sizeof(d);
  d.abi_major = CIUIC_ABI_MAJOR;
  d.abi_minor = CIUIC_ABI_MINOR;
  d.min_host_minor = CIUIC_ABI_MINOR;
  d.kind = CIUIC_KIND_PROFILER;
  d.state_schema = d.state_schema_min = 1;
  d.name = "matrix";
  d.version = "1.0.0";
  d.vendor = "";
  d.license = "MIT";
  d.summary = "fails on request";
  d.build = "C";
  d.options.base = options;
  d.options.count = 1;
  d.options.stride = sizeof(options[0]);
  d.vt = &kTable;
  d.create = create;
  d.destroy = destroy;
  return &d;
}
