/* SPDX-License-Identifier: MIT
 *
 * A plugin: one exported symbol, which shows descriptors. Everything about a plugin that can be
 * known without running it (kind, name, versions, every option with type, default, range, unit and
 * text) is in its descriptor.
 *
 * Life: query -> static checks -> validate -> create -> run -> quiesce -> state_save -> destroy.
 * The library stays mapped. It changes no setting of the process: signal handlers, rounding, locale,
 * working directory, umask, environment, OpenMP threads, rand(). */
#ifndef CIUIC_ABI_PLUGIN_H_
#define CIUIC_ABI_PLUGIN_H_

#include <ciuic/abi/host.h>
#include <ciuic/abi/state.h>
#include <ciuic/abi/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CIUIC_FLAG_RELOADABLE = 1,
  CIUIC_FLAG_NEVER_UNLOAD = 2, /* as for a plugin that links LibTorch */
  CIUIC_FLAG_DETERMINISTIC = 4,
  CIUIC_FLAG_OWN_THREADS =
      8 /* threads of its own between create and quiesce; each blocks all signals */
};
enum {
  CIUIC_OPTION_REQUIRED = 1,
  CIUIC_OPTION_LIVE = 2, /* may change between steps, by set_option, which must be there */
  CIUIC_OPTION_SECRET = 4,
  CIUIC_OPTION_AFFECTS_NUMERICS = 8, /* a change moves a loss bit: said at resume */
  CIUIC_OPTION_ALL_RANKS_EQUAL = 16,
  /* Strings that are patterns with * and ? over parameters' names: the host refuses one that
   * matches none. */
  CIUIC_OPTION_PARAMETER_NAMES = 32
};

/* One option. The host turns TOML into a typed value, fills in the default, checks the range, and
 * refuses unknown keys with the nearest one. Strings end with NUL and live as long as the library.
 */
typedef struct ciuic_option_spec {
  uint32_t struct_size, flags, type, since_minor;
  const char *key, *doc, *unit, *deprecated;
  ciuic_value def, min, max;  /* min and max both 0: unbounded */
  const char* const* choices; /* NULL-terminated; for ENUM */
} ciuic_option_spec;

typedef struct ciuic_option {
  uint32_t struct_size, flags, type, toml_line;
  ciuic_str key;
  ciuic_value value;
} ciuic_option;

typedef struct ciuic_create_args {
  uint32_t struct_size, flags;
  const ciuic_host* host;
  ciuic_array options; /* ciuic_option: one per spec, in the same order */
  int32_t rank, world, local_rank, local_world;
  ciuic_device device;
  ciuic_str name;
  uint64_t generation; /* counts restarts */
  ciuic_str output;    /* a folder for files of the instance's own; empty: there is none */
} ciuic_create_args;

typedef struct ciuic_descriptor {
  uint32_t struct_size, flags, abi_major, abi_minor, min_host_minor, kind, state_schema,
      state_schema_min;
  const char *name, *version, *vendor, *license, *summary, *build;
  const char* const* features; /* NULL-terminated */
  ciuic_array options;         /* ciuic_option_spec */
  const void* vt;              /* the kind's table */
  /* [Q] Optional: options against each other. No services, no side effects. */
  ciuic_status* (*validate)(const ciuic_create_args*);
  /* [M] host and its table live until destroy returns; the rest of the arguments is copied. */
  ciuic_status* (*create)(const ciuic_create_args*, ciuic_instance**);
  /* [M] Optional: no work, thread or callback is left when it returns. Until resume only quiesce,
   * state_save, destroy and the pure functions [Q] may be called: any other that returns a status is
   * PRECONDITION, emit drops its events. */
  ciuic_status* (*quiesce)(ciuic_instance*, int64_t timeout_ns);
  ciuic_status* (*resume)(
      ciuic_instance*); /* [M] optional: a swap was voted down: as before quiesce */
  ciuic_status* (*set_option)(ciuic_instance*,
                              const ciuic_option*); /* [M] optional: LIVE options, between steps */
  ciuic_status* (*state_save)(ciuic_instance*,
                              const ciuic_writer*); /* [M] optional, with state_load */
  ciuic_status* (*state_load)(ciuic_instance*,
                              const ciuic_reader*); /* [M] after a failure: load again or destroy */
  void (*destroy)(ciuic_instance*);                 /* [M] */
} ciuic_descriptor;

/* The one exported symbol. [Q]: no allocation, thread, environment or device access. Descriptor
 * number `index` of the library; NULL past the last, or for an ABI major that it cannot serve. */
__attribute__((visibility("default"))) const ciuic_descriptor* ciuic_plugin_query(
    uint32_t abi_major, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
