// SPDX-License-Identifier: MIT
#include "move_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "communicator/input_aside.h"

namespace ciuic::plugins::shm {
namespace {

constexpr int64_t kAlign = 64;

/// A root broadcasts its output; the others tell how much they expect.
Request with_input(Request r) {
  if (r.op == CIUIC_OP_BROADCAST) {
    r.in = r.is_root() ? r.out : nullptr;
    r.in_parts = r.out_parts;
  }
  return r;
}

}  // namespace

MoveParts::MoveParts(Request request, uint64_t number, const Workplace& place)
    : Collective(with_input(std::move(request)), number, place),
      piece_bytes_(has_part_for_each() ? place.board.chunk_bytes() / world_ / kAlign * kAlign
                                       : place.board.chunk_bytes()) {
  if (r_.op != CIUIC_OP_BROADCAST && arrives_in_input(r_)) {
    aside_ = set_input_aside(r_, place.host);
    in_ = {};
  }
}

bool MoveParts::moves(int from, int to) const {
  switch (r_.op) {
    case CIUIC_OP_GATHER:
      return to == r_.peer;
    case CIUIC_OP_SCATTER:
    case CIUIC_OP_BROADCAST:
      return from == r_.peer;
    case CIUIC_OP_BARRIER:
      return false;
    default:
      return true;
  }
}

bool MoveParts::sends(int from) const { return r_.op == CIUIC_OP_GATHER || moves(from, from); }

bool MoveParts::has_part_for_each() const {
  return r_.op == CIUIC_OP_SCATTER || r_.op == CIUIC_OP_ALL_TO_ALL;
}

void MoveParts::check_against(int r) const {
  if (!moves(r, rank_) && r_.op != CIUIC_OP_BROADCAST) {
    return;
  }
  const int64_t got = header_part(r, rank_).bytes;
  const int64_t expected = r_.out_part(r).bytes;
  if (got != expected) {
    refuse(r,
           "got " + std::to_string(got) + " bytes from it, expected " + std::to_string(expected));
  }
}

int64_t MoveParts::plan() {
  bool is_any_shared = false;
  bool is_all_shared = true;
  int64_t largest = 0;
  shared_inputs_.resize(static_cast<size_t>(world_));
  for (int r = 0; r < world_; ++r) {
    if (sends(r) && header(r).largest_part > 0) {
      is_any_shared = is_any_shared || is_input_shared(r);
      is_all_shared = is_all_shared && is_input_shared(r);
      largest = std::max(largest, header(r).largest_part);
      if (is_input_shared(r) && moves(r, rank_)) {
        shared_inputs_[static_cast<size_t>(r)] = peer_input(r);
      }
    }
  }
  piece_bytes_ = is_any_shared && is_all_shared ? kSharedChunkBytes : piece_bytes_;
  num_chunks_ = chunks_of(largest, piece_bytes_);
  return std::max<int64_t>(1, num_chunks_) + 1 + (is_any_shared ? 1 : 0);
}

void MoveParts::work(int64_t s, uint64_t g) {
  if (s == 0 || s < num_chunks_) {
    copy_in(s, g);
  }
  if (s == 1) {
    copy_own();
  }
  if (s >= 1 && s <= num_chunks_) {
    take(s - 1, g);
  }
}

Part MoveParts::piece(int64_t k, int64_t part_bytes) const {
  const int64_t begin = std::min(part_bytes, k * piece_bytes_);
  return {begin, std::min(piece_bytes_, part_bytes - begin)};
}

void MoveParts::copy_in(int64_t k, uint64_t g) {
  if (in_.segment != 0 || r_.in == nullptr) {
    return;
  }
  char* const slot = place_.board.in_slot(rank_, g);
  const int num_parts = has_part_for_each() ? world_ : 1;
  for (int p = 0; p < num_parts; ++p) {
    const Part part = r_.in_part(p);
    const Part cut = piece(k, part.bytes);
    if (num_parts == 1 || p != rank_) {
      copy_bytes(slot + p * piece_bytes_, r_.in + part.begin + cut.begin, cut.bytes);
    }
  }
}

void MoveParts::take(int64_t k, uint64_t g) {
  for (int r = 0; r < world_; ++r) {
    if (r == rank_ || !moves(r, rank_)) {
      continue;
    }
    const Part part = r_.out_part(r);
    const Part cut = piece(k, part.bytes);
    const char* shared = shared_inputs_[static_cast<size_t>(r)];
    const char* from = shared != nullptr ? shared + header_part(r, rank_).begin + cut.begin
                                         : place_.board.in_slot(r, g - 1) +
                                               (has_part_for_each() ? rank_ * piece_bytes_ : 0);
    copy_bytes(r_.out + part.begin + cut.begin, from, cut.bytes);
  }
}

void MoveParts::copy_own() const {
  if (r_.in != nullptr && r_.out != nullptr && moves(rank_, rank_)) {
    const Part from = r_.in_part(rank_);
    const Part to = r_.out_part(rank_);
    if (from.bytes > 0 && r_.in + from.begin != r_.out + to.begin) {
      std::memmove(r_.out + to.begin, r_.in + from.begin, static_cast<size_t>(from.bytes));
    }
  }
}

}  // namespace ciuic::plugins::shm
