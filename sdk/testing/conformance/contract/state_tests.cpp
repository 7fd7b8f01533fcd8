// SPDX-License-Identifier: MIT
//
// State: what a checkpoint holds and a hot swap carries.
#include <random>

#include "contract_tests.hpp"
#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

void require_state(const TestContext& t) {
  if (t.plugin.descriptor().state_save == nullptr) {
    throw NotOffered("it has no state_save");
  }
}

/// The state after two rounds, by an instance of its own.
void save_a_run(const TestContext& t, MemoryState& state) {
  Bench bench;
  const Calls calls(bench.host());
  Working work(t, bench, calls);
  work.round(0);
  work.round(1);
  work.instance.quiesce();
  work.instance.save(state);
  work.instance.destroy();
}

std::string names(const MemoryState& state) {
  std::string out;
  for (const auto& entry : state.entries()) {
    out += (out.empty() ? "" : ", ") + entry.first;
  }
  for (const auto& blob : state.blobs()) {
    out += (out.empty() ? "" : ", ") + blob.first;
  }
  return out.empty() ? "nothing" : out;
}

/// The beginning of a blob, for messages.
std::string shown(const std::string& bytes) {
  std::string out = bytes.substr(0, 40);
  for (char& c : out) {
    c = c >= ' ' && c <= '~' ? c : '?';
  }
  return bytes.size() > out.size() ? out + "..." : out;
}

/// The first key that two states do not hold alike.
std::string first_difference(const MemoryState& a, const MemoryState& b) {
  for (const auto& [key, bytes] : a.blobs()) {
    const auto other = b.blobs().find(key);
    if (other == b.blobs().end() || other->second != bytes) {
      return "blob " + key + " (saved \"" + shown(bytes) + "\", then \"" +
             (other == b.blobs().end() ? "nothing" : shown(other->second)) + "\")";
    }
  }
  for (const auto& [key, entry] : a.entries()) {
    if (!b.has(key)) {
      return "tensor " + key + ", which is not there any more";
    }
    const MemoryState::Entry& other = b.entry(key);
    for (size_t i = 0; i < entry.data.size() && entry.shape == other.shape; ++i) {
      if (entry.data[i] != other.data[i]) {
        const auto element = static_cast<int64_t>(i) / dtype_bytes(entry.dtype);
        return "tensor " + key + ", element " + std::to_string(element) + " (saved " +
               std::to_string(entry.at(element)) + ", then " + std::to_string(other.at(element)) +
               ")";
      }
    }
  }
  return "keys: the second save holds " + names(b) + ", the first " + names(a);
}

/// One way in which a state can be broken.
struct Damage {
  std::string what;
  std::function<void(MemoryState&)> apply;
};

std::vector<Damage> damages(const MemoryState& good, uint64_t seed) {
  std::vector<Damage> out;
  for (const auto& entry : good.entries()) {
    const std::string key = entry.first;
    out.push_back({"without tensor " + key, [key](MemoryState& s) { s.erase(key); }});
  }
  for (const auto& [key, bytes] : good.blobs()) {
    const auto put = [&, key = key](const std::string& what, std::string changed) {
      out.push_back({"with blob " + key + " " + what,
                     [key, changed](MemoryState& s) { s.put_blob(key, changed); }});
    };
    out.push_back({"without blob " + key, [key = key](MemoryState& s) { s.erase(key); }});
    put("empty", "");
    put("cut in half", bytes.substr(0, bytes.size() / 2));
    put("one byte short", bytes.substr(0, bytes.empty() ? 0 : bytes.size() - 1));
    put("with a byte too many", bytes + "x");
    std::mt19937_64 random(seed);
    std::string garbled = bytes;
    for (char& c : garbled) {
      c = static_cast<char>(random());
    }
    put("garbled", garbled);
    put("of 1 MiB", std::string(1 << 20, '\xff'));
  }
  return out;
}

/// Loads; a status is as good as success, since a change may still make sense.
void try_to_load(const Instance& instance, MemoryState& state, const std::string& what) {
  try {
    instance.load(state);
  } catch (const Error& e) {
    require(*e.what() != '\0', "a state " + what + " is refused by a status without a text");
  }
}

}  // namespace

void state_round_trips(const TestContext& t) {
  require_state(t);
  MemoryState first;
  save_a_run(t, first);
  const std::vector<std::string> uneven = first.uneven();
  require(uneven.empty(), "state_save wrote an element of " +
                              (uneven.empty() ? "" : uneven.front()) +
                              " twice, or left one out; each is written once");
  Bench bench;
  const Calls calls(bench.host());
  const auto exercise = make_exercise(t, bench);
  Instance instance(t, bench.host(), calls, {}, bench.seat());
  exercise->start(instance);
  instance.load(first);
  MemoryState second;
  instance.save(second);
  require(first == second, "after save, load and save: another " + first_difference(first, second));
  instance.destroy();
  require(bench.host().balanced(), "after destroy: " + bench.host().imbalance());
}

void damaged_state_is_refused(const TestContext& t) {
  require_state(t);
  MemoryState good;
  save_a_run(t, good);
  const std::vector<Damage> all = damages(good, t.seed);
  if (all.empty()) {
    throw NotOffered("it saves nothing");
  }
  for (const Damage& damage : all) {
    Bench bench;
    const Calls calls(bench.host());
    const auto exercise = make_exercise(t, bench);
    Instance instance(t, bench.host(), calls, {}, bench.seat());
    exercise->start(instance);
    MemoryState damaged;
    damaged.copy_from(good);
    damage.apply(damaged);
    try_to_load(instance, damaged, damage.what);
    instance.load(good);  // after a failure: load again or destroy
    MemoryState again;
    instance.save(again);
    require(good == again, "after a state " + damage.what +
                               ", the good state was loaded, but save "
                               "gives another " +
                               first_difference(good, again));
    instance.destroy();
    require(bench.host().balanced(),
            "after a state " + damage.what + ": " + bench.host().imbalance());
  }
}

}  // namespace ciuic::testing::contract
