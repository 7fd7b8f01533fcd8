// SPDX-License-Identifier: MIT
#include "core/plugin/descriptor_check.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include <ciuic/abi/ciuic.h>
#include <ciuic/view.hpp>

#include "core/log/visible.h"
#include "core/plugin/abi_policy.h"
#include "core/plugin/array_problem.h"
#include "core/plugin/kind.h"

namespace ciuic::core {
namespace {

/// A table is a struct_size, flags and then function pointers. `required` and `optional` count the
/// pointers.
struct TableShape {
  uint32_t kind;
  size_t pointers;               // in the host's header
  std::vector<size_t> optional;  // indices that may be NULL
};

template <typename Table>
constexpr size_t pointer_count() {
  return (sizeof(Table) - 2 * sizeof(uint32_t)) / sizeof(void (*)());
}

const std::vector<TableShape>& table_shapes() {
  static const std::vector<TableShape> shapes{
      {CIUIC_KIND_COMMUNICATOR, pointer_count<ciuic_communicator_vt>(), {5, 6, 7, 8}},
      {CIUIC_KIND_SHARDING, pointer_count<ciuic_sharding_vt>(), {10}},
      {CIUIC_KIND_PRECISION, pointer_count<ciuic_precision_vt>(), {5, 6, 7}},
      {CIUIC_KIND_BATCH_SCHEDULER, pointer_count<ciuic_batch_scheduler_vt>(), {}},
      {CIUIC_KIND_CHECKPOINT, pointer_count<ciuic_checkpoint_vt>(), {10}},
      {CIUIC_KIND_PROFILER, pointer_count<ciuic_profiler_vt>(), {}},
      {CIUIC_KIND_OPTIMIZER, pointer_count<ciuic_optimizer_vt>(), {}},
  };
  return shapes;
}

std::string table_problem(const ciuic_descriptor& d) {
  if (d.vt == nullptr) {
    return "its function table is NULL";
  }
  for (const TableShape& shape : table_shapes()) {
    if (shape.kind != d.kind) {
      continue;
    }
    const auto* bytes = static_cast<const char*>(d.vt);
    uint32_t size = 0;
    std::memcpy(&size, bytes, sizeof(size));
    for (size_t i = 0; i < shape.pointers; ++i) {
      bool is_optional = false;
      for (const size_t o : shape.optional) {
        is_optional = is_optional || o == i;
      }
      const size_t offset = 2 * sizeof(uint32_t) + i * sizeof(void*);
      void* function = nullptr;
      if (size >= offset + sizeof(void*)) {
        std::memcpy(&function, bytes + offset, sizeof(function));
      }
      if (function == nullptr && !is_optional) {
        return "function " + std::to_string(i) + " of the " + std::string(kind_name(d.kind)) +
               " table is missing, and it is required";
      }
    }
    return "";
  }
  return "its kind is " + std::to_string(d.kind) + ", expected 1 to 7";
}

/// Texts go onto terminals, into files and into generated pages: one line each.
bool is_one_line(const char* text) { return text == nullptr || visible(text) == text; }

std::string text_problem(const ciuic_descriptor& d) {
  const std::array<std::pair<const char*, const char*>, 5> texts{{{"version", d.version},
                                                                  {"license", d.license},
                                                                  {"summary", d.summary},
                                                                  {"vendor", d.vendor},
                                                                  {"build", d.build}}};
  for (const auto& [what, text] : texts) {
    if (!is_one_line(text)) {
      return std::string("its ") + what +
             " has a control character or is no UTF-8: " + visible(text);
    }
  }
  for (const char* const* f = d.features; f != nullptr && *f != nullptr; ++f) {
    if (!is_one_line(*f)) {
      return "one of its features has a control character or is no UTF-8: " + visible(*f);
    }
  }
  return "";
}

bool has_plain_texts(const ciuic_option_spec& spec) {
  bool is_plain = true;
  for (const char* text : {spec.key, spec.doc, spec.unit, spec.deprecated}) {
    is_plain = is_plain && is_one_line(text);
  }
  for (const char* const* c = spec.choices; c != nullptr && *c != nullptr; ++c) {
    is_plain = is_plain && is_one_line(*c);
  }
  return is_plain;
}

/// The default of a list: its elements are read as the type says.
std::string default_problem(const ciuic_option_spec& spec, const std::string& key) {
  const std::string what = "the default of option " + key;
  switch (spec.type) {
    case CIUIC_TYPE_LIST_STRING:
      return array_problem<ciuic_str>(spec.def.list, what);
    case CIUIC_TYPE_LIST_I64:
      return array_problem<int64_t>(spec.def.list, what);
    case CIUIC_TYPE_LIST_F64:
      return array_problem<double>(spec.def.list, what);
    default:
      return "";
  }
}

std::string option_problem(const ciuic_descriptor& d) {
  if (std::string problem = array_problem<ciuic_option_spec>(d.options, "its option table");
      !problem.empty()) {
    return problem;
  }
  std::set<std::string> keys;
  for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(d.options)) {
    if (spec.key == nullptr || *spec.key == '\0') {
      return "an option has no key";
    }
    const std::string key = visible(spec.key);
    if (!has_plain_texts(spec)) {
      return "option " + key + " has a text with a control character, or that is no UTF-8";
    }
    if (!keys.insert(key).second) {
      return "option " + key + " is declared twice";
    }
    if (spec.type < CIUIC_TYPE_BOOL || spec.type > CIUIC_TYPE_LIST_F64) {
      return "option " + key + " has unknown type " + std::to_string(spec.type);
    }
    if (spec.doc == nullptr || *spec.doc == '\0') {
      return "option " + key + " has no text";
    }
    if (spec.type == CIUIC_TYPE_ENUM && (spec.choices == nullptr || spec.choices[0] == nullptr)) {
      return "option " + key + " is an enum without choices";
    }
    if (std::string problem = default_problem(spec, key); !problem.empty()) {
      return problem;
    }
  }
  return "";
}

}  // namespace

std::string descriptor_problem(const ciuic_descriptor& d) {
  if (d.struct_size < offsetof(ciuic_descriptor, destroy) + sizeof(d.destroy)) {
    return "its descriptor has " + std::to_string(d.struct_size) + " bytes, expected at least " +
           std::to_string(offsetof(ciuic_descriptor, destroy) + sizeof(d.destroy));
  }
  if (std::string problem = abi_problem({CIUIC_ABI_MAJOR, CIUIC_ABI_MINOR},
                                        {d.abi_major, d.abi_minor}, d.min_host_minor);
      !problem.empty()) {
    return problem;
  }
  if (d.name == nullptr || *d.name == '\0' || std::strlen(d.name) > 63) {
    return "it has no name of 1 to 63 characters";
  }
  for (const char* c = d.name; *c != '\0'; ++c) {
    if (std::strchr("abcdefghijklmnopqrstuvwxyz0123456789_-", *c) == nullptr) {
      return "its name has a character that is none of a-z 0-9 _ -";
    }
  }
  if (d.version == nullptr || d.license == nullptr || d.summary == nullptr) {
    return "version, license or summary is missing";
  }
  if (std::string problem = text_problem(d); !problem.empty()) {
    return problem;
  }
  if (d.create == nullptr || d.destroy == nullptr) {
    return "create or destroy is missing";
  }
  if ((d.state_save == nullptr) != (d.state_load == nullptr)) {
    return "state_save and state_load come together, only one is there";
  }
  if (std::string problem = table_problem(d); !problem.empty()) {
    return problem;
  }
  return option_problem(d);
}

}  // namespace ciuic::core
