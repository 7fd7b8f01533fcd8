// SPDX-License-Identifier: MIT
#include "sharding/owned_state.h"

#include <algorithm>

#include "sharding/copy_check.h"

namespace ciuic::plugins::stages {
namespace {

std::vector<int64_t> list(const int64_t* values, int32_t count) { return {values, values + count}; }

std::string key_of(std::string_view role, const ciuic_param& p) {
  return std::string(role) + "/" + std::string(to_view(p.name));
}

/// Elements [begin, ...) of the parameter's box in the logical parameter.
Place place_of(const ciuic_param& p, int64_t begin) {
  return Place(list(p.global_shape, p.ndim), list(p.offset, p.ndim), list(p.shape, p.ndim), begin);
}

bool is_placed_like_parameter(const ciuic_state_spec& s) {
  return s.granule == 1 && s.per_granule == 1;
}

/// State elements before an element of the parameter: a granule's state goes with its first element.
int64_t state_at(const ciuic_state_spec& s, int64_t element) {
  return (element + s.granule - 1) / s.granule * s.per_granule;
}
Range state_range(const ciuic_state_spec& s, Range elements) {
  return {state_at(s, elements.begin), state_at(s, elements.end)};
}

/// Of model-parallel copies, the one that counts in the norm is the one that is written.
bool is_written_here(const ciuic_param& p) {
  return (p.flags & CIUIC_PARAM_REPLICATED) == 0 || (p.flags & CIUIC_PARAM_IN_NORM) != 0;
}

int64_t aligned(int64_t bytes) {
  return (bytes + sharding::kAlignmentBytes - 1) / sharding::kAlignmentBytes *
         sharding::kAlignmentBytes;
}

}  // namespace

OwnedState::OwnedState(const Host& host, ciuic_device device, const Settings& settings,
                       const Layout& layout, const Values& values, const Gradients& gradients)
    : host_(host),
      settings_(settings),
      layout_(layout),
      values_(values),
      gradients_(gradients),
      device_(device),
      ops_(host),
      optimizer_(host),
      parts_(layout.blocks().size()) {
  for (size_t b = 0; b < parts_.size(); ++b) {
    allocate(b);
  }
}

/// One buffer for a block's masters, one for its state.
void OwnedState::allocate(size_t index) {
  const Block& block = layout_.blocks()[index];
  const sharding::Bucket& kind = block.bucket;
  const Range own = block.own_range();
  const bool has_masters = kind.is_trained && !same(kind.master, kind.value);
  const auto take = [&](int64_t bytes) {
    const int64_t whole = aligned(bytes);
    const Buffer& memory = memory_.emplace_back(host_, device_, static_cast<size_t>(whole));
    ops_.fill(Tensor(memory.data(), kF32, {whole / dtype_bytes(kF32)}, device_), 0);
    return memory.bytes();
  };
  const int64_t master_elements = has_masters ? own.size() : 0;
  const Tensor masters(take(master_elements * dtype_bytes(kind.master)), kind.master,
                       {master_elements}, device_);
  int64_t state_bytes = 0;
  for (const Segment& s : block.own) {
    Part& part = parts_[index].emplace_back();
    const Range at{s.at - own.begin, s.at - own.begin + s.end - s.begin};
    part.segment = s;
    part.value = slice(values_.own(index), at);
    part.grad = kind.is_trained ? slice(gradients_.own(index), at) : Tensor();
    part.master = has_masters ? slice(masters, at) : Tensor();
    describe_moments(part);
    for (const Moment& m : part.moments) {
      state_bytes += aligned(tensor_bytes(m.flat.c()));
    }
  }
  char* memory = take(state_bytes);
  for (Part& part : parts_[index]) {
    for (Moment& m : part.moments) {
      m.flat = Tensor(memory, m.spec.dtype, m.flat.shape(), device_);
      memory += aligned(tensor_bytes(m.flat.c()));
      part.moment_ptrs.push_back(m.flat.ptr());
    }
  }
}

/// Sizes; memory comes later.
void OwnedState::describe_moments(Part& part) const {
  const ciuic_param& p = param(part);
  const Segment& s = part.segment;
  for (const ciuic_state_spec& spec : optimizer_.state_spec(p)) {
    const bool is_whole = s.begin == 0 && s.end == p.num_elements;
    if (!is_whole && p.granule % spec.granule != 0) {
      throw Error(CIUIC_INVALID,
                  settings_.who + ": the optimizer keeps state " + std::string(to_view(spec.name)) +
                      " for each " + std::to_string(spec.granule) + " elements, but parameter " +
                      std::string(to_view(p.name)) + " may be cut after each " +
                      std::to_string(p.granule) + "; its granule() must be a multiple");
    }
    const int64_t elements = state_range(spec, {s.begin, s.end}).size();
    part.moments.push_back({"moment/" + std::string(to_view(spec.name)), spec,
                            Tensor(nullptr, spec.dtype, {elements})});
  }
}

void OwnedState::update(const ciuic_step_update& step, const ciuic_stream* stream) {
  if (!optimizer_.is_there()) {
    throw Error(CIUIC_PRECONDITION,
                settings_.who + ": a step needs an optimizer, and this run has none");
  }
  updates_.clear();
  for (const std::vector<Part>& parts : parts_) {
    for (const Part& part : parts) {
      const ciuic_param& p = param(part);
      const int64_t elements = part.segment.end - part.segment.begin;
      if (!sharding::is_trained(p) || elements == 0) {
        continue;
      }
      ciuic_update u{};
      u.struct_size = sizeof(u);
      u.param = &p;
      u.begin = part.segment.begin;
      u.num_elements = elements;
      u.update = step.update;
      u.seed = step.seed;
      u.lr = step.lr * p.lr_scale;
      u.weight_decay = p.weight_decay * step.weight_decay_scale;
      u.grad_scale = step.grad_scale;
      u.grad = part.grad.ptr();
      u.master = has_master(part) ? part.master.ptr() : nullptr;
      u.value = part.value.ptr();
      u.state = part.moment_ptrs.data();
      u.num_state = static_cast<uint32_t>(part.moment_ptrs.size());
      updates_.push_back(u);
    }
  }
  optimizer_.update(updates_, stream);
  if (is_looked_at(step.update)) {
    check_copies(ops_, updates_, stream, settings_.who);
  }
}

// ---- state ----

template <typename Body>
void OwnedState::each_written(const Body& body) const {
  for (size_t b = 0; b < parts_.size(); ++b) {
    for (const Segment& w : layout_.blocks()[b].written) {
      const auto part = std::find_if(parts_[b].begin(), parts_[b].end(),
                                     [&](const Part& p) { return p.segment.param == w.param; });
      if (is_written_here(layout_.params()[w.param])) {
        body(*part, Range{w.begin, w.end});
      }
    }
  }
}

void OwnedState::write(const StateWriter& writer, std::string_view role, const Part& part,
                       Range range, const Tensor& flat) const {
  const int64_t first = part.segment.begin;
  const Tensor piece = slice(flat, {range.begin - first, range.end - first}, CIUIC_TENSOR_STABLE);
  writer.tensor(key_of(role, param(part)), place_of(param(part), range.begin), piece.c());
}

void OwnedState::write_moment(const StateWriter& writer, const Part& part, Range range,
                              const Moment& moment) const {
  if (is_placed_like_parameter(moment.spec)) {
    write(writer, moment.key, part, range, moment.flat);
    return;
  }
  const ciuic_param& p = param(part);
  const int64_t first = state_at(moment.spec, part.segment.begin);
  const Range r = state_range(moment.spec, range);
  if (!r.empty()) {
    const Tensor piece = slice(moment.flat, {r.begin - first, r.end - first}, CIUIC_TENSOR_STABLE);
    writer.tensor(key_of(moment.key, p), Place({state_at(moment.spec, p.num_elements)}, r.begin),
                  piece.c());
  }
}

void OwnedState::save(const StateWriter& writer) const {
  each_written([&](const Part& part, Range range) {
    has_master(part) ? write(writer, "master", part, range, part.master)
                     : write(writer, "value", part, range, part.value);
    for (const Moment& m : part.moments) {
      write_moment(writer, part, range, m);
    }
  });
}

void OwnedState::save_values(const StateWriter& writer) const {
  each_written(
      [&](const Part& part, Range range) { write(writer, "value", part, range, part.value); });
}

void OwnedState::save_gradients(const StateWriter& writer) const {
  each_written([&](const Part& part, Range range) {
    if (sharding::is_trained(param(part))) {
      write(writer, "grad", part, range, part.grad);
    }
  });
}

/// Fills `into` with a parameter's elements from `begin` on.
void OwnedState::read_values(const StateReader& reader, const ciuic_param& p, int64_t begin,
                             const Tensor& into) const {
  if (!reader.tensor(key_of("master", p), place_of(p, begin), into.c()) &&
      !reader.tensor(key_of("value", p), place_of(p, begin), into.c())) {
    throw Error(CIUIC_NOT_FOUND,
                "the state has no values for parameter " + std::string(to_view(p.name)));
  }
}

/// Where values are whole and masters are not: through the master's type, as their owners do, so that
/// all ranks have the same bits. No collective: a load that fails on one rank holds nobody up.
void OwnedState::load_values_of_others(const StateReader& reader, size_t index) {
  constexpr int64_t kChunk = int64_t{1} << 16;
  const Block& block = layout_.blocks()[index];
  const sharding::Bucket& kind = block.bucket;
  if (block.parts == 1 || !values_.is_whole(index)) {
    return;
  }
  const int64_t most = std::min(kChunk, kind.elements);
  const Buffer memory(host_, device_, static_cast<size_t>(most * dtype_bytes(kind.master)));
  for (const Segment& s : layout_.segments(block, {0, kind.elements})) {
    for (int64_t begin = s.begin; begin < s.end; begin += kChunk) {
      const int64_t count = std::min(kChunk, s.end - begin);
      const Tensor master = flat_tensor(memory, kind.master, count, device_);
      read_values(reader, layout_.params()[s.param], begin, master);
      const int64_t at = s.at + begin - s.begin;
      ops_.copy(master, slice(values_.whole(index), {at, at + count}));
    }
  }
}

bool OwnedState::load_moment(const StateReader& reader, const Part& part,
                             const Moment& moment) const {
  const ciuic_param& p = param(part);
  const Place place = is_placed_like_parameter(moment.spec)
                          ? place_of(p, part.segment.begin)
                          : Place({state_at(moment.spec, p.num_elements)},
                                  state_at(moment.spec, part.segment.begin));
  return reader.tensor(key_of(moment.key, p), place, moment.flat.c());
}

void OwnedState::load(const StateReader& reader) {
  for (size_t b = 0; b < parts_.size(); ++b) {
    load_values_of_others(reader, b);
  }
  for (const std::vector<Part>& parts : parts_) {
    for (const Part& part : parts) {
      const ciuic_param& p = param(part);
      if (part.segment.begin == part.segment.end) {
        continue;
      }
      const Tensor& target = has_master(part) ? part.master : part.value;
      read_values(reader, p, part.segment.begin, target);
      if (has_master(part)) {
        ops_.copy(part.master, part.value);
      }
      for (const Moment& m : part.moments) {
        if (!load_moment(reader, part, m)) {
          ops_.fill(m.flat, m.spec.initial);
        }
      }
    }
  }
}

}  // namespace ciuic::plugins::stages
