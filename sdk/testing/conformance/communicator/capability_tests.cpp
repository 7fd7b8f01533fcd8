// SPDX-License-Identifier: MIT
//
// What a communicator says that it can do: a pure answer, the same everywhere, and kept: what it
// denies it refuses, what it claims it is held to by the other tests.
#include "communicator_suite.hpp"
#include "run_cases.hpp"

namespace ciuic::testing::communicator {
namespace {

constexpr uint64_t kKnownBits = (CIUIC_COMM_WIDE << 1) - 1;

/// Calls `each` for every question that makes sense, and for some that make none.
template <typename Each>
void for_each_question(const Each& each) {
  std::vector<ciuic_dtype> dtypes = kMovedTypes;
  dtypes.push_back({CIUIC_DTYPE_BOOL, 8, 1});
  dtypes.push_back({CIUIC_DTYPE_INT, 4, 1});
  dtypes.push_back({99, 32, 1});
  for (uint32_t op = 0; op <= CIUIC_OP_BARRIER + 1; ++op) {
    for (uint32_t reduce = 0; reduce <= CIUIC_REDUCE_AND + 1; ++reduce) {
      for (const ciuic_dtype dtype : dtypes) {
        each(op, reduce, dtype);
      }
    }
  }
}

std::string question(uint32_t op, uint32_t reduce, ciuic_dtype dtype) {
  return std::string("capabilities of ") + op_name(op) + " " + reduce_name(reduce) + " " +
         dtype_name(dtype);
}

void consistent(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}}, [](Scene& scene) {
    uint64_t digest = 0;
    for_each_question([&](uint32_t op, uint32_t reduce, ciuic_dtype dtype) {
      const uint64_t bits = scene.group.capabilities(op, reduce, dtype);
      const std::string what = question(op, reduce, dtype);
      require(bits == scene.group.capabilities(op, reduce, dtype),
              what + ": asked twice, two answers; expected a pure function");
      require((bits & ~kKnownBits) == 0,
              what + ": unknown bits " + std::to_string(bits & ~kKnownBits));
      require(bits == 0 || (bits & CIUIC_COMM_SUPPORTED) != 0,
              what + ": got " + std::to_string(bits) +
                  ", expected SUPPORTED or 0: the other bits qualify it");
      digest = mix(digest, bits);
    });
    require(scene.group.capabilities(0, 0, kF32) == 0 &&
                scene.group.capabilities(CIUIC_OP_BARRIER + 1, 0, kF32) == 0,
            "capabilities support operations that the contract does not have (0 and 12)");
    scene.same_on_all_ranks(digest, "capabilities");
    scene.tried();
  });
}

/// A well-formed request, of 4 elements a part, of what the question was about.
struct Request {
  Request(uint32_t op, uint32_t reduce, ciuic_dtype dtype, int rank, int world)
      : memory(512, 0),
        one(memory.data(), dtype, {4}),
        all(memory.data() + 128, dtype, {4 * world}),
        result(memory.data() + 400, dtype, {4}),
        c(make_collective(op, reduce)) {
    const bool is_root = rank == 0;
    const bool cuts_in =
        op == CIUIC_OP_REDUCE_SCATTER || op == CIUIC_OP_SCATTER || op == CIUIC_OP_ALL_TO_ALL;
    const bool cuts_out =
        op == CIUIC_OP_ALL_GATHER || op == CIUIC_OP_GATHER || op == CIUIC_OP_ALL_TO_ALL;
    const bool has_in = op != CIUIC_OP_BROADCAST && op != CIUIC_OP_BARRIER && op != CIUIC_OP_RECV &&
                        (op != CIUIC_OP_SCATTER || is_root);
    const bool has_out = op != CIUIC_OP_BARRIER && op != CIUIC_OP_SEND &&
                         ((op != CIUIC_OP_REDUCE && op != CIUIC_OP_GATHER) || is_root);
    c.in = !has_in ? nullptr : cuts_in ? all.ptr() : one.ptr();
    c.out = !has_out   ? nullptr
            : cuts_out ? (cuts_in ? spare(dtype, world) : all.ptr())
                       : result.ptr();
  }
  const ciuic_tensor* spare(ciuic_dtype dtype, int world) {
    more.resize(512);
    second = Tensor(more.data(), dtype, {4 * world});
    return second.ptr();
  }

  std::vector<char> memory, more;
  Tensor one, all, result, second;
  ciuic_collective c;
};

void expect_refusal(Scene& scene, const ciuic_collective& c, const std::string& what) {
  scene.rank.note(what);
  const Outcome out = scene.group.run({c}, scene.patient(30 * kSecond));
  require(out.code() == CIUIC_UNIMPLEMENTED,
          what + ": capabilities deny it; submitted all the same: got " + out.describe() +
              ", expected " + code_name(CIUIC_UNIMPLEMENTED));
  scene.tried();
}

/// A barrier has no tensors, so its type cannot be what it is denied for.
bool can_any_barrier(const Group& group) {
  for (const ciuic_dtype dtype : kMovedTypes) {
    if (group.can(CIUIC_OP_BARRIER, 0, dtype)) {
      return true;
    }
  }
  return false;
}

void denied(const TestContext& test) {
  on_worlds(test, {{1, 2}}, [](Scene& scene) {
    for_each_question([&](uint32_t op, uint32_t reduce, ciuic_dtype dtype) {
      const bool is_question = op >= CIUIC_OP_ALL_REDUCE && op <= CIUIC_OP_BARRIER &&
                               (reduce == 0) != is_reducing(op) && reduce <= CIUIC_REDUCE_AND &&
                               dtype.bits % 8 == 0;
      if (!is_question || scene.group.can(op, reduce, dtype) ||
          (op == CIUIC_OP_BARRIER && can_any_barrier(scene.group))) {
        return;
      }
      Request request(op, reduce, dtype, scene.group.rank(), scene.world());
      expect_refusal(
          scene, request.c,
          std::string(op_name(op)) + " " + reduce_name(reduce) + " " + dtype_name(dtype));
    });
    // A refusal leaves the group as it was.
    if (scene.group.can(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, kF32)) {
      run_cases(scene, sweep(scene, {CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM}, {kF32}, {129}));
    }
  });
}

/// Flags and members that need a bit which is not there: refused, not ignored.
void denied_forms(const TestContext& test) {
  on_worlds(test, {{1, 2}}, [](Scene& scene) {
    const uint64_t bits = scene.group.capabilities(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, kF32);
    Request request(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, kF32, scene.group.rank(), scene.world());
    if ((bits & CIUIC_COMM_SUPPORTED) == 0) {
      throw NotOffered("capabilities deny sums of f32");
    }
    if ((bits & CIUIC_COMM_FACTOR) == 0) {
      ciuic_collective c = request.c;
      c.factor = 0.5;
      expect_refusal(scene, c, "a sum with a factor, without FACTOR");
    }
    if ((bits & CIUIC_COMM_VOTE) == 0) {
      ciuic_collective c = request.c;
      c.vote = 1;
      expect_refusal(scene, c, "a sum with a vote, without VOTE");
    }
    if ((bits & CIUIC_COMM_TREE) == 0) {
      ciuic_collective c = request.c;
      c.flags = CIUIC_COLLECTIVE_TREE;
      expect_refusal(scene, c, "a sum with CIUIC_COLLECTIVE_TREE, without TREE");
    }
    if (scene.group.can(CIUIC_OP_ALL_GATHER, 0, kF32) &&
        !scene.group.can(CIUIC_OP_ALL_GATHER, 0, kF32, CIUIC_COMM_UNEVEN)) {
      Request gather(CIUIC_OP_ALL_GATHER, 0, kF32, scene.group.rank(), scene.world());
      const std::vector<int64_t> counts(static_cast<size_t>(scene.world()), 4);
      gather.c.out_counts = counts.data();
      expect_refusal(scene, gather.c, "a gather with counts, without UNEVEN");
    }
  });
}

/// The bitwise OR of all votes, known to every rank when the work is done.
void votes(const TestContext& test) {
  on_worlds(test, {{1, 2, 3, 5}}, [](Scene& scene) {
    if (!scene.group.can(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, kF32, CIUIC_COMM_VOTE)) {
      throw NotOffered("capabilities deny VOTE");
    }
    for (const uint32_t voter : {0U, 7U, 31U}) {
      Request request(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, kF32, scene.group.rank(),
                      scene.world());
      request.c.vote = scene.rank.is_last() ? 1U << voter : 0;
      const Work work = scene.group.submit({request.c});
      const Outcome out = scene.group.wait(work, scene.patient(30 * kSecond));
      require(out.ok(), "a sum with a vote: " + out.describe());
      require(static_cast<bool>(work) && CIUIC_CAN(work.get()->ops, votes),
              "capabilities say VOTE: expected a work with the function votes");
      uint32_t bits = 0;
      scene.group.host().check(work.get()->ops->votes(work.get(), &bits));
      require(bits == 1U << voter, "votes on rank " + std::to_string(scene.group.rank()) +
                                       ": got " + std::to_string(bits) + ", expected " +
                                       std::to_string(1U << voter) + ", the last rank's");
      scene.tried();
    }
  });
}

}  // namespace

TestTable capability_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.capabilities.consistent", 3, kKind, 30,
       "capabilities are pure, equal on all ranks, and 0 for what does not exist", consistent},
      {"communicator.capabilities.denied", 3, kKind, 60,
       "an operation that capabilities deny is UNIMPLEMENTED, and the group goes on", denied},
      {"communicator.capabilities.denied_forms", 3, kKind, 30,
       "factor, vote, TREE and counts are refused where their bit is not there", denied_forms},
      {"communicator.capabilities.votes", 3, kKind, 30,
       "every rank gets the OR of all votes, where VOTE", votes},
  };
}

}  // namespace ciuic::testing::communicator
