// SPDX-License-Identifier: MIT
//
// A correct batch scheduler that packs documents of any length: a step takes the next
// samples_per_rank x world samples, cuts those longer than a row, puts the pieces first-fit into
// rows, and deals the rows out to ranks. Hooks are where its broken and its odd children differ.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/batch_scheduler.hpp>

namespace ciuic::mutants {

constexpr uint64_t kSamplesPerRank = 6;

class DocumentPacker : public BatchScheduler {
 public:
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr std::array<const char*, 2> features{"lengths", nullptr};
  using BatchScheduler::BatchScheduler;

  [[nodiscard]] Plan plan(const ciuic_batch_request& request) override {
    const auto& data = host().service<ciuic_data_service>("ciuic.data");
    const uint64_t epoch_rows = data.samples(data.ctx);
    if (epoch_rows == 0) {
      throw Error(CIUIC_PRECONDITION, "no samples");
    }
    std::vector<Row> rows;
    for (const uint64_t sample : window(request, epoch_rows)) {
      uint64_t length = 0;
      host().check(data.lengths(data.ctx, sample, 1, &length));
      for (ciuic_batch_item& piece : pieces(sample, length, request.row_tokens)) {
        piece.flags = sample % epoch_rows == epoch_rows - 1 ? CIUIC_BATCH_EPOCH_END : 0;
        put(rows, piece, request.row_tokens);
      }
    }
    return deal(rows, request);
  }

 protected:
  struct Row {
    uint32_t fill = 0;
    std::vector<ciuic_batch_item> items;
  };

  /// Samples of a step.
  virtual std::vector<uint64_t> window(const ciuic_batch_request& request,
                                       uint64_t /*epoch_rows*/) {
    return range(request.consumed_samples, kSamplesPerRank * request.world);
  }
  static std::vector<uint64_t> range(uint64_t first, uint64_t count) {
    std::vector<uint64_t> out(count);
    for (uint64_t i = 0; i < count; ++i) {
      out[i] = first + i;
    }
    return out;
  }
  virtual std::vector<ciuic_batch_item> pieces(uint64_t sample, uint64_t length,
                                               uint32_t row_tokens) {
    std::vector<ciuic_batch_item> out;
    for (uint64_t offset = 0; offset < length; offset += row_tokens) {
      ciuic_batch_item piece{};
      piece.sample = sample;
      piece.offset = offset;
      piece.length = static_cast<uint32_t>(std::min<uint64_t>(row_tokens, length - offset));
      out.push_back(piece);
    }
    return out;
  }
  virtual bool fits(uint32_t fill, uint32_t length, uint32_t row_tokens) {
    return fill + length <= row_tokens;
  }
  virtual uint32_t rows_per_micro_batch(const ciuic_batch_request&) { return 2; }
  /// Ranks that get a row; one.
  virtual std::vector<uint32_t> ranks_of_row(size_t row, const ciuic_batch_request& request) {
    return {static_cast<uint32_t>(row % request.world)};
  }
  virtual void finish(Plan&, const ciuic_batch_request&) {}

 private:
  void put(std::vector<Row>& rows, ciuic_batch_item piece, uint32_t row_tokens) {
    for (Row& row : rows) {
      if (fits(row.fill, piece.length, row_tokens)) {
        add(row, piece);
        return;
      }
    }
    add(rows.emplace_back(), piece);
  }
  static void add(Row& row, ciuic_batch_item piece) {
    piece.position = row.fill;
    row.fill += piece.length;
    row.items.push_back(piece);
  }

  Plan deal(const std::vector<Row>& rows, const ciuic_batch_request& request) {
    const uint32_t per_micro_batch = rows_per_micro_batch(request);
    std::vector<std::vector<ciuic_batch_item>> by_rank(request.world);
    std::vector<uint32_t> rows_of(request.world);
    Plan out;
    out.row_tokens = request.row_tokens;
    for (size_t r = 0; r < rows.size(); ++r) {
      for (const uint32_t rank : ranks_of_row(r, request)) {
        const uint32_t k = rows_of[rank]++;
        out.micro_batches = std::max(out.micro_batches, k / per_micro_batch + 1);
        for (ciuic_batch_item item : rows[r].items) {
          item.rank = rank;
          item.micro_batch = k / per_micro_batch;
          item.row = k % per_micro_batch;
          out.tokens += item.length;
          out.samples += item.offset == 0 ? 1 : 0;
          by_rank[rank].push_back(item);
        }
      }
    }
    for (const auto& items : by_rank) {
      out.items.insert(out.items.end(), items.begin(), items.end());
    }
    finish(out, request);
    return out;
  }
};

}  // namespace ciuic::mutants
