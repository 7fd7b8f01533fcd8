// SPDX-License-Identifier: MIT
//
// Parameter values. Below stage 3 every rank has them whole: after an update each rank publishes its
// part, and a bind waits for the parts of its unit. At stage 3 a rank keeps its part only; a unit is
// gathered when it is bound, and the unit that is bound next is gathered ahead.
//
// Never more than two units are held whole, beyond what is bound at once: the one in use and the one
// ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "sharding/flat.h"
#include "sharding/groups.h"
#include "sharding/layout.h"
#include "sharding/transport.h"

namespace ciuic::plugins::stages {

/// What a schedule says is bound next; -1: unknown, or nothing.
struct Ahead {
  int64_t next = -1;   // the next bind's unit
  int64_t other = -1;  // the first one that differs from the unit bound now or next
};

class Values {
 public:
  /// Memory is zero. Everything handed in outlives this object.
  Values(const Host& host, ciuic_device device, const Settings& settings, const Layout& layout,
         const std::vector<BlockGroups>& groups, const Transport& transport);
  /// Waits for what is under way.
  ~Values();
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  // ---- by unit ----

  /// Values are there when the work is done.
  [[nodiscard]] Work bind(uint32_t unit, const ciuic_stream* stream);
  /// Starts to gather the unit that comes after the bound one, if there is room for it.
  void gather_ahead(uint32_t bound, const Ahead& ahead, const ciuic_stream* stream);
  /// Gives up what is neither bound nor ahead.
  void drop(uint32_t unit, const Ahead& ahead);
  /// First element of a bound parameter.
  [[nodiscard]] void* data(uint64_t root) const;

  // ---- by block ----

  /// This rank's part.
  [[nodiscard]] const Tensor& own(size_t block) const { return held_[block].own; }
  /// Every rank holds all of it, not only where it is bound.
  [[nodiscard]] bool is_whole(size_t block) const { return !held_[block].is_transient; }
  [[nodiscard]] const Tensor& whole(size_t block) const { return held_[block].whole; }
  /// Own parts of what is trained have changed. Starts to tell the others.
  void publish(const ciuic_stream* stream);
  /// Own parts have changed: what was gathered shows what was.
  void forget_gathered();
  /// Waits until all are told; throws what went wrong, or DEADLINE.
  void settle(int64_t timeout_ns = -1);
  /// Forgets binds, and what was gathered.
  void rollback(int64_t timeout_ns);

 private:
  struct Held {
    bool is_transient = false;  // gathered at bind
    Tensor own;
    Tensor whole;     // no data while it is not there
    Buffer gathered;  // of a transient one
    Pending pending;
    int binds = 0;
  };

  void allocate(ciuic_device device);
  [[nodiscard]] bool is_here(const Held& h) const {
    return !h.is_transient || h.gathered.size() > 0;
  }
  void gather(size_t block, const ciuic_stream* stream);
  void release(size_t block);
  [[nodiscard]] bool uses(int64_t unit, size_t block) const;
  [[nodiscard]] int64_t bytes_of_unit(uint32_t unit) const;

  Host host_;
  ciuic_device device_;
  const Layout& layout_;
  const std::vector<BlockGroups>& groups_;
  const Transport& transport_;
  bool cuts_values_;
  std::vector<Buffer> memory_;
  BufferPool pool_;
  std::vector<Held> held_;  // by block
};

}  // namespace ciuic::plugins::stages
