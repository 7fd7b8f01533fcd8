// SPDX-License-Identifier: MIT
#include "core/train/micro_batch.h"

#include <set>

#include <gtest/gtest.h>

#include "core/log/failure.h"
#include "core/model/head.h"
#include "tests/temporary_folder.h"

namespace ciuic::core {
namespace {

struct MicroBatchTest : ::testing::Test {
  MicroBatchTest() : data(open(folder)) {}
  static Dataset open(const TemporaryFolder& folder) {
    std::string text;
    for (int i = 0; i < 8 * 40 + 1; ++i) {
      text += static_cast<char>('a' + i % 26);
    }
    DataConfig config;
    config.train = {folder.write("text.txt", text)};
    config.sequence_tokens = 8;
    config.order = "sequential";
    config.validation_fraction = 0.25;
    Dataset::Options options;
    options.validation_sequences = 64;
    return Dataset::open(config, options);
  }
  static ciuic_batch_item item(uint64_t sample, uint32_t rank, uint32_t micro, uint32_t row,
                               uint32_t length = 8) {
    ciuic_batch_item i{};
    i.sample = sample;
    i.rank = rank;
    i.micro_batch = micro;
    i.row = row;
    i.length = length;
    return i;
  }
  TemporaryFolder folder;
  Dataset data;
};

TEST_F(MicroBatchTest, DocumentStartsComeWithAttentionByDocument) {
  BatchPlan plan;
  plan.items = {item(0, 0, 0, 0), item(1, 0, 0, 1)};
  plan.micro_batches = 1;
  plan.row_tokens = 8;
  EXPECT_FALSE(load_micro_batches(plan, 0, data)[0].document_starts.defined());
  DataConfig config;
  config.train = {folder.write("a.txt", "abcdefghij"), folder.write("b.txt", std::string(90, 'b'))};
  config.sequence_tokens = 8;
  config.order = "sequential";
  config.attention = "document";
  const Dataset documents = Dataset::open(config, {});
  const auto batches = load_micro_batches(plan, 0, documents);
  ASSERT_EQ(batches[0].document_starts.sizes(), (std::vector<int64_t>{2, 8}));
  ASSERT_EQ(batches[0].document_starts.scalar_type(), at::kInt);
  const int32_t* starts = batches[0].document_starts.const_data_ptr<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(starts, starts + 16),
            (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3}));
  EXPECT_EQ(batches[0].targets.const_data_ptr<int64_t>()[10], kIgnoredTarget);
}

TEST_F(MicroBatchTest, RowsHoldTheirSamplesAndTheNextTokens) {
  BatchPlan plan;
  plan.items = {item(0, 0, 0, 0), item(1, 0, 0, 1), item(2, 1, 0, 0)};
  plan.micro_batches = 1;
  plan.row_tokens = 8;
  const auto batches = load_micro_batches(plan, 0, data);
  ASSERT_EQ(batches.size(), 1u);
  ASSERT_EQ(batches[0].tokens.sizes(), (std::vector<int64_t>{2, 8}));
  const int64_t* tokens = batches[0].tokens.const_data_ptr<int64_t>();
  const int64_t* targets = batches[0].targets.const_data_ptr<int64_t>();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(tokens[i], 'a' + i % 26);
    EXPECT_EQ(targets[i], 'a' + (i + 1) % 26);
  }
}

TEST_F(MicroBatchTest, ARankWithoutItemsIsIdle) {
  BatchPlan plan;
  plan.items = {item(0, 0, 1, 0)};
  plan.micro_batches = 2;
  plan.row_tokens = 8;
  const auto batches = load_micro_batches(plan, 0, data);
  EXPECT_TRUE(batches[0].is_idle());
  EXPECT_FALSE(batches[1].is_idle());
  EXPECT_TRUE(load_micro_batches(plan, 1, data)[1].is_idle());
}

TEST_F(MicroBatchTest, AShortSampleIsPaddedWithoutTargets) {
  BatchPlan plan;
  plan.items = {item(0, 0, 0, 0, 5)};
  plan.micro_batches = 1;
  plan.row_tokens = 8;
  const MicroBatch batch = load_micro_batches(plan, 0, data)[0];
  const int64_t* targets = batch.targets.const_data_ptr<int64_t>();
  EXPECT_EQ(targets[4], 'f');
  for (int i = 5; i < 8; ++i) {
    EXPECT_EQ(targets[i], kIgnoredTarget);
  }
}

TEST_F(MicroBatchTest, PackedRowsAreRefusedByName) {
  BatchPlan plan;
  plan.items = {item(0, 0, 0, 0, 4)};
  plan.items[0].position = 4;
  plan.micro_batches = 1;
  plan.row_tokens = 8;
  EXPECT_THROW(load_micro_batches(plan, 0, data), Failure);
}

TEST_F(MicroBatchTest, ValidationCoversItsRowsOnceAtEveryWorldSize) {
  const size_t rows = data.validation_rows().size();
  ASSERT_GT(rows, 3u);
  for (const int world : {1, 2, 3, 5}) {
    int64_t seen = 0;
    size_t slots = 0;
    for (int rank = 0; rank < world; ++rank) {
      const auto batches = load_validation(data, rank, world, 4);
      EXPECT_TRUE(rank == 0 || batches.size() == slots) << "every rank walks as many slots";
      slots = batches.size();
      for (const MicroBatch& b : batches) {
        seen += b.is_idle() ? 0 : b.tokens.size(0);
      }
    }
    EXPECT_EQ(seen, static_cast<int64_t>(rows)) << world;
  }
}

}  // namespace
}  // namespace ciuic::core
