// SPDX-License-Identifier: MIT
#include "core/config/model_value.h"

#include <nlohmann/json.hpp>

namespace ciuic::core {

nlohmann::json model_value(const Node& node) {
  struct Convert {
    nlohmann::json operator()(bool v) const { return v; }
    nlohmann::json operator()(int64_t v) const { return v; }
    nlohmann::json operator()(double v) const { return v; }
    nlohmann::json operator()(const std::string& v) const {
      return v == "none" ? nlohmann::json(nullptr) : nlohmann::json(v);
    }
    nlohmann::json operator()(const Node::Date& v) const { return v.text; }
    nlohmann::json operator()(const Node::List& v) const {
      nlohmann::json list = nlohmann::json::array();
      for (const Node& element : v) {
        list.push_back(model_value(element));
      }
      return list;
    }
    nlohmann::json operator()(const Node::Table& v) const {
      nlohmann::json object = nlohmann::json::object();
      for (const Entry& entry : v) {
        object[entry.key] = model_value(entry.node);
      }
      return object;
    }
  };
  return std::visit(Convert{}, node.value);
}

}  // namespace ciuic::core
