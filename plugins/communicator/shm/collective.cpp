// SPDX-License-Identifier: MIT
#include "collective.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ciuic/view.hpp>

#include "communicator/capabilities.h"
#include "move_parts.h"
#include "sum_tensors.h"

namespace ciuic::plugins::shm {
namespace {

/// Bytes from the tensor's beginning to the end of its last part.
int64_t extent(const std::vector<Part>& parts) {
  int64_t end = 0;
  for (const Part& part : parts) {
    end = std::max(end, part.begin + part.bytes);
  }
  return end;
}

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a ^ (b + 0x9E3779B97F4A7C15U);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;  // splitmix64's finalizer
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

uint64_t signature_of(const Request& r) {
  const uint64_t type = uint64_t{r.dtype.code} << 16 | uint64_t{r.dtype.bits} << 8 | r.dtype.lanes;
  const uint64_t root = has_root(r.op) ? static_cast<uint64_t>(r.peer) + 1 : 0;
  return mix(mix(mix(r.op, r.reduce), type), root);
}

}  // namespace

void copy_bytes(char* to, const char* from, int64_t bytes) {
  if (bytes > 0 && to != from) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

Collective::Collective(Request request, uint64_t number, const Workplace& place)
    : r_(std::move(request)),
      number_(number),
      place_(place),
      world_(place.board.world()),
      rank_(place.board.rank()),
      signature_(signature_of(r_)) {
  in_ = r_.in == nullptr ? Address() : place_.heap.find(r_.in, extent(r_.in_parts));
  out_ = r_.out == nullptr ? Address() : place_.heap.find(r_.out, extent(r_.out_parts));
}

void Collective::run(int64_t stage, uint64_t g) {
  if (stage == 0) {
    tell();
  } else if (stage == 1) {
    compare();
    num_stages_ = plan();
  }
  work(stage, g);
}

int64_t Collective::width() const { return dtype_bytes(r_.dtype); }

void Collective::tell() const {
  Header& h = place_.board.header(rank_, number_);
  h.number = number_;
  h.signature = signature_;
  h.in = in_;
  h.out = out_;
  h.largest_part = 0;
  std::strncpy(h.what, r_.what.c_str(), sizeof(h.what) - 1);
  HeaderPart* parts = place_.board.header_parts(rank_, number_);
  for (int p = 0; p < world_; ++p) {
    const Part part = r_.in_parts.empty() ? Part() : r_.in_part(p);
    parts[p] = {part.begin, part.bytes};
    h.largest_part = std::max(h.largest_part, part.bytes);
  }
}

void Collective::compare() const {
  for (int r = 0; r < world_; ++r) {
    if (header(r).number != number_ || header(r).signature != signature_) {
      refuse(r, "expected the same operation, type and root on all ranks");
    }
    check_against(r);
  }
}

void Collective::refuse(int r, const std::string& why) const {
  const int32_t global = place_.global_ranks[static_cast<size_t>(r)];
  throw Error(
      CIUIC_INVALID,
      r_.what + ": rank " + std::to_string(global) + " asks for " + header(r).what + "; " + why,
      global);
}

char* Collective::peer_input(int r) const {
  return r == rank_ ? const_cast<char*>(r_.in) : place_.heap.peer_memory(header(r).in);
}
char* Collective::peer_output(int r) const {
  return r == rank_ ? r_.out : place_.heap.peer_memory(header(r).out);
}

std::unique_ptr<Collective> make_collective(Request request, uint64_t number,
                                            const Workplace& place) {
  if (reduces(request.op)) {
    return make_sum(std::move(request), number, place);
  }
  return std::make_unique<MoveParts>(std::move(request), number, place);
}

}  // namespace ciuic::plugins::shm
