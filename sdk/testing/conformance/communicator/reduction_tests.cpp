// SPDX-License-Identifier: MIT
//
// Sums and their like: every reduction, type and count, in groups of 1 to 8 ranks.
#include <chrono>
#include <cstring>
#include <thread>

#include <ciuic/testing/numbers.hpp>

#include "communicator_suite.hpp"
#include "run_cases.hpp"

namespace ciuic::testing::communicator {
namespace {

template <uint32_t kReduce>
void all_reduce(const TestContext& test) {
  on_worlds(test, {}, [](Scene& scene) {
    run_cases(scene, sweep(scene, {CIUIC_OP_ALL_REDUCE, kReduce}, kNumberTypes, kCounts));
  });
}

void reduce(const TestContext& test) {
  on_worlds(test, {}, [](Scene& scene) {
    for (const uint32_t reduce : {CIUIC_REDUCE_SUM, CIUIC_REDUCE_AVG, CIUIC_REDUCE_MAX}) {
      run_cases(scene, sweep(scene, {CIUIC_OP_REDUCE, reduce, false}, kNumberTypes,
                             {0, 1, 3, 127, 129, 1025}));
    }
  });
}

void reduce_scatter(const TestContext& test, const std::vector<Spread>& spreads) {
  on_worlds(test, {}, [&](Scene& scene) {
    for (const uint32_t reduce : {CIUIC_REDUCE_SUM, CIUIC_REDUCE_AVG, CIUIC_REDUCE_MIN}) {
      run_cases(scene, sweep(scene, {CIUIC_OP_REDUCE_SCATTER, reduce, true, spreads}, kNumberTypes,
                             {0, 1, 2, 7, 128, 129, 1023}));
    }
  });
}
void reduce_scatter_even(const TestContext& test) { reduce_scatter(test, {Spread::Even}); }
void reduce_scatter_uneven(const TestContext& test) {
  reduce_scatter(test, {Spread::Packed, Spread::Gaps, Spread::Reversed});
}

void big(const TestContext& test) {
  on_worlds(test, {{1, 2, 3}, 60 * kSecond}, [](Scene& scene) {
    Case c;
    c.op = CIUIC_OP_ALL_REDUCE;
    c.reduce = CIUIC_REDUCE_SUM;
    c.count = kBigCount;
    c.salt = scene.test.seed;
    Case average = c;
    average.reduce = CIUIC_REDUCE_AVG;
    average.dtype = kBF16;
    average.shift = 1;
    average.in_place = true;
    Case scatter = c;
    scatter.op = CIUIC_OP_REDUCE_SCATTER;
    scatter.count = kBigCount / 4;
    run_cases(scene, {c, average, scatter});
  });
}

/// Numbers whose sum has other bits in any other order.
Case scattered(const Scene& scene, ciuic_dtype dtype, uint32_t op = CIUIC_OP_ALL_REDUCE) {
  Case c;
  c.op = op;
  c.reduce = CIUIC_REDUCE_SUM;
  c.dtype = dtype;
  c.count = 257;
  c.numbers = Numbers::Scattered;
  c.salt = scene.test.seed;
  return c;
}

void same_bits_everywhere(const TestContext& test) {
  on_worlds(test, {}, [](Scene& scene) {
    std::vector<Case> cases;
    for (const ciuic_dtype dtype : {kF32, kF64, kF16, kBF16}) {
      for (const uint32_t reduce : {CIUIC_REDUCE_SUM, CIUIC_REDUCE_AVG}) {
        cases.push_back(scattered(scene, dtype));
        cases.back().reduce = reduce;
      }
    }
    run_cases(scene, cases);
  });
}

/// One run; the output's bits.
uint64_t bits_of_run(const Scene& scene, const Case& c) {
  const KeptBuffers buffers = make_buffers(c, scene.group.rank(), scene.group.size());
  CallStructs structs;
  buffers->describe_call(structs, scene.patient(20 * kSecond));
  const Outcome out = scene.group.run({structs.c}, scene.patient(30 * kSecond));
  require(out.ok(), describe(c, scene.world()) + ": " + out.describe());
  return buffers->bits();
}

/// The same sum again and again, each time another rank comes late.
void deterministic(const TestContext& test) {
  on_worlds(test, {{2, 3, 4, 8}}, [](Scene& scene) {
    for (const ciuic_dtype dtype : {kF32, kBF16}) {
      for (const uint32_t op : {CIUIC_OP_ALL_REDUCE, CIUIC_OP_REDUCE_SCATTER}) {
        const Case c = scattered(scene, dtype, op);
        if (!scene.group.can(op, c.reduce, dtype, CIUIC_COMM_DETERMINISTIC)) {
          continue;
        }
        uint64_t first = 0;
        for (int round = 0; round < 6; ++round) {
          const int turn = (round + scene.group.rank()) % scene.world();
          std::this_thread::sleep_for(std::chrono::microseconds(turn * 1500));
          const uint64_t bits = bits_of_run(scene, c);
          first = round == 0 ? bits : first;
          require(bits == first, describe(c, scene.world()) + ": rank " +
                                     std::to_string(scene.group.rank()) + ": run " +
                                     std::to_string(round) +
                                     " has other bits than run 0; expected the same: capabilities "
                                     "say DETERMINISTIC");
          scene.tried();
        }
      }
    }
  });
}

void non_finite(const TestContext& test) {
  on_worlds(test, {{1, 2, 3, 4}}, [](Scene& scene) {
    for (const uint32_t reduce : {CIUIC_REDUCE_SUM, CIUIC_REDUCE_AVG, CIUIC_REDUCE_MIN,
                                  CIUIC_REDUCE_MAX, CIUIC_REDUCE_PROD}) {
      Sweep what{CIUIC_OP_ALL_REDUCE, reduce};
      what.numbers = Numbers::Special;
      run_cases(scene, sweep(scene, what, {kF32, kF64, kF16, kBF16}, {7, 129, 1025}));
    }
  });
}

void factor(const TestContext& test) {
  on_worlds(test, {{1, 2, 3, 4}}, [](Scene& scene) {
    for (const uint32_t op : {CIUIC_OP_ALL_REDUCE, CIUIC_OP_REDUCE_SCATTER}) {
      Sweep what{op, CIUIC_REDUCE_SUM};
      what.factor = 0.3;
      run_cases(scene, sweep(scene, what, {kF32, kF64, kBF16}, {1, 129, 1023}));
    }
  });
}

void wide(const TestContext& test) {
  on_worlds(test, {{1, 2, 3, 5, 8}}, [](Scene& scene) {
    for (const uint32_t op : {CIUIC_OP_ALL_REDUCE, CIUIC_OP_REDUCE_SCATTER}) {
      Sweep what{op, CIUIC_REDUCE_SUM};
      what.flags = CIUIC_COLLECTIVE_WIDE;
      run_cases(scene, sweep(scene, what, {kF16, kBF16}, {1, 129, 1023}));
    }
  });
}

/// ((0+1)+(2+3))+..., as its definition says.
template <typename T>
T tree_sum(std::vector<T> x) {
  for (size_t step = 1; step < x.size(); step *= 2) {
    for (size_t i = 0; i + step < x.size(); i += 2 * step) {
      x[i] = x[i] + x[i + step];
    }
  }
  return x[0];
}

template <typename T>
void expect_tree(const Scene& scene, const Case& c, const std::vector<std::vector<char>>& inputs,
                 const char* out) {
  for (size_t i = 0; i < static_cast<size_t>(c.count); ++i) {
    std::vector<T> x;
    for (const std::vector<char>& input : inputs) {
      x.push_back(read_as<T>(input.data() + i * sizeof(T)));
    }
    const T expected = tree_sum(x);
    const T got = read_as<T>(out + i * sizeof(T));
    require(std::memcmp(&got, &expected, sizeof(T)) == 0,
            describe(c, scene.world()) + ": element " + std::to_string(i) + ": got " +
                std::to_string(got) + ", expected the bits of " + std::to_string(expected) +
                ", summed as ((0+1)+(2+3))+...");
  }
}

void tree(const TestContext& test) {
  on_worlds(test, {}, [](Scene& scene) {
    for (const ciuic_dtype dtype : {kF32, kF64}) {
      Case c = scattered(scene, dtype);
      c.flags = CIUIC_COLLECTIVE_TREE;
      if (!is_offered(scene.group, c)) {
        continue;
      }
      std::vector<std::vector<char>> inputs;
      for (int r = 0; r < scene.world(); ++r) {
        inputs.push_back(input_of(c, r, scene.world()));
      }
      std::vector<char> data = inputs[static_cast<size_t>(scene.group.rank())];
      const Tensor tensor(data.data(), dtype, {c.count});
      ciuic_collective call = make_collective(c.op, c.reduce);
      call.flags = c.flags;
      call.in = call.out = tensor.ptr();
      const Outcome out = scene.group.run({call}, scene.patient(30 * kSecond));
      require(out.ok(), describe(c, scene.world()) + ": " + out.describe());
      same(dtype, kF32) ? expect_tree<float>(scene, c, inputs, data.data())
                        : expect_tree<double>(scene, c, inputs, data.data());
      scene.tried();
    }
  });
}

}  // namespace

TestTable reduction_tests() {
  constexpr uint32_t kKind = CIUIC_KIND_COMMUNICATOR;
  return {
      {"communicator.all_reduce.sum", 3, kKind, 60,
       "sums are right for every type and count, in place and not", all_reduce<CIUIC_REDUCE_SUM>},
      {"communicator.all_reduce.avg", 3, kKind, 60,
       "an average is the true one, rounded to nearest once", all_reduce<CIUIC_REDUCE_AVG>},
      {"communicator.all_reduce.min", 3, kKind, 60, "minima are exact",
       all_reduce<CIUIC_REDUCE_MIN>},
      {"communicator.all_reduce.max", 3, kKind, 60, "maxima are exact",
       all_reduce<CIUIC_REDUCE_MAX>},
      {"communicator.all_reduce.prod", 3, kKind, 60, "products are right",
       all_reduce<CIUIC_REDUCE_PROD>},
      {"communicator.all_reduce.or", 3, kKind, 60, "OR is bitwise and exact",
       all_reduce<CIUIC_REDUCE_OR>},
      {"communicator.all_reduce.and", 3, kKind, 60, "AND is bitwise and exact",
       all_reduce<CIUIC_REDUCE_AND>},
      {"communicator.all_reduce.same_bits", 3, kKind, 60, "all ranks get the same bits",
       same_bits_everywhere},
      {"communicator.all_reduce.deterministic", 3, kKind, 60,
       "the same bits run after run, whoever comes late, where DETERMINISTIC", deterministic},
      {"communicator.all_reduce.non_finite", 3, kKind, 60, "NaN and infinities propagate",
       non_finite},
      {"communicator.all_reduce.big", 3, kKind, 60, "2^20 + 1 elements are reduced right", big},
      {"communicator.all_reduce.factor", 3, kKind, 60,
       "inputs are multiplied before the sum, where FACTOR", factor},
      {"communicator.all_reduce.wide", 3, kKind, 60,
       "sums of 16-bit floats are kept in fp32, where WIDE", wide},
      {"communicator.all_reduce.tree", 3, kKind, 60,
       "the order of a sum is ((0+1)+(2+3))+..., bit by bit, where TREE", tree},
      {"communicator.reduce.every_root", 3, kKind, 60,
       "the root gets the reduction, and only the root", reduce},
      {"communicator.reduce_scatter.even", 3, kKind, 60, "each rank gets its part of the reduction",
       reduce_scatter_even},
      {"communicator.reduce_scatter.uneven", 3, kKind, 60,
       "parts of any sizes, empty ones among them, at any offsets, where UNEVEN",
       reduce_scatter_uneven},
  };
}

}  // namespace ciuic::testing::communicator
