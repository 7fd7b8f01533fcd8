// SPDX-License-Identifier: MIT
#include "core/model/rope_parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace ciuic::core {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 11> kKeys = {
    "type",      "rope_type", "rope_theta", "factor",         "original_max_position_embeddings",
    "beta_fast", "beta_slow", "mscale",     "mscale_all_dim", "attention_factor",
    "truncate"};

/// Reads keys of one table and collects what does not fit.
class RopeReader {
 public:
  RopeReader(const Json& table, std::string_view key) : table_(table), key_(key) {}

  void text(const char* name, std::string& member) {
    read(name, "a string", &Json::is_string, [&](const Json& v) { member = v; });
  }
  void number(const char* name, double& member) {
    read(name, "a number", &Json::is_number, [&](const Json& v) { member = v; });
  }
  void number(const char* name, std::optional<double>& member) {
    read(name, "a number or null", &Json::is_number, [&](const Json& v) { member = v; });
  }
  void whole(const char* name, std::optional<int64_t>& member) {
    read(name, "an integer or null", &Json::is_number,
         [&](const Json& v) { member = static_cast<int64_t>(v.get<double>()); });
  }
  void truth(const char* name, bool& member) {
    read(name, "a boolean", &Json::is_boolean, [&](const Json& v) { member = v; });
  }

  void unknown(std::vector<std::string>& list) const {
    for (const auto& [name, value] : table_.items()) {
      if (std::find(kKeys.begin(), kKeys.end(), name) == kKeys.end()) {
        list.push_back(key_ + "." + name);
      }
    }
  }
  std::vector<std::string> take() { return std::move(wrong_); }

 private:
  template <typename Fits, typename Take>
  void read(const char* name, const char* expected, Fits fits, const Take& take) {
    const auto found = table_.find(name);
    if (found == table_.end() || found->is_null()) {
      return;
    }
    if (((*found).*fits)()) {
      take(*found);
    } else {
      wrong_.push_back(key_ + "." + name + ": got " + found->dump() + ", expected " + expected);
    }
  }

  const Json& table_;
  std::string key_;
  std::vector<std::string> wrong_;
};

/// The pair that turns `turns` times over the original length; between two pairs as a rule.
double pair_of_turns(double turns, int64_t rope_dim, double theta, double original) {
  return static_cast<double>(rope_dim) * std::log(original / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(theta));
}

struct Ramp {
  double low, high;  // pairs

  Ramp(const RopeParameters& rope, int64_t rope_dim, double theta, double original)
      : low(pair_of_turns(rope.beta_fast, rope_dim, theta, original)),
        high(pair_of_turns(rope.beta_slow, rope_dim, theta, original)) {
    if (rope.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, static_cast<double>(rope_dim - 1));
    high += low == high ? 0.001 : 0.0;  // no division by zero
  }

  /// 1 for a pair that keeps its angle, 0 for one slowed by the factor.
  [[nodiscard]] float kept(int64_t pair) const {
    const float slowed =
        (static_cast<float>(pair) - static_cast<float>(low)) / static_cast<float>(high - low);
    return 1.0f - std::clamp(slowed, 0.0f, 1.0f);
  }
};

}  // namespace

std::vector<std::string> read_rope(const Json& table, std::string_view key, RopeParameters& rope,
                                   double& theta, std::vector<std::string>& unknown) {
  if (table.is_null()) {
    rope = {};
    return {};
  }
  if (!table.is_object()) {
    return {std::string(key) + ": got " + table.dump() + ", expected a table or null"};
  }
  RopeReader reader(table, key);
  reader.text("type", rope.rope_type);
  reader.text("rope_type", rope.rope_type);
  reader.number("rope_theta", theta);
  reader.number("factor", rope.factor);
  reader.whole("original_max_position_embeddings", rope.original_max_position_embeddings);
  reader.number("beta_fast", rope.beta_fast);
  reader.number("beta_slow", rope.beta_slow);
  reader.number("mscale", rope.mscale);
  reader.number("mscale_all_dim", rope.mscale_all_dim);
  reader.number("attention_factor", rope.attention_factor);
  reader.truth("truncate", rope.truncate);
  reader.unknown(unknown);
  std::vector<std::string> wrong = reader.take();
  if (rope.is_yarn() && !table.contains("factor")) {
    wrong.push_back(std::string(key) + ".factor: missing, and yarn stretches by it");
  }
  return wrong;
}

std::span<const std::string_view> rope_keys() { return kKeys; }

Json to_json(const RopeParameters& rope, double theta) {
  Json out = {{"rope_type", rope.rope_type}, {"rope_theta", theta}};
  if (!rope.is_yarn()) {
    return out;
  }
  out["factor"] = rope.factor;
  out["beta_fast"] = rope.beta_fast;
  out["beta_slow"] = rope.beta_slow;
  const auto add = [&out](const char* name, const auto& value) {
    if (value) {
      out[name] = *value;
    }
  };
  add("original_max_position_embeddings", rope.original_max_position_embeddings);
  add("mscale", rope.mscale);
  add("mscale_all_dim", rope.mscale_all_dim);
  add("attention_factor", rope.attention_factor);
  if (!rope.truncate) {
    out["truncate"] = false;
  }
  return out;
}

double yarn_mscale(double factor, double a) {
  return factor <= 1 ? 1.0 : 0.1 * a * std::log(factor) + 1.0;
}

std::vector<float> inverse_frequencies(const RopeParameters& rope, int64_t rope_dim, double theta,
                                       int64_t max_position_embeddings) {
  const auto original =
      static_cast<double>(rope.original_max_position_embeddings.value_or(max_position_embeddings));
  const Ramp ramp(rope, rope_dim, theta, original);
  std::vector<float> frequencies;
  for (int64_t pair = 0; pair < rope_dim / 2; ++pair) {
    // f32 throughout, as in transformers, so that both stand on the same rounded angles.
    const float exponent = static_cast<float>(2 * pair) / static_cast<float>(rope_dim);
    const float period = std::pow(static_cast<float>(theta), exponent);
    const float plain = 1.0f / period;
    if (!rope.is_yarn()) {
      frequencies.push_back(plain);
      continue;
    }
    const float slowed = 1.0f / (static_cast<float>(rope.factor) * period);
    const float kept = ramp.kept(pair);
    frequencies.push_back(slowed * (1.0f - kept) + plain * kept);
  }
  return frequencies;
}

double rotary_factor(const RopeParameters& rope) {
  if (!rope.is_yarn()) {
    return 1.0;
  }
  if (rope.attention_factor) {
    return *rope.attention_factor;
  }
  const double m = rope.mscale.value_or(0);
  const double all = rope.mscale_all_dim.value_or(0);
  return m != 0 && all != 0 ? yarn_mscale(rope.factor, m) / yarn_mscale(rope.factor, all)
                            : yarn_mscale(rope.factor, 1.0);
}

double softmax_factor(const RopeParameters& rope) {
  const double all = rope.mscale_all_dim.value_or(0);
  if (!rope.is_yarn() || all == 0) {
    return 1.0;
  }
  const double m = yarn_mscale(rope.factor, all);
  return m * m;
}

}  // namespace ciuic::core
