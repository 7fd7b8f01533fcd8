// SPDX-License-Identifier: MIT
#include "core/data/dataset.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/error.hpp>

#include "core/log/failure.h"
#include "tests/data/text_folder.h"

namespace ciuic::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// `rows` complete rows of s tokens and three tokens more.
DataConfig data_of(const TextFolder& folder, int64_t rows, int64_t s = 8) {
  DataConfig config;
  config.train = {folder.write("train.txt", letters(static_cast<size_t>(rows * s + 3)))};
  config.sequence_tokens = s;
  return config;
}

Dataset::Options options_of(uint64_t seed = 7, int64_t sequences = 64) {
  Dataset::Options options;
  options.seed = seed;
  options.validation_sequences = sequences;
  return options;
}

std::string failure_of(const DataConfig& config, const Dataset::Options& options) {
  try {
    Dataset::open(config, options);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::Usage);
    return failure.what();
  }
  return "no failure";
}

TEST(Dataset, TargetsAreInputsShiftedByOne) {
  const TextFolder folder;
  const Dataset data = Dataset::open(data_of(folder, 50), options_of());
  std::vector<int64_t> inputs(8);
  std::vector<int64_t> targets(8);
  data.fill(3, 0, 8, inputs.data(), targets.data());
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(inputs[static_cast<size_t>(i)], 'a' + (24 + i) % 26);
    EXPECT_EQ(targets[static_cast<size_t>(i)], 'a' + (25 + i) % 26);
  }
  data.fill(3, 5, 2, inputs.data(), targets.data());
  EXPECT_EQ(inputs[0], 'a' + 29 % 26);
  EXPECT_EQ(inputs[2], 'a' + 26 % 26);  // untouched
  EXPECT_THROW(data.fill(3, 5, 4, inputs.data(), targets.data()), Error);
  EXPECT_THROW(data.fill(-1, 0, 8, inputs.data(), targets.data()), Error);
}

TEST(Dataset, HeldOutRowsAreNeverTrainedOn) {
  const TextFolder folder;
  const Dataset data = Dataset::open(data_of(folder, 100), options_of());
  EXPECT_EQ(data.train_rows(), 98);
  EXPECT_EQ(data.held_out_rows(), 2);
  EXPECT_EQ(data.num_tokens(), 803);
  EXPECT_THAT(std::vector(data.validation_rows().begin(), data.validation_rows().end()),
              ElementsAre(98, 99));
  const std::set<int64_t> held(data.validation_rows().begin(), data.validation_rows().end());
  for (uint64_t sample = 0; sample < 1000; ++sample) {
    EXPECT_EQ(held.count(data.row_of_sample(sample)), 0u);
  }
  std::vector<int64_t> tokens(8);
  EXPECT_THROW(data.fill(98, 0, 8, tokens.data(), tokens.data()), Error);
  EXPECT_NO_THROW(data.fill_validation(99, 0, 8, tokens.data(), tokens.data()));
}

TEST(Dataset, NothingIsHeldOutWithoutValidation) {
  const TextFolder folder;
  Dataset::Options options = options_of();
  options.validates = false;
  const Dataset data = Dataset::open(data_of(folder, 100), options);
  EXPECT_EQ(data.train_rows(), 100);
  EXPECT_THAT(data.validation_rows(), IsEmpty());
}

TEST(Dataset, ValidationMayHaveFilesOfItsOwn) {
  const TextFolder folder;
  DataConfig config = data_of(folder, 10);
  config.validation = {folder.write("v.txt", "0123456789012345678901234")};
  const Dataset data = Dataset::open(config, options_of(7, 2));
  EXPECT_EQ(data.train_rows(), 10);
  EXPECT_THAT(std::vector(data.validation_rows().begin(), data.validation_rows().end()),
              ElementsAre(0, 1));
  std::vector<int64_t> inputs(8);
  std::vector<int64_t> targets(8);
  data.fill_validation(1, 0, 8, inputs.data(), targets.data());
  EXPECT_THAT(inputs, ElementsAre('8', '9', '0', '1', '2', '3', '4', '5'));
  EXPECT_EQ(targets[7], '6');
  config.validation = {folder / "./train.txt"};
  EXPECT_THAT(failure_of(config, options_of()),
              HasSubstr("is in data.validation and in data.train"));
}

TEST(Dataset, TooLittleTextIsRefusedWithNumbers) {
  const TextFolder folder;
  DataConfig config = data_of(folder, 10);
  config.sequence_tokens = 83;
  EXPECT_EQ(failure_of(config, options_of()),
            "data.train: text shorter than one sequence: got 83 tokens, expected at least 84 "
            "(data.sequence_tokens and "
            "the token after them)");
  config.sequence_tokens = 82;
  EXPECT_EQ(failure_of(config, options_of()),
            "data.train: no row is left to train on: of 1, 1 are held out for validation");
  config.sequence_tokens = 8;
  config.validation = {folder.write("v.txt", "short")};
  EXPECT_THAT(failure_of(config, options_of()),
              HasSubstr("data.validation: text shorter than one sequence: got 5"));
  config.tokenizer = "t.json";
  EXPECT_THAT(failure_of(config, options_of()), HasSubstr("t.json cannot be read"));
}

/// The rows of step t (from 1) as ranks of any world draw them (design, section 5, "Samples").
std::multiset<int64_t> rows_of_step(const Dataset& data, uint64_t step, uint64_t global,
                                    uint64_t world, uint64_t micro) {
  std::multiset<int64_t> rows;
  for (uint64_t m = 0; m < global / (world * micro); ++m) {
    for (uint64_t rank = 0; rank < world; ++rank) {
      for (uint64_t i = 0; i < micro; ++i) {
        rows.insert(data.row_of_sample((step - 1) * global + (m * world + rank) * micro + i));
      }
    }
  }
  return rows;
}

TEST(Dataset, AStepDrawsTheSameRowsAtEveryWorldSize) {
  const TextFolder folder;
  const Dataset data = Dataset::open(data_of(folder, 101), options_of());
  for (uint64_t step = 1; step <= 40; ++step) {
    const auto alone = rows_of_step(data, step, 8, 1, 8);
    EXPECT_EQ(alone.size(), 8u);
    EXPECT_EQ(alone, rows_of_step(data, step, 8, 2, 4));
    EXPECT_EQ(alone, rows_of_step(data, step, 8, 4, 1));
    EXPECT_EQ(alone, rows_of_step(data, step, 8, 8, 1));
  }
}

TEST(Dataset, NothingIsDroppedWhereEpochsMeet) {
  const TextFolder folder;
  const Dataset data = Dataset::open(data_of(folder, 23), options_of());
  const auto rows = static_cast<uint64_t>(data.train_rows());
  std::map<int64_t, int> drawn;
  const uint64_t steps =
      rows * 3;  // steps of 4 samples: 12 whole epochs, most steps cross no border, some do
  for (uint64_t step = 1; step <= steps; ++step) {
    for (int64_t row : rows_of_step(data, step, 4, 2, 1)) {
      ++drawn[row];
    }
  }
  ASSERT_EQ(drawn.size(), rows);
  for (const auto& [row, times] : drawn) {
    EXPECT_EQ(times, 12) << row;
  }
  EXPECT_EQ(data.epoch_of_sample(rows - 1), 0u);
  EXPECT_EQ(data.epoch_of_sample(rows), 1u);
}

// huggingface/accelerate#4195: resume restored the position but not the shuffle. Here there is
// nothing to restore.
TEST(Dataset, B039_ResumeInsideAnEpochRepeatsTheStraightRun) {
  const TextFolder folder;
  DataConfig config = data_of(folder, 64);
  Dataset::Options options = options_of();
  options.validates = false;
  const auto draw = [&](uint64_t first, uint64_t last) {
    const Dataset data = Dataset::open(config, options);  // as a new process would
    std::vector<int64_t> rows;
    for (uint64_t sample = first; sample < last; ++sample) {
      rows.push_back(data.row_of_sample(sample));
    }
    return rows;
  };
  const std::vector<int64_t> straight = draw(0, 192);
  std::vector<int64_t> resumed = draw(0, 64 + 12);  // stopped after 3 steps of 4 in epoch 1
  const std::vector<int64_t> rest = draw(64 + 12, 192);
  resumed.insert(resumed.end(), rest.begin(), rest.end());
  EXPECT_EQ(straight, resumed);
  const std::set<int64_t> second(resumed.begin() + 64, resumed.begin() + 128);
  EXPECT_EQ(second.size(), 64u);
  EXPECT_FALSE(std::equal(resumed.begin() + 64, resumed.begin() + 128, resumed.begin() + 128));
}

/// Two sources: 30 rows of 'a' and 10 of 'b', the second with a weight of a quarter.
DataConfig blend_of(const TextFolder& folder, double weight = 1) {
  DataConfig config;
  config.sequence_tokens = 8;
  config.sources = {
      {"a", {folder.write("a.txt", std::string(30 * 8 + 1, 'a'))}, 3, std::nullopt},
      {"b", {folder.write("b.txt", std::string(10 * 8 + 1, 'b'))}, weight, std::nullopt}};
  config.validation_fraction = 0.2;
  return config;
}

int64_t letter_of(const Dataset& data, int64_t row) {
  std::vector<int64_t> inputs(8);
  std::vector<int64_t> targets(8);
  data.fill(row, 0, 8, inputs.data(), targets.data());
  return inputs[0];
}

TEST(Dataset, EachSourceHasItsShareAndItsOwnOrder) {
  const TextFolder folder;
  const Dataset data = Dataset::open(blend_of(folder), options_of());
  EXPECT_EQ(data.train_rows(), 24 + 8);
  std::map<int64_t, int> letters;
  std::vector<int64_t> first_pass_of_b;
  for (uint64_t sample = 0; sample < 4000; ++sample) {
    const int64_t row = data.row_of_sample(sample);
    ++letters[letter_of(data, row)];
    if (row >= 24 && first_pass_of_b.size() < 8) {
      first_pass_of_b.push_back(row);
    }
  }
  EXPECT_EQ(letters['a'], 3000);
  EXPECT_EQ(letters['b'], 1000);
  EXPECT_EQ(std::set(first_pass_of_b.begin(), first_pass_of_b.end()).size(), 8u);
  // Another weight changes how often a source comes, not what it gives.
  const Dataset other = Dataset::open(blend_of(folder, 9), options_of());
  std::vector<int64_t> again;
  for (uint64_t sample = 0; again.size() < 8; ++sample) {
    if (const int64_t row = other.row_of_sample(sample); row >= 24) {
      again.push_back(row);
    }
  }
  EXPECT_EQ(again, first_pass_of_b);
}

TEST(Dataset, EachSourceHoldsOutItsLastRows) {
  const TextFolder folder;
  const Dataset data = Dataset::open(blend_of(folder), options_of());
  EXPECT_EQ(data.held_out_rows(), 6 + 2);
  std::map<int64_t, int> letters;
  for (const int64_t row : data.validation_rows()) {
    std::vector<int64_t> inputs(8);
    std::vector<int64_t> targets(8);
    data.fill_validation(row, 0, 8, inputs.data(), targets.data());
    ++letters[inputs[0]];
  }
  EXPECT_EQ(letters['a'], 6);
  EXPECT_EQ(letters['b'], 2);
}

TEST(Dataset, DocumentStartsAreCountedFromTheRow) {
  const TextFolder folder;
  DataConfig config;
  config.train = {folder.write("a.txt", "abcde"), folder.write("b.txt", letters(60))};
  config.sequence_tokens = 4;
  config.attention = "document";
  const Dataset data = Dataset::open(config, options_of());
  ASSERT_TRUE(data.has_document_starts());
  std::vector<int64_t> inputs(4);
  std::vector<int64_t> targets(4);
  std::vector<int32_t> starts(4);
  data.fill(0, 0, 4, inputs.data(), targets.data(), starts.data());
  EXPECT_THAT(starts, ElementsAre(0, 0, 0, 0));
  data.fill(1, 0, 4, inputs.data(), targets.data(), starts.data());
  EXPECT_THAT(inputs, ElementsAre('e', 257, 'a', 'b'));
  EXPECT_THAT(targets, ElementsAre(257, kNoTarget, 'b', 'c'));
  EXPECT_THAT(starts, ElementsAre(0, 0, 2, 2));
}

}  // namespace
}  // namespace ciuic::core
