// SPDX-License-Identifier: MIT
//
// "ciuic.data" over made-up samples: rows of given lengths, numbered without end as plans number
// them. Each epoch has its own order, a permutation of the rows, so a plan that takes lengths for
// periodic is seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <ciuic/abi/services.h>

namespace ciuic::testing {

/// Any thread.
class ReferenceData {
 public:
  explicit ReferenceData(std::vector<uint64_t> row_lengths, uint64_t seed = 1)
      : row_lengths_(std::move(row_lengths)), seed_(seed) {
    table_.struct_size = sizeof(table_);
    table_.ctx = this;
    table_.samples = [](void* ctx) { return from(ctx).rows(); };
    table_.lengths = [](void* ctx, uint64_t first, uint64_t count,
                        uint64_t* tokens) -> ciuic_status* {
      from(ctx).write_lengths(first, count, tokens);
      return nullptr;
    };
  }
  ReferenceData(const ReferenceData&) = delete;
  ReferenceData& operator=(const ReferenceData&) = delete;

  /// All rows alike, as in pretraining on a token stream.
  static std::vector<uint64_t> uniform(uint64_t rows, uint64_t tokens) {
    return std::vector<uint64_t>(rows, tokens);
  }
  /// Lengths of [1, longest], short ones more often, as in documents.
  static std::vector<uint64_t> documents(uint64_t rows, uint64_t longest, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> out(rows);
    for (uint64_t& length : out) {
      length = 1 + random() % (1 + random() % longest);
    }
    return out;
  }

  [[nodiscard]] const ciuic_data_service* table() const noexcept { return &table_; }
  [[nodiscard]] uint64_t rows() const noexcept { return row_lengths_.size(); }

  /// Tokens of sample p.
  [[nodiscard]] uint64_t length(uint64_t sample) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return length_locked(sample);
  }
  /// How often lengths was called.
  [[nodiscard]] int64_t length_calls() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return length_calls_;
  }

 private:
  static constexpr size_t kKeptEpochs = 64;
  static ReferenceData& from(void* ctx) { return *static_cast<ReferenceData*>(ctx); }

  void write_lengths(uint64_t first, uint64_t count, uint64_t* tokens) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++length_calls_;
    for (uint64_t i = 0; i < count; ++i) {
      tokens[i] = length_locked(first + i);
    }
  }
  uint64_t length_locked(uint64_t sample) {
    if (row_lengths_.empty()) {
      return 0;
    }
    return row_lengths_[order(sample / rows())[sample % rows()]];
  }
  const std::vector<uint64_t>& order(uint64_t epoch) {
    const auto known = orders_.find(epoch);
    if (known != orders_.end()) {
      return known->second;
    }
    if (orders_.size() >= kKeptEpochs) {
      orders_.clear();
    }
    std::vector<uint64_t> out(row_lengths_.size());
    std::iota(out.begin(), out.end(), uint64_t{0});
    std::mt19937_64 random(seed_ ^ (epoch * 0x9E3779B97F4A7C15ULL));
    std::shuffle(out.begin(), out.end(), random);
    return orders_.emplace(epoch, std::move(out)).first->second;
  }

  std::vector<uint64_t> row_lengths_;
  uint64_t seed_;
  ciuic_data_service table_{};
  mutable std::mutex mutex_;
  std::map<uint64_t, std::vector<uint64_t>> orders_;
  int64_t length_calls_ = 0;
};

}  // namespace ciuic::testing
