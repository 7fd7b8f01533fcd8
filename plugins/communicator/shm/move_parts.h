// SPDX-License-Identifier: MIT
//
// What only moves bytes: all-gather, gather, broadcast, scatter, all-to-all; and the barrier, which
// moves none. Who receives reads the sender's slot, or its memory where that is shared.
#pragma once

#include <cstdint>
#include <vector>

#include "collective.h"

namespace ciuic::plugins::shm {

class MoveParts final : public Collective {
 public:
  MoveParts(Request request, uint64_t number, const Workplace& place);

 private:
  int64_t plan() override;
  void work(int64_t stage, uint64_t g) override;
  void check_against(int r) const override;

  [[nodiscard]] bool moves(int from, int to) const;
  [[nodiscard]] bool sends(int from) const;
  /// Each receiver gets another part; else all of them the same.
  [[nodiscard]] bool has_part_for_each() const;
  [[nodiscard]] Part piece(int64_t k, int64_t part_bytes) const;
  void copy_in(int64_t k, uint64_t g);
  void take(int64_t k, uint64_t g);
  void copy_own() const;

  Buffer aside_;  // a copy of the input, where the output overlaps it
  int64_t num_chunks_ = 0;
  int64_t piece_bytes_;
  std::vector<const char*> shared_inputs_;
};

}  // namespace ciuic::plugins::shm
