// SPDX-License-Identifier: MIT
//
// A plugin's own check of its options against each other, on options that came over the pipe.
#include <list>

#include <ciuic/view.hpp>

#include "core/plugin/option_value.h"
#include "tools/probe/bare_host.h"
#include "tools/probe/probed_library.h"

namespace ciuic::tools {
namespace {

/// Options from JSON, and all that their pointers need.
class GivenOptions {
 public:
  explicit GivenOptions(const nlohmann::json& list) {
    for (const nlohmann::json& j : list) {
      Kept& kept = kept_.emplace_back();
      kept.key = j.at("key").get<std::string>();
      const auto type = j.at("type").get<uint32_t>();
      kept.value = core::OptionValue::from_json(type, j.at("value"));
      ciuic_option option{};
      option.struct_size = sizeof(option);
      option.type = type;
      option.toml_line = j.at("line").get<uint32_t>();
      option.key = to_str(kept.key);
      option.value = kept.value.shown(type, kept.strs);
      options_.push_back(option);
    }
  }
  [[nodiscard]] ciuic_array array() const { return to_array(options_); }

 private:
  struct Kept {
    std::string key;
    core::OptionValue value;
    std::vector<ciuic_str> strs;
  };
  std::list<Kept> kept_;  // addresses stay
  std::vector<ciuic_option> options_;
};

}  // namespace

std::string validate(const ciuic_descriptor& descriptor, const nlohmann::json& request) {
  if (descriptor.validate == nullptr) {
    return "";
  }
  const GivenOptions options(request.at("options"));
  const std::string name = descriptor.name;
  ciuic_create_args args{};
  args.struct_size = sizeof(args);
  args.host = bare_host();
  args.options = options.array();
  args.rank = request.at("rank").get<int32_t>();
  args.world = request.at("world").get<int32_t>();
  args.local_rank = request.at("local_rank").get<int32_t>();
  args.local_world = request.at("local_world").get<int32_t>();
  args.device = {request.at("device_type").get<int32_t>(), request.at("device_id").get<int32_t>()};
  args.name = to_str(name);
  args.generation = request.at("generation").get<uint64_t>();
  return take_message(descriptor.validate(&args));
}

}  // namespace ciuic::tools
