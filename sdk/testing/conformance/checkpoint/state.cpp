// SPDX-License-Identifier: MIT
#include "state.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace ciuic::testing::checkpoint {

int64_t Value::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

bool Value::operator==(const Value& o) const {
  return is_blob == o.is_blob && same(dtype, o.dtype) && shape == o.shape && bytes == o.bytes;
}

Value blob(std::string bytes) {
  Value v;
  v.is_blob = true;
  v.shape = {static_cast<int64_t>(bytes.size())};
  v.bytes = std::move(bytes);
  return v;
}

Value random_tensor(ciuic_dtype dtype, std::vector<int64_t> shape, uint64_t seed) {
  Value v;
  v.dtype = dtype;
  v.shape = std::move(shape);
  v.bytes.resize(static_cast<size_t>(v.elements() * dtype_bytes(dtype)));
  std::mt19937_64 random(seed);
  std::generate(v.bytes.begin(), v.bytes.end(), [&] {
    const uint64_t bits = random() >> 40;
    return static_cast<char>(dtype.code == CIUIC_DTYPE_BOOL ? bits & 1 : bits);
  });
  return v;
}

State model_state(uint64_t seed) {
  return {{"value/embedding.weight", random_tensor(kF32, {5, 4}, seed)},
          {"value/layers.0.norm.weight", random_tensor(kF32, {4}, seed + 1)},
          {"value/layers.0.proj.weight", random_tensor(kBF16, {4, 6}, seed + 2)},
          {"config.json", blob("{\"hidden_size\": 4}")}};
}

State training_state(uint64_t seed) {
  State state = model_state(seed);
  state["master/layers.0.proj.weight"] = random_tensor(kF32, {4, 6}, seed + 3);
  state["moment/exp_avg/layers.0.proj.weight"] = random_tensor(kBF16, {4, 6}, seed + 4);
  state["moment/step"] = random_tensor(kI64, {}, seed + 5);
  state["train.json"] = blob("{\"seed\": " + std::to_string(seed) + "}");
  return state;
}

std::string describe(const Value& value) {
  if (value.is_blob) {
    return "a blob of " + std::to_string(value.bytes.size()) + " bytes";
  }
  std::string text = dtype_name(value.dtype) + "[";
  for (size_t i = 0; i < value.shape.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(value.shape[i]);
  }
  return text + "]";
}

std::string shown(const std::string& text) {
  static constexpr const char* kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < std::min<size_t>(text.size(), 80); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != 0x7f) {
      out += text[i];
    } else {
      out += "\\x";
      out += kDigits[c >> 4];
      out += kDigits[c & 15];
    }
  }
  return out + (text.size() > 80 ? "...\" (" + std::to_string(text.size()) + " bytes)" : "\"");
}

namespace {

std::string difference(const std::string& key, const Value& got, const Value& expected) {
  if (describe(got) != describe(expected)) {
    return shown(key) + " is " + describe(got) + ", expected " + describe(expected);
  }
  for (size_t i = 0; i < got.bytes.size(); ++i) {
    if (got.bytes[i] != expected.bytes[i]) {
      return shown(key) + ", " + describe(expected) + ": byte " + std::to_string(i) + " of " +
             std::to_string(got.bytes.size()) + " is " +
             std::to_string(static_cast<unsigned char>(got.bytes[i])) + ", expected " +
             std::to_string(static_cast<unsigned char>(expected.bytes[i]));
    }
  }
  return "";
}

}  // namespace

std::string difference(const State& got, const State& expected) {
  for (const auto& [key, value] : expected) {
    const auto found = got.find(key);
    if (found == got.end()) {
      return shown(key) + " (" + describe(value) + ") is missing";
    }
    std::string text = difference(key, found->second, value);
    if (!text.empty()) {
      return text;
    }
  }
  for (const auto& [key, value] : got) {
    if (expected.count(key) == 0) {
      return shown(key) + " (" + describe(value) + ") was not saved and is there";
    }
  }
  return "";
}

Share share_of(int64_t total, int rank, int world) {
  const int64_t begin = total * rank / world;
  return {begin, total * (rank + 1) / world - begin};
}

}  // namespace ciuic::testing::checkpoint
