// SPDX-License-Identifier: MIT
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/testing/reference_data.hpp>

#include "plugins.h"

namespace ciuic::testing {
namespace {

using ::testing::HasSubstr;

class Fixed : public ::testing::Test {
 protected:
  PluginInstance make(int64_t sequences, int64_t micro_sequences, int32_t world) const {
    return plugin.create(host, {{"sequences", sequences}, {"micro_sequences", micro_sequences}},
                         {0, world, {}});
  }
  static ciuic_batch_request request(uint64_t step, uint32_t world, int32_t only_rank = -1) {
    ciuic_batch_request r{};
    r.struct_size = sizeof(r);
    r.seed = 1234;
    r.step = step;
    r.world = world;
    r.only_rank = only_rank;
    r.row_tokens = 8;
    return r;
  }
  struct Plan {
    std::vector<ciuic_batch_item> items;
    ciuic_batch_plan c{};
  };
  static Plan plan(const PluginInstance& fixed, const ciuic_batch_request& r) {
    Plan out;
    out.c.struct_size = sizeof(out.c);
    fixed.check(fixed.table<ciuic_batch_scheduler_vt>().plan(fixed.self(), &r, &out.c));
    for (const ciuic_batch_item& item : ArrayView<ciuic_batch_item>(out.c.items)) {
      out.items.push_back(item);
    }
    return out;
  }
  Error refusal(int64_t sequences, int64_t micro_sequences, int32_t world) const {
    return error_of([&] {
      plugin.validate(host, {{"sequences", sequences}, {"micro_sequences", micro_sequences}},
                      {0, world, {}});
    });
  }

  TestHost host;
  LoadedPlugin plugin = load_plugin("fixed");
};

// (global, micro, world) -> micro-batches.
TEST_F(Fixed, FieldBug_B059_TripleComesOutEvenOrIsRefused) {
  const auto micro_batches = [&](int64_t global, int64_t micro, int32_t world) {
    return plan(make(global, micro, world), request(1, static_cast<uint32_t>(world)))
        .c.micro_batches;
  };
  EXPECT_EQ(micro_batches(8, 2, 4), 1U);
  EXPECT_EQ(micro_batches(8, 2, 1), 4U);
  EXPECT_EQ(micro_batches(24, 2, 4), 3U);

  const Error e = refusal(10, 4, 2);
  EXPECT_EQ(e.code(), CIUIC_INVALID);
  EXPECT_STREQ(
      e.what(),
      "sequences = 10 is not micro_sequences 4 x world 2 x n: 10 / 8 = 1.25; nearest: 8 or 16");
  EXPECT_THAT(refusal(10, 2, 4).what(), HasSubstr("10 / 8 = 1.25; nearest: 8 or 16"));
  EXPECT_THAT(refusal(2, 4, 2).what(), HasSubstr("2 / 8 = 0.25; nearest: 8"));
  EXPECT_THAT(refusal(8, 2, 3).what(), HasSubstr("nearest: 6 or 12")) << "elastic change 4 -> 3";
  EXPECT_EQ(error_of([&] { make(10, 4, 2); }).code(), CIUIC_INVALID)
      << "create checks what validate checks";
}

TEST_F(Fixed, LogsTheDerivedValue) {
  make(24, 2, 4);
  EXPECT_TRUE(host.logged("sequences = 24 = micro_sequences 2 x world 4 x 3 micro-batches"));
}

TEST_F(Fixed, FollowsTheFormula) {
  const PluginInstance fixed = make(12, 2, 3);
  for (const uint64_t step : {1U, 2U, 1000U}) {
    const Plan p = plan(fixed, request(step, 3));
    EXPECT_EQ(p.c.micro_batches, 2U);
    EXPECT_EQ(p.c.row_tokens, 8U);
    EXPECT_EQ(p.c.samples, 12U);
    EXPECT_EQ(p.c.tokens, 96U);
    ASSERT_EQ(p.items.size(), 12U);
    size_t index = 0;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      for (uint32_t m = 0; m < 2; ++m) {
        for (uint32_t i = 0; i < 2; ++i) {
          const ciuic_batch_item& item = p.items[index++];
          EXPECT_EQ(item.sample, (step - 1) * 12 + (m * 3 + rank) * 2 + i);
          EXPECT_EQ(item.rank, rank);
          EXPECT_EQ(item.micro_batch, m);
          EXPECT_EQ(item.row, i);
          EXPECT_EQ(item.length, 8U);
          EXPECT_EQ(item.offset + item.position, 0U);
        }
      }
    }
  }
}

TEST_F(Fixed, TrainsTheSameSamplesAtEveryWorld) {
  const auto samples = [&](int32_t world, uint64_t step) {
    std::set<uint64_t> out;
    for (const ciuic_batch_item& item :
         plan(make(12, 1, world), request(step, static_cast<uint32_t>(world))).items) {
      EXPECT_TRUE(out.insert(item.sample).second) << "ranks are disjoint";
    }
    return out;
  };
  for (const uint64_t step : {1U, 7U}) {
    for (const int32_t world : {2, 3, 4, 6, 12}) {
      EXPECT_EQ(samples(world, step), samples(1, step));
    }
  }
}

TEST_F(Fixed, EverySampleOncePerEpochAlsoWhereEpochsMeet) {
  ReferenceData data(ReferenceData::uniform(
      10, 8));  // 10 rows, batches of 4: every other epoch ends inside a batch
  host.offer("ciuic.data", data.table());
  const PluginInstance fixed = make(4, 1, 2);
  std::map<uint64_t, int> seen;
  for (uint64_t step = 1; step <= 5; ++step) {
    for (const ciuic_batch_item& item : plan(fixed, request(step, 2)).items) {
      ++seen[item.sample];
      EXPECT_EQ((item.flags & CIUIC_BATCH_EPOCH_END) != 0, item.sample % 10 == 9) << item.sample;
    }
  }
  ASSERT_EQ(seen.size(), 20U) << "two epochs";
  for (const auto& [sample, times] : seen) {
    EXPECT_EQ(times, 1) << sample;
    EXPECT_LT(sample, 20U);
  }
}

TEST_F(Fixed, PlanIsAFunctionOfTheRequest) {
  const PluginInstance walked = make(8, 2, 2);
  for (uint64_t step = 1; step < 40; ++step) {
    (void)plan(walked, request(step, 2));
  }
  const PluginInstance fresh = make(8, 2, 2);
  const auto bits = [](const Plan& p) {
    return std::string(reinterpret_cast<const char*>(p.items.data()),
                       p.items.size() * sizeof(ciuic_batch_item));
  };
  EXPECT_EQ(bits(plan(walked, request(7, 2))), bits(plan(fresh, request(7, 2))));
}

TEST_F(Fixed, LeavesOutOtherRanksWhenAsked) {
  const PluginInstance fixed = make(8, 2, 2);
  const Plan all = plan(fixed, request(3, 2));
  const Plan own = plan(fixed, request(3, 2, 1));
  ASSERT_EQ(own.items.size(), 4U);
  EXPECT_EQ(own.c.samples, 8U) << "of the whole world";
  for (size_t i = 0; i < own.items.size(); ++i) {
    EXPECT_EQ(own.items[i].rank, 1U);
    EXPECT_EQ(own.items[i].sample, all.items[4 + i].sample);
  }
}

TEST_F(Fixed, RefusesAnImpossibleRequest) {
  const PluginInstance fixed = make(8, 2, 2);
  EXPECT_EQ(error_of([&] { plan(fixed, request(0, 2)); }).code(), CIUIC_INVALID);
  EXPECT_EQ(error_of([&] { plan(fixed, request(1, 0)); }).code(), CIUIC_INVALID);
  EXPECT_EQ(error_of([&] { plan(fixed, request(1, 3)); }).code(), CIUIC_INVALID);
  EXPECT_TRUE(true);
}

}  // namespace
}  // namespace ciuic::testing
