// SPDX-License-Identifier: MIT
//
// Gradients in flat buckets, and their sums over the ranks. Backward fills the buckets from the last
// unit on; a full one starts its sum while backward goes on (PyTorch Distributed, arXiv:2006.15704,
// sec. 3.2). Gradients come scaled by the global token count: they are summed, never averaged.
//
// Kept whole (stages 0 and 1): micro-batches add up in the bucket, which is summed once a step, with
// its last gradient. Buckets are submitted in one fixed order, so all ranks agree, whatever the order
// in which their units became ready.
//
// Cut (stages 2 and 3): a bucket is memory that comes with a micro-batch's backward and goes with its
// sum; only this rank's part stays, and there micro-batches add up, in the gradient's type. Buckets
// are submitted as they become complete, so all ranks must walk the same schedule.
//
// The sum over replicas (hybrid sharding) follows when the last sum of a part is there; that over a
// sum_group follows at the end.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sharding/flat.h"
#include "sharding/groups.h"
#include "sharding/layout.h"
#include "sharding/slot_sum.h"
#include "sharding/transport.h"

namespace ciuic::plugins::stages {

class Gradients {
 public:
  /// Where a use puts a parameter's gradient.
  struct Target {
    bool is_wanted;   // false: frozen
    void* data;       // first element
    bool is_garbage;  // write all of it, do not add
  };

  /// Everything handed in outlives this object.
  Gradients(const Host& host, ciuic_device device, const Settings& settings, const Layout& layout,
            const std::vector<BlockGroups>& groups, const Transport& transport);
  /// Waits for what is under way: a transport may still read and write the buckets.
  ~Gradients();
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  // ---- one step, in this order ----

  void begin_step(const Slots& slots);
  /// A use is about to write. For an idle one, gradients that nobody wrote yet become zero here.
  [[nodiscard]] Target bind(uint64_t param, const ciuic_use& use, const ciuic_stream* stream);
  /// The use wrote: starts every bucket that is complete now. If it turned idle after its bind, what
  /// it was to overwrite becomes zero.
  void ready(const ciuic_use& use, const ciuic_stream* stream);
  /// Starts the remaining buckets; gradients that no use wrote are zero.
  void flush(const ciuic_stream* stream);
  /// Waits for the sums. Throws PRECONDITION before flush.
  void finish(const ciuic_stream* stream);

  /// After finish: the sum over the ranks of this rank's part. NULL: the block is not trained.
  [[nodiscard]] const Tensor& own(size_t block) const { return filled_[block].own; }
  /// Non-finite elements of a parameter's gradient that this rank brought to the sums of this step.
  [[nodiscard]] bool brought_non_finite(uint64_t root, const ciuic_stream* stream) const;
  [[nodiscard]] bool is_tree() const { return slots_.is_tree; }

  /// Waits, at most so long, and forgets.
  void rollback(int64_t timeout_ns);

 private:
  struct Filled {  // by block
    std::string label;
    Buffer kept;               // `whole`, or `own` where whole comes and goes
    Buffer lent, wire_memory;  // whole of a cut one, from the pool
    Tensor whole;              // no data while it is not there
    Tensor wire;               // in the reduce type; no data where that is the gradient's
    Tensor own;                // this rank's part: of `whole`, or kept apart
    bool is_cut = false;       // whole comes and goes
    SlotStack stack;
    Pending second;
    Buffer second_memory;
    Tensor second_wire;
    // In this step:
    bool has_sum = false;       // own holds the sum of earlier micro-batches
    bool is_started = false;    // at least once
    bool is_complete = false;   // the step's last sum was started: no more gradients may come
    bool has_followed = false;  // the second sum was started
    size_t units_missing = 0;
    std::vector<bool> is_reported;  // by place of the unit in the bucket
  };
  /// By root; in this step, or in this micro-batch where a bucket is summed each time.
  struct Param {
    bool is_written = false;
    bool is_pending = false;  // a use was told to overwrite and has not reported yet
  };
  /// A first sum under way.
  struct Flight {
    size_t block = 0;
    Buffer pooled;    // of a cut bucket: what travels
    Buffer received;  // of an exchange
    Tensor wire;
    Pending pending;
    bool is_last = false;  // of its block in this step
  };

  // gradients.cpp: a step
  [[nodiscard]] bool sums_each_time(const Filled& f) const { return f.is_cut && !slots_.is_tree; }
  [[nodiscard]] bool is_trained(size_t block) const {
    return layout_.blocks()[block].bucket.is_trained;
  }
  [[nodiscard]] Tensor flat(uint64_t root, const Tensor& whole) const;
  void restart(size_t block);
  void report(size_t block, const ciuic_use& use, const ciuic_stream* stream);
  void submit_in_order(const ciuic_stream* stream);
  void close_slots(size_t block, uint32_t before, const ciuic_stream* stream);
  void zero_unwritten(size_t block, const ciuic_stream* stream);

  // gradient_memory.cpp
  void allocate(size_t block);
  void check_transport(size_t block) const;
  void take_whole(size_t block);
  void give_back_whole(Filled& f);
  [[nodiscard]] int64_t most_in_flight() const;

  // gradient_sums.cpp
  void start(size_t block, const ciuic_stream* stream);
  void start_exchange(size_t block, const ciuic_stream* stream);
  void start_sum(size_t block, const ciuic_stream* stream);
  void look_for_non_finite(size_t block, const ciuic_stream* stream);
  void make_room(int64_t bytes, const ciuic_stream* stream);
  void make_second_room(const ciuic_stream* stream);
  void land(const ciuic_stream* stream);
  void land_all(const ciuic_stream* stream);
  void take_exchanged(const Flight& flight, const ciuic_stream* stream);
  void add_to_own(size_t block, const Tensor& sum, const ciuic_stream* stream);
  void follow(size_t block, const ciuic_stream* stream);
  void start_second(size_t block, const ciuic_stream* stream);
  void finish_second(size_t block, const ciuic_stream* stream);
  void start_reduce(size_t block, const ciuic_group& group, const ciuic_stream* stream);
  void sum_second_groups(const ciuic_stream* stream);
  [[nodiscard]] bool has_second(size_t block) const;
  [[nodiscard]] std::vector<int64_t> exchange_edges(size_t block) const;

  Host host_;
  ciuic_device device_;
  const Settings& settings_;
  const Layout& layout_;
  const std::vector<BlockGroups>& groups_;
  const Transport& transport_;
  TensorOps ops_;
  BufferPool pool_;
  SlotOrder slot_order_;
  bool names_bad_rank_;
  int64_t most_in_flight_ = 0;

  std::vector<Filled> filled_;
  std::vector<Param> params_;
  Buffer blame_memory_;
  std::vector<Tensor> blame_;  // by root: statistics of what this rank brought

  // Of this step:
  Slots slots_;
  std::deque<Flight> flights_;
  int64_t bytes_in_flight_ = 0;
  size_t submitted_ = 0;  // blocks of those that go in fixed order
  bool is_flushed_ = false;
  bool is_finished_ = false;
};

}  // namespace ciuic::plugins::stages
