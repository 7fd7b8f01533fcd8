/* SPDX-License-Identifier: MIT
 *
 * Batch scheduler "striped", in plain C: every rank trains `sequences` samples a step as one
 * micro-batch, and sample p of a step goes to rank p mod world. A step begins where the samples
 * consumed so far end, so the world may grow or shrink between two steps.
 *
 * Without the C++ layer the tables are written by hand: the descriptor, the kind's functions, the
 * note. Memory comes from the host, so it is accounted to this instance. */
#include <stdio.h>
#include <string.h>

#include <ciuic/abi/ciuic.h>

CIUIC_NOTE_1(CIUIC_KIND_BATCH_SCHEDULER, CIUIC_FLAG_DETERMINISTIC, 1, 1, "striped", "1.0.0", "");

struct ciuic_instance {
  const ciuic_host* host;
  uint64_t sequences;      /* of one rank in one step */
  ciuic_batch_item* items; /* what the last plan shows */
  size_t capacity;         /* of items */
};

static const ciuic_device kCpu = {CIUIC_DEVICE_CPU, 0};

static ciuic_str text(const char* s) {
  ciuic_str out;
  out.data = s;
  out.size = strlen(s);
  return out;
}

static ciuic_status* error(const ciuic_host* host, int32_t code, const char* message) {
  return host->status_new(host->ctx, code, 0, -1, text(message));
}

/* ---- life ---- */

static ciuic_status* create(const ciuic_create_args* args, ciuic_instance** out) {
  const ciuic_option* sequences = (const ciuic_option*)args->options.base;
  ciuic_instance* self =
      (ciuic_instance*)args->host->alloc(args->host->ctx, kCpu, sizeof(*self), 0, NULL);
  *out = self;
  if (self == NULL) {
    return error(args->host, CIUIC_EXHAUSTED, "striped: out of memory");
  }
  memset(self, 0, sizeof(*self));
  self->host = args->host;
  self->sequences = (uint64_t)sequences->value.i;
  return NULL;
}

static void drop_items(ciuic_instance* self) {
  if (self->items != NULL) {
    self->host->dealloc(self->host->ctx, kCpu, self->items, self->capacity * sizeof(*self->items),
                        NULL);
    self->items = NULL;
    self->capacity = 0;
  }
}

static void destroy(ciuic_instance* self) {
  drop_items(self);
  self->host->dealloc(self->host->ctx, kCpu, self, sizeof(*self), NULL);
}

/* ---- the kind ---- */

static ciuic_status* reserve(ciuic_instance* self, size_t count) {
  if (count <= self->capacity) {
    return NULL;
  }
  drop_items(self);
  self->items = (ciuic_batch_item*)self->host->alloc(self->host->ctx, kCpu,
                                                     count * sizeof(*self->items), 0, NULL);
  if (self->items == NULL) {
    return error(self->host, CIUIC_EXHAUSTED, "striped: no memory for the plan");
  }
  self->capacity = count;
  return NULL;
}

/* The samples of one epoch; 0 where there is no data service, as in an estimate. */
static ciuic_status* epoch_samples(const ciuic_instance* self, uint64_t* samples) {
  const ciuic_data_service* data =
      (const ciuic_data_service*)self->host->service(self->host->ctx, "ciuic.data", 0);
  *samples = data == NULL ? 0 : data->samples(data->ctx);
  return data != NULL && *samples == 0
             ? error(self->host, CIUIC_PRECONDITION, "striped: there is no sample to plan")
             : NULL;
}

static ciuic_status* plan(ciuic_instance* self, const ciuic_batch_request* request,
                          ciuic_batch_plan* out) {
  const uint64_t world = request->world;
  const uint32_t first_rank = request->only_rank < 0 ? 0 : (uint32_t)request->only_rank;
  const uint32_t ranks = request->only_rank < 0 ? request->world : 1;
  uint64_t epoch = 0;
  ciuic_status* status;
  uint32_t r, row;
  size_t n = 0;
  if (request->step == 0 || world == 0 || request->row_tokens == 0) {
    return error(self->host, CIUIC_INVALID, "striped: step, world and row_tokens start at 1");
  }
  status = epoch_samples(self, &epoch);
  status = status != NULL ? status : reserve(self, (size_t)(ranks * self->sequences));
  if (status != NULL) {
    return status;
  }
  for (r = first_rank; r < first_rank + ranks; ++r) {
    for (row = 0; row < self->sequences; ++row) {
      ciuic_batch_item* item = &self->items[n++];
      memset(item, 0, sizeof(*item));
      item->sample = request->consumed_samples + row * world + r;
      item->rank = r;
      item->row = row;
      item->length = request->row_tokens;
      item->flags = epoch != 0 && item->sample % epoch == epoch - 1 ? CIUIC_BATCH_EPOCH_END : 0u;
    }
  }
  out->items.base = self->items;
  out->items.count = (uint32_t)n;
  out->items.stride = sizeof(*self->items);
  out->micro_batches = 1;
  out->row_tokens = request->row_tokens;
  out->samples = self->sequences * world;
  out->tokens = out->samples * request->row_tokens;
  return NULL;
}

static ciuic_status* observe(ciuic_instance* self, uint64_t step, uint32_t attempt,
                             ciuic_array reports) {
  (void)self;
  (void)step;
  (void)attempt;
  (void)reports; /* nothing adapts */
  return NULL;
}

static const ciuic_batch_scheduler_vt kTable = {sizeof(ciuic_batch_scheduler_vt), 0, plan, observe};

/* ---- the descriptor ---- */

static const ciuic_option_spec kOptions[] = {{
    sizeof(ciuic_option_spec),
    CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL,
    CIUIC_TYPE_COUNT,
    0,
    "sequences",
    "Sequences of each rank in each step",
    "sequences",
    NULL,
    {4},
    {1},
    {65536},
    NULL,
}};
static const char* const kFeatures[] = {NULL};

static const ciuic_descriptor kDescriptor = {
    sizeof(ciuic_descriptor),
    CIUIC_FLAG_DETERMINISTIC,
    CIUIC_ABI_MAJOR,
    CIUIC_ABI_MINOR,
    CIUIC_ABI_MINOR,
    CIUIC_KIND_BATCH_SCHEDULER,
    1,
    1,
    "striped",
    "1.0.0",
    "",
    "MIT",
    "samples over ranks in stripes, one micro-batch a step",
    "C",
    kFeatures,
    {kOptions, 1, sizeof(ciuic_option_spec)},
    &kTable,
    NULL, /* validate: the range says it all */
    create,
    NULL, /* quiesce: no work, no thread */
    NULL, /* resume */
    NULL, /* set_option */
    NULL, /* state_save: a plan needs the request alone */
    NULL, /* state_load */
    destroy,
};

const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) {
  return abi_major == CIUIC_ABI_MAJOR && index == 0 ? &kDescriptor : NULL;
}
