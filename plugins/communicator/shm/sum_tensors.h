// SPDX-License-Identifier: MIT
//
// All-reduce, reduce and reduce-scatter. Every rank sums its part of each chunk, in the order of a
// fixed tree over group ranks, so results depend on no timing.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collective.h"

namespace ciuic::plugins::shm {

[[nodiscard]] std::unique_ptr<Collective> make_sum(Request request, uint64_t number,
                                                   const Workplace& place);

/// All-reduce; reduce, where only the root takes the result. Three ways:
///   small    everybody copies all of it to a slot, then sums everything: one meeting of all ranks
///   shared   all inputs and outputs are shared: each rank sums its part straight from all inputs to
///            all outputs
///   chunks   stage s: copy chunk s to the slot, sum the own part of chunk s - 1, take the others'
///            parts of chunk s - 2
class SumWhole final : public Collective {
 public:
  using Collective::Collective;

 private:
  int64_t plan() override;
  void work(int64_t stage, uint64_t g) override;
  void check_against(int r) const override;

  [[nodiscard]] int64_t bytes() const { return r_.in_part(0).bytes; }
  [[nodiscard]] bool is_small() const;
  [[nodiscard]] bool takes_result() const { return r_.op == CIUIC_OP_ALL_REDUCE || r_.is_root(); }
  [[nodiscard]] Part chunk(int64_t k) const;
  [[nodiscard]] Part share(int64_t k, int p) const;
  void sum_all(uint64_t g);
  void sum_shared(int64_t k);
  void copy_in(int64_t k, uint64_t g);
  void sum_own(int64_t k, uint64_t g);
  void take_sums(int64_t k, uint64_t g);

  bool is_all_shared_ = false;
  int64_t num_chunks_ = 0;
  int64_t chunk_bytes_ = place_.board.chunk_bytes();
  std::vector<const char*> shared_inputs_;  // NULL: not shared
  std::vector<char*> shared_outputs_;
};

/// Reduce-scatter. Chunks are cut from all parts alike.
class SumParts final : public Collective {
 public:
  SumParts(Request request, uint64_t number, const Workplace& place);

 private:
  int64_t plan() override;
  void work(int64_t stage, uint64_t g) override;
  void check_against(int r) const override;

  [[nodiscard]] Part piece(int64_t k, int64_t part_bytes) const;
  void copy_in(int64_t k, uint64_t g);
  void sum_own(int64_t k, uint64_t g);

  int64_t num_chunks_ = 1;
  int64_t piece_bytes_;  // of each part in a chunk
  std::vector<const char*> shared_inputs_;
};

}  // namespace ciuic::plugins::shm
