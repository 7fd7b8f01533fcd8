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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

class Ramp : public ::testing::Test {
 protected:
  struct Settings {
    int64_t sequences = 4;
    Strings ramp = {};
    int64_t increment = 0;
    int64_t micro_sequences = 2;
    int64_t sequence_tokens = 0;
    Strings sequence_ramp = {};
  };
  static OptionValues values(const Settings& s) {
    return {{"sequences", s.sequences},
            {"ramp", s.ramp},
            {"increment", s.increment},
            {"micro_sequences", s.micro_sequences},
            {"sequence_tokens", s.sequence_tokens},
            {"sequence_ramp", s.sequence_ramp}};
  }
  PluginInstance make(const Settings& s, int32_t world = 1) const {
    return plugin.create(host, values(s), {0, world, {}});
  }
  std::string refusal(const Settings& s, int32_t world = 1) const {
    return error_of([&] { plugin.validate(host, values(s), {0, world, {}}); }).what();
  }

  struct Plan {
    std::vector<ciuic_batch_item> items;
    ciuic_batch_plan c{};
  };
  static Plan plan(const PluginInstance& ramp, uint64_t step, uint64_t consumed,
                   uint32_t world = 1) {
    ciuic_batch_request r{};
    r.struct_size = sizeof(r);
    r.step = step;
    r.consumed_samples = consumed;
    r.world = world;
    r.only_rank = -1;
    r.row_tokens = 8;
    Plan out;
    out.c.struct_size = sizeof(out.c);
    ramp.check(ramp.table<ciuic_batch_scheduler_vt>().plan(ramp.self(), &r, &out.c));
    for (const ciuic_batch_item& item : ArrayView<ciuic_batch_item>(out.c.items)) {
      out.items.push_back(item);
    }
    return out;
  }
  /// The batches of the first steps.
  static std::vector<uint64_t> batches(const PluginInstance& ramp, int steps, uint32_t world = 1) {
    std::vector<uint64_t> out;
    uint64_t consumed = 0;
    for (int step = 1; step <= steps; ++step) {
      out.push_back(plan(ramp, static_cast<uint64_t>(step), consumed, world).c.samples);
      consumed += out.back();
    }
    return out;
  }

  TestHost host;
  LoadedPlugin plugin = load_plugin("ramp");
};

TEST_F(Ramp, WithoutPointsTheBatchStays) {
  EXPECT_THAT(batches(make({}), 4), ElementsAre(4, 4, 4, 4));
}

TEST_F(Ramp, GrowsOnALineInEachUnit) {
  // 4 + 8 x / 4 after x steps, whole increments of 2.
  EXPECT_THAT(batches(make({.ramp = {"12 by 4 steps"}, .increment = 2}), 6),
              ElementsAre(4, 6, 8, 10, 12, 12));
  // After 0, 4, 8, 14, 22 samples: 4 + 8 x / 24.
  EXPECT_THAT(batches(make({.ramp = {"12 by 24 samples"}, .increment = 2}), 7),
              ElementsAre(4, 4, 6, 8, 10, 12, 12));
  EXPECT_EQ(batches(make({.ramp = {"12 by 192 tokens"}, .increment = 2}), 7),
            batches(make({.ramp = {"12 by 24 samples"}, .increment = 2}), 7))
      << "a sample has 8 tokens";
}

TEST_F(Ramp, JumpsAndLinesFollowEachOther) {
  EXPECT_THAT(batches(make({.ramp = {"8 from 2 steps", "16 by 4 steps"}, .increment = 2}), 6),
              ElementsAre(4, 4, 8, 12, 16, 16));
  EXPECT_THAT(batches(make({.ramp = {"8 by 3 steps"}}), 5), ElementsAre(4, 4, 4, 8, 8))
      << "by the greatest common divisor, 4";
}

TEST_F(Ramp, TrainsTheSameSamplesAtEveryWorld) {
  const Settings s{.sequences = 12, .ramp = {"36 by 100 samples"}, .micro_sequences = 1};
  const auto samples = [&](int32_t world) {
    const PluginInstance ramp = make(s, world);
    std::vector<std::set<uint64_t>> out;
    uint64_t consumed = 0;
    for (uint64_t step = 1; step <= 8; ++step) {
      const Plan p = plan(ramp, step, consumed, static_cast<uint32_t>(world));
      auto& here = out.emplace_back();
      for (const ciuic_batch_item& item : p.items) {
        EXPECT_TRUE(here.insert(item.sample).second) << "ranks are disjoint";
      }
      EXPECT_EQ(*here.begin(), consumed) << "nothing is left out";
      consumed += p.c.samples;
    }
    return out;
  };
  for (const int32_t world : {2, 3, 4, 6, 12}) {
    EXPECT_EQ(samples(world), samples(1)) << world;
  }
}

TEST_F(Ramp, ShortSequencesAreThePiecesOfARow) {
  const PluginInstance ramp = make({.sequences = 4,
                                    .micro_sequences = 2,
                                    .sequence_tokens = 2,
                                    .sequence_ramp = {"4 from 1 step", "8 from 2 steps"}});
  const Plan first = plan(ramp, 1, 0);
  EXPECT_EQ(first.c.row_tokens, 2U);
  EXPECT_EQ(first.c.samples, 4U);
  EXPECT_EQ(first.c.tokens, 32U) << "as many as with whole rows";
  EXPECT_EQ(first.c.micro_batches, 2U);
  ASSERT_EQ(first.items.size(), 16U);
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(first.items[i].sample, i / 4);
    EXPECT_EQ(first.items[i].offset, i % 4 * 2);
    EXPECT_EQ(first.items[i].length, 2U);
    EXPECT_EQ(first.items[i].row, i % 8);
    EXPECT_EQ(first.items[i].micro_batch, i / 8);
  }
  EXPECT_EQ(plan(ramp, 2, 4).c.row_tokens, 4U);
  EXPECT_EQ(plan(ramp, 3, 8).c.row_tokens, 8U);
  EXPECT_EQ(plan(ramp, 3, 8).items.size(), 4U);
}

TEST_F(Ramp, RefusesWhatDoesNotComeOutEven) {
  EXPECT_EQ(
      refusal({.sequences = 10, .micro_sequences = 4}, 2),
      "increment = 10 is not micro_sequences 4 x world 2 x n: 10 / 8 = 1.25; the batch and what "
      "it grows by must be; nearest: 16");
  EXPECT_THAT(refusal({.sequences = 6, .increment = 4}), HasSubstr("increment = 4, but 6 is not"));
  EXPECT_THAT(refusal({.ramp = {"11 by 4 steps"}, .increment = 4}), HasSubstr("but 11 is not"));
  EXPECT_THAT(error_of([&] { plan(make({.sequence_tokens = 3}), 1, 0); }).what(),
              HasSubstr("sequences of 3 tokens do not divide a row of data.sequence_tokens = 8"));
}

TEST_F(Ramp, RefusesPointsThatAreNone) {
  const auto ramp = [&](const Strings& points) { return refusal({.ramp = points}); };
  for (const char* text : {"", "8", "8 by 4", "8 by 4 days", "by 4 steps", "8 by -4 steps",
                           "8 until 4 steps", "8 by 4 steps now", "8 by 0 steps", "8 by 1.5 steps",
                           "8 by 2X tokens", "8 by 1e9 tokens", "8 by 99999999999T tokens"}) {
    EXPECT_THAT(ramp({text}), HasSubstr("is no point; expected \"15360 by 469B tokens\"")) << text;
  }
  EXPECT_THAT(ramp({"8 by 4 steps", "12 by 4 steps"}), HasSubstr("is not after"));
  EXPECT_THAT(ramp({"8 by 4 steps", "4 from 9 steps"}), HasSubstr("can only grow"));
  EXPECT_THAT(ramp({"8 by 4 steps", "12 by 1B tokens"}), HasSubstr("another unit"));
  EXPECT_THAT(refusal({.sequence_tokens = 2, .sequence_ramp = {"8 by 4 steps"}}),
              HasSubstr("not \"by\""));
  EXPECT_THAT(refusal({.sequence_ramp = {"8 from 4 steps"}}), HasSubstr("no effect"));
  EXPECT_EQ(ramp({"8 by 14.3T tokens"}), "nothing was thrown");
}

}  // namespace
}  // namespace ciuic::testing
