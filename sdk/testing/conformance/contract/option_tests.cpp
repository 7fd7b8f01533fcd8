// SPDX-License-Identifier: MIT
//
// Option values that a config file may hold. The host has checked types, ranges and choices; what
// is left must work or be refused by a status.
#include <filesystem>
#include <unistd.h>

#include "../process_state.hpp"
#include "contract_tests.hpp"
#include "exercise.hpp"
#include "other_options.hpp"

namespace ciuic::testing::contract {
namespace {

constexpr size_t kMoreMemory = size_t{4} << 30;

ArrayView<ciuic_option_spec> specs_of(const TestContext& t) {
  return t.plugin.descriptor().options;
}

/// A life with one option set: to its end, or to a status with a text.
void live_with(const TestContext& t, const ciuic_option_spec& spec, const OptionValue& value,
               uint64_t rounds) {
  Bench bench;
  const std::string option = std::string("option ") + spec.key;
  try {
    const OptionValues own = {{spec.key, value}};
    t.plugin.validate(bench.host(), own, bench.seat());
    whole_life(t, bench, Calls(bench.host()), rounds, own);
  } catch (const Error& e) {
    require(*e.what() != '\0', option + " is refused by a status without a text");
  }
  const std::string imbalance = bench.host().imbalance();
  require(imbalance.empty(), option + " at another value: " + imbalance);
}

std::vector<std::string> odd_texts(const std::string& scratch) {
  return {"",
          std::string(1 << 20, 'x'),
          std::string("\xff\xfe\x80", 3),
          std::string("a\0b", 3),
          "%s%n%d \"quoted\" \\ \n\t",
          "../../nowhere",
          scratch + "/no/such/folder/file",
          scratch,
          "/dev/full",
          "\xf0\x9f\xa6\x80 \xe4\xb8\xad"};
}

std::vector<OptionValue> odd_values(const ciuic_option_spec& spec, const std::string& scratch) {
  std::vector<OptionValue> out;
  if (spec.type == CIUIC_TYPE_STRING) {
    for (const std::string& text : odd_texts(scratch)) {
      out.emplace_back(text);
    }
  } else if (spec.type == CIUIC_TYPE_LIST_STRING) {
    out.emplace_back(std::vector<std::string>());
    out.emplace_back(odd_texts(scratch));
    out.emplace_back(std::vector<std::string>(1000, "item"));
  } else if (spec.type == CIUIC_TYPE_LIST_I64) {
    out.emplace_back(std::vector<int64_t>());
    out.emplace_back(std::vector<int64_t>{INT64_MIN, -1, 0, 1, INT64_MAX});
  } else if (spec.type == CIUIC_TYPE_LIST_F64) {
    out.emplace_back(std::vector<double>());
    out.emplace_back(std::vector<double>{-1e308, -0.0, 1e-308, 1e308});
  }
  return out;
}

/// Tests that may make a plugin write somewhere work in the test's own folder.
void move_to(const std::string& folder) {
  std::filesystem::create_directories(folder);
  require(chdir(folder.c_str()) == 0, "cannot change to " + folder);
}

/// The largest number that an option allows may mean hours of work: then it is only created.
uint64_t rounds_with(const ciuic_option_spec& spec, const OptionValue& value) {
  const auto* whole = std::get_if<int64_t>(&value);
  return whole != nullptr && *whole > spec.def.i ? 0 : 1;
}

bool is_set_by_person(const TestContext& t, const ciuic_option_spec& spec) {
  return t.options.count(spec.key) == 1;
}

}  // namespace

void options_at_their_bounds(const TestContext& t) {
  move_to(t.scratch + "/work");
  limit_memory(kMoreMemory);
  size_t tried = 0;
  for (const ciuic_option_spec& spec : specs_of(t)) {
    for (const OptionValue& value : other_values(spec)) {
      if (!is_set_by_person(t, spec)) {
        live_with(t, spec, value, rounds_with(spec, value));
        ++tried;
      }
    }
  }
  if (tried == 0) {
    throw NotOffered("it has no option with bounds or choices");
  }
}

void options_of_any_text(const TestContext& t) {
  move_to(t.scratch + "/work");
  limit_memory(kMoreMemory);
  size_t tried = 0;
  for (const ciuic_option_spec& spec : specs_of(t)) {
    for (const OptionValue& value : odd_values(spec, t.scratch)) {
      if (!is_set_by_person(t, spec)) {
        live_with(t, spec, value, 1);
        ++tried;
      }
    }
  }
  if (tried == 0) {
    throw NotOffered("it has no option that is a text or a list");
  }
}

void validate_is_pure(const TestContext& t) {
  const ciuic_descriptor& d = t.plugin.descriptor();
  if (d.validate == nullptr) {
    throw NotOffered("it has no validate");
  }
  move_to(t.scratch + "/empty");
  TestHost host;
  const Calls calls(host);
  const CreateArgs args(d, host, t.options, {});
  const auto validate = [&] { calls.check("validate", [&] { return d.validate(args.c()); }); };
  validate();  // the first call may fill what the C++ library caches
  const ProcessSettings settings = process_settings();
  const ProcessResources before = process_resources();
  const size_t heap_before = heap_bytes();
  for (int i = 0; i < 100; ++i) {
    validate();
  }
  const size_t heap_after = heap_bytes();
  const size_t grown = heap_after > heap_before ? heap_after - heap_before : 0;
  require(grown < 100 * 8, "100 calls of validate left " + std::to_string(grown) + " bytes behind");
  require(host.asked().empty(), "validate asked the host for " +
                                    (host.asked().empty() ? "" : host.asked().front()) +
                                    "; it may use no services");
  require(host.allocations() == 0, "validate took memory from the host");
  require(host.balanced(), "after validate: " + host.imbalance());
  const std::string changed = difference(settings, process_settings());
  require(changed.empty(), "validate changed " + changed);
  const std::string left = left_behind(before);
  require(left.empty(), "validate left behind " + left);
  require(std::filesystem::is_empty(t.scratch + "/empty"), "validate wrote a file");
}

void live_options_change(const TestContext& t) {
  const ciuic_descriptor& d = t.plugin.descriptor();
  std::vector<const ciuic_option_spec*> live;
  for (const ciuic_option_spec& spec : specs_of(t)) {
    if ((spec.flags & CIUIC_OPTION_LIVE) != 0) {
      live.push_back(&spec);
      require(d.set_option != nullptr,
              std::string("option ") + spec.key + " is LIVE, but there is no set_option");
    }
  }
  if (live.empty()) {
    throw NotOffered("it has no option that may change while it runs");
  }
  Bench bench;
  const Calls calls(bench.host());
  Working work(t, bench, calls);
  uint64_t round = 0;
  for (const ciuic_option_spec* spec : live) {
    for (const OptionValue& value : other_values(*spec)) {
      const CreateArgs args(d, bench.host(), {{spec->key, value}}, bench.seat());
      for (const ciuic_option& option : ArrayView<ciuic_option>(args.c()->options)) {
        if (to_view(option.key) == spec->key) {
          calls.check("set_option", [&] { return d.set_option(work.instance.self(), &option); });
        }
      }
      work.round(round++);
    }
  }
  work.instance.destroy();
  require(bench.host().balanced(), "after set_option: " + bench.host().imbalance());
}

}  // namespace ciuic::testing::contract
