// SPDX-License-Identifier: MIT
//
// The optional functions for memory that needs no staging: what they give out or take works like
// any other memory.
#include <cstring>

#include "communicator_suite.hpp"
#include "flight.hpp"

namespace ciuic::testing::communicator {
namespace {

constexpr ciuic_device kHost{CIUIC_DEVICE_CPU, 0};

/// A sum in place in this memory; every rank puts its number + 1 everywhere.
void sum_in(Scene& scene, float* memory, int64_t count, const std::string& what) {
  for (int64_t i = 0; i < count; ++i) {
    memory[i] = static_cast<float>(scene.group.rank() + 1);
  }
  const Tensor tensor(memory, kF32, {count});
  ciuic_collective c = make_collective(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM);
  c.in = c.out = tensor.ptr();
  const Outcome out = scene.group.run({c}, scene.patient(30 * kSecond));
  require(out.ok(), what + ": a sum in it: " + out.describe());
  const auto expected = static_cast<float>(scene.world() * (scene.world() + 1) / 2);
  for (int64_t i = 0; i < count; ++i) {
    require(memory[i] == expected, what + ": element " + std::to_string(i) + " of a sum: got " +
                                       std::to_string(memory[i]) + ", expected " +
                                       std::to_string(expected));
  }
  scene.tried();
}

void alloc(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    need_sum(scene);
    const ciuic_communicator_vt& vt = scene.group.vt();
    if (!CIUIC_CAN(&vt, memory_alloc)) {
      throw NotOffered("the communicator has no memory_alloc");
    }
    require(CIUIC_CAN(&vt, memory_free), "memory_alloc without memory_free");
    for (const uint32_t flags : {0U, uint32_t{CIUIC_MEMORY_COLLECTIVE}}) {
      for (const int64_t count : {1, 1000, 300'000}) {
        const size_t bytes = static_cast<size_t>(count) * sizeof(float);
        void* memory = nullptr;
        scene.group.host().check(vt.memory_alloc(scene.group.self(), kHost, bytes, flags, &memory));
        require(memory != nullptr, "memory_alloc succeeded without memory");
        sum_in(scene, static_cast<float*>(memory), count,
               "memory_alloc of " + std::to_string(bytes) + " bytes");
        vt.memory_free(scene.group.self(), memory, bytes);
      }
    }
  });
}

void registered(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    need_sum(scene);
    const ciuic_communicator_vt& vt = scene.group.vt();
    if (!CIUIC_CAN(&vt, memory_register)) {
      throw NotOffered("the communicator has no memory_register");
    }
    require(CIUIC_CAN(&vt, memory_unregister), "memory_register without memory_unregister");
    std::vector<float> memory(5000);
    const size_t bytes = memory.size() * sizeof(float);
    for (int round = 0; round < 2; ++round) {
      scene.group.host().check(
          vt.memory_register(scene.group.self(), kHost, memory.data(), bytes, 0));
      sum_in(scene, memory.data(), 5000, "registered memory");
      sum_in(scene, memory.data() + 17, 1000, "the middle of registered memory");
      vt.memory_unregister(scene.group.self(), memory.data(), bytes);
      sum_in(scene, memory.data(), 5000, "memory that was registered before");
    }
  });
}

}  // namespace

TestTable memory_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.memory.alloc", 3, kKind, 30,
       "memory that it gives out can be reduced in, and is given back", alloc},
      {"communicator.memory.register", 3, kKind, 30,
       "registered memory, and parts of it, can be reduced in, and again after unregister",
       registered},
  };
}

}  // namespace ciuic::testing::communicator
