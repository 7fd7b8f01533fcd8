// SPDX-License-Identifier: MIT
//
// Correct batch schedulers that are unlike the tree's own.
#include <chrono>
#include <mutex>
#include <thread>

#include "document_packer.hpp"

namespace ciuic::mutants {
namespace {

class PacksDocuments final : public DocumentPacker {
 public:
  static constexpr const char* name = "packs_documents";
  static constexpr const char* summary = "packs documents of any length into rows";
  using DocumentPacker::DocumentPacker;
};

/// Learns from reports: rows follow the ranks' speed, micro-batches shrink after an out-of-memory
/// report. Everything learnt is whole numbers, equal on all ranks, and in the state.
class LearnsFromReports final : public DocumentPacker {
 public:
  static constexpr const char* name = "learns_from_reports";
  static constexpr const char* summary =
      "gives fast ranks more rows; smaller micro-batches when full";
  static constexpr std::array<const char*, 3> features{"lengths", "adaptive", nullptr};
  using DocumentPacker::DocumentPacker;

  void observe(uint64_t, uint32_t, ArrayView<ciuic_rank_report> reports) override {
    std::vector<uint32_t> shares(reports.size(), 1);
    for (const ciuic_rank_report& report : reports) {
      if ((report.flags & CIUIC_REPORT_OOM) != 0) {
        rows_per_micro_batch_ = 1;
      }
      const double rate = static_cast<double>(report.tokens) / report.seconds;
      shares.at(static_cast<size_t>(report.rank)) = rate > 2000 ? 2 : 1;
    }
    shares_ = shares;
  }
  uint32_t rows_per_micro_batch(const ciuic_batch_request& request) override {
    return request.attempt > 0 ? 1 : rows_per_micro_batch_;
  }
  std::vector<uint32_t> ranks_of_row(size_t row, const ciuic_batch_request& request) override {
    std::vector<uint32_t> turns;
    for (uint32_t rank = 0; rank < request.world; ++rank) {
      turns.insert(turns.end(), rank < shares_.size() ? shares_[rank] : 1, rank);
    }
    return {turns[row % turns.size()]};
  }

  void save(const StateWriter& writer) override {
    std::string text(1, static_cast<char>(rows_per_micro_batch_));
    for (const uint32_t share : shares_) {
      text.push_back(static_cast<char>(share));
    }
    writer.blob("learnt", text);
  }
  void load(const StateReader& reader) override {
    const std::string text = reader.blob("learnt");
    if (text.empty()) {
      throw Error(CIUIC_DATA_LOSS, "the state \"learnt\" is empty");
    }
    rows_per_micro_batch_ = static_cast<uint32_t>(text[0]);
    shares_.assign(text.begin() + 1, text.end());
  }

 private:
  uint32_t rows_per_micro_batch_ = 4;
  std::vector<uint32_t> shares_;
};

/// Sorts groups of steps by length, so a sample may be served some steps before or after its turn;
/// takes its time, and plans in a thread of its own. Samples are of one rank's group at a time: the
/// world does not matter to which step serves what.
class SortsByLength final : public DocumentPacker {
 public:
  static constexpr const char* name = "sorts_by_length";
  static constexpr const char* summary =
      "slow; serves samples of like length together, out of order";
  using DocumentPacker::DocumentPacker;

  [[nodiscard]] Plan plan(const ciuic_batch_request& request) override {
    Plan out;
    ciuic_status* failure = nullptr;
    std::thread([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      failure = guard(host(), [&] { out = DocumentPacker::plan(request); });
    }).join();
    host().check(failure);
    return out;
  }

 protected:
  std::vector<uint64_t> window(const ciuic_batch_request& request, uint64_t epoch_rows) override {
    (void)epoch_rows;
    const uint64_t begin = request.consumed_samples / kGroup * kGroup;
    std::vector<uint64_t> group = range(begin, kGroup);
    std::vector<uint64_t> lengths(kGroup);
    const auto& data = host().service<ciuic_data_service>("ciuic.data");
    host().check(data.lengths(data.ctx, begin, kGroup, lengths.data()));
    std::stable_sort(group.begin(), group.end(), [&](uint64_t a, uint64_t b) {
      return lengths[a - begin] < lengths[b - begin];
    });
    // A step ends where its group ends, so it may have fewer samples than the next.
    const uint64_t from = request.consumed_samples - begin;
    const uint64_t count = std::min(kSamplesPerRank * request.world, kGroup - from);
    return {group.begin() + static_cast<int64_t>(from),
            group.begin() + static_cast<int64_t>(from + count)};
  }

 private:
  static constexpr uint64_t kGroup = 24;
};

/// Leaves out what does not fill a step at an epoch's end and cuts long documents, and says so.
class SaysWhatItDrops final : public DocumentPacker {
 public:
  static constexpr const char* name = "says_what_it_drops";
  static constexpr const char* summary = "drops the epoch's tail and tokens past a row, declared";
  static constexpr std::array<const char*, 4> features{"lengths", "drops:epoch", "drops:long",
                                                       nullptr};
  using DocumentPacker::DocumentPacker;

 protected:
  std::vector<uint64_t> window(const ciuic_batch_request& request, uint64_t epoch_rows) override {
    const uint64_t whole = epoch_rows / kUnit * kUnit;
    const uint64_t count = whole == 0 ? kUnit : std::min(kUnit * request.world, whole);
    std::vector<uint64_t> out;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t k = request.consumed_samples + i;
      out.push_back(whole == 0 ? k : k / whole * epoch_rows + k % whole);
    }
    return out;
  }
  std::vector<ciuic_batch_item> pieces(uint64_t sample, uint64_t length,
                                       uint32_t row_tokens) override {
    return DocumentPacker::pieces(sample, std::min<uint64_t>(length, row_tokens), row_tokens);
  }

 private:
  static constexpr uint64_t kUnit = 4;
};

}  // namespace
}  // namespace ciuic::mutants

CIUIC_PLUGINS(ciuic::mutants::PacksDocuments, ciuic::mutants::LearnsFromReports,
              ciuic::mutants::SortsByLength, ciuic::mutants::SaysWhatItDrops)
