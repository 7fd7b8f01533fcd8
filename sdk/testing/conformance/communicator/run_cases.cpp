// SPDX-License-Identifier: MIT
#include "run_cases.hpp"

#include <algorithm>
#include <memory>

namespace ciuic::testing::communicator {
namespace {

constexpr size_t kInFlight = 12;

struct Running {
  Case c;
  KeptBuffers buffers;
  Work work;
};

Running start(Scene& scene, const Case& c) {
  const int64_t timeout = scene.patient(20 * kSecond);
  Running running{c, make_buffers(c, scene.group.rank(), scene.group.size()), {}};
  const auto structs = std::make_unique<CallStructs>();
  running.buffers->describe_call(*structs, timeout);
  const std::string what = describe(c, scene.group.size());
  scene.rank.note(what);
  try {
    running.work = scene.group.submit({structs->c});
  } catch (const Error& e) {
    throw CheckFailed(what + ": submit: got " + code_name(e.code()) + " (" + e.what() +
                      "), expected success: capabilities say SUPPORTED");
  }
  std::memset(static_cast<void*>(structs.get()), 0x5A,
              sizeof(*structs));  // whoever looks again finds nonsense
  return running;
}

bool is_equal_on_all_ranks(uint32_t op) {
  return op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_ALL_GATHER || op == CIUIC_OP_BROADCAST;
}

void finish(Scene& scene, const Running& running, size_t number) {
  const Outcome out = scene.group.wait(running.work, scene.patient(30 * kSecond));
  const std::string what = describe(running.c, scene.group.size());
  require(out.ok(), what + ": rank " + std::to_string(scene.group.rank()) + ": got " +
                        out.describe() + ", expected success");
  if (const auto fault = running.buffers->find_fault()) {
    throw CheckFailed(*fault);
  }
  scene.tried();
  if (is_equal_on_all_ranks(running.c.op)) {
    scene.same_on_all_ranks(running.buffers->bits(),
                            what + " (case " + std::to_string(number) + ")");
  }
}

}  // namespace

uint64_t bits_needed(const Case& c) {
  uint64_t bits = CIUIC_COMM_SUPPORTED;
  bits |= c.spread == Spread::Even ? 0 : CIUIC_COMM_UNEVEN;
  bits |= c.factor == 0 ? 0 : CIUIC_COMM_FACTOR;
  bits |= (c.flags & CIUIC_COLLECTIVE_TREE) != 0 ? CIUIC_COMM_TREE : 0;
  bits |= (c.flags & CIUIC_COLLECTIVE_WIDE) != 0 ? CIUIC_COMM_WIDE : 0;
  return bits;
}

bool is_offered(const Group& group, const Case& c) {
  return group.can(c.op, c.reduce, c.dtype, bits_needed(c));
}

void run_cases(Scene& scene, const std::vector<Case>& cases) {
  std::vector<Running> running;
  size_t number = 0;
  const auto finish_all = [&] {
    for (const Running& r : running) {
      finish(scene, r, number++);
    }
    running.clear();
  };
  for (const Case& c : cases) {
    if (is_offered(scene.group, c)) {
      running.push_back(start(scene, c));
    }
    if (running.size() == kInFlight) {
      finish_all();
    }
  }
  finish_all();
}

std::vector<Case> sweep(const Scene& scene, const Sweep& what,
                        const std::vector<ciuic_dtype>& dtypes,
                        const std::vector<int64_t>& counts) {
  std::vector<Case> cases;
  const int world = scene.world();
  for (size_t d = 0; d < dtypes.size(); ++d) {
    for (size_t i = 0; i < counts.size(); ++i) {
      const size_t turn = i + d + static_cast<size_t>(world);
      Case c;
      c.op = what.op;
      c.reduce = what.reduce;
      c.dtype = dtypes[d];
      c.count = counts[i];
      c.root = static_cast<int32_t>(turn % static_cast<size_t>(world));
      c.in_place = what.has_in_place && turn % 2 == 1;
      c.spread = what.spreads[turn / 2 % what.spreads.size()];
      c.shift = turn % 4 < 2 ? 0 : turn % 8 < 4 ? 1 : 3;
      c.shape = static_cast<int>(turn % 3);
      c.flags = what.flags;
      c.factor = what.factor;
      c.numbers = what.numbers;
      c.salt = mix(scene.test.seed, mix(cases.size(), what.op * 16 + what.reduce));
      cases.push_back(c);
    }
  }
  return cases;
}

}  // namespace ciuic::testing::communicator
