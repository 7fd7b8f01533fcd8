// SPDX-License-Identifier: MIT
#include "behaviour.h"

#include <algorithm>
#include <cstring>

#include <ciuic/abi/communicator.h>

namespace ciuic::mutants {

uint64_t Behaviour::capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype) const {
  if (op < CIUIC_OP_ALL_REDUCE || op > CIUIC_OP_BARRIER || dtype.lanes != 1 ||
      dtype.bits % 8 != 0) {
    return 0;
  }
  const bool reduces =
      op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_REDUCE || op == CIUIC_OP_REDUCE_SCATTER;
  const uint64_t always =
      CIUIC_COMM_SUPPORTED | CIUIC_COMM_ASYNC | CIUIC_COMM_DETERMINISTIC | CIUIC_COMM_VOTE;
  if (!reduces) {
    return reduce == 0 ? always | CIUIC_COMM_UNEVEN : 0;
  }
  const bool is_integer = same(dtype, kI32) || same(dtype, kI64) || same(dtype, kU8);
  const bool is_number = is_float(dtype) || is_integer;
  const bool is_bitwise = reduce == CIUIC_REDUCE_OR || reduce == CIUIC_REDUCE_AND;
  const bool is_possible = is_integer ? reduce != CIUIC_REDUCE_AVG : !is_bitwise;
  if (!is_number || !is_possible || reduce < CIUIC_REDUCE_SUM || reduce > CIUIC_REDUCE_AND) {
    return 0;
  }
  return always | (op == CIUIC_OP_REDUCE_SCATTER ? CIUIC_COMM_UNEVEN : 0) |
         (is_float(dtype) ? CIUIC_COMM_FACTOR | CIUIC_COMM_TREE | CIUIC_COMM_WIDE : 0);
}

std::vector<int> Behaviour::order(const std::vector<int>& arrived) const {
  std::vector<int> ranks = arrived;
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

void Behaviour::reduce(const Request& r, const std::vector<const char*>& inputs, int64_t elements,
                       char* out) const {
  for (int64_t i = 0; i < elements; ++i) {
    store(r.dtype, out + i * r.width, reduce_element(r, inputs, i * r.width));
  }
}

void Behaviour::place(const Request& r, int from, const std::string& bytes) const {
  if (!bytes.empty()) {
    std::memcpy(destination(r, from), bytes.data(), bytes.size());
  }
}

}  // namespace ciuic::mutants
