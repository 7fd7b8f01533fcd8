// SPDX-License-Identifier: MIT
#include "checkpoint_format/strict_json.h"

#include <set>
#include <vector>

#include <ciuic/error.hpp>

#include "checkpoint_format/tensor_types.h"

namespace ciuic::plugins::checkpoint {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;

}  // namespace

void damaged(const std::string& where, const std::string& what) {
  throw Error(CIUIC_DATA_LOSS, where + ": " + what);
}

json parse_strict(std::string_view text, const std::string& where) {
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    damaged(where, "a NUL byte at " + std::to_string(nul) + " of the JSON text");
  }
  std::vector<std::set<std::string>> names;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) {
      damaged(where, "JSON nested deeper than " + std::to_string(kMaxDepth));
    }
    if (event == json::parse_event_t::object_start) {
      names.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      names.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names.back().insert(name).second) {
        damaged(where, "the name \"" + printable(name) + "\" stands twice in one JSON object");
      }
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const json::exception& e) {
    damaged(where, "no valid JSON: " + printable(e.what()));
  }
}

const json& member(const json& object, const char* name, const std::string& where) {
  if (!object.is_object()) {
    damaged(where,
            std::string("expected an object with \"") + name + "\", got " + object.type_name());
  }
  const auto found = object.find(name);
  if (found == object.end()) {
    damaged(where, std::string("\"") + name + "\" is missing");
  }
  return *found;
}

std::string string_member(const json& object, const char* name, const std::string& where) {
  const json& value = member(object, name, where);
  if (!value.is_string()) {
    damaged(where,
            std::string("\"") + name + "\" is a " + value.type_name() + ", expected a string");
  }
  return value.get<std::string>();
}

uint64_t unsigned_member(const json& object, const char* name, const std::string& where) {
  const json& value = member(object, name, where);
  if (!value.is_number_unsigned()) {
    damaged(where, std::string("\"") + name + "\" is " + printable(value.dump()) +
                       ", expected a number of 0 or more");
  }
  return value.get<uint64_t>();
}

const json& array_member(const json& object, const char* name, const std::string& where) {
  const json& value = member(object, name, where);
  if (!value.is_array()) {
    damaged(where, std::string("\"") + name + "\" is a " + value.type_name() + ", expected a list");
  }
  return value;
}

int64_t count_of(const json& value, const char* name, const std::string& where) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{INT64_MAX}) {
    damaged(where, std::string("\"") + name + "\" is " + printable(value.dump()) +
                       ", expected a number from 0 to 2^63-1");
  }
  return value.get<int64_t>();
}

std::string json_string(std::string_view text) { return json(text).dump(); }

}  // namespace ciuic::plugins::checkpoint
