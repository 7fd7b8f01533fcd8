// SPDX-License-Identifier: MIT
#include "core/model/kernels/cpu_product.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "core/model/kernels/aligned_buffer.h"
#include "core/model/kernels/avx512_tiles.h"

namespace ciuic::core::kernels {
namespace {

using avx512::kPanelDepth;
using avx512::kPanelWidth;
using avx512::kTileRows;
using avx512::View;

// Rows of A that stay in the second-level cache while all panels pass: 16 tiles, 224 KiB at full
// depth.
constexpr int64_t kBlockRows = 16 * kTileRows;
// Below this many multiplications the threads are not worth waking.
constexpr int64_t kSerialSize = 1 << 20;

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

int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

// Rows of C per piece of work: whole tiles, fewer when there would not be a piece for each thread.
int64_t block_rows(int64_t rows, int64_t panels, int64_t threads) {
  const int64_t wanted_blocks = divided_up(2 * threads, panels);
  const int64_t tiles = divided_up(divided_up(rows, wanted_blocks), kTileRows);
  return threads == 1 ? kBlockRows : std::clamp(tiles * kTileRows, kTileRows, kBlockRows);
}

template <typename Body>
void for_pieces(int64_t count, bool is_serial, const Body& body) {
  if (is_serial) {
    body(0, count);
  } else {
    at::parallel_for(0, count, 1, body);
  }
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
    thread_local AlignedBuffer buffer;
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

  const bool is_serial =
      rows * depth * width < kSerialSize || at::in_parallel_region() || at::get_num_threads() == 1;
  const int64_t panels = divided_up(width, kPanelWidth);
  const int64_t piece_rows = block_rows(rows, panels, is_serial ? 1 : at::get_num_threads());
  const int64_t blocks = divided_up(rows, piece_rows);
  if (blocks == 1) {
    product_by_panels(out, a_view, b_view, depth, adds, is_serial);
    return;
  }
  thread_local AlignedBuffer buffer;
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
        const int64_t row = piece / panels * piece_rows;
        const int64_t column = piece % panels * kPanelWidth;
        avx512::multiply_panel(c + row * c_stride + column, c_stride, a_view.at(row, first),
                               panel(piece % panels), std::min(piece_rows, rows - row), stretch,
                               std::min(kPanelWidth, width - column), adds || first > 0);
      }
    });
  }
}

}  // namespace ciuic::core::kernels
