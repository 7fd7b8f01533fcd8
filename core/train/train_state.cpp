// SPDX-License-Identifier: MIT
#include "core/train/train_state.h"

#include <map>

#include <nlohmann/json.hpp>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

constexpr int kVersion = 1;

}  // namespace

std::string TrainState::to_json() const {
  nlohmann::json settings = nlohmann::json::object();
  for (const auto& [key, text] : numerics) {
    settings[key] = text;
  }
  const nlohmann::json json{{"version", kVersion},
                            {"step", step},
                            {"updates", updates},
                            {"update_tokens", update_tokens},
                            {"tokens", tokens},
                            {"samples", samples},
                            {"skipped_steps", skipped_steps},
                            {"settings", settings}};
  return json.dump(1);
}

TrainState TrainState::from_json(const std::string& text, const std::string& file) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (json.at("version").get<int>() != kVersion) {
      throw Failure(ExitCode::Storage,
                    "train.json has version " + json.at("version").dump() + ", expected " +
                        std::to_string(kVersion),
                    "", {{"file", file}});
    }
    TrainState state;
    state.step = json.at("step").get<uint64_t>();
    state.updates = json.at("updates").get<uint64_t>();
    state.tokens = json.at("tokens").get<uint64_t>();
    // Written before 0.3 without it, when no step was ever skipped.
    state.update_tokens = json.value("update_tokens", state.tokens);
    state.samples = json.at("samples").get<uint64_t>();
    state.skipped_steps = json.at("skipped_steps").get<uint64_t>();
    for (const auto& [key, value] : json.at("settings").items()) {
      state.numerics.emplace_back(key, value.get<std::string>());
    }
    return state;
  } catch (const nlohmann::json::exception& e) {
    throw Failure(ExitCode::Storage, std::string("train.json cannot be read: ") + e.what(), "",
                  {{"file", file}});
  }
}

std::string changed_settings(const TomlEntries& was, const TomlEntries& is) {
  std::map<std::string, std::string> old(was.begin(), was.end());
  std::string changes;
  const auto add = [&changes](const std::string& change) {
    changes += (changes.empty() ? "" : "; ") + change;
  };
  for (const auto& [key, text] : is) {
    const auto found = old.find(key);
    if (found == old.end()) {
      add(key + ": is " + text + ", was not set");
      continue;
    }
    if (found->second != text) {
      add(key + ": was " + found->second + ", is " + text);
    }
    old.erase(found);
  }
  for (const auto& [key, text] : old) {
    add(key + ": was " + text + ", is gone");
  }
  return changes;
}

}  // namespace ciuic::core
