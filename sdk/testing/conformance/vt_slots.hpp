// SPDX-License-Identifier: MIT
//
// The functions of each kind's table by name, in their order: which are required, and which one is
// it that crashed.
#pragma once

#include <vector>

#include <ciuic/abi/ciuic.h>

namespace ciuic::testing {

struct Slot {
  const char* name;
  bool optional;
};

/// Empty for an unknown kind. After the table's head (struct_size, flags) come these pointers.
const std::vector<Slot>& slots_of(uint32_t kind);

/// "communicator" for CIUIC_KIND_COMMUNICATOR; "any" for 0.
const char* kind_name(uint32_t kind);

/// The address in slot number `index`; NULL when the table is too short for it.
const void* slot_address(const ciuic_descriptor& descriptor, size_t index);

}  // namespace ciuic::testing
