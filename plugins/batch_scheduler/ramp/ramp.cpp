// SPDX-License-Identifier: MIT
//
// Batch scheduler "ramp": the global batch, and the length of the sequences that rows are cut into,
// grow over the run.
//
// Batch: as in DeepSeek-V3, arXiv:2412.19437, section 4.2 (3072 to 15360 sequences over the first
// 469B tokens). Step t trains the next B samples after those consumed, p = consumed + (m W + rank)
// b + i for micro-batch m and its row i < b, with b sequences per rank and micro-batch and W ranks.
// B is the curve's value (growth.h) at what the steps before t did, rounded down to a multiple of
// `increment`: the same set of samples at every world size, each once per epoch, nothing dropped
// where epochs meet.
//
// Length: short sequences first, as the staged training of Shortformer, arXiv:2012.15832. A row of s
// tokens is trained as s / l sequences of l tokens, each with a context of its own, all in the same
// step, so a step has as many tokens whatever l is.
//
// A plan is a function of step and consumed samples alone. Left out: a batch that shrinks.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>

#include <ciuic/abi/services.h>
#include <ciuic/batch_scheduler.hpp>

#include "growth.h"

namespace ciuic::plugins {
namespace {

/// What the options say, checked against each other.
struct Settings {
  Growth sequences;
  Growth row_tokens;  // 0: whole rows
  int64_t increment;
  int64_t micro_sequences;

  /// Throws INVALID.
  static Settings from(const Context& context) {
    const Options& o = context.options();
    Settings s{Growth("ramp", o.i64("sequences"), o.strings("ramp")),
               Growth("sequence_ramp", o.i64("sequence_tokens"), o.strings("sequence_ramp")),
               o.i64("increment"), o.i64("micro_sequences")};
    if (s.row_tokens.has_lines()) {
      throw Error(
          CIUIC_INVALID,
          "sequence_ramp: sequences must divide a row, so they grow at once: \"256 from 10M "
          "tokens\", not \"by\"");
    }
    if (s.row_tokens.values().size() > 1 && s.row_tokens.values().front() == 0) {
      throw Error(CIUIC_INVALID,
                  "sequence_ramp has no effect: sequence_tokens = 0 is whole rows from the start");
    }
    if (s.increment == 0) {
      for (const int64_t value : s.sequences.values()) {
        s.increment = std::gcd(s.increment, value);
      }
    }
    s.check_multiples(context.world());
    return s;
  }

  void check_multiples(int64_t world) const {
    for (const int64_t value : sequences.values()) {
      if (value % increment != 0) {
        throw Error(CIUIC_INVALID,
                    "sequences and each value of ramp must be a multiple of "
                    "increment = " +
                        std::to_string(increment) + ", but " + std::to_string(value) + " is not");
      }
    }
    const int64_t row = micro_sequences * world;  // sequences in one micro-batch of all ranks
    if (increment % row != 0) {
      char text[320];
      std::snprintf(text, sizeof(text),
                    "increment = %" PRId64 " is not micro_sequences %" PRId64 " x world %" PRId64
                    " x n: %" PRId64 " / %" PRId64
                    " = %g; the batch and what it grows by must be; nearest: %" PRId64,
                    increment, micro_sequences, world, increment, row,
                    static_cast<double>(increment) / static_cast<double>(row),
                    (increment / row + 1) * row);
      throw Error(CIUIC_INVALID, text);
    }
  }
};

class Ramp final : public BatchScheduler {
 public:
  static constexpr const char* name = "ramp";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "a batch, and sequences, that grow over the run";
  static constexpr uint32_t flags = CIUIC_FLAG_DETERMINISTIC;
  static constexpr std::array<const char*, 2> features{"grows", nullptr};
  static constexpr uint32_t kNumeric =
      uint32_t{CIUIC_OPTION_AFFECTS_NUMERICS} | uint32_t{CIUIC_OPTION_ALL_RANKS_EQUAL};
  inline static const auto options = option_table(
      with_unit(option_count("sequences", 16, 1, 1 << 24,
                             "Global batch of the first step: sequences, over all ranks", kNumeric),
                "sequences"),
      option_strings("ramp",
                     "Later batches: \"15360 by 469B tokens\" grows on a line, \"6144 from 10B "
                     "tokens\" at once; steps, samples or tokens, done before the step",
                     kNumeric),
      with_unit(option_count("increment", 0, 0, 1 << 24,
                             "The batch is a multiple of it, rounded down on a line; 0: the "
                             "greatest common divisor of sequences and ramp",
                             kNumeric),
                "sequences"),
      with_unit(option_i64("micro_sequences", 4, 1, 1 << 20,
                           "Rows per rank and micro-batch; the rest of the global batch is "
                           "gradient accumulation",
                           kNumeric),
                "sequences"),
      with_unit(option_count("sequence_tokens", 0, 0, 1 << 24,
                             "Length of the sequences that rows are cut into at first; divides "
                             "data.sequence_tokens; 0: whole rows",
                             kNumeric),
                "tokens"),
      option_strings("sequence_ramp", "Later lengths: \"256 from 10M tokens\"", kNumeric));

  explicit Ramp(const Context& context)
      : BatchScheduler(context), settings_(Settings::from(context)) {
    host().debug("the batch grows by " + std::to_string(settings_.increment) + " sequences, " +
                 std::to_string(settings_.increment / settings_.micro_sequences / context.world()) +
                 " micro-batches");
  }

  static void validate(const Context& context) { (void)Settings::from(context); }

  [[nodiscard]] Plan plan(const ciuic_batch_request& request) override {
    if (request.step == 0 || request.world == 0 || request.row_tokens == 0) {
      throw Error(CIUIC_INVALID, "a plan needs step, world and row_tokens above 0");
    }
    settings_.check_multiples(request.world);
    const Done done{request.step - 1, request.consumed_samples, request.row_tokens};
    const int64_t value = settings_.sequences.at(done);
    Plan out;
    out.samples = static_cast<uint64_t>(value / settings_.increment * settings_.increment);
    out.tokens = out.samples * request.row_tokens;
    out.row_tokens = row_tokens_at(done);
    out.micro_batches = static_cast<uint32_t>(
        out.samples / (static_cast<uint64_t>(settings_.micro_sequences) * request.world));
    add_items(request, out);
    return out;
  }

 private:
  /// Every length of the run must fit, so that a wrong one is told at the first step.
  [[nodiscard]] uint32_t row_tokens_at(const Done& done) const {
    for (const int64_t length : settings_.row_tokens.values()) {
      if (length != 0 && done.sample_tokens % static_cast<uint64_t>(length) != 0) {
        throw Error(CIUIC_INVALID, "sequences of " + std::to_string(length) +
                                       " tokens do not divide a row of data.sequence_tokens = " +
                                       std::to_string(done.sample_tokens));
      }
    }
    const int64_t length = settings_.row_tokens.at(done);
    return static_cast<uint32_t>(length == 0 ? static_cast<int64_t>(done.sample_tokens) : length);
  }

  void add_items(const ciuic_batch_request& request, Plan& out) const {
    const uint64_t rows = rows_of_an_epoch();
    const auto b = static_cast<uint64_t>(settings_.micro_sequences);
    for (uint32_t rank = 0; rank < request.world; ++rank) {
      if (request.only_rank >= 0 && rank != static_cast<uint32_t>(request.only_rank)) {
        continue;
      }
      for (uint32_t m = 0; m < out.micro_batches; ++m) {
        const uint64_t first = request.consumed_samples + (uint64_t{m} * request.world + rank) * b;
        for (uint64_t i = 0; i < b; ++i) {
          add_sample(request, rows, first + i, rank, m, out);
        }
      }
    }
  }

  /// A sample's pieces take the next rows of its micro-batch.
  static void add_sample(const ciuic_batch_request& request, uint64_t epoch_rows, uint64_t sample,
                         uint32_t rank, uint32_t m, Plan& out) {
    ciuic_batch_item item{};
    item.sample = sample;
    item.rank = rank;
    item.micro_batch = m;
    item.length = out.row_tokens;
    item.flags =
        epoch_rows > 0 && sample % epoch_rows == epoch_rows - 1 ? CIUIC_BATCH_EPOCH_END : 0;
    const bool is_first =
        out.items.empty() || out.items.back().micro_batch != m || out.items.back().rank != rank;
    item.row = is_first ? 0 : out.items.back().row + 1;
    for (; item.offset < request.row_tokens; item.offset += item.length, ++item.row) {
      out.items.push_back(item);
    }
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

  Settings settings_;
};

}  // namespace
}  // namespace ciuic::plugins

CIUIC_PLUGINS(ciuic::plugins::Ramp)
