// SPDX-License-Identifier: MIT
//
// Batch scheduler "fixed": every step trains the same number of sequences, cut into equal
// micro-batches. With the global batch B, b sequences per rank and micro-batch, and W ranks, a step
// has M = B / (b W) micro-batches, and step t (from 1) trains
//
//   p = (t - 1) B + (m W + rank) b + i        for micro-batch m < M and its row i < b:
//
// the same set of samples at every world size, each once per epoch, nothing dropped where epochs
// meet.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

#include <ciuic/abi/services.h>
#include <ciuic/batch_scheduler.hpp>

namespace ciuic::plugins {
namespace {

/// Micro-batches of a step. Throws INVALID with the equation when they do not come out even.
int64_t num_micro_batches(int64_t sequences, int64_t micro_sequences, int64_t world) {
  const int64_t row = micro_sequences * world;  // sequences in one micro-batch of all ranks
  if (sequences % row == 0) {
    return sequences / row;
  }
  const int64_t below = sequences / row * row;
  const std::string nearest =
      (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + row);
  char text[320];
  std::snprintf(text, sizeof(text),
                "sequences = %" PRId64 " is not micro_sequences %" PRId64 " x world %" PRId64
                " x n: %" PRId64 " / %" PRId64 " = %g; nearest: %s",
                sequences, micro_sequences, world, sequences, row,
                static_cast<double>(sequences) / static_cast<double>(row), nearest.c_str());
  throw Error(CIUIC_INVALID, text);
}

class Fixed final : public BatchScheduler {
 public:
  static constexpr const char* name = "fixed";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "the same number of sequences in every step";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  inline static const auto options = option_table(
      with_unit(option_count("sequences", 16, 1, 1 << 24,
                             "Global batch: sequences that one step trains, over all ranks",
                             CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL),
                "sequences"),
      with_unit(option_i64("micro_sequences", 4, 1, 1 << 20,
                           "Sequences per rank and micro-batch; the rest of the global batch is "
                           "gradient accumulation",
                           CIUIC_OPTION_AFFECTS_NUMERICS | CIUIC_OPTION_ALL_RANKS_EQUAL),
                "sequences"));

  explicit Fixed(const Context& context)
      : BatchScheduler(context),
        sequences_(context.options().i64("sequences")),
        micro_sequences_(context.options().i64("micro_sequences")) {
    const int64_t n = num_micro_batches(sequences_, micro_sequences_, context.world());
    host().debug("sequences = " + std::to_string(sequences_) + " = micro_sequences " +
                 std::to_string(micro_sequences_) + " x world " + std::to_string(context.world()) +
                 " x " + std::to_string(n) + " micro-batches");
  }

  static void validate(const Context& context) {
    (void)num_micro_batches(context.options().i64("sequences"),
                            context.options().i64("micro_sequences"), context.world());
  }

  [[nodiscard]] Plan plan(const ciuic_batch_request& request) override {
    if (request.step == 0 || request.world == 0 || request.row_tokens == 0) {
      throw Error(CIUIC_INVALID, "a plan needs step, world and row_tokens above 0");
    }
    Plan out;
    out.micro_batches =
        static_cast<uint32_t>(num_micro_batches(sequences_, micro_sequences_, request.world));
    out.row_tokens = request.row_tokens;
    out.samples = static_cast<uint64_t>(sequences_);
    out.tokens = out.samples * request.row_tokens;
    const uint64_t rows = rows_of_an_epoch();
    for (uint32_t rank = 0; rank < request.world; ++rank) {
      if (request.only_rank >= 0 && rank != static_cast<uint32_t>(request.only_rank)) {
        continue;
      }
      for (uint32_t m = 0; m < out.micro_batches; ++m) {
        for (uint32_t i = 0; i < static_cast<uint32_t>(micro_sequences_); ++i) {
          out.items.push_back(item(request, rows, rank, m, i));
        }
      }
    }
    return out;
  }

 private:
  [[nodiscard]] ciuic_batch_item item(const ciuic_batch_request& request, uint64_t rows,
                                      uint32_t rank, uint32_t m, uint32_t i) const {
    const auto b = static_cast<uint64_t>(micro_sequences_);
    const uint64_t p = (request.step - 1) * static_cast<uint64_t>(sequences_) +
                       (uint64_t{m} * request.world + rank) * b + i;
    ciuic_batch_item out{};
    out.sample = p;
    out.rank = rank;
    out.micro_batch = m;
    out.row = i;
    out.length = request.row_tokens;
    out.flags = rows > 0 && p % rows == rows - 1 ? CIUIC_BATCH_EPOCH_END : 0;
    return out;
  }
  /// 0 where there is no data service, as in an estimate.
  [[nodiscard]] uint64_t rows_of_an_epoch() const {
    const auto* data = host().find_service<ciuic_data_service>("ciuic.data");
    if (data == nullptr) {
      return 0;
    }
    const uint64_t rows = data->samples(data->ctx);
    if (rows == 0) {
      throw Error(CIUIC_PRECONDITION, "the data has no samples: there is nothing to plan");
    }
    return rows;
  }

  int64_t sequences_;
  int64_t micro_sequences_;
};

}  // namespace
}  // namespace ciuic::plugins

CIUIC_PLUGINS(ciuic::plugins::Fixed)
