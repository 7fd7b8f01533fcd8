// SPDX-License-Identifier: MIT
//
// Send and receive: pairs, tags, order, and several in one submit, where none may wait for another.
#include <cstring>

#include "communicator_suite.hpp"
#include "run_cases.hpp"

namespace ciuic::testing::communicator {
namespace {

void need_pairs(const Scene& scene, ciuic_dtype dtype = kU8) {
  if (!scene.group.can(CIUIC_OP_SEND, 0, dtype) || !scene.group.can(CIUIC_OP_RECV, 0, dtype)) {
    throw NotOffered("capabilities deny SEND and RECV");
  }
}

/// What travels from one rank to another, and where it arrives.
struct Parcel {
  Parcel(ciuic_dtype type, int64_t count, uint64_t salt)
      : bytes(static_cast<size_t>(count * dtype_bytes(type))),
        fenced(bytes.size(), 0),
        tensor(bytes.data(), type, {count}),
        arrival(fenced.data(), type, {count}) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(mix(salt, i));
    }
  }
  [[nodiscard]] bool has_arrived() const {
    return !fenced.stray_write() &&
           (bytes.empty() || std::memcmp(bytes.data(), fenced.data(), bytes.size()) == 0);
  }
  std::vector<char> bytes;
  FencedBytes fenced;
  Tensor tensor, arrival;
};

ciuic_collective send_to(const Scene& scene, int peer, const Parcel& parcel, uint32_t tag = 0) {
  ciuic_collective c = make_collective(CIUIC_OP_SEND);
  c.peer = peer;
  c.tag = tag;
  c.in = parcel.tensor.ptr();
  c.timeout_ns = scene.patient(20 * kSecond);
  return c;
}
ciuic_collective receive_from(const Scene& scene, int peer, const Parcel& parcel,
                              uint32_t tag = 0) {
  ciuic_collective c = send_to(scene, peer, parcel, tag);
  c.op = CIUIC_OP_RECV;
  c.in = nullptr;
  c.out = parcel.arrival.ptr();
  return c;
}

void expect_ok(const Outcome& out, const std::string& what) {
  require(out.ok(), what + ": got " + out.describe() + ", expected success");
}

/// Each rank to the next, all in one submit: no rank may wait for its send to be received first.
void ring(const TestContext& test) {
  on_worlds(test, {{2, 3, 4, 8}}, [](Scene& scene) {
    need_pairs(scene);
    const int world = scene.world();
    const int rank = scene.group.rank();
    const int next = (rank + 1) % world;
    const int previous = (rank + world - 1) % world;
    uint64_t salt = scene.test.seed;
    for (const ciuic_dtype dtype : kMovedTypes) {
      for (const int64_t count : {0, 1, 129, 100'003}) {
        if (!scene.group.can(CIUIC_OP_SEND, 0, dtype)) {
          continue;
        }
        ++salt;
        const Parcel mine(dtype, count, mix(salt, static_cast<uint64_t>(rank)));
        const Parcel theirs(dtype, count, mix(salt, static_cast<uint64_t>(previous)));
        const std::string what = "a ring of " + std::to_string(world) + ": send and recv of " +
                                 std::to_string(count) + " " + dtype_name(dtype);
        scene.rank.note(what);
        expect_ok(
            scene.group.run({send_to(scene, next, mine), receive_from(scene, previous, theirs)},
                            scene.patient(30 * kSecond)),
            what);
        require(theirs.has_arrived(), what + ": rank " + std::to_string(rank) +
                                          " got other bytes than rank " + std::to_string(previous) +
                                          " sent");
        scene.tried();
      }
    }
  });
}

/// Messages with one tag arrive in the order in which they were sent.
void order(const TestContext& test) {
  on_worlds(test, {{2, 3}}, [](Scene& scene) {
    need_pairs(scene);
    constexpr int kMessages = 12;
    const int last = scene.world() - 1;
    std::vector<std::unique_ptr<Parcel>> parcels;
    std::vector<Work> works;
    for (int i = 0; i < kMessages; ++i) {
      parcels.push_back(std::make_unique<Parcel>(kI32, 1 + i, mix(scene.test.seed, i)));
      if (scene.group.rank() == 0) {
        works.push_back(scene.group.submit({send_to(scene, last, *parcels.back())}));
      } else if (scene.group.rank() == last) {
        works.push_back(scene.group.submit({receive_from(scene, 0, *parcels.back())}));
      }
    }
    for (const Work& work : works) {
      expect_ok(scene.group.wait(work, scene.patient(30 * kSecond)), "one of twelve messages");
    }
    for (int i = 0; i < kMessages && scene.group.rank() == last; ++i) {
      require(parcels[static_cast<size_t>(i)]->has_arrived(),
              "message " + std::to_string(i) + " of twelve with one tag: other bytes than the " +
                  std::to_string(i) + "th that was sent; expected the order of sending");
    }
    scene.tried();
  });
}

/// Rank 0 sends faster than the others look: receives are open before, while and after their message
/// comes. All have one size, so that nothing but the bytes tells one from another.
void storm(const TestContext& test) {
  on_worlds(test, {{2, 3}}, [](Scene& scene) {
    need_pairs(scene);
    constexpr uint64_t kRounds = 60;
    constexpr uint64_t kMessages = 40;
    constexpr uint64_t kTags = 3;
    const int64_t count = 16;
    for (uint64_t round = 0; round < kRounds; ++round) {
      std::vector<std::unique_ptr<Parcel>> parcels;
      std::vector<Work> works;
      for (uint64_t i = 0; i < kMessages; ++i) {
        const uint64_t salt = mix(scene.test.seed, round * kMessages + i);
        parcels.push_back(std::make_unique<Parcel>(kU8, count, salt));
        const auto tag = static_cast<uint32_t>(i % kTags);
        for (int peer = 1; scene.group.rank() == 0 && peer < scene.world(); ++peer) {
          works.push_back(scene.group.submit({send_to(scene, peer, *parcels.back(), tag)}));
        }
        if (scene.group.rank() != 0) {
          works.push_back(scene.group.submit({receive_from(scene, 0, *parcels.back(), tag)}));
        }
      }
      for (const Work& work : works) {
        expect_ok(scene.group.wait(work, scene.patient(30 * kSecond)), "one of many messages");
      }
      for (uint64_t i = 0; i < kMessages && scene.group.rank() != 0; ++i) {
        require(parcels[i]->has_arrived(),
                "round " + std::to_string(round) + ": the receive of message " + std::to_string(i) +
                    " (tag " + std::to_string(i % kTags) +
                    ") got other bytes; expected, of each tag, the order of sending");
      }
      scene.tried();
    }
  });
}

/// Two messages of one group, received under their tags in the other order.
void tags(const TestContext& test) {
  on_worlds(test, {{2}}, [](Scene& scene) {
    need_pairs(scene);
    const Parcel first(kF32, 33, mix(scene.test.seed, 1));
    const Parcel second(kF32, 33, mix(scene.test.seed, 2));
    const bool sends = scene.group.rank() == 0;
    const auto call = [&](const Parcel& parcel, uint32_t tag) {
      return sends ? send_to(scene, 1, parcel, tag) : receive_from(scene, 0, parcel, tag);
    };
    const std::vector<ciuic_collective> group =
        sends ? std::vector<ciuic_collective>{call(first, 7), call(second, 1000)}
              : std::vector<ciuic_collective>{call(second, 1000), call(first, 7)};
    expect_ok(scene.group.run(group, scene.patient(30 * kSecond)), "two messages with two tags");
    require(sends || (first.has_arrived() && second.has_arrived()),
            "two messages with tags 7 and 1000, received in the other order: got other bytes; "
            "expected that tags tell them apart");
    scene.tried();
  });
}

/// Messages go their way between collectives of the same group.
void among_collectives(const TestContext& test) {
  on_worlds(test, {{2, 4}}, [](Scene& scene) {
    need_pairs(scene);
    const int other = scene.group.rank() ^ 1;
    for (int i = 0; i < 8; ++i) {
      const auto salt = static_cast<uint64_t>(i);
      const Parcel mine(kU8, 1000 + i, mix(salt, static_cast<uint64_t>(scene.group.rank())));
      const Parcel theirs(kU8, 1000 + i, mix(salt, static_cast<uint64_t>(other)));
      const Work work =
          scene.group.submit({send_to(scene, other, mine), receive_from(scene, other, theirs)});
      run_cases(scene, sweep(scene, {CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM}, {kF32}, {3, 129}));
      expect_ok(scene.group.wait(work, scene.patient(30 * kSecond)), "messages among collectives");
      require(theirs.has_arrived(), "a message among collectives: other bytes than were sent");
      scene.tried();
    }
  });
}

}  // namespace

TestTable send_receive_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.send_recv.ring", 3, kKind, 60,
       "a send and a receive in one submit do not wait for each other; the bits arrive", ring},
      {"communicator.send_recv.order", 3, kKind, 30,
       "messages with one tag arrive in the order of sending", order},
      {"communicator.send_recv.storm", 3, kKind, 60,
       "many messages of a few tags, received while they come, keep the order of their tag", storm},
      {"communicator.send_recv.tags", 3, kKind, 30, "tags tell the messages of a pair apart", tags},
      {"communicator.send_recv.among_collectives", 3, kKind, 30,
       "messages and collectives of one group do not mix", among_collectives},
  };
}

}  // namespace ciuic::testing::communicator
