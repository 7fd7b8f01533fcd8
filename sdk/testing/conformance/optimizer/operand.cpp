// SPDX-License-Identifier: MIT
#include "operand.h"

#include <algorithm>
#include <deque>

#include <ciuic/testing/guarded_struct.hpp>

namespace ciuic::testing {
namespace {

constexpr int64_t kMargin = 64;  // elements before and after
constexpr char kCanary = 0x5A;

/// A one-dimensional tensor over some elements of a column.
struct View {
  View(const Column& column, Range range, uint32_t flags = 0) : shape(range.end - range.begin) {
    const int64_t bytes = dtype_bytes(column.dtype());
    const int64_t offset = range.begin / 2 * bytes;
    c.struct_size = sizeof(c);
    c.flags = flags;
    c.t.data = const_cast<char*>(column.place(range.begin)) - offset;
    c.t.byte_offset = static_cast<uint64_t>(offset);
    if (shape == 0) {
      c.t.data = nullptr;
      c.t.byte_offset = 0;
    }
    c.t.device = {CIUIC_DEVICE_CPU, 0};
    c.t.ndim = 1;
    c.t.dtype = column.dtype();
    c.t.shape = &shape;
    c.t.strides = &stride;
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  int64_t shape;
  int64_t stride = 1;
  ciuic_tensor c{};
};

/// A ciuic_update with everything it points at.
struct Request {
  Request(Operand& o, const RuleStep& step, Range range, int64_t shift)
      : grad(o.grad, range, o.grad_flags), value(o.value, range) {
    if (o.master) {
      master = std::make_unique<View>(*o.master, range);
    }
    for (size_t s = 0; s < o.specs.size(); ++s) {
      const ciuic_state_spec& spec = o.specs[s];
      const auto edge = [&](int64_t at) {
        return (at + spec.granule - 1) / spec.granule * spec.per_granule;
      };
      state.push_back(
          std::make_unique<View>(*o.state[s], Range{edge(range.begin), edge(range.end)}));
      state_pointers.push_back(&state.back()->c);
    }
    c.struct_size = sizeof(c);
    c.param = &o.param;
    c.begin = range.begin + shift;
    c.num_elements = range.end - range.begin;
    c.update = step.update;
    c.seed = step.seed;
    c.lr = step.lr;
    c.weight_decay = step.weight_decay;
    c.grad_scale = step.grad_scale;
    c.grad = &grad.c;
    c.value = &value.c;
    c.master = master ? &master->c : nullptr;
    c.state = state_pointers.data();
    c.num_state = static_cast<uint32_t>(state_pointers.size());
  }

  View grad, value;
  std::unique_ptr<View> master;
  std::vector<std::unique_ptr<View>> state;
  std::vector<const ciuic_tensor*> state_pointers;
  ciuic_update c{};
};

}  // namespace

Column::Column(ciuic_dtype dtype, int64_t count, int64_t lead)
    : dtype_(dtype),
      count_(count),
      begin_((kMargin + lead) * dtype_bytes(dtype)),
      data_(static_cast<size_t>((count + 2 * kMargin + lead) * dtype_bytes(dtype)), kCanary) {}

bool Column::margins_are_whole() const {
  const auto is_canary = [](char c) { return c == kCanary; };
  const char* end = data_.data() + data_.size();
  return std::all_of(data_.data(), place(0), is_canary) &&
         std::all_of(place(count_), end, is_canary);
}

const std::vector<Layout>& all_layouts() {
  static const std::vector<Layout> layouts{kPlainLayout,
                                           kNarrowLayout,
                                           {kBF16, kBF16, true, kF32},
                                           {kBF16, kF32, false, kF32},
                                           {kF32, kBF16, false, kF32},
                                           {kF16, kF16, true, kF32},
                                           {kF64, kF32, false, kF32},
                                           {kF64, kF64, false, kF64}};
  return layouts;
}

std::string text_of(const Layout& layout) {
  return "gradients in " + dtype_name(layout.grad) + ", values in " + dtype_name(layout.value) +
         (layout.has_master ? ", masters in " + dtype_name(layout.master) : ", no masters");
}

double arbitrary(uint64_t seed, int64_t i) {
  uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(i) * 0xD1B54A32D192ED03U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) / static_cast<double>(uint64_t{1} << 52) - 1;
}

std::vector<ciuic_state_spec> state_specs(const PluginInstance& optimizer, const ciuic_param& p) {
  ciuic_array shown{};
  optimizer.check(optimizer.table<ciuic_optimizer_vt>().state_spec(optimizer.self(), &p, &shown));
  std::vector<ciuic_state_spec> out;
  for (const ciuic_state_spec& spec : ArrayView<ciuic_state_spec>(shown)) {
    require(spec.granule >= 1 && spec.per_granule >= 1,
            "state_spec of " + std::string(to_view(spec.name)) + ": granule " +
                std::to_string(spec.granule) + " and per_granule " +
                std::to_string(spec.per_granule) + "; both are 1 or more");
    require(spec.name.size > 0, "a state tensor has no name");
    out.push_back(spec);
  }
  return out;
}

std::vector<Range> cut(int64_t count, int64_t granule, int64_t pieces) {
  std::vector<Range> out;
  int64_t begin = 0;
  for (int64_t i = 1; begin < count && i < pieces; ++i) {
    const int64_t wanted = count * i * i / (pieces * pieces);  // small ones first
    const int64_t end = std::min(count, (wanted + granule - 1) / granule * granule);
    if (end > begin) {
      out.push_back({begin, end});
      begin = end;
    }
  }
  if (begin < count || out.empty()) {
    out.push_back({begin, count});
  }
  return out;
}

Operand::Operand(const PluginInstance& optimizer, int64_t count, const Layout& layout,
                 uint64_t seed, int64_t lead)
    : value(layout.value, count, lead), grad(layout.grad, count, lead), shape_{count, 1} {
  param.ndim = 1;
  start(optimizer, layout, seed, lead);
}

Operand::Operand(const PluginInstance& optimizer, int64_t rows, int64_t columns,
                 const Layout& layout, uint64_t seed, int64_t lead)
    : value(layout.value, rows * columns, lead),
      grad(layout.grad, rows * columns, lead),
      shape_{rows, columns} {
  param.ndim = 2;
  start(optimizer, layout, seed, lead);
}

void Operand::start(const PluginInstance& optimizer, const Layout& layout, uint64_t seed,
                    int64_t lead) {
  const int64_t count = value.count();
  param.struct_size = sizeof(param);
  param.flags = CIUIC_PARAM_IN_NORM;
  param.name = to_str(name_);
  param.tied_to = -1;
  param.value = layout.value;
  param.grad = param.reduce = layout.grad;
  param.master = layout.has_master ? layout.master : layout.value;
  param.shape = param.global_shape = shape_;
  param.offset = offset_;
  param.num_elements = count;
  param.weight_decay = param.lr_scale = 1;
  optimizer.check(
      optimizer.table<ciuic_optimizer_vt>().granule(optimizer.self(), &param, &granule));
  require(granule >= 1, "granule says " + std::to_string(granule) + " elements");
  param.granule = granule;
  specs = state_specs(optimizer, param);
  for (const ciuic_state_spec& spec : specs) {
    const int64_t n = (count + spec.granule - 1) / spec.granule * spec.per_granule;
    state.push_back(std::make_unique<Column>(spec.dtype, n, lead));
    for (int64_t i = 0; i < n; ++i) {
      state.back()->set(i, spec.initial);
    }
  }
  if (layout.has_master) {
    master = std::make_unique<Column>(layout.master, count, lead);
  }
  for (int64_t i = 0; i < count; ++i) {
    master_column().set(i, arbitrary(seed, i));
    value.set(i, master_column().at(i));
  }
  set_gradients(seed + 1000);
}

void Operand::set_gradients(uint64_t seed) {
  for (int64_t i = 0; i < count(); ++i) {
    grad.set(i, arbitrary(seed, i));
  }
}

int32_t Operand::try_update(const PluginInstance& optimizer, const RuleStep& step,
                            const std::vector<Range>& ranges, int64_t shift) {
  std::deque<Request> requests;
  std::vector<ciuic_update> updates;
  for (const Range& range : ranges) {
    updates.push_back(requests.emplace_back(*this, step, range, shift).c);
  }
  const GuardedArray<ciuic_update> guarded(updates);
  try {
    optimizer.check(
        optimizer.table<ciuic_optimizer_vt>().update(optimizer.self(), guarded.c(), nullptr));
  } catch (const Error& e) {
    if (e.code() != CIUIC_UNIMPLEMENTED) {
      throw CheckFailed(std::string("update refuses: ") + e.what());
    }
    return e.code();
  }
  return CIUIC_OK;
}

void Operand::update(const PluginInstance& optimizer, const RuleStep& step,
                     const std::vector<Range>& ranges, int64_t shift) {
  if (try_update(optimizer, step, ranges, shift) == CIUIC_UNIMPLEMENTED) {
    throw NotOffered("update does not take these types");
  }
}

std::string Operand::written_bits() const {
  std::string out = value.bits() + (master ? master->bits() : "");
  for (const auto& s : state) {
    out += s->bits();
  }
  return out;
}

void Operand::require_margins(const std::string& when) const {
  const auto check = [&](const Column& column, const std::string& what) {
    require(column.margins_are_whole(), when + ": update wrote before or past " + what);
  };
  check(value, "the value");
  check(grad, "the gradient");
  if (master) {
    check(*master, "the master");
  }
  for (size_t s = 0; s < state.size(); ++s) {
    check(*state[s], "state tensor " + std::string(to_view(specs[s].name)));
  }
}

void Operand::require_same(const Operand& other, const std::string& when) const {
  const auto check = [&](const Column& a, const Column& b, const std::string& what) {
    const int64_t bytes = dtype_bytes(a.dtype());
    const std::string x = a.bits();
    const std::string y = b.bits();
    for (int64_t i = 0; i < a.count(); ++i) {
      const auto at = static_cast<size_t>(i * bytes);
      require(x.compare(at, static_cast<size_t>(bytes), y, at, static_cast<size_t>(bytes)) == 0,
              when + ": element " + std::to_string(i) + " of " + what + ": got " +
                  std::to_string(a.at(i)) + ", expected the bits of " + std::to_string(b.at(i)));
    }
  };
  check(value, other.value, "the value");
  if (master) {
    check(*master, *other.master, "the master");
  }
  for (size_t s = 0; s < state.size(); ++s) {
    check(*state[s], *other.state[s], "state tensor " + std::string(to_view(specs[s].name)));
  }
}

}  // namespace ciuic::testing
