// SPDX-License-Identifier: MIT
// Products and sums into gradient views.
#include "core/model/gradient.h"

#include "core/model/product.h"

namespace ciuic::core {

void accumulate_product(const Bound& parameter, const at::Tensor& dy_NO, const at::Tensor& x_NI) {
  if (!parameter.grad.defined()) {
    return;
  }
  if (parameter.hook != nullptr && parameter.hook->takes(ProductPass::GradWeight)) {
    parameter.hook->products->compute({ProductPass::GradWeight,
                                       parameter.hook->module,
                                       parameter.grad,
                                       dy_NO,
                                       x_NI,
                                       !parameter.overwrite,
                                       {}});
    return;
  }
  product_out(parameter.grad, dy_NO.t(), x_NI, /*adds=*/!parameter.overwrite);
}

void accumulate(const Bound& parameter, const at::Tensor& gradient) {
  if (!parameter.grad.defined()) {
    return;
  }
  if (parameter.overwrite) {
    parameter.grad.copy_(gradient);
  } else {
    parameter.grad.add_(gradient);
  }
}

void accumulate_nothing(const Bound& parameter) {
  if (parameter.grad.defined() && parameter.overwrite) {
    parameter.grad.zero_();
  }
}

}  // namespace ciuic::core
