// SPDX-License-Identifier: MIT
#include "core/plugin/descriptor_info.h"

#include <stdexcept>

#include <ciuic/view.hpp>

namespace ciuic::core {
namespace {

using nlohmann::json;

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

OptionInfo option_of(const ciuic_option_spec& spec) {
  OptionInfo o;
  o.key = text_of(spec.key);
  o.doc = text_of(spec.doc);
  o.unit = text_of(spec.unit);
  o.deprecated = text_of(spec.deprecated);
  o.type = spec.type;
  o.flags = spec.flags;
  o.since_minor = spec.since_minor;
  o.def = OptionValue::of(spec.type, spec.def);
  o.min = OptionValue::of(bound_type(spec.type), spec.min);
  o.max = OptionValue::of(bound_type(spec.type), spec.max);
  for (const char* const* c = spec.choices; c != nullptr && *c != nullptr; ++c) {
    o.choices.emplace_back(*c);
  }
  return o;
}

uint32_t functions_of(const ciuic_descriptor& d) {
  return (d.validate != nullptr ? kHasValidate : 0u) | (d.quiesce != nullptr ? kHasQuiesce : 0u) |
         (d.resume != nullptr ? kHasResume : 0u) | (d.set_option != nullptr ? kHasSetOption : 0u) |
         (d.state_save != nullptr ? kHasState : 0u);
}

json option_json(const OptionInfo& o) {
  return {{"key", o.key},
          {"doc", o.doc},
          {"unit", o.unit},
          {"deprecated", o.deprecated},
          {"type", o.type},
          {"flags", o.flags},
          {"since_minor", o.since_minor},
          {"default", o.def.to_json(o.type)},
          {"min", o.min.to_json(bound_type(o.type))},
          {"max", o.max.to_json(bound_type(o.type))},
          {"choices", o.choices}};
}

OptionInfo option_from(const json& j) {
  OptionInfo o;
  j.at("key").get_to(o.key);
  j.at("doc").get_to(o.doc);
  j.at("unit").get_to(o.unit);
  j.at("deprecated").get_to(o.deprecated);
  j.at("type").get_to(o.type);
  j.at("flags").get_to(o.flags);
  j.at("since_minor").get_to(o.since_minor);
  if (o.key.empty() || o.type < CIUIC_TYPE_BOOL || o.type > CIUIC_TYPE_LIST_F64) {
    throw std::invalid_argument("an option has no key or an unknown type");
  }
  o.def = OptionValue::from_json(o.type, j.at("default"));
  o.min = OptionValue::from_json(bound_type(o.type), j.at("min"));
  o.max = OptionValue::from_json(bound_type(o.type), j.at("max"));
  j.at("choices").get_to(o.choices);
  return o;
}

}  // namespace

std::shared_ptr<const DescriptorInfo> DescriptorInfo::of(const ciuic_descriptor& d) {
  auto info = std::make_shared<DescriptorInfo>();
  info->kind = d.kind;
  info->flags = d.flags;
  info->abi_major = d.abi_major;
  info->abi_minor = d.abi_minor;
  info->min_host_minor = d.min_host_minor;
  info->state_schema = d.state_schema;
  info->state_schema_min = d.state_schema_min;
  info->functions = functions_of(d);
  info->name = text_of(d.name);
  info->version = text_of(d.version);
  info->vendor = text_of(d.vendor);
  info->license = text_of(d.license);
  info->summary = text_of(d.summary);
  info->build = text_of(d.build);
  for (const char* const* f = d.features; f != nullptr && *f != nullptr; ++f) {
    info->features.emplace_back(*f);
  }
  for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(d.options)) {
    info->own_options.push_back(option_of(spec));
  }
  info->show_options();
  return info;
}

std::shared_ptr<const DescriptorInfo> DescriptorInfo::from_json(const json& j) {
  auto info = std::make_shared<DescriptorInfo>();
  j.at("kind").get_to(info->kind);
  j.at("flags").get_to(info->flags);
  j.at("abi_major").get_to(info->abi_major);
  j.at("abi_minor").get_to(info->abi_minor);
  j.at("min_host_minor").get_to(info->min_host_minor);
  j.at("state_schema").get_to(info->state_schema);
  j.at("state_schema_min").get_to(info->state_schema_min);
  j.at("functions").get_to(info->functions);
  j.at("name").get_to(info->name);
  j.at("version").get_to(info->version);
  j.at("vendor").get_to(info->vendor);
  j.at("license").get_to(info->license);
  j.at("summary").get_to(info->summary);
  j.at("build").get_to(info->build);
  j.at("features").get_to(info->features);
  for (const json& option : j.at("options")) {
    info->own_options.push_back(option_from(option));
  }
  info->show_options();
  return info;
}

json DescriptorInfo::to_json() const {
  json list = json::array();
  for (const OptionInfo& o : own_options) {
    list.push_back(option_json(o));
  }
  return {{"kind", kind},
          {"flags", flags},
          {"abi_major", abi_major},
          {"abi_minor", abi_minor},
          {"min_host_minor", min_host_minor},
          {"state_schema", state_schema},
          {"state_schema_min", state_schema_min},
          {"functions", functions},
          {"name", name},
          {"version", version},
          {"vendor", vendor},
          {"license", license},
          {"summary", summary},
          {"build", build},
          {"features", features},
          {"options", std::move(list)}};
}

void DescriptorInfo::show_options() {
  choices_.resize(own_options.size());
  strs_.resize(own_options.size());
  for (size_t i = 0; i < own_options.size(); ++i) {
    const OptionInfo& o = own_options[i];
    ciuic_option_spec spec{};
    spec.struct_size = sizeof(spec);
    spec.flags = o.flags;
    spec.type = o.type;
    spec.since_minor = o.since_minor;
    spec.key = o.key.c_str();
    spec.doc = o.doc.c_str();
    spec.unit = o.unit.c_str();
    spec.deprecated = o.deprecated.empty() ? nullptr : o.deprecated.c_str();
    spec.def = o.def.shown(o.type, strs_[i]);
    std::vector<ciuic_str> none;
    spec.min = o.min.shown(bound_type(o.type), none);
    spec.max = o.max.shown(bound_type(o.type), none);
    for (const std::string& choice : o.choices) {
      choices_[i].push_back(choice.c_str());
    }
    choices_[i].push_back(nullptr);
    spec.choices = o.choices.empty() ? nullptr : choices_[i].data();
    specs_.push_back(spec);
  }
  options = to_array(specs_);
}

bool is_same(const DescriptorInfo& a, const DescriptorInfo& b) {
  const auto text = [](const DescriptorInfo& d) {
    return d.to_json().dump(-1, ' ', false, json::error_handler_t::replace);
  };
  return text(a) == text(b);
}

}  // namespace ciuic::core
