// SPDX-License-Identifier: MIT
#include "core/model/kernels/cpu_bf16_product.h"

#include <algorithm>

#include <c10/util/BFloat16.h>
#include <c10/util/Exception.h>

#include "core/model/kernels/aligned_buffer.h"
#include "core/model/kernels/bf16_tiles.h"
#include "core/model/kernels/pieces.h"

namespace ciuic::core::kernels {
namespace {

using bf16::Bits;
using bf16::kPanelWidth;
using bf16::kTileRows;
using bf16::Left;
using bf16::Pair;
using bf16::View;

// The whole depth is summed in registers, so that a bf16 result is rounded once. A panel of usual
// depth is larger than the first-level cache then, which two vectors in 14 cycles do not notice.
constexpr int64_t kBlockBytes = 256 << 10;  // of A, in the second-level cache while panels pass
constexpr int64_t kMostRows = 16 * kTileRows;
constexpr int64_t kGroupBytes = 2 << 20;  // of panels that are packed before blocks pass

template <typename C>
struct Product {
  C* c;
  int64_t c_stride;
  View a, b;
  int64_t rows, depth, width;
  bool adds, is_serial;

  [[nodiscard]] int64_t panels() const { return divided_up(width, kPanelWidth); }
  [[nodiscard]] int64_t panel_size() const { return bf16::pairs_of(depth) * kPanelWidth; }

  void pack(Pair* panel, int64_t index) const {
    bf16::pack_panel(panel, b.at(0, index * kPanelWidth), depth,
                     std::min(kPanelWidth, width - index * kPanelWidth));
  }
  void multiply(const Left& left, const Pair* panel, int64_t index, int64_t row,
                int64_t count) const {
    const int64_t column = index * kPanelWidth;
    bf16::multiply_panel(c + row * c_stride + column, c_stride, left, panel, count,
                         std::min(kPanelWidth, width - column), adds);
  }
};

// Blocks of A for one thread: where they lie, or packed, each when it is first asked for. Packed are
// also rows whose 14 neighbours fall into one set of a first-level cache of 8 or 12 ways.
class Blocks final {
 public:
  Blocks(View a, int64_t depth) : a_(a), depth_(depth) {}

  Left at(int64_t row, int64_t rows) {
    if (a_.column_stride == 1 && !collides()) {
      return Left::in_rows(a_.at(row, 0).data, a_.row_stride, depth_);
    }
    thread_local AlignedBuffer<Pair> buffer;
    Pair* tiles = buffer.reserve(bf16::packed_size(rows, depth_));
    if (held_ != row) {
      bf16::pack_tiles(tiles, a_.at(row, 0), rows, depth_);
      held_ = row;
    }
    return Left::in_tiles(tiles, depth_);
  }

 private:
  [[nodiscard]] bool collides() const {
    constexpr int64_t kSetsBytes = 4096;
    return a_.row_stride * static_cast<int64_t>(sizeof(Bits)) % kSetsBytes == 0;
  }

  View a_;
  int64_t depth_;
  int64_t held_ = -1;
};

// Where few rows use each panel once: it is packed and used while it is in the cache.
template <typename C>
void one_block(const Product<C>& p) {
  for_pieces(p.panels(), p.is_serial, [&](int64_t begin, int64_t end) {
    thread_local AlignedBuffer<Pair> buffer;
    Pair* panel = buffer.reserve(p.panel_size());
    Blocks blocks(p.a, p.depth);
    for (int64_t i = begin; i < end; ++i) {
      p.pack(panel, i);
      p.multiply(blocks.at(0, p.rows), panel, i, 0, p.rows);
    }
  });
}

template <typename C>
void many_blocks(const Product<C>& p, int64_t block_rows) {
  const int64_t blocks = divided_up(p.rows, block_rows);
  const int64_t panel_bytes = p.panel_size() * static_cast<int64_t>(sizeof(Pair));
  const int64_t most = std::clamp<int64_t>(kGroupBytes / panel_bytes, 1, p.panels());
  thread_local AlignedBuffer<Pair> buffer;
  Pair* packed = buffer.reserve(most * p.panel_size());

  for (int64_t first = 0; first < p.panels(); first += most) {
    const int64_t group = std::min(most, p.panels() - first);
    for_pieces(group, p.is_serial, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        p.pack(packed + i * p.panel_size(), first + i);
      }
    });
    for_pieces(blocks * group, p.is_serial, [&](int64_t begin, int64_t end) {
      Blocks left(p.a, p.depth);
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t row = piece / group * block_rows;
        const int64_t count = std::min(block_rows, p.rows - row);
        const int64_t i = piece % group;
        p.multiply(left.at(row, count), packed + i * p.panel_size(), first + i, row, count);
      }
    });
  }
}

template <typename C>
void multiply(const Product<C>& p) {
  const int64_t fitting = kBlockBytes / (2 * p.depth) / kTileRows * kTileRows;
  const int64_t block_rows =
      piece_rows(p.rows, p.panels(), kTileRows, std::clamp(fitting, kTileRows, kMostRows),
                 p.is_serial ? 1 : at::get_num_threads());
  p.rows <= block_rows ? one_block(p) : many_blocks(p, block_rows);
}

const Bits* bits_of(const at::Tensor& matrix) {
  return reinterpret_cast<const Bits*>(matrix.const_data_ptr<c10::BFloat16>());
}

View view_of(const at::Tensor& matrix) {
  return {bits_of(matrix), matrix.stride(0), matrix.stride(1)};
}

}  // namespace

bool has_cpu_bf16_products() {
  static const bool value = bf16::is_supported();
  return value;
}

bool has_cpu_bf16_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return out.is_cpu() && a.scalar_type() == at::kBFloat16 && b.scalar_type() == at::kBFloat16 &&
         (out.scalar_type() == at::kBFloat16 || out.scalar_type() == at::kFloat) &&
         out.stride(1) == 1 && out.numel() > 0 && a.size(1) > 0 && has_cpu_bf16_products();
}

void cpu_bf16_product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                          bool adds) {
  const int64_t rows = a.size(0);
  const int64_t depth = a.size(1);
  const int64_t width = b.size(1);
  TORCH_CHECK(b.size(0) == depth && out.size(0) == rows && out.size(1) == width, "product: got ",
              a.sizes(), " x ", b.sizes(), " -> ", out.sizes());
  const auto run = [&](auto* c) {
    using C = std::remove_pointer_t<decltype(c)>;
    multiply(Product<C>{c, out.stride(0), view_of(a), view_of(b), rows, depth, width, adds,
                        is_serial_product(rows * depth * width)});
  };
  if (out.scalar_type() == at::kFloat) {
    run(out.mutable_data_ptr<float>());
  } else {
    run(reinterpret_cast<Bits*>(out.mutable_data_ptr<c10::BFloat16>()));
  }
}

}  // namespace ciuic::core::kernels
