// SPDX-License-Identifier: MIT
#include "checkpoint_format/flat_range.h"

#include <string>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>

#include "checkpoint_format/tensor_types.h"

namespace ciuic::plugins::checkpoint {
namespace {

struct Box {
  int64_t begin = 0;  // of its first element in the whole tensor
  int64_t elements = 1;
};

/// A box is a range when one dimension is cut, everything after it is whole, and everything before
/// it has extent 1.
Box box_as_range(const std::string& who, const FlatRange& whole, const ciuic_place& place) {
  Box box;
  int64_t stride = 1;
  bool is_range = true;
  bool is_cut = false;
  for (size_t i = whole.shape.size(); i-- > 0;) {
    const int64_t offset = place.offset[i];
    const int64_t extent = place.box[i];
    if (offset < 0 || extent < 0 || offset > whole.shape[i] - extent) {
      throw Error(CIUIC_INVALID, who + "dimension " + std::to_string(i) + " has the box [" +
                                     std::to_string(offset) + ", +" + std::to_string(extent) +
                                     "), outside " + shape_text(whole.shape));
    }
    is_range = is_range && (!is_cut || extent == 1);
    is_cut = is_cut || extent != whole.shape[i];
    box.begin += offset * stride;
    box.elements *= extent;
    stride *= whole.shape[i];
  }
  if (!is_range && box.elements > 0) {
    throw Error(CIUIC_UNIMPLEMENTED, who + "its box is not contiguous in the whole tensor " +
                                         shape_text(whole.shape) +
                                         "; this format stores ranges of the row-major order");
  }
  return box;
}

}  // namespace

FlatRange flat_range(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor) {
  const std::string who = printable(key) + ": ";
  FlatRange range;
  if (place.ndim < 0 || static_cast<size_t>(place.ndim) > kMaxDimensions) {
    throw Error(CIUIC_INVALID, who + "got " + std::to_string(place.ndim) + " dimensions");
  }
  range.shape.assign(place.global_shape, place.global_shape + place.ndim);
  const auto total = shape_elements(range.shape, tensor.t.dtype);
  if (!total) {
    throw Error(CIUIC_INVALID,
                who + "the shape " + shape_text(range.shape) + " is too large or negative");
  }
  range.total = *total;
  const Box box = box_as_range(who, range, place);
  range.count = num_elements(tensor);
  if (place.begin < 0 || place.begin > box.elements || range.count > box.elements - place.begin) {
    throw Error(CIUIC_INVALID, who + "elements [" + std::to_string(place.begin) + ", +" +
                                   std::to_string(range.count) + ") are outside the " +
                                   std::to_string(box.elements) + " of its box");
  }
  range.begin = box.begin + place.begin;
  return range;
}

}  // namespace ciuic::plugins::checkpoint
