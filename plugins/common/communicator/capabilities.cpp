// SPDX-License-Identifier: MIT
#include "capabilities.h"

#include <ciuic/view.hpp>

namespace ciuic::plugins {
namespace {

bool can_reduce(uint32_t reduce, ciuic_dtype dtype) {
  const bool integer = same(dtype, kI32) || same(dtype, kI64) || same(dtype, kU8);
  switch (reduce) {
    case CIUIC_REDUCE_SUM:
    case CIUIC_REDUCE_MIN:
    case CIUIC_REDUCE_MAX:
    case CIUIC_REDUCE_PROD:
      return integer || is_float(dtype);
    case CIUIC_REDUCE_AVG:
      return is_float(dtype);
    case CIUIC_REDUCE_OR:
    case CIUIC_REDUCE_AND:
      return integer;
    default:
      return false;
  }
}

bool can_do(uint32_t op, uint32_t reduce, ciuic_dtype dtype) {
  if (op < CIUIC_OP_ALL_REDUCE || op > CIUIC_OP_BARRIER) {
    return false;
  }
  const bool whole_bytes = dtype.bits > 0 && dtype.bits % 8 == 0 && dtype.lanes == 1;
  return op == CIUIC_OP_BARRIER || (reduces(op) ? can_reduce(reduce, dtype) : whole_bytes);
}

bool has_parts(uint32_t op) {
  return op == CIUIC_OP_REDUCE_SCATTER || op == CIUIC_OP_ALL_GATHER || op == CIUIC_OP_GATHER ||
         op == CIUIC_OP_SCATTER || op == CIUIC_OP_ALL_TO_ALL;
}

}  // namespace

bool is_narrow(ciuic_dtype dtype) { return same(dtype, kF16) || same(dtype, kBF16); }

bool is_float(ciuic_dtype dtype) {
  return is_narrow(dtype) || same(dtype, kF32) || same(dtype, kF64);
}

uint64_t capability_bits(uint32_t op, uint32_t reduce, ciuic_dtype dtype, ciuic_device device) {
  const bool host_memory = device.type == CIUIC_DEVICE_CPU || device.type == CIUIC_DEVICE_CUDA_HOST;
  if (!host_memory || !can_do(op, reduce, dtype)) {
    return 0;
  }
  uint64_t bits = CIUIC_COMM_SUPPORTED | CIUIC_COMM_ASYNC | CIUIC_COMM_DETERMINISTIC;
  bits |= reduces(op) ? uint64_t{CIUIC_COMM_TREE} : 0;
  bits |= reduces(op) && is_narrow(dtype) ? uint64_t{CIUIC_COMM_WIDE} : 0;
  bits |= has_parts(op) ? uint64_t{CIUIC_COMM_UNEVEN} : 0;
  return bits;
}

bool reduces(uint32_t op) {
  return op == CIUIC_OP_ALL_REDUCE || op == CIUIC_OP_REDUCE || op == CIUIC_OP_REDUCE_SCATTER;
}

bool has_root(uint32_t op) {
  return op == CIUIC_OP_REDUCE || op == CIUIC_OP_BROADCAST || op == CIUIC_OP_GATHER ||
         op == CIUIC_OP_SCATTER;
}

bool is_message(uint32_t op) { return op == CIUIC_OP_SEND || op == CIUIC_OP_RECV; }

const char* op_name(uint32_t op) {
  switch (op) {
    case CIUIC_OP_ALL_REDUCE:
      return "all-reduce";
    case CIUIC_OP_REDUCE:
      return "reduce";
    case CIUIC_OP_REDUCE_SCATTER:
      return "reduce-scatter";
    case CIUIC_OP_ALL_GATHER:
      return "all-gather";
    case CIUIC_OP_BROADCAST:
      return "broadcast";
    case CIUIC_OP_GATHER:
      return "gather";
    case CIUIC_OP_SCATTER:
      return "scatter";
    case CIUIC_OP_ALL_TO_ALL:
      return "all-to-all";
    case CIUIC_OP_SEND:
      return "send";
    case CIUIC_OP_RECV:
      return "receive";
    case CIUIC_OP_BARRIER:
      return "barrier";
    default:
      return "unknown operation";
  }
}

}  // namespace ciuic::plugins
