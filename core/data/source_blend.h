// SPDX-License-Identifier: MIT
//
// Several sources of rows as one numbered sequence of samples, in proportion to their weights. A
// pure function of the sample's number: resume needs no state, and every world size draws the same.
//
// The rule. Weights become whole shares of a period of 65536 samples: the largest remainders are
// rounded up, and no source gets less than one. Inside a period each sample goes to the source that
// is furthest behind its share (the first of several), so that after n samples of a period a source
// with the share c has c n / 65536 of them, give or take about one. Sample n is then the k-th of its
// source: k = whole periods before x share + how many came before in this period. The k-th sample of
// a source is row order(k mod rows) of its (k / rows)-th pass: each row once before any comes again.
//
// A source with a limit of passes leaves when they are used up; there a new phase begins, in which
// the others share its place by their weights. A look-up is a search among the phases (no more than
// sources) and one entry of a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ciuic::core {

class SourceBlend {
 public:
  struct Source {
    std::string name;
    double weight = 1;  // above 0; of the others' sum what counts
    int64_t most = -1;  // samples; -1: without end
  };
  struct Pick {
    size_t source = 0;
    uint64_t index = 0;  // which of the source's samples
  };

  static constexpr uint32_t kPeriod = 65536;

  explicit SourceBlend(const std::vector<Source>& sources);

  /// Throws Failure (Usage) for a sample behind the end.
  [[nodiscard]] Pick pick(uint64_t sample) const;
  /// The number of samples; UINT64_MAX: without end.
  [[nodiscard]] uint64_t end() const { return end_; }

 private:
  struct Place {
    uint32_t before = 0;  // of the same source, in this period
    uint16_t source = 0;
  };
  struct Phase {
    uint64_t begin = 0;
    std::vector<uint64_t> used;    // samples of each source before
    std::vector<uint32_t> shares;  // 0: a source that has left
    std::vector<Place> period;
  };

  static Phase make_phase(const std::vector<Source>& sources, uint64_t begin,
                          std::vector<uint64_t> used);
  static uint64_t end_of(const Phase& phase, const std::vector<Source>& sources);
  static Pick pick_in(const Phase& phase, uint64_t sample);

  std::vector<Phase> phases_;
  uint64_t end_ = UINT64_MAX;
};

}  // namespace ciuic::core
