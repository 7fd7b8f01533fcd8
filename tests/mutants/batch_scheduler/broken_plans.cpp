// SPDX-License-Identifier: MIT
//
// Batch schedulers with one fault each, children of a correct one.
#include <cstring>
#include <ctime>
#include <map>

#include "document_packer.hpp"

namespace ciuic::mutants {
namespace {

/// Steps overlap by a sample now and then.
class ServedTwice final : public DocumentPacker {
 public:
  static constexpr const char* name = "served_twice";
  static constexpr const char* summary = "step 5, 10, ... begins with the sample before";
  using DocumentPacker::DocumentPacker;
  std::vector<uint64_t> window(const ciuic_batch_request& request, uint64_t) override {
    return range(request.consumed_samples - (request.step % 5 == 0 ? 1 : 0),
                 kSamplesPerRank * request.world);
  }
};

/// The classic drop_last, not declared.
class TailDropped final : public DocumentPacker {
 public:
  static constexpr const char* name = "tail_dropped";
  static constexpr const char* summary = "an epoch is cut to whole steps";
  using DocumentPacker::DocumentPacker;
  std::vector<uint64_t> window(const ciuic_batch_request& request, uint64_t epoch_rows) override {
    const uint64_t count = kSamplesPerRank * request.world;
    const uint64_t whole = epoch_rows / count * count;
    if (whole == 0) {
      return range(request.consumed_samples, count);
    }
    return range(request.consumed_samples / whole * epoch_rows + request.consumed_samples % whole,
                 count);
  }
};

/// Deals rows by the day of the week.
class ByTheClock final : public DocumentPacker {
 public:
  static constexpr const char* name = "by_the_clock";
  static constexpr const char* summary = "rows go to other ranks on another day";
  using DocumentPacker::DocumentPacker;
  uint32_t rows_per_micro_batch(const ciuic_batch_request&) override {
    return 1 + static_cast<uint32_t>(time(nullptr) / 86400 % 7);
  }
};

/// Goes on from where its last plan ended, whatever is asked.
class OwnCursor final : public DocumentPacker {
 public:
  static constexpr const char* name = "own_cursor";
  static constexpr const char* summary = "keeps an iterator of its own";
  using DocumentPacker::DocumentPacker;
  std::vector<uint64_t> window(const ciuic_batch_request& request, uint64_t) override {
    const uint64_t first = next_;
    next_ += kSamplesPerRank * request.world;
    return range(first, kSamplesPerRank * request.world);
  }

 private:
  uint64_t next_ = 0;
};

/// Rank 1 gets rank 0's first row too.
class RanksOverlap final : public DocumentPacker {
 public:
  static constexpr const char* name = "ranks_overlap";
  static constexpr const char* summary = "a row is dealt to two ranks";
  using DocumentPacker::DocumentPacker;
  std::vector<uint32_t> ranks_of_row(size_t row, const ciuic_batch_request& request) override {
    if (row == 0 && request.world > 1) {
      return {0, 1};
    }
    return DocumentPacker::ranks_of_row(row, request);
  }
};

/// The last piece of a long document is a whole row.
class PastTheEnd final : public DocumentPacker {
 public:
  static constexpr const char* name = "past_the_end";
  static constexpr const char* summary = "later pieces of a document are not cut to what is left";
  using DocumentPacker::DocumentPacker;
  std::vector<ciuic_batch_item> pieces(uint64_t sample, uint64_t length,
                                       uint32_t row_tokens) override {
    auto out = DocumentPacker::pieces(sample, length, row_tokens);
    for (ciuic_batch_item& piece : out) {
      piece.length = piece.offset > 0 ? row_tokens : piece.length;
    }
    return out;
  }
};

/// Counts the budget without the item that it adds.
class OverBudget final : public DocumentPacker {
 public:
  static constexpr const char* name = "over_budget";
  static constexpr const char* summary = "a row may be longer than row_tokens by one";
  using DocumentPacker::DocumentPacker;
  bool fits(uint32_t fill, uint32_t length, uint32_t row_tokens) override {
    return fill + length <= row_tokens + 1;
  }
};

/// Where the run is follows from the step, as if the world had always been this one.
class StepTimesWorld final : public DocumentPacker {
 public:
  static constexpr const char* name = "step_times_world";
  static constexpr const char* summary = "does not read consumed_samples";
  using DocumentPacker::DocumentPacker;
  std::vector<uint64_t> window(const ciuic_batch_request& request, uint64_t) override {
    const uint64_t count = kSamplesPerRank * request.world;
    return range((request.step - 1) * count, count);
  }
};

/// Another attempt is another batch.
class AttemptMovesOn final : public DocumentPacker {
 public:
  static constexpr const char* name = "attempt_moves_on";
  static constexpr const char* summary = "after an out-of-memory report the next samples come";
  using DocumentPacker::DocumentPacker;
  std::vector<uint64_t> window(const ciuic_batch_request& request, uint64_t) override {
    const uint64_t count = kSamplesPerRank * request.world;
    return range(request.consumed_samples + request.attempt * count, count);
  }
};

/// 32 bits for a position that counts without end.
class NarrowCursor final : public DocumentPacker {
 public:
  static constexpr const char* name = "narrow_cursor";
  static constexpr const char* summary = "consumed samples are kept in 32 bits";
  using DocumentPacker::DocumentPacker;
  std::vector<uint64_t> window(const ciuic_batch_request& request, uint64_t) override {
    return range(static_cast<uint32_t>(request.consumed_samples), kSamplesPerRank * request.world);
  }
};

/// Totals of what it shows, when it shows one rank.
class OwnTotals final : public DocumentPacker {
 public:
  static constexpr const char* name = "own_totals";
  static constexpr const char* summary = "with only_rank, totals are that rank's";
  using DocumentPacker::DocumentPacker;
  void finish(Plan& plan, const ciuic_batch_request& request) override {
    if (request.only_rank < 0) {
      return;
    }
    plan.tokens = 0;
    for (const ciuic_batch_item& item : plan.items) {
      plan.tokens += item.rank == static_cast<uint32_t>(request.only_rank) ? item.length : 0;
    }
  }
};

/// Looks at its own rank's report, so ranks learn different things.
class OwnReport final : public DocumentPacker {
 public:
  static constexpr const char* name = "own_report";
  static constexpr const char* summary = "reads the report of its own rank only";
  static constexpr std::array<const char*, 3> features{"lengths", "adaptive", nullptr};
  explicit OwnReport(const Context& context) : DocumentPacker(context), rank_(context.rank()) {}
  void observe(uint64_t, uint32_t, ArrayView<ciuic_rank_report> reports) override {
    for (const ciuic_rank_report& report : reports) {
      if (report.rank == rank_) {
        rows_ = report.memory_used > report.memory_total / 2 ? 1 : 2;
      }
    }
  }
  uint32_t rows_per_micro_batch(const ciuic_batch_request&) override { return rows_; }

 private:
  int32_t rank_;
  uint32_t rows_ = 2;
};

/// What it learnt is lost with the process.
class Forgetful final : public DocumentPacker {
 public:
  static constexpr const char* name = "forgetful";
  static constexpr const char* summary = "adaptive, without state";
  static constexpr std::array<const char*, 3> features{"lengths", "adaptive", nullptr};
  using DocumentPacker::DocumentPacker;
  void observe(uint64_t, uint32_t, ArrayView<ciuic_rank_report> reports) override {
    for (const ciuic_rank_report& report : reports) {
      rows_ = (report.flags & CIUIC_REPORT_OOM) != 0 ? 1 : rows_;
    }
  }
  uint32_t rows_per_micro_batch(const ciuic_batch_request&) override { return rows_; }

 private:
  uint32_t rows_ = 2;
};

/// A host that trusts it looks past the small steps.
class Shrinks final : public DocumentPacker {
 public:
  static constexpr const char* name = "shrinks";
  static constexpr const char* summary = "says that it grows; step 7, 14, ... is half a step";
  static constexpr std::array<const char*, 3> features{"lengths", "grows", nullptr};
  using DocumentPacker::DocumentPacker;
  std::vector<uint64_t> window(const ciuic_batch_request& request, uint64_t) override {
    const uint64_t count = kSamplesPerRank * request.world;
    return range(request.consumed_samples, request.step % 7 == 0 ? count / 2 : count);
  }
};

}  // namespace
}  // namespace ciuic::mutants

CIUIC_PLUGINS(ciuic::mutants::ServedTwice, ciuic::mutants::TailDropped, ciuic::mutants::ByTheClock,
              ciuic::mutants::OwnCursor, ciuic::mutants::RanksOverlap, ciuic::mutants::PastTheEnd,
              ciuic::mutants::OverBudget, ciuic::mutants::StepTimesWorld,
              ciuic::mutants::AttemptMovesOn, ciuic::mutants::NarrowCursor,
              ciuic::mutants::OwnTotals, ciuic::mutants::OwnReport, ciuic::mutants::Forgetful,
              ciuic::mutants::Shrinks)
