// SPDX-License-Identifier: MIT
#include "communicator/input_aside.h"

#include <cstring>
#include <utility>

namespace ciuic::plugins {
namespace {

bool overlap(const char* a, int64_t a_bytes, const char* b, int64_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

bool arrives_in_input(const Request& r) {
  if (r.in == nullptr || r.out == nullptr) {
    return false;
  }
  for (int p = 0; p < r.world; ++p) {
    const Part to = r.out_part(p);
    const bool stays = p == r.rank && r.in + r.in_part(p).begin == r.out + to.begin;
    for (const Part& from : r.in_parts) {
      if (!stays && overlap(r.out + to.begin, to.bytes, r.in + from.begin, from.bytes)) {
        return true;
      }
    }
  }
  return false;
}

Buffer set_input_aside(Request& r, const Host& host) {
  int64_t bytes = 0;
  for (const Part& part : r.in_parts) {
    bytes += part.bytes;
  }
  Buffer memory(host, ciuic_device{CIUIC_DEVICE_CPU, 0}, static_cast<size_t>(bytes));
  int64_t next = 0;
  for (Part& part : r.in_parts) {
    if (part.bytes > 0) {
      std::memcpy(memory.bytes() + next, r.in + part.begin, static_cast<size_t>(part.bytes));
    }
    part.begin = std::exchange(next, next + part.bytes);
  }
  r.in = memory.bytes();
  return memory;
}

}  // namespace ciuic::plugins
