// SPDX-License-Identifier: MIT
//
// One parameter with gradient, master, value and state, as an optimizer is handed ranges of it. Each
// tensor lies between canaries, at an address that is aligned to its element and to nothing more,
// half of it in byte_offset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ciuic/testing/conformance.hpp>
#include <ciuic/testing/numbers.hpp>
#include <ciuic/testing/reference_rules.hpp>

namespace ciuic::testing {

/// Memory of `count` elements with margins before and after.
class Column {
 public:
  Column(ciuic_dtype dtype, int64_t count, int64_t lead);

  [[nodiscard]] ciuic_dtype dtype() const { return dtype_; }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] double at(int64_t i) const { return load_element(dtype_, place(i)); }
  void set(int64_t i, double value) { store_element(dtype_, place(i), value); }
  /// The elements' bits.
  [[nodiscard]] std::string bits() const {
    return std::string(place(0), static_cast<size_t>(count_ * dtype_bytes(dtype_)));
  }
  void set_bits(const std::string& bits) { bits.copy(place(0), bits.size()); }
  /// Nobody wrote before or after the elements.
  [[nodiscard]] bool margins_are_whole() const;

  [[nodiscard]] char* place(int64_t i) { return data_.data() + begin_ + i * dtype_bytes(dtype_); }
  [[nodiscard]] const char* place(int64_t i) const {
    return data_.data() + begin_ + i * dtype_bytes(dtype_);
  }

 private:
  ciuic_dtype dtype_;
  int64_t count_;
  int64_t begin_;
  std::vector<char> data_;
};

/// Types of a parameter's tensors. No master: the value is the master.
struct Layout {
  ciuic_dtype grad, value;
  bool has_master;
  ciuic_dtype master;
};
constexpr Layout kPlainLayout{kF32, kF32, false, kF32};
constexpr Layout kNarrowLayout{kF32, kBF16, true, kF32};

/// What models use, the two above first.
const std::vector<Layout>& all_layouts();
std::string text_of(const Layout& layout);

struct Range {
  int64_t begin, end;
};

class Operand {
 public:
  /// Values and gradients are arbitrary, of magnitude 1 and less, from the seed; state is initial.
  Operand(const PluginInstance& optimizer, int64_t count, const Layout& layout, uint64_t seed,
          int64_t lead = 1);
  /// The same as a matrix.
  Operand(const PluginInstance& optimizer, int64_t rows, int64_t columns, const Layout& layout,
          uint64_t seed, int64_t lead);
  Operand(Operand&&) = delete;

  /// One call with a ciuic_update for each range. `shift` is added to every begin.
  [[nodiscard]] int32_t try_update(const PluginInstance& optimizer, const RuleStep& step,
                                   const std::vector<Range>& ranges, int64_t shift = 0);
  /// Throws NotOffered when the plugin cannot take the types.
  void update(const PluginInstance& optimizer, const RuleStep& step,
              const std::vector<Range>& ranges, int64_t shift = 0);
  /// All of it.
  void update(const PluginInstance& optimizer, const RuleStep& step) {
    update(optimizer, step, {{0, count()}});
  }
  /// New gradients.
  void set_gradients(uint64_t seed);

  [[nodiscard]] int64_t count() const { return value.count(); }
  [[nodiscard]] const Column& master_column() const { return master ? *master : value; }
  [[nodiscard]] Column& master_column() { return master ? *master : value; }
  /// Bits of all that an update may write.
  [[nodiscard]] std::string written_bits() const;
  void require_margins(const std::string& when) const;
  void require_same(const Operand& other, const std::string& when) const;

  ciuic_param param{};
  int64_t granule = 1;
  Column value, grad;
  std::unique_ptr<Column> master;
  std::vector<std::unique_ptr<Column>> state;
  std::vector<ciuic_state_spec> specs;
  uint32_t grad_flags = CIUIC_TENSOR_READ_ONLY;

 private:
  void start(const PluginInstance& optimizer, const Layout& layout, uint64_t seed, int64_t lead);

  std::string name_ = "model.weight";
  int64_t shape_[2];
  int64_t offset_[2] = {0, 0};
};

/// In [-1, 1).
double arbitrary(uint64_t seed, int64_t i);

/// The instance's state_spec for a parameter, checked for sense.
std::vector<ciuic_state_spec> state_specs(const PluginInstance& optimizer, const ciuic_param& p);

/// Cuts [0, count) at multiples of the granule, `pieces` of them or fewer, of unequal sizes.
std::vector<Range> cut(int64_t count, int64_t granule, int64_t pieces);

/// Runs `body` for each layout that the plugin takes; at least one must be.
template <typename Body>
void for_each_layout(Body body) {
  int taken = 0;
  for (const Layout& layout : all_layouts()) {
    try {
      body(layout);
      ++taken;
    } catch (const NotOffered&) {  // types that it does not take
    }
  }
  require(taken > 0,
          "update takes none of the types in use, not even fp32 throughout; a rule takes "
          "any float types");
}

}  // namespace ciuic::testing
