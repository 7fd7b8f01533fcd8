// SPDX-License-Identifier: MIT
//
// Requests are checked before anything is sent.
#include "plugins/common/communicator/request.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/view.hpp>

#include "plugins/common/communicator/capabilities.h"
#include "plugins/communicator/gloo/transfer.h"

namespace ciuic::plugins::gloo {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr ciuic_device kCpu{CIUIC_DEVICE_CPU, 0};

struct Asked {
  std::vector<float> memory = std::vector<float>(64);
  Tensor in, out;
  ciuic_collective c{};

  Asked(uint32_t op, int64_t in_count, int64_t out_count)
      : in(memory.data(), kF32, {in_count}), out(memory.data() + 32, kF32, {out_count}) {
    c.struct_size = sizeof(c);
    c.op = op;
    c.reduce = CIUIC_REDUCE_SUM;
    c.in = in.ptr();
    c.out = out.ptr();
  }
  [[nodiscard]] Request check(int rank = 0, int world = 3) const {
    return check_request("gloo", c, rank, world, 1s);
  }
  [[nodiscard]] std::string refusal(int rank = 0) const {
    try {
      (void)check(rank);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), CIUIC_INVALID);
      return e.what();
    }
    return "taken";
  }
};

TEST(GlooRequest, EvenPartsFollowEachOther) {
  const Request r = Asked(CIUIC_OP_ALL_GATHER, 2, 6).check(1);
  ASSERT_EQ(r.out_parts.size(), 3U);
  EXPECT_EQ(r.out_part(2).begin, 16);
  EXPECT_EQ(r.out_part(2).bytes, 8);
  EXPECT_EQ(r.in_part(2).bytes, 8) << "what is not cut is one part";
}

TEST(GlooRequest, CountsAndOffsetsPlaceTheParts) {
  Asked asked(CIUIC_OP_ALL_TO_ALL, 6, 9);
  const int64_t in_counts[3] = {1, 0, 5};
  const int64_t out_counts[3] = {1, 2, 3};
  const int64_t out_offsets[3] = {8, 0, 4};
  asked.c.in_counts = in_counts;
  asked.c.out_counts = out_counts;
  asked.c.out_offsets = out_offsets;
  const Request r = asked.check();
  EXPECT_EQ(r.in_part(2).begin, 4) << "without offsets they follow each other";
  EXPECT_EQ(r.in_part(1).bytes, 0);
  EXPECT_EQ(r.out_part(0).begin, 32);
}

TEST(GlooRequest, OffsetsWithoutCountsKeepEvenSizes) {
  Asked asked(CIUIC_OP_ALL_GATHER, 2, 10);
  const int64_t offsets[3] = {8, 4, 0};
  asked.c.out_offsets = offsets;
  const Request r = asked.check();
  EXPECT_EQ(r.out_part(0).begin, 32);
  EXPECT_EQ(r.out_part(1).bytes, 8);
}

TEST(GlooRequest, RefusesPartsBeyondTheTensor) {
  Asked asked(CIUIC_OP_ALL_GATHER, 2, 6);
  const int64_t counts[3] = {2, 2, 3};
  asked.c.out_counts = counts;
  EXPECT_THAT(asked.refusal(),
              HasSubstr("out's part for rank 2 has 3 elements from 4, the tensor"));
  const int64_t negative[3] = {2, -1, 2};
  asked.c.out_counts = negative;
  EXPECT_THAT(asked.refusal(), HasSubstr("part for rank 1 has -1 elements"));
  const int64_t huge[3] = {2, 2, INT64_MAX};
  asked.c.out_counts = huge;
  EXPECT_THAT(asked.refusal(), HasSubstr("part for rank 2"));
}

TEST(GlooRequest, RefusesPartsOfOutThatOverlap) {
  Asked asked(CIUIC_OP_ALL_GATHER, 2, 6);
  const int64_t offsets[3] = {0, 1, 4};
  asked.c.out_offsets = offsets;
  EXPECT_THAT(asked.refusal(), HasSubstr("overlap"));
}

TEST(GlooRequest, RefusesCountsWithoutEffect) {
  Asked asked(CIUIC_OP_REDUCE_SCATTER, 6, 2);
  const int64_t counts[3] = {2, 2, 2};
  asked.c.out_counts = counts;
  EXPECT_THAT(asked.refusal(), HasSubstr("out_counts and out_offsets must be NULL"));
}

TEST(GlooRequest, RefusesSizesThatContradict) {
  EXPECT_THAT(Asked(CIUIC_OP_ALL_GATHER, 2, 7).refusal(), HasSubstr("expected 3 parts of 2"));
  EXPECT_THAT(Asked(CIUIC_OP_ALL_TO_ALL, 7, 7).refusal(), HasSubstr("expected 3 parts"));
  EXPECT_THAT(Asked(CIUIC_OP_ALL_TO_ALL, 6, 3).refusal(), HasSubstr("in has 2 elements, out 1"));
  EXPECT_THAT(Asked(CIUIC_OP_ALL_REDUCE, 6, 3).refusal(), HasSubstr("in has 6 elements, out 3"));
}

TEST(GlooRequest, OnlyTheRootNeedsBothTensors) {
  Asked asked(CIUIC_OP_GATHER, 2, 6);
  asked.c.out = nullptr;
  asked.c.peer = 1;
  EXPECT_TRUE(asked.check(0).out_parts.empty());
  EXPECT_THAT(asked.refusal(1), HasSubstr("out is missing"));
  asked.c.peer = 3;
  EXPECT_THAT(asked.refusal(), HasSubstr("rank 3 is not in the group of 3"));
}

TEST(GlooCapabilities, TellTheTruthForEachType) {
  const ciuic_dtype fp8{CIUIC_DTYPE_FLOAT8_E5M2, 8, 1};
  const ciuic_dtype int4{CIUIC_DTYPE_INT, 4, 1};
  const ciuic_dtype boolean{CIUIC_DTYPE_BOOL, 8, 1};
  for (const uint32_t op : {CIUIC_OP_ALL_REDUCE, CIUIC_OP_REDUCE, CIUIC_OP_REDUCE_SCATTER}) {
    for (const ciuic_dtype dtype : {kF32, kF64, kF16, kBF16, kI32, kI64, kU8}) {
      const bool floats = dtype.code != CIUIC_DTYPE_INT && dtype.code != CIUIC_DTYPE_UINT;
      for (uint32_t reduce = 1; reduce <= 8; ++reduce) {
        const bool bitwise = reduce == CIUIC_REDUCE_OR || reduce == CIUIC_REDUCE_AND;
        const bool expected =
            reduce <= CIUIC_REDUCE_AND && (floats ? !bitwise : reduce != CIUIC_REDUCE_AVG);
        EXPECT_EQ(capability_bits(op, reduce, dtype, kCpu) != 0, expected)
            << op << " " << reduce << " " << dtype_name(dtype);
      }
    }
    EXPECT_EQ(capability_bits(op, CIUIC_REDUCE_SUM, fp8, kCpu), 0U);
    EXPECT_EQ(capability_bits(op, CIUIC_REDUCE_OR, boolean, kCpu), 0U);
  }
  for (uint32_t op = CIUIC_OP_ALL_GATHER; op <= CIUIC_OP_RECV; ++op) {
    EXPECT_NE(capability_bits(op, 0, fp8, kCpu), 0U) << op;
    EXPECT_NE(capability_bits(op, 0, boolean, kCpu), 0U) << op;
    EXPECT_EQ(capability_bits(op, 0, int4, kCpu), 0U) << op;
    EXPECT_EQ(capability_bits(op, 0, kF32, {CIUIC_DEVICE_CUDA, 0}), 0U) << op;
  }
}

TEST(GlooSlots, OfDifferentMessagesDiffer) {
  EXPECT_NE(message_slot(1, 0, 5), message_slot(2, 0, 5));
  EXPECT_NE(message_slot(1, 0, 5), message_slot(1, 1, 5));
  EXPECT_NE(message_slot(1, 0, 5), step_slot(1, 0, 5));
  EXPECT_NE(step_slot(1, 0, 5), step_slot(1, 1, 5));
  EXPECT_NE(step_slot(1, 0, 5), step_slot(2, 0, 5));
  EXPECT_NE(mix(1, 4), mix(1, 5));
}

}  // namespace
}  // namespace ciuic::plugins::gloo
