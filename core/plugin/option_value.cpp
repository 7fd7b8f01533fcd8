// SPDX-License-Identifier: MIT
#include "core/plugin/option_value.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <ciuic/view.hpp>

namespace ciuic::core {
namespace {

using nlohmann::json;

// JSON knows no infinity: such a number is a string there.
json real_json(double f) {
  if (std::isfinite(f)) {
    return f;
  }
  return std::isnan(f) ? "nan" : f > 0 ? "inf" : "-inf";
}

double real_of(const json& j) {
  if (j.is_number()) {
    return j.get<double>();
  }
  const auto text = j.get<std::string>();
  if (text == "inf" || text == "-inf") {
    return text == "inf" ? std::numeric_limits<double>::infinity()
                         : -std::numeric_limits<double>::infinity();
  }
  if (text == "nan") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  throw std::invalid_argument("a number is " + text);
}

}  // namespace

uint32_t bound_type(uint32_t type) {
  return type == CIUIC_TYPE_LIST_F64 ? uint32_t{CIUIC_TYPE_F64}
         : type == CIUIC_TYPE_F64    ? type
                                     : uint32_t{CIUIC_TYPE_I64};
}

OptionValue OptionValue::of(uint32_t type, const ciuic_value& value) {
  OptionValue out;
  switch (type) {
    case CIUIC_TYPE_F64:
      out.f = value.f;
      break;
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM:
      out.s = std::string(to_view(value.s));
      break;
    case CIUIC_TYPE_LIST_I64:
      for (const int64_t i : ArrayView<int64_t>(value.list)) {
        out.integers.push_back(i);
      }
      break;
    case CIUIC_TYPE_LIST_F64:
      for (const double f : ArrayView<double>(value.list)) {
        out.reals.push_back(f);
      }
      break;
    case CIUIC_TYPE_LIST_STRING:
      for (const ciuic_str& s : ArrayView<ciuic_str>(value.list)) {
        out.texts.emplace_back(to_view(s));
      }
      break;
    default:
      out.i = value.i;
  }
  return out;
}

json OptionValue::to_json(uint32_t type) const {
  switch (type) {
    case CIUIC_TYPE_F64:
      return real_json(f);
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM:
      return s;
    case CIUIC_TYPE_LIST_I64:
      return integers;
    case CIUIC_TYPE_LIST_F64: {
      json list = json::array();
      for (const double real : reals) {
        list.push_back(real_json(real));
      }
      return list;
    }
    case CIUIC_TYPE_LIST_STRING:
      return texts;
    default:
      return i;
  }
}

OptionValue OptionValue::from_json(uint32_t type, const json& j) {
  OptionValue v;
  switch (type) {
    case CIUIC_TYPE_F64:
      v.f = real_of(j);
      break;
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM:
      v.s = j.get<std::string>();
      break;
    case CIUIC_TYPE_LIST_I64:
      v.integers = j.get<std::vector<int64_t>>();
      break;
    case CIUIC_TYPE_LIST_F64:
      for (const json& f : j) {
        v.reals.push_back(real_of(f));
      }
      break;
    case CIUIC_TYPE_LIST_STRING:
      v.texts = j.get<std::vector<std::string>>();
      break;
    default:
      v.i = j.get<int64_t>();
  }
  return v;
}

ciuic_value OptionValue::shown(uint32_t type, std::vector<ciuic_str>& strs) const {
  ciuic_value out{};
  switch (type) {
    case CIUIC_TYPE_F64:
      out.f = f;
      break;
    case CIUIC_TYPE_STRING:
    case CIUIC_TYPE_ENUM:
      out.s = to_str(s);
      break;
    case CIUIC_TYPE_LIST_I64:
      out.list = to_array(integers);
      break;
    case CIUIC_TYPE_LIST_F64:
      out.list = to_array(reals);
      break;
    case CIUIC_TYPE_LIST_STRING:
      for (const std::string& text : texts) {
        strs.push_back(to_str(text));
      }
      out.list = to_array(strs);
      break;
    default:
      out.i = i;
  }
  return out;
}

}  // namespace ciuic::core
