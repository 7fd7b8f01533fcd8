// SPDX-License-Identifier: MIT
#include "core/train/json_line.h"

#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

namespace ciuic::core {
namespace {

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string json_number(double value) {
  if (!std::isfinite(value)) {
    return "null";
  }
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end);
}

JsonLine& JsonLine::add_raw(std::string_view key, std::string_view json) {
  body_ += body_.empty() ? "{" : ", ";
  body_ += quoted(key);
  body_ += ": ";
  body_ += json;
  return *this;
}

JsonLine& JsonLine::add(std::string_view key, std::string_view value) {
  return add_raw(key, quoted(value));
}
JsonLine& JsonLine::add(std::string_view key, int64_t value) {
  return add_raw(key, std::to_string(value));
}
JsonLine& JsonLine::add(std::string_view key, uint64_t value) {
  return add_raw(key, std::to_string(value));
}

JsonLine& JsonLine::add(std::string_view key, double value) {
  if (!std::isfinite(value)) {
    non_finite_.emplace_back(key);
  }
  return add_raw(key, json_number(value));
}

JsonLine& JsonLine::add(std::string_view key, const std::vector<double>& values) {
  std::string list = "[";
  for (const double v : values) {
    list += (list.size() > 1 ? ", " : "") + json_number(v);
  }
  return add_raw(key, list + "]");
}

std::string JsonLine::text() const {
  std::string line = body_;
  if (!non_finite_.empty()) {
    line += ", \"non_finite\": " + nlohmann::json(non_finite_).dump();
  }
  return line + "}\n";
}

}  // namespace ciuic::core
