// SPDX-License-Identifier: MIT
#include "core/model/rows.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

namespace ciuic::core {

int64_t Rows::num_positions() const {
  int64_t longest = 0;
  for (const Span& span : spans) {
    longest = std::max(longest, span.length);
  }
  return longest;
}

Rows whole_rows(int64_t count, int64_t tokens) {
  Rows rows{count, tokens, {}, {}, {}};
  for (int64_t row = 0; row < count; ++row) {
    rows.spans.push_back({row, 0, tokens});
  }
  return rows;
}

Rows document_rows(const at::Tensor& starts_BT) {
  Rows rows{starts_BT.size(0), starts_BT.size(1), {}, at::empty({starts_BT.numel()}, at::kInt), {}};
  const auto* start = starts_BT.const_data_ptr<int32_t>();
  auto* position = rows.positions_N.mutable_data_ptr<int32_t>();
  for (int64_t row = 0; row < rows.count; ++row) {
    for (int64_t token = 0; token < rows.tokens; ++token, ++start, ++position) {
      const bool begins = *start == token;
      TORCH_CHECK(begins || (token > 0 && *start == start[-1]), "document_rows: token ", token,
                  " of row ", row, " begins at ", *start);
      if (begins) {
        rows.spans.push_back({row, token, 0});
      }
      ++rows.spans.back().length;
      *position = static_cast<int32_t>(token) - *start;
    }
  }
  return rows;
}

}  // namespace ciuic::core
