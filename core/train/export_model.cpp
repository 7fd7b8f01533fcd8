// SPDX-License-Identifier: MIT
#include "core/train/export_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include <ciuic/view.hpp>

#include "core/log/failure.h"
#include "core/train/archive_model.h"
#include "core/train/hf_names.h"

namespace ciuic::core {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{64} << 20;

/// By name: the entry to read it from.
using Chosen = std::map<std::string, ArchiveEntry, std::less<>>;

Chosen choose_values(const Archive& from) {
  Chosen chosen;
  for (ArchiveEntry& entry : from.list()) {
    const auto name = value_name(entry.key);
    if (!name || entry.is_blob || is_derived_in_hf(*name)) {
      continue;
    }
    const bool is_master = entry.key.starts_with("master/");
    const auto [at, is_new] = chosen.try_emplace(std::string(*name), entry);
    if (!is_new && is_master) {
      at->second = std::move(entry);
    }
  }
  return chosen;
}

void add_copies(Chosen& chosen, const ModelConfig& config) {
  for (const HfCopy& copy : hf_copies(config)) {
    const auto parameter = chosen.find(copy.parameter);
    if (copy.is_exported && parameter != chosen.end()) {
      chosen.try_emplace(copy.name, parameter->second);
    }
  }
}

/// In pieces, so that the largest tensor needs no more memory than any.
void copy_tensor(const Archive& from, const Archive& to, const ArchiveEntry& entry,
                 const std::string& key) {
  const uint64_t element = static_cast<uint64_t>(dtype_bytes(entry.dtype));
  const uint64_t total = entry.bytes / element;
  const uint64_t at_once = kPieceBytes / element;
  std::vector<char> bytes(std::min(total, at_once) * element);
  uint64_t begin = 0;
  do {
    const auto count = static_cast<int64_t>(std::min(total - begin, at_once));
    const bool is_whole = static_cast<uint64_t>(count) == total;
    const Tensor tensor(bytes.data(), entry.dtype,
                        is_whole ? entry.shape : std::vector<int64_t>{count});
    const Place place(entry.shape, static_cast<int64_t>(begin));
    if (!from.get(entry.key, place.c(), tensor.c())) {
      throw Failure(ExitCode::Storage, entry.key + " cannot be read", "", {{"file", from.uri()}});
    }
    to.put(key, place.c(), tensor.c());
    begin += static_cast<uint64_t>(count);
  } while (begin < total);
}

}  // namespace

size_t export_model(const Archive& from, const CheckpointPlugin& plugin,
                    const std::string& target) {
  Chosen chosen = choose_values(from);
  std::optional<std::string> config = from.get_blob("config.json");
  if (config) {
    const ArchivedModel model = read_model(from);
    add_copies(chosen, model.config);
    if (!model.notes.empty()) {  // it promises layers that are not there
      nlohmann::json fields = nlohmann::json::parse(*config);
      fields["num_nextn_predict_layers"] = model.config.num_nextn_predict_layers;
      config = fields.dump(2) + "\n";
    }
  }
  std::vector<ArchiveEntry> written;
  for (const auto& [name, entry] : chosen) {
    written.push_back(entry);
    written.back().key = "value/" + name;
  }
  if (config) {
    written.push_back({"config.json", true, {}, {}, config->size()});
  }
  const Archive to = plugin.begin(target, 0, written);
  for (const auto& [name, entry] : chosen) {
    copy_tensor(from, to, entry, "value/" + name);
  }
  if (config) {
    to.put_blob("config.json", *config);
  }
  to.commit();
  return chosen.size();
}

}  // namespace ciuic::core
