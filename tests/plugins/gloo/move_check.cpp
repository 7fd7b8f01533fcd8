// SPDX-License-Identifier: MIT
#include "move_check.h"

#include <algorithm>
#include <sstream>

#include <ciuic/testing/numbers.hpp>

namespace ciuic::tests {
namespace {

constexpr char kCanary = '\x55';

enum class Cut { even, counts, offsets };

/// Parts of a tensor, in elements. With offsets they lie in reverse order, with gaps.
struct Layout {
  std::vector<int64_t> counts, offsets;
  int64_t total = 0;

  Layout(std::vector<int64_t> sizes, Cut cut) : counts(std::move(sizes)), offsets(counts.size()) {
    const size_t world = counts.size();
    for (size_t i = 0; i < world; ++i) {
      const size_t p = cut == Cut::offsets ? world - 1 - i : i;
      total += cut == Cut::offsets ? 2 : 0;
      offsets[p] = total;
      total += counts[p];
    }
  }
};

struct Case {
  uint32_t op;
  ciuic_dtype dtype;
  int64_t n;
  Cut cut;
  bool in_place;
};

class Mover {
 public:
  explicit Mover(const Communicator& g) : g_(g), me_(g.rank()), world_(g.world()) {}

  void run(const Case& c) {
    c_ = c;
    width_ = dtype_bytes(c.dtype);
    const bool root = me_ == this->root();
    const bool cuts_in =
        c.op == CIUIC_OP_SCATTER || c.op == CIUIC_OP_ALL_TO_ALL || c.op == CIUIC_OP_REDUCE_SCATTER;
    const bool cuts_out =
        c.op == CIUIC_OP_GATHER || c.op == CIUIC_OP_ALL_TO_ALL || c.op == CIUIC_OP_ALL_GATHER;
    const Layout in = cuts_in ? sent(c.cut) : Layout({size(me_, 0)}, Cut::even);
    const Layout out = cuts_out ? received(c.cut) : Layout({size(root_or_me(), me_)}, Cut::even);
    // One element before each tensor: data is aligned to its elements and no more.
    std::vector<char> memory(static_cast<size_t>((in.total + out.total + 4) * width_), kCanary);
    char* in_data = memory.data() + width_;
    char* out_data = in_data + (in.total + 1) * width_;
    if (c.in_place && !cuts_in) {
      in_data = out_data + out.offsets[static_cast<size_t>(me_)] * width_;
    } else if (c.in_place && !cuts_out) {
      out_data = in_data + in.offsets[static_cast<size_t>(me_)] * width_;
    } else if (c.in_place) {
      out_data = in_data;
    }
    const bool has_in = c.op != CIUIC_OP_SCATTER || root;
    const bool has_out = c.op != CIUIC_OP_GATHER || root;
    if (has_in) {
      fill(in_data, in, cuts_in);
    }
    const std::vector<char> before = memory;
    Call call = move(c.op, in_data, in.total, out_data, out.total, c.dtype, this->root());
    call.has_in = has_in;
    call.has_out = has_out;
    call.c.reduce = c.op == CIUIC_OP_REDUCE_SCATTER ? CIUIC_REDUCE_SUM : 0;
    if (c.cut != Cut::even && cuts_in) {
      call.c.in_counts = in.counts.data();
      call.c.in_offsets = c.cut == Cut::offsets ? in.offsets.data() : nullptr;
    }
    if (c.cut != Cut::even && cuts_out) {
      call.c.out_counts = out.counts.data();
      call.c.out_offsets = c.cut == Cut::offsets ? out.offsets.data() : nullptr;
    }
    g_.run(std::move(call));
    std::vector<char> want = before;
    if (has_out) {
      expect(want.data() + (out_data - memory.data()), out, cuts_out);
    }
    compare(memory, want);
  }

 private:
  [[nodiscard]] int root() const { return static_cast<int>(c_.n % world_); }
  [[nodiscard]] int root_or_me() const { return c_.op == CIUIC_OP_SCATTER ? root() : me_; }

  /// Elements from rank s to rank d; some parts are empty.
  [[nodiscard]] int64_t size(int s, int d) const {
    if (c_.cut == Cut::even) {
      return c_.n;
    }
    switch (c_.op) {
      case CIUIC_OP_ALL_GATHER:
      case CIUIC_OP_GATHER:  // one part of s for all
        return s % 3 == 1 ? 0 : c_.n + 3 * s;
      case CIUIC_OP_REDUCE_SCATTER:  // all ranks have a part of one size for d
        return d % 3 == 1 ? 0 : c_.n + 2 * d;
      default:
        return (s + d) % 3 == 1 ? 0 : c_.n + 3 * s + d;
    }
  }
  [[nodiscard]] Layout sent(Cut cut) const {
    std::vector<int64_t> counts;
    for (int d = 0; d < world_; ++d) {
      counts.push_back(size(me_, d));
    }
    return {counts, cut};
  }
  [[nodiscard]] Layout received(Cut cut) const {
    std::vector<int64_t> counts;
    for (int s = 0; s < world_; ++s) {
      counts.push_back(size(s, me_));
    }
    return {counts, cut};
  }

  /// The element i of what rank s sends to rank d: bytes, or a small number where they are summed.
  void store(char* at, int s, int d, int64_t i) const {
    if (c_.op == CIUIC_OP_ALL_GATHER || c_.op == CIUIC_OP_GATHER) {
      d = 0;
    }
    if (c_.op == CIUIC_OP_REDUCE_SCATTER) {
      return testing::store_element(c_.dtype, at, term(s, d, i));
    }
    for (int64_t b = 0; b < width_; ++b) {
      at[b] = static_cast<char>((s * 101 + d * 37 + i * 7 + b * 3 + i / 251) & 0xFF);
    }
  }
  [[nodiscard]] static double term(int s, int d, int64_t i) {
    return static_cast<double>((s * 5 + d * 3 + i) % 23);
  }

  void fill(char* data, const Layout& layout, bool cut) const {
    for (size_t p = 0; p < layout.counts.size(); ++p) {
      for (int64_t i = 0; i < layout.counts[p]; ++i) {
        store(data + (layout.offsets[p] + i) * width_, me_, cut ? static_cast<int>(p) : 0, i);
      }
    }
  }

  void expect(char* data, const Layout& layout, bool cut) const {
    for (size_t p = 0; p < layout.counts.size(); ++p) {
      const int source = cut ? static_cast<int>(p) : root_or_me();
      for (int64_t i = 0; i < layout.counts[p]; ++i) {
        char* at = data + (layout.offsets[p] + i) * width_;
        if (c_.op != CIUIC_OP_REDUCE_SCATTER) {
          store(at, source, me_, i);
          continue;
        }
        double sum = 0;
        for (int s = 0; s < world_; ++s) {
          sum += term(s, me_, i);
        }
        testing::store_element(c_.dtype, at, sum);
      }
    }
  }

  void compare(const std::vector<char>& got, const std::vector<char>& want) const {
    const auto different = std::mismatch(got.begin(), got.end(), want.begin());
    if (different.first != got.end()) {
      std::ostringstream text;
      text << "op " << c_.op << " " << dtype_name(c_.dtype) << " n " << c_.n << " cut "
           << static_cast<int>(c_.cut) << " in place " << c_.in_place << " rank " << me_ << " of "
           << world_ << ": byte " << different.first - got.begin() << " of " << got.size()
           << " differs";
      throw std::runtime_error(text.str());
    }
  }

  const Communicator& g_;
  const int me_;
  const int world_;
  Case c_{};
  int64_t width_ = 1;
};

}  // namespace

void check_moves(const Communicator& communicator) {
  const ciuic_dtype fp8{CIUIC_DTYPE_FLOAT8_E4M3FN, 8, 1};
  const ciuic_dtype boolean{CIUIC_DTYPE_BOOL, 8, 1};
  const ciuic_dtype complex128{5, 128, 1};
  Mover mover(communicator);
  for (const int64_t n : {0, 1, 2, 3, 7, 127, 128, 129, 1023, 1024, 1025, 70001}) {
    for (const Cut cut : {Cut::even, Cut::counts, Cut::offsets}) {
      for (const bool in_place : {false, true}) {
        for (const ciuic_dtype dtype : {fp8, boolean, kBF16, kF32, kI64, complex128}) {
          for (const uint32_t op : {CIUIC_OP_ALL_GATHER, CIUIC_OP_GATHER, CIUIC_OP_SCATTER}) {
            mover.run({op, dtype, n, cut, in_place});
          }
          // In place, the parts of an all-to-all that is uneven would not lie where they go.
          mover.run({CIUIC_OP_ALL_TO_ALL, dtype, n, cut, in_place && cut == Cut::even});
        }
        for (const ciuic_dtype dtype : {kF32, kBF16, kI64, kU8}) {
          mover.run({CIUIC_OP_REDUCE_SCATTER, dtype, n, cut, in_place});
        }
      }
    }
  }
}

}  // namespace ciuic::tests
