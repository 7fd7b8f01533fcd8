// SPDX-License-Identifier: MIT
#include "case_buffers.hpp"

namespace ciuic::testing::communicator {
namespace {

void describe_parts(const Case& c, const std::vector<Part>& parts, int64_t* counts,
                    int64_t* offsets, const int64_t** out_counts, const int64_t** out_offsets) {
  if (c.spread == Spread::Even || parts.empty()) {
    return;
  }
  for (size_t r = 0; r < parts.size(); ++r) {
    counts[r] = parts[r].count;
    offsets[r] = parts[r].offset;
  }
  *out_counts = counts;
  *out_offsets = c.spread == Spread::Packed ? nullptr : offsets;
}

}  // namespace

CaseBuffers::CaseBuffers(const Case& c, int rank, int world)
    : case_(c),
      rank_(rank),
      world_(world),
      layout_(layout_of(c, rank, world)),
      width_(static_cast<size_t>(dtype_bytes(c.dtype))),
      input_(input_of(c, rank, world)) {
  const size_t before = static_cast<size_t>(c.shift) * width_;
  const bool in_holds_both = c.in_place && c.op == CIUIC_OP_REDUCE_SCATTER;
  if (layout_.has_in && (!c.in_place || in_holds_both)) {
    in_.emplace(static_cast<size_t>(layout_.in_elements) * width_, before);
  }
  if (layout_.has_out && !in_holds_both) {
    out_.emplace(static_cast<size_t>(layout_.out_elements) * width_, before);
  }
  const bool is_sent_from_out = c.op == CIUIC_OP_BROADCAST && rank == c.root;
  if ((layout_.has_in || is_sent_from_out) && !input_.empty()) {
    std::memcpy(layout_.has_in ? in_data() : out_data(), input_.data(), input_.size());
  }
}

char* CaseBuffers::in_data() const {
  if (in_) {
    return in_->data();
  }
  const auto self = static_cast<size_t>(rank_);
  const int64_t offset = case_.op == CIUIC_OP_ALL_GATHER ? layout_.out[self].offset : 0;
  return out_->data() + static_cast<size_t>(offset) * width_;
}

char* CaseBuffers::out_data() const {
  if (out_) {
    return out_->data();
  }
  return in_->data() + static_cast<size_t>(layout_.in[static_cast<size_t>(rank_)].offset) * width_;
}

void CaseBuffers::describe_tensor(ciuic_tensor& t, int64_t* shape, int64_t* strides,
                                  const FencedBytes& memory, char* data, int64_t elements) const {
  t.struct_size = sizeof(t);
  t.t.device = {CIUIC_DEVICE_CPU, 0};
  t.t.dtype = case_.dtype;
  t.t.shape = shape;
  t.t.strides = strides;
  // [n]; [1, n, 1]; [n/3, 3] and for one element no dimension at all
  const bool is_table = case_.shape == 2 && elements % 3 == 0 && elements > 0;
  const int64_t shapes[3][3] = {{elements, 0, 0}, {1, elements, 1}, {elements / 3, 3, 0}};
  const int which = case_.shape == 2 && !is_table ? 0 : case_.shape;
  t.t.ndim = which == 2 ? 2 : which == 1 ? 3 : elements == 1 && case_.shape == 2 ? 0 : 1;
  int64_t stride = 1;
  for (int d = t.t.ndim - 1; d >= 0; --d) {
    shape[d] = shapes[which][d];
    strides[d] = stride;
    stride *= shape[d];
  }
  if (elements > 0) {  // the way to the first element: half of the cases by byte_offset
    const bool by_offset = case_.shape != 1;
    t.t.data = by_offset ? memory.base() : data;
    t.t.byte_offset = by_offset ? static_cast<uint64_t>(data - memory.base()) : 0;
  }
}

void CaseBuffers::describe_call(CallStructs& s, int64_t timeout_ns) const {
  s.c.struct_size = sizeof(s.c);
  s.c.op = case_.op;
  s.c.reduce = case_.reduce;
  s.c.flags = case_.flags;
  s.c.factor = case_.factor;
  s.c.peer = case_.root;
  s.c.timeout_ns = timeout_ns;
  if (layout_.has_in) {
    describe_tensor(s.in, s.in_shape, s.in_strides, in_ ? *in_ : *out_, in_data(),
                    layout_.in_elements);
    s.in.flags = case_.in_place ? 0U : uint32_t{CIUIC_TENSOR_READ_ONLY};
    s.c.in = &s.in;
  }
  if (layout_.has_out) {
    describe_tensor(s.out, s.out_shape, s.out_strides, out_ ? *out_ : *in_, out_data(),
                    layout_.out_elements);
    s.c.out = &s.out;
  }
  describe_parts(case_, layout_.in, s.in_counts, s.in_offsets, &s.c.in_counts, &s.c.in_offsets);
  describe_parts(case_, layout_.out, s.out_counts, s.out_offsets, &s.c.out_counts,
                 &s.c.out_offsets);
  const std::string label = std::string("check ") + op_name(case_.op);
  std::memcpy(s.label, label.data(), label.size());
  s.c.label = {s.label, label.size()};
}

std::optional<std::string> CaseBuffers::find_stray_write() const {
  for (const auto& [memory, name] : {std::pair(&in_, "in"), std::pair(&out_, "out")}) {
    const auto stray = *memory ? (*memory)->stray_write() : std::nullopt;
    if (stray) {
      return describe(case_, world_) + ": rank " + std::to_string(rank_) + ": a write " +
             (*stray < 0 ? std::to_string(-*stray) + " bytes before the memory of "
                         : std::to_string(*stray) + " bytes after the memory of ") +
             name + "; expected none outside";
    }
  }
  return std::nullopt;
}

std::optional<std::string> CaseBuffers::find_fault() const {
  if (auto stray = find_stray_write()) {
    return stray;
  }
  const bool is_input_kept = layout_.has_in && !case_.in_place;
  if (is_input_kept && !input_.empty() &&
      std::memcmp(in_data(), input_.data(), input_.size()) != 0) {
    return describe(case_, world_) + ": rank " + std::to_string(rank_) +
           ": the input has changed; expected that it stays as it was";
  }
  return layout_.has_out ? find_difference(case_, rank_, world_, out_data(), FencedBytes::kFill)
                         : std::nullopt;
}

uint64_t CaseBuffers::bits() const {
  uint64_t hash = 1469598103934665603ULL;
  const size_t size = static_cast<size_t>(layout_.out_elements) * width_;
  const char* at = layout_.has_out ? out_data() : nullptr;
  for (size_t i = 0; i < size && at != nullptr; ++i) {
    hash = (hash ^ static_cast<unsigned char>(at[i])) * 1099511628211ULL;
  }
  return hash;
}

}  // namespace ciuic::testing::communicator
