// SPDX-License-Identifier: MIT
#include "core/train/numbers_probe.h"

#include <filesystem>
#include <utility>

#include "core/model/gradient.h"
#include "core/model/product.h"
#include "core/train/bad_pass.h"
#include "core/train/tensor_bridge.h"

namespace ciuic::core {
namespace {

constexpr uint32_t kAllPasses = 0b1110;
constexpr const char* kTensorFileFormat = "safetensors";

void multiply_plainly(const PolicyProduct& p) {
  switch (p.pass) {
    case ProductPass::Forward:
      product_out(p.out, p.a, p.b.t(), p.adds);
      break;
    case ProductPass::GradInput:
      product_out(p.out, p.a, p.b, p.adds);
      break;
    case ProductPass::GradWeight:
      accumulate_product({{}, p.out, !p.adds}, p.a, p.b);
  }
}

/// The first tensor of a product that is not finite, in words; nothing where all are.
std::string bad_tensor(const PolicyProduct& p) {
  const bool is_forward = p.pass == ProductPass::Forward;
  const bool is_weight_gradient = p.pass == ProductPass::GradWeight;
  if (!is_finite(p.a)) {
    return is_forward ? "its input" : "the gradient of its output";
  }
  if (!is_finite(p.b)) {
    return is_weight_gradient ? "its input" : "its weight";
  }
  if (!is_finite(p.out)) {
    return is_forward           ? "its output, of a finite input and weight,"
           : is_weight_gradient ? "the gradient of its weight, of finite operands,"
                                : "the gradient of its input, of finite operands,";
  }
  return "";
}

}  // namespace

const char* pass_name(ProductPass pass) {
  switch (pass) {
    case ProductPass::Forward:
      return "forward";
    case ProductPass::GradInput:
      return "grad_input";
    default:
      return "grad_weight";
  }
}

NumbersProbe::NumbersProbe(const PolicyGemm& policy, std::span<const ParameterSpec> specs,
                           const Events& events, ArchiveOpener opener, std::string folder, int rank,
                           Log& log)
    : policy_(policy),
      events_(events),
      opener_(std::move(opener)),
      folder_(std::move(folder)),
      rank_(rank),
      log_(log) {
  for (size_t i = 0; i < specs.size(); ++i) {
    ModuleHook hook{this, static_cast<uint32_t>(i), kAllPasses};
    if (const ModuleHook* inner = policy.hooks()[i]; inner != nullptr) {
      hook.group_module = inner->group_module;
      hook.group_passes = inner->group_passes;
    }
    hooks_.push_back(hook);
    by_parameter_.push_back(&hooks_.back());
  }
}

void NumbersProbe::compute(const PolicyProduct& p) const {
  const bool is_group = p.module >= by_parameter_.size();
  const ModuleHook* inner = is_group ? nullptr : policy_.hooks()[p.module];
  if (is_group || (inner != nullptr && inner->takes(p.pass))) {
    policy_.compute(p);
  } else {
    multiply_plainly(p);
  }
  if (found_at_step_ != events_.step()) {
    look_at(p);
  }
}

void NumbersProbe::look_at(const PolicyProduct& p) const {
  const std::string bad = bad_tensor(p);
  if (bad.empty()) {
    return;
  }
  found_at_step_ = events_.step();
  const std::string file = write(p);
  log_.warn("numbers: step " + std::to_string(found_at_step_) + ", micro-batch " +
            std::to_string(micro_batch_) + ", rank " + std::to_string(rank_) + ": module " +
            policy_.module_name(p.module) + ", pass " + pass_name(p.pass) + ": " + bad +
            " is the first tensor of the step that is not finite. ciuic replay " + file +
            " computes the product again");
}

std::string NumbersProbe::write(const PolicyProduct& p) const {
  namespace fs = std::filesystem;
  if (!file_.empty()) {
    fs::remove(file_);  // the last one tells most: earlier ones were survived
  }
  fs::create_directories(folder_ + "/numbers");
  file_ = folder_ + "/numbers/step-" + std::to_string(found_at_step_) + "-rank-" +
          std::to_string(rank_) + ".safetensors";
  const std::string prefix = policy_.module_name(p.module) + "." + pass_name(p.pass) + ".";
  std::vector<std::pair<std::string, at::Tensor>> tensors{{prefix + "a", p.a.contiguous()},
                                                          {prefix + "b", p.b.contiguous()}};
  if (p.group_ends.defined()) {
    tensors.emplace_back(prefix + "group_ends", p.group_ends.contiguous());
  }
  std::vector<ArchiveEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    entries.push_back({name, false, to_dtype(tensor.scalar_type()), tensor.sizes().vec(),
                       static_cast<uint64_t>(tensor.nbytes())});
  }
  const auto plugin = opener_.create(kTensorFileFormat);
  const Archive archive = plugin->begin(file_, 0, entries);
  for (const auto& [name, tensor] : tensors) {
    const Place place(tensor.sizes().vec());
    archive.put(name, place.c(), to_abi(tensor).c());
  }
  archive.commit();
  return file_;
}

}  // namespace ciuic::core
