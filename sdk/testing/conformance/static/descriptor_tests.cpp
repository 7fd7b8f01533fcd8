// SPDX-License-Identifier: MIT
//
// Texts, numbers and the table of the descriptor.
#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "../vt_slots.hpp"
#include "../well_formed.hpp"
#include "static_tests.hpp"

namespace ciuic::testing {
namespace {

constexpr uint32_t kKnownFlags = CIUIC_FLAG_RELOADABLE | CIUIC_FLAG_NEVER_UNLOAD |
                                 CIUIC_FLAG_DETERMINISTIC | CIUIC_FLAG_OWN_THREADS;

/// The features of features.hpp with a colon. The words before it are the kit's: a feature that begins
/// so and is not listed is a typing error.
constexpr std::array<std::string_view, 22> kKnownFeatures{
    "rule:adamw",          "rule:sgd",           "rule:lion",
    "rounding:stochastic", "gradients:lossy",    "writer:rank0",
    "checksums:none",      "events:all",         "output:csv",
    "output:json",         "loss_scale:dynamic", "loss_scale:deepspeed",
    "loss_scale:megatron", "loss_scale:static",  "loss_scale:power_of_two",
    "cast:row_major",      "cast:saturates",     "scale:power_of_two",
    "scale:delayed",       "drops:epoch",        "drops:long",
    "norm:params"};

/// The kit's features of the same word, where `feature` is none of them: "rule:adamw, rule:sgd";
/// empty: it is known, or a plugin's own.
std::string features_instead_of(std::string_view feature) {
  const std::string_view word = feature.substr(0, feature.find(':') + 1);
  std::string out;
  for (const std::string_view known : kKnownFeatures) {
    if (known == feature) {
      return "";
    }
    if (!word.empty() && known.substr(0, word.size()) == word) {
      out += (out.empty() ? "" : ", ") + std::string(known);
    }
  }
  return out;
}

void require_text(const char* text, const char* what, bool may_be_empty) {
  require(text != nullptr,
          std::string(what) + " is NULL; where there is nothing to say, write \"\"");
  require(may_be_empty || *text != '\0', std::string(what) + " is empty");
  require(is_utf8(text), std::string(what) + " is no valid UTF-8");
}

std::string hex(uint32_t bits) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%x", bits);
  return text;
}

}  // namespace

void texts_are_well_formed(const TestContext& t) {
  const ciuic_descriptor& d = t.plugin.descriptor();
  require_text(d.name, "name", false);
  require_text(d.version, "version", false);
  require_text(d.vendor, "vendor", true);
  require_text(d.license, "license", false);
  require_text(d.summary, "summary", false);
  require_text(d.build, "build", true);
  require(is_snake_case(d.name), std::string("the name \"") + d.name +
                                     "\" is chosen in config files: expected a-z, 0-9 and _, "
                                     "beginning with a letter");
  require(is_semantic_version(d.version),
          std::string("the version \"") + d.version + "\" is no MAJOR.MINOR.PATCH");
  std::set<std::string> features;
  for (const char* const* f = d.features; f != nullptr && *f != nullptr; ++f) {
    require_text(*f, "a feature (does the list end with NULL?)", false);
    require(std::strchr(*f, ',') == nullptr,
            std::string("the feature \"") + *f + "\" has a comma, which joins them in the note");
    const std::string instead = features_instead_of(*f);
    require(instead.empty(), std::string("the feature \"") + *f +
                                 "\" is unknown, so nothing tests it: expected one of " + instead +
                                 ", or a word of your own before the colon");
    require(features.insert(*f).second,
            std::string("the feature \"") + *f + "\" stands there twice");
  }
}

void numbers_are_well_formed(const TestContext& t) {
  const ciuic_descriptor& d = t.plugin.descriptor();
  require(d.struct_size == sizeof(d), "struct_size is " + std::to_string(d.struct_size) +
                                          ", expected " + std::to_string(sizeof(d)) +
                                          ": sizeof(ciuic_descriptor)");
  require(d.abi_major == CIUIC_ABI_MAJOR && d.abi_minor == CIUIC_ABI_MINOR,
          "the ABI is not the one that it was compiled for");
  require(d.min_host_minor <= d.abi_minor, "min_host_minor " + std::to_string(d.min_host_minor) +
                                               " is above abi_minor " +
                                               std::to_string(d.abi_minor));
  require(d.kind >= CIUIC_KIND_COMMUNICATOR && d.kind <= CIUIC_KIND_OPTIMIZER,
          "kind " + std::to_string(d.kind) + " is unknown");
  require((d.flags & ~kKnownFlags) == 0,
          "flags are " + hex(d.flags) + ": bits " + hex(d.flags & ~kKnownFlags) + " are unknown");
  require((d.flags & CIUIC_FLAG_RELOADABLE) == 0 || (d.flags & CIUIC_FLAG_NEVER_UNLOAD) == 0,
          "flags say both RELOADABLE and NEVER_UNLOAD");
  require(d.state_schema_min <= d.state_schema,
          "state_schema_min " + std::to_string(d.state_schema_min) + " is above state_schema " +
              std::to_string(d.state_schema));
}

void table_is_complete(const TestContext& t) {
  const ciuic_descriptor& d = t.plugin.descriptor();
  require(d.create != nullptr && d.destroy != nullptr, "create and destroy are required");
  require((d.state_save == nullptr) == (d.state_load == nullptr),
          "state_save and state_load come together, or neither");
  require(d.resume == nullptr || d.quiesce != nullptr, "there is a resume but no quiesce");
  require(d.vt != nullptr, "the kind's table is NULL");
  const std::vector<Slot>& slots = slots_of(d.kind);
  for (size_t i = 0; i < slots.size(); ++i) {
    require(slots[i].optional || slot_address(d, i) != nullptr,
            std::string(kind_name(d.kind)) + " needs " + slots[i].name +
                ", which is NULL or beyond the table's struct_size");
  }
  const auto paired = [&](const char* a, const char* b) {
    const auto at = [&](const char* name) {
      const auto slot = std::find_if(slots.begin(), slots.end(),
                                     [&](const Slot& s) { return std::strcmp(s.name, name) == 0; });
      return slot == slots.end() ? nullptr
                                 : slot_address(d, static_cast<size_t>(slot - slots.begin()));
    };
    require((at(a) == nullptr) == (at(b) == nullptr), std::string(a) + " comes with " + b);
  };
  paired("memory_alloc", "memory_free");
  paired("memory_register", "memory_unregister");
  uint32_t head[2];
  std::memcpy(head, d.vt, sizeof(head));
  require(head[1] == 0, "the table's flags are " + hex(head[1]) + ", expected 0");
}

}  // namespace ciuic::testing
