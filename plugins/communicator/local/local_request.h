// SPDX-License-Identifier: MIT
//
// What a group of one rank is asked for, checked, as copies from one place to another.
#pragma once

#include <cstdint>
#include <vector>

#include <ciuic/abi/communicator.h>
#include <ciuic/host.hpp>

namespace ciuic::plugins::local {

/// CIUIC_COMM_ bits.
[[nodiscard]] uint64_t capability_bits(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                       ciuic_device device);

/// `elements` of `in`, from in_begin on, to `out`, from out_begin on. The tensors are the caller's.
struct Copy {
  const ciuic_tensor* in;
  const ciuic_tensor* out;
  int64_t in_begin;
  int64_t out_begin;
  int64_t elements;
};

/// Throws UNIMPLEMENTED for what capability_bits denies, INVALID for what is missing or wrong by
/// itself.
void check(const ciuic_collective& c);

/// Of a collective that has an input and an output. Throws INVALID when they do not fit.
[[nodiscard]] Copy copy_of(const ciuic_collective& c);

/// The k-th send with a tag goes to the k-th receive with it. Throws INVALID for one without the
/// other.
[[nodiscard]] std::vector<Copy> pair_messages(const std::vector<const ciuic_collective*>& messages);

/// On the host at once; elsewhere by "ciuic.tensor", in stream order.
void run(const Copy& copy, const Host& host, const ciuic_stream* stream);

}  // namespace ciuic::plugins::local
