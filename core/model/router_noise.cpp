// SPDX-License-Identifier: MIT
#include "core/model/router_noise.h"

#include <string>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include "core/model/initial_values.h"

namespace ciuic::core {

at::Tensor router_noise(const RouterNoise& noise, const at::Tensor& logits_NE) {
  const auto rows = static_cast<int64_t>(noise.samples.size());
  TORCH_CHECK(rows > 0 && logits_NE.size(0) % rows == 0, "router noise: ", rows, " samples for ",
              logits_NE.size(0), " tokens");
  const int64_t per_row = logits_NE.numel() / rows;
  const ParameterSpec drawn{"router_noise." + std::to_string(noise.layer), {}};
  at::Tensor values = at::empty(logits_NE.sizes(), at::TensorOptions().dtype(at::kFloat));
  auto* out = values.mutable_data_ptr<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const auto sample = static_cast<int64_t>(noise.samples[static_cast<size_t>(row)]);
    fill_initial_values(drawn, noise.deviation, noise.seed, sample * per_row,
                        {out + row * per_row, static_cast<size_t>(per_row)});
  }
  return values.to(logits_NE.options());
}

}  // namespace ciuic::core
