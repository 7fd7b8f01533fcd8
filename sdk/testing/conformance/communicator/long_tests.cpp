// SPDX-License-Identifier: MIT
//
// Level 4: more than 2^31 bytes, hundreds of instances, and traffic that must not grow anything.
#include <chrono>
#include <random>
#include <thread>

#include "communicator_suite.hpp"
#include "flight.hpp"
#include "process_usage.hpp"

namespace ciuic::testing::communicator {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

/// Memory for two ranks with their data and a plugin's copies of it.
void need_memory(int64_t bytes) {
  if (available_bytes() < bytes) {
    throw NotOffered("needs " + std::to_string(bytes / kGiB) + " GiB of free memory, there are " +
                     std::to_string(available_bytes() / kGiB));
  }
}

Outcome run_big(Scene& scene, ciuic_collective c) {
  c.timeout_ns = scene.patient(200 * kSecond);
  return scene.group.run({c}, scene.patient(250 * kSecond));
}

/// Sizes in bytes do not fit 32 bits, with and without a sign.
void big_broadcast(Scene& scene) {
  const int64_t bytes = 2 * kGiB + 4097;
  if (!scene.group.can(CIUIC_OP_BROADCAST, 0, kU8)) {
    return;
  }
  std::vector<uint8_t> data(static_cast<size_t>(bytes));
  const auto value = [](size_t i) { return static_cast<uint8_t>(i * 2654435761U >> 13); };
  for (size_t i = 0; i < data.size() && scene.group.rank() == 0; ++i) {
    data[i] = value(i);
  }
  const Tensor tensor(data.data(), kU8, {bytes});
  ciuic_collective c = make_collective(CIUIC_OP_BROADCAST);
  c.out = tensor.ptr();
  scene.rank.note("a broadcast of 2^31 + 4097 bytes");
  const Outcome out = run_big(scene, c);
  require(out.ok(), "a broadcast of 2^31 + 4097 bytes: " + out.describe());
  for (size_t i = 0; i < data.size(); ++i) {
    require(data[i] == value(i), [&] {
      return "a broadcast of 2^31 + 4097 bytes: byte " + std::to_string(i) + ": got " +
             std::to_string(data[i]) + ", expected " + std::to_string(value(i));
    });
  }
  scene.tried();
}

void big_sum(Scene& scene) {
  const int64_t count = kGiB / 2 + 1029;
  std::vector<float> data(static_cast<size_t>(count));
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<float>(i % 1021) + static_cast<float>(scene.group.rank());
  }
  const Tensor tensor(data.data(), kF32, {count});
  ciuic_collective c = make_collective(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM);
  c.in = c.out = tensor.ptr();
  scene.rank.note("a sum of 2^29 + 1029 f32");
  const Outcome out = run_big(scene, c);
  require(out.ok(), "a sum of 2^29 + 1029 f32: " + out.describe());
  for (size_t i = 0; i < data.size(); ++i) {
    const float expected = 2 * static_cast<float>(i % 1021) + 1;
    require(data[i] == expected, [&] {
      return "a sum of 2^29 + 1029 f32: element " + std::to_string(i) + ": got " +
             std::to_string(data[i]) + ", expected " + std::to_string(expected);
    });
  }
  scene.tried();
}

void two_gib(const TestContext& test) {
  need_memory(16 * kGiB);
  on_worlds(test, {{2}, 600 * kSecond}, [](Scene& scene) {
    need_sum(scene);
    big_broadcast(scene);
    big_sum(scene);
  });
}

void instances(const TestContext& test) {
  on_worlds(test, {{2, 4}, 300 * kSecond}, [](Scene& scene) {
    need_sum(scene);
    int64_t files = 0;
    for (int i = 0; i < 200; ++i) {
      scene.rank.note("instance " + std::to_string(i));
      Group group = Group::create(scene.test, scene.rank);
      Scene inner(scene.test, scene.rank, group);
      land(inner, take_off(inner, sum_of(inner, 10 + i)), "one of 200 instances in a row");
      group.destroy();
      files = i == 10 ? num_open_files() : files;
    }
    require(num_open_files() <= files,
            "open files after 200 instances: " + std::to_string(num_open_files()) +
                ", after 10 were " + std::to_string(files));
    scene.tried();
  });
}

/// Half a minute of sums of all sizes; the second half may not hold more memory than the first.
void traffic(const TestContext& test) {
  on_worlds(test, {{3}, 300 * kSecond}, [](Scene& scene) {
    need_sum(scene);
    constexpr int kRounds = 1500;
    int64_t half_way = 0;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Flight> flights;
      for (uint64_t i = 0; i < 8; ++i) {
        const uint64_t bits = mix(scene.test.seed, static_cast<uint64_t>(round) * 8 + i);
        flights.push_back(
            take_off(scene, sum_of(scene, static_cast<int64_t>(bits % (i == 0 ? 60'000 : 900)))));
      }
      for (const Flight& flight : flights) {
        land(scene, flight, "traffic, round " + std::to_string(round));
      }
      half_way = round == kRounds / 2 ? resident_bytes() : half_way;
    }
    const int64_t growth = resident_bytes() - half_way;
    require(growth < (int64_t{16} << 20), "memory grew by " + std::to_string(growth >> 20) +
                                              " MiB in the second half of " +
                                              std::to_string(kRounds * 8) + " sums");
  });
}

}  // namespace

TestTable long_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.long.two_gib", 4, kKind, 900, "buffers of more than 2^31 bytes", two_gib},
      {"communicator.long.instances", 4, kKind, 600, "200 instances in a row", instances},
      {"communicator.long.traffic", 4, kKind, 600, "12 000 sums without growth of memory", traffic},
  };
}

}  // namespace ciuic::testing::communicator
