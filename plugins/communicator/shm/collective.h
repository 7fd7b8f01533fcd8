// SPDX-License-Identifier: MIT
//
// A collective as a row of stages (board.h says when a stage may run). Stage 0 tells the peers what
// this rank asks for; stage 1 compares that with what they ask for, and plans the rest alike on all
// ranks. Memory of memory_alloc is read where it lies; the rest is copied to slots, chunk by chunk,
// while the chunk before is worked on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ciuic/host.hpp>

#include "board.h"
#include "communicator/request.h"
#include "heap.h"

namespace ciuic::plugins::shm {

/// What an operation works with; all of it outlives the operation.
struct Workplace {
  Board& board;
  Heap& heap;
  const std::vector<int32_t>& global_ranks;
  Host host;
};

class Collective {
 public:
  Collective(Request request, uint64_t number, const Workplace& place);
  virtual ~Collective() = default;

  /// The stages in order; `g` numbers them through all operations. Throws INVALID when the ranks ask
  /// for different things.
  void run(int64_t stage, uint64_t g);
  /// Only the first may run before all ranks have finished the stage before it.
  [[nodiscard]] bool is_last(int64_t stage) const { return stage + 1 == num_stages_; }

 protected:
  /// Number of stages and size of chunks, from the headers of all ranks.
  virtual int64_t plan() = 0;
  virtual void work(int64_t stage, uint64_t g) = 0;
  /// Throws INVALID when what rank r brings does not fit what this rank expects of it.
  virtual void check_against(int r) const = 0;

  [[nodiscard]] const Header& header(int r) const { return place_.board.header(r, number_); }
  [[nodiscard]] const HeaderPart& header_part(int r, int to) const {
    return place_.board.header_parts(r, number_)[to];
  }
  [[nodiscard]] bool is_input_shared(int r) const { return header(r).in.segment != 0; }
  [[nodiscard]] bool is_output_shared(int r) const { return header(r).out.segment != 0; }
  /// Rank r's input or output in this process. Only where it is shared.
  [[nodiscard]] char* peer_input(int r) const;
  [[nodiscard]] char* peer_output(int r) const;
  [[noreturn]] void refuse(int r, const std::string& why) const;
  [[nodiscard]] int64_t width() const;

  Request r_;
  const uint64_t number_;
  const Workplace place_;
  const int world_, rank_;
  uint64_t signature_ = 0;
  Address in_, out_;  // this rank's, as the peers see them

 private:
  void tell() const;
  void compare() const;

  int64_t num_stages_ = -1;
};

/// A collective of a group of two or more. `in` of a root that broadcasts is its `out`.
[[nodiscard]] std::unique_ptr<Collective> make_collective(Request request, uint64_t number,
                                                          const Workplace& place);

/// Bytes from `begin` on of one part, or of one chunk.
[[nodiscard]] inline int64_t chunks_of(int64_t bytes, int64_t chunk) {
  return (bytes + chunk - 1) / chunk;
}
void copy_bytes(char* to, const char* from, int64_t bytes);

/// What peers read where it lies is cut too: between two chunks a group can still be aborted.
constexpr int64_t kSharedChunkBytes = 8 << 20;

}  // namespace ciuic::plugins::shm
