// SPDX-License-Identifier: MIT
#include "core/train/model_tokenizer.h"

#include <filesystem>

#include "core/data/mapped_file.h"
#include "core/train/run_folder.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;
constexpr const char* kName = "tokenizer.json";

}  // namespace

std::optional<std::string> tokenizer_of_model(const std::string& model_folder) {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(model_folder, error);
  const fs::path own = folder / kName;
  if (fs::is_regular_file(own, error)) {
    return own.string();
  }
  // <run>/checkpoints/step-N
  const fs::path run = folder.parent_path();
  const fs::path kept = run.parent_path() / kName;
  if (run.filename() == "checkpoints" && fs::is_regular_file(kept, error)) {
    return kept.string();
  }
  return std::nullopt;
}

void keep_tokenizer(const std::string& file, const std::string& folder) {
  const MappedFile content(file, "expected a tokenizer.json");
  const std::string target = folder + "/" + kName;
  std::error_code error;
  if (!fs::equivalent(file, target, error)) {
    replace_file(target, std::string(content.bytes()));
  }
}

}  // namespace ciuic::core
