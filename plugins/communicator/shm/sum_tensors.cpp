// SPDX-License-Identifier: MIT
#include "sum_tensors.h"

#include <algorithm>
#include <utility>

#include "communicator/reduction.h"

namespace ciuic::plugins::shm {
namespace {

/// Up to here one meeting of the ranks less is worth more than every rank's reading all.
constexpr int64_t kSmallBytes = 16 << 10;
constexpr int64_t kAlign = 64;  // bytes; shares begin on lines of their own

int64_t round_down(int64_t bytes, int64_t unit) { return bytes / unit * unit; }
int64_t round_up(int64_t bytes, int64_t unit) { return round_down(bytes + unit - 1, unit); }

}  // namespace

std::unique_ptr<Collective> make_sum(Request request, uint64_t number, const Workplace& place) {
  if (request.op == CIUIC_OP_REDUCE_SCATTER) {
    return std::make_unique<SumParts>(std::move(request), number, place);
  }
  return std::make_unique<SumWhole>(std::move(request), number, place);
}

// ---- all-reduce and reduce ----

bool SumWhole::is_small() const { return bytes() <= kSmallBytes; }

void SumWhole::check_against(int r) const {
  if (header_part(r, 0).bytes != bytes()) {
    refuse(r, "got " + std::to_string(header_part(r, 0).bytes) + " bytes, expected " +
                  std::to_string(bytes()));
  }
}

int64_t SumWhole::plan() {
  if (is_small()) {
    return 2;
  }
  is_all_shared_ = r_.op == CIUIC_OP_ALL_REDUCE;
  for (int r = 0; r < world_; ++r) {
    is_all_shared_ = is_all_shared_ && is_input_shared(r) && is_output_shared(r);
  }
  for (int r = 0; r < world_; ++r) {
    shared_inputs_.push_back(is_input_shared(r) ? peer_input(r) : nullptr);
    if (is_all_shared_) {
      shared_outputs_.push_back(peer_output(r));
    }
  }
  if (is_all_shared_) {  // the own output first: it is what the others are copied from
    std::swap(shared_outputs_[0], shared_outputs_[static_cast<size_t>(rank_)]);
    chunk_bytes_ = kSharedChunkBytes;
  }
  num_chunks_ = chunks_of(bytes(), chunk_bytes_);
  return num_chunks_ + 2;
}

void SumWhole::work(int64_t s, uint64_t g) {
  if (is_small()) {
    if (s == 0) {
      copy_bytes(place_.board.in_slot(rank_, g), r_.in, bytes());
    } else if (takes_result()) {
      sum_all(g);
    }
    return;
  }
  if (is_all_shared_) {
    if (s >= 1 && s <= num_chunks_) {
      sum_shared(s - 1);
    }
    return;
  }
  if (s == 0 || s < num_chunks_) {
    copy_in(s, g);
  }
  if (s >= 1 && s <= num_chunks_) {
    sum_own(s - 1, g);
  }
  if (s >= 2) {
    take_sums(s - 2, g);
  }
}

void SumWhole::sum_all(uint64_t g) {
  std::vector<const char*> parts;
  for (int r = 0; r < world_; ++r) {
    parts.push_back(r == rank_ ? r_.in : place_.board.in_slot(r, g - 1));
  }
  reduce_parts(r_.dtype, r_.reduce, parts, bytes() / width(), r_.out);
}

/// Of the tensor.
Part SumWhole::chunk(int64_t k) const {
  const int64_t begin = k * chunk_bytes_;
  return {begin, std::min(chunk_bytes_, bytes() - begin)};
}

/// Rank p's part of chunk k, from the chunk's beginning.
Part SumWhole::share(int64_t k, int p) const {
  const int64_t all = chunk(k).bytes;
  const int64_t each = round_up((all + world_ - 1) / world_, kAlign);
  const int64_t begin = std::min(all, each * p);
  return {begin, std::min(each, all - begin)};
}

void SumWhole::sum_shared(int64_t k) {
  const Part own = share(k, rank_);
  const int64_t begin = chunk(k).begin + own.begin;
  std::vector<const char*> parts = shared_inputs_;
  std::vector<char*> outs = shared_outputs_;
  for (auto& part : parts) {
    part += begin;
  }
  for (auto& out : outs) {
    out += begin;
  }
  reduce_parts(r_.dtype, r_.reduce, parts, own.bytes / width(), outs);
}

void SumWhole::copy_in(int64_t k, uint64_t g) {
  if (in_.segment != 0) {
    return;
  }
  const char* from = r_.in + chunk(k).begin;
  char* const slot = place_.board.in_slot(rank_, g);
  for (int p = 0; p < world_; ++p) {
    const Part part = share(k, p);
    if (p != rank_) {
      copy_bytes(slot + part.begin, from + part.begin, part.bytes);
    }
  }
}

void SumWhole::sum_own(int64_t k, uint64_t g) {
  const Part own = share(k, rank_);
  const int64_t begin = chunk(k).begin + own.begin;
  std::vector<const char*> parts;
  for (int r = 0; r < world_; ++r) {
    const char* shared = shared_inputs_[static_cast<size_t>(r)];
    parts.push_back(r == rank_          ? r_.in + begin
                    : shared != nullptr ? shared + begin
                                        : place_.board.in_slot(r, g - 1) + own.begin);
  }
  std::vector<char*> outs;
  if (takes_result()) {
    outs.push_back(r_.out + begin);
  }
  if (r_.op == CIUIC_OP_ALL_REDUCE || !takes_result()) {
    outs.push_back(place_.board.sum_slot(rank_, g));
  }
  reduce_parts(r_.dtype, r_.reduce, parts, own.bytes / width(), outs);
}

void SumWhole::take_sums(int64_t k, uint64_t g) {
  for (int p = 0; takes_result() && p < world_; ++p) {
    const Part part = share(k, p);
    if (p != rank_) {
      copy_bytes(r_.out + chunk(k).begin + part.begin, place_.board.sum_slot(p, g - 1), part.bytes);
    }
  }
}

// ---- reduce-scatter ----

SumParts::SumParts(Request request, uint64_t number, const Workplace& place)
    : Collective(std::move(request), number, place),
      piece_bytes_(round_down(place.board.chunk_bytes() / world_, kAlign)) {}

void SumParts::check_against(int r) const {
  if (header_part(r, rank_).bytes != r_.out_part(rank_).bytes) {
    refuse(r, "got " + std::to_string(header_part(r, rank_).bytes) +
                  " bytes for this rank, expected " + std::to_string(r_.out_part(rank_).bytes));
  }
}

int64_t SumParts::plan() {
  bool is_any_shared = false;
  bool is_all_shared = true;
  int64_t largest = 0;
  for (int r = 0; r < world_; ++r) {
    shared_inputs_.push_back(is_input_shared(r) ? peer_input(r) : nullptr);
    is_any_shared = is_any_shared || is_input_shared(r);
    is_all_shared = is_all_shared && is_input_shared(r);
    largest = std::max(largest, header(r).largest_part);
  }
  piece_bytes_ = is_all_shared ? kSharedChunkBytes : piece_bytes_;
  num_chunks_ = std::max<int64_t>(1, chunks_of(largest, piece_bytes_));
  return num_chunks_ + 1 + (is_any_shared ? 1 : 0);  // the last one: all have read
}

void SumParts::work(int64_t s, uint64_t g) {
  if (s == 0 || s < num_chunks_) {
    copy_in(s, g);
  }
  if (s >= 1 && s <= num_chunks_) {
    sum_own(s - 1, g);
  }
}

/// Of a part of so many bytes.
Part SumParts::piece(int64_t k, int64_t part_bytes) const {
  const int64_t begin = std::min(part_bytes, k * piece_bytes_);
  return {begin, std::min(piece_bytes_, part_bytes - begin)};
}

void SumParts::copy_in(int64_t k, uint64_t g) {
  if (in_.segment != 0) {
    return;
  }
  char* const slot = place_.board.in_slot(rank_, g);
  for (int p = 0; p < world_; ++p) {
    const Part part = r_.in_part(p);
    const Part cut = piece(k, part.bytes);
    if (p != rank_) {
      copy_bytes(slot + p * piece_bytes_, r_.in + part.begin + cut.begin, cut.bytes);
    }
  }
}

void SumParts::sum_own(int64_t k, uint64_t g) {
  const Part cut = piece(k, r_.out_part(rank_).bytes);
  std::vector<const char*> parts;
  for (int r = 0; r < world_; ++r) {
    const char* shared = shared_inputs_[static_cast<size_t>(r)];
    parts.push_back(r == rank_          ? r_.in + r_.in_part(r).begin + cut.begin
                    : shared != nullptr ? shared + header_part(r, rank_).begin + cut.begin
                                        : place_.board.in_slot(r, g - 1) + rank_ * piece_bytes_);
  }
  reduce_parts(r_.dtype, r_.reduce, parts, cut.bytes / width(), r_.out + cut.begin);
}

}  // namespace ciuic::plugins::shm
