// SPDX-License-Identifier: MIT
#include "core/train/policy_gemm.h"

#include <map>
#include <string_view>

#include <ciuic/view.hpp>

#include "core/log/failure.h"
#include "core/train/tensor_bridge.h"

namespace ciuic::core {
namespace {

constexpr ciuic_device kCpu{CIUIC_DEVICE_CPU, 0};

/// The name that a module shares with those of the other experts of its layer, or nothing.
std::string group_name(const std::string& module) {
  constexpr std::string_view kExperts = ".mlp.experts.";
  const size_t at = module.find(kExperts);
  if (at == std::string::npos) {
    return "";
  }
  const size_t number = at + kExperts.size();
  const size_t rest = module.find('.', number);
  return rest == std::string::npos ? "" : module.substr(0, number) + module.substr(rest + 1);
}

/// The router computes its logits in f32 from wider copies, which no policy is asked about.
void refuse_router(const PrecisionPlugin& precision, const std::string& module, uint32_t passes) {
  if (passes != 0 && module.ends_with(".mlp.gate")) {
    throw Failure(ExitCode::Plugin,
                  "precision " + precision.instance().name() + " computes products of " + module +
                      " itself, which the router does not hand out",
                  "leave mlp.gate out of its hooks, or choose another precision");
  }
}

/// A tensor with any strides as the ABI sees it; `t` must outlive it.
ciuic_tensor view_of(const at::Tensor& t) {
  ciuic_tensor view{};
  view.struct_size = sizeof(view);
  view.t.data = t.numel() == 0 ? nullptr : t.data_ptr();
  view.t.device = to_device(t.device());
  view.t.ndim = static_cast<int32_t>(t.dim());
  view.t.dtype = to_dtype(t.scalar_type());
  view.t.shape = const_cast<int64_t*>(t.sizes().data());
  view.t.strides = const_cast<int64_t*>(t.strides().data());
  return view;
}

uint32_t flags_of(ProductPass pass) {
  switch (pass) {
    case ProductPass::Forward:
      return CIUIC_GEMM_TRANS_B;
    case ProductPass::GradWeight:
      return CIUIC_GEMM_TRANS_A;
    default:
      return 0;
  }
}

}  // namespace

std::string module_of(const std::string& parameter) {
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (parameter.size() > suffix.size() && parameter.ends_with(suffix)) {
      return parameter.substr(0, parameter.size() - suffix.size());
    }
  }
  return parameter;
}

PolicyGemm::PolicyGemm(const PrecisionPlugin& precision, std::span<const ParameterSpec> specs)
    : precision_(precision) {
  std::vector<uint32_t> groups(specs.size());
  std::map<std::string, uint32_t> group_ids;
  for (const ParameterSpec& spec : specs) {
    attached(module_of(spec.name));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    if (const std::string group = group_name(module_of(specs[i].name)); !group.empty()) {
      const auto [found, is_new] = group_ids.try_emplace(group, 0);
      found->second = is_new ? attached(group) : found->second;
      groups[i] = found->second;
    }
  }
  precision.attach(to_array(modules_));
  hooks_.reserve(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    ModuleHook hook{this, static_cast<uint32_t>(i),
                    precision.hooks(static_cast<uint32_t>(i), kCpu)};
    if (groups[i] != 0) {
      hook.group_module = groups[i];
      hook.group_passes = precision.hooks(groups[i], kCpu);
    }
    refuse_router(precision, names_[i], hook.passes);
    hooks_.push_back(hook);
    const bool is_matrix = specs[i].shape.size() == 2;
    const bool is_taken = is_matrix && (hook.passes | hook.group_passes) != 0;
    by_parameter_.push_back(is_taken ? &hooks_.back() : nullptr);
  }
}

uint32_t PolicyGemm::attached(const std::string& name) {
  names_.push_back(name);
  ciuic_module m{};
  m.struct_size = sizeof(m);
  m.id = static_cast<uint32_t>(modules_.size());
  m.name = to_str(names_.back());
  modules_.push_back(m);
  return m.id;
}

void PolicyGemm::compute(const PolicyProduct& p) const {
  const ciuic_tensor a = view_of(p.a);
  const ciuic_tensor b = view_of(p.b);
  const ciuic_tensor out = view_of(p.out);
  ciuic_tensor ends{};
  ciuic_gemm gemm{};
  gemm.struct_size = sizeof(gemm);
  gemm.flags = flags_of(p.pass);
  gemm.module = p.module;
  gemm.pass = static_cast<uint32_t>(p.pass);
  gemm.alpha = 1;
  gemm.beta = p.adds ? 1 : 0;
  gemm.a = &a;
  gemm.b = &b;
  gemm.out = &out;
  if (p.group_ends.defined()) {
    ends = view_of(p.group_ends);
    gemm.group_ends = &ends;
  }
  // Weights change in an update and nowhere else; an activation is another one each time.
  gemm.b_version = p.pass == ProductPass::GradWeight ? 0 : precision_.values_version();
  precision_.gemm(gemm);
}

}  // namespace ciuic::core
