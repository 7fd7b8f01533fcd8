// SPDX-License-Identifier: MIT
#include "core/train/run_data.h"

#include "core/launch/environment.h"

namespace ciuic::core {

TokenIds token_ids(const ModelConfig& config) {
  TokenIds ids;
  ids.vocab_size = config.vocab_size;
  ids.bos = config.bos_token_id.value_or(-1);
  ids.eos = config.eos_token_id.value_or(-1);
  ids.pad = config.pad_token_id.value_or(-1);
  return ids;
}

Dataset open_data(const RunPlan& plan, Log& log) {
  Dataset::Options options;
  options.ids = token_ids(plan.model);
  options.seed = static_cast<uint64_t>(plan.config.run.seed);
  options.validates = plan.config.validates();
  options.validation_sequences = plan.config.validation.sequences;
  options.cache.folder = plan.config.run.output + "/tokens";
  options.cache.threads = usable_cores();
  options.cache.note = [&log](const std::string& what) { log.info(what); };
  return Dataset::open(plan.config.data, options);
}

}  // namespace ciuic::core
