// SPDX-License-Identifier: MIT
#include "core/model/kernels/cpu_product.h"

#include <algorithm>

#include <c10/util/Exception.h>

#include "core/model/kernels/aligned_buffer.h"
#include "core/model/kernels/avx512_tiles.h"
#include "core/model/kernels/pieces.h"

namespace ciuic::core::kernels {
namespace {

using avx512::kPanelDepth;
using avx512::kPanelWidth;
using avx512::kTileRows;
using avx512::View;

// Rows of A that stay in the second-level cache while all panels pass: 16 tiles, 224 KiB at full
// depth.
constexpr int64_t kBlockRows = 16 * kTileRows;

bool runs_own_kernel() {
#if defined(__x86_64__)
  // On Intel processors MKL uses AVX-512 itself.
  static const bool value = avx512::is_supported() && !__builtin_cpu_is("intel");
  return value;
#else
  return false;
#endif
}

View view_of(const at::Tensor& matrix) {
  return {matrix.const_data_ptr<float>(), matrix.stride(0), matrix.stride(1)};
}

// Where few rows use each panel once: it is packed and used while it is in the cache, so that B is
// read once and nothing of it is written to memory. The same bits.
void product_by_panels(const at::Tensor& out, View a, View b, int64_t depth, bool adds,
                       bool is_serial) {
  const int64_t rows = out.size(0);
  const int64_t width = out.size(1);
  const int64_t stride = out.stride(0);
  float* c = out.mutable_data_ptr<float>();
  for_pieces(divided_up(width, kPanelWidth), is_serial, [&](int64_t begin, int64_t end) {
    thread_local AlignedBuffer<float> buffer;
    float* panel = buffer.reserve(kPanelWidth * kPanelDepth);
    for (int64_t column = begin * kPanelWidth; column < std::min(width, end * kPanelWidth);
         column += kPanelWidth) {
      const int64_t columns = std::min(kPanelWidth, width - column);
      for (int64_t first = 0; first < depth; first += kPanelDepth) {
        const int64_t stretch = std::min(kPanelDepth, depth - first);
        avx512::pack_panel(panel, b.at(first, column), stretch, columns);
        avx512::multiply_panel(c + column, stride, a.at(0, first), panel, rows, stretch, columns,
                               adds || first > 0);
      }
    }
  });
}

}  // namespace

bool has_cpu_product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  return out.is_cpu() && out.scalar_type() == at::kFloat && a.scalar_type() == at::kFloat &&
         b.scalar_type() == at::kFloat && out.stride(1) == 1 && out.numel() > 0 && a.size(1) > 0 &&
         runs_own_kernel();
}

void cpu_product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds) {
  const int64_t rows = a.size(0);
  const int64_t depth = a.size(1);
  const int64_t width = b.size(1);
  TORCH_CHECK(b.size(0) == depth && out.size(0) == rows && out.size(1) == width, "product: got ",
              a.sizes(), " x ", b.sizes(), " -> ", out.sizes());
  const View a_view = view_of(a);
  const View b_view = view_of(b);
  float* c = out.mutable_data_ptr<float>();
  const int64_t c_stride = out.stride(0);

  const bool is_serial = is_serial_product(rows * depth * width);
  const int64_t panels = divided_up(width, kPanelWidth);
  const int64_t block_rows =
      piece_rows(rows, panels, kTileRows, kBlockRows, is_serial ? 1 : at::get_num_threads());
  const int64_t blocks = divided_up(rows, block_rows);
  if (blocks == 1) {
    product_by_panels(out, a_view, b_view, depth, adds, is_serial);
    return;
  }
  thread_local AlignedBuffer<float> buffer;
  float* packed = buffer.reserve(panels * kPanelWidth * std::min(depth, kPanelDepth));

  for (int64_t first = 0; first < depth; first += kPanelDepth) {
    const int64_t stretch = std::min(kPanelDepth, depth - first);
    const auto panel = [&](int64_t index) { return packed + index * kPanelWidth * stretch; };
    for_pieces(panels, is_serial, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        avx512::pack_panel(panel(i), b_view.at(first, i * kPanelWidth), stretch,
                           std::min(kPanelWidth, width - i * kPanelWidth));
      }
    });
    for_pieces(blocks * panels, is_serial, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t row = piece / panels * block_rows;
        const int64_t column = piece % panels * kPanelWidth;
        avx512::multiply_panel(c + row * c_stride + column, c_stride, a_view.at(row, first),
                               panel(piece % panels), std::min(block_rows, rows - row), stretch,
                               std::min(kPanelWidth, width - column), adds || first > 0);
      }
    });
  }
}

}  // namespace ciuic::core::kernels
