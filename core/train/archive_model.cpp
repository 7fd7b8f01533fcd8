// SPDX-License-Identifier: MIT
#include "core/train/archive_model.h"

#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/log/failure.h"
#include "core/train/hf_names.h"

namespace ciuic::core {
namespace {

/// Fields that say how a model is stored or used, not what it is.
bool is_bookkeeping(std::string_view field) {
  return field == "dtype" || field == "use_cache" || field == "initializer_range";
}

}  // namespace

ModelConfig model_of(const Archive& archive) { return read_model(archive).config; }

ArchivedModel read_model(const Archive& archive) {
  const std::optional<std::string> text = archive.get_blob("config.json");
  if (!text) {
    throw Failure(ExitCode::Storage, "it has no config.json, so it is no model", "",
                  {{"file", archive.uri()}});
  }
  ArchivedModel model;
  try {
    model.config = from_json(nlohmann::json::parse(*text), "config.json");
  } catch (const std::exception& e) {
    throw Failure(ExitCode::Storage, e.what(), "", {{"file", archive.uri()}});
  }
  if (model.config.num_nextn_predict_layers > 0) {
    if (auto note = drop_absent_mtp(model.config, archive.list())) {
      model.notes.push_back(std::move(*note));
    }
  }
  return model;
}

void check_same_model(const Archive& archive, const ModelConfig& expected) {
  const nlohmann::json is = expected.to_json();
  const nlohmann::json was = model_of(archive).to_json();
  std::string differences;
  for (const auto& [field, value] : is.items()) {
    const nlohmann::json other = was.value(field, nlohmann::json());
    if (!is_bookkeeping(field) && other != value) {
      differences += (differences.empty() ? "" : ", ") + field + " " + other.dump() + " there, " +
                     value.dump() + " here";
    }
  }
  if (!differences.empty()) {
    throw Failure(ExitCode::Storage, "this checkpoint is of another model: " + differences,
                  "give the run another run.output, or --resume none", {{"file", archive.uri()}});
  }
}

}  // namespace ciuic::core
