// SPDX-License-Identifier: MIT
#include "policy_bench.hpp"

#include <limits>

namespace ciuic::testing {

const char* role_name(uint32_t role) {
  static constexpr const char* kNames[] = {"?",       "VALUE",      "GRAD",
                                           "REDUCE",  "MASTER",     "MOMENT",
                                           "COMPUTE", "ACTIVATION", "ACTIVATION_GRAD"};
  return kNames[role <= kLastRole ? role : 0];
}

const char* pass_name(uint32_t pass) {
  static constexpr const char* kNames[] = {"no pass", "FORWARD", "GRAD_INPUT", "GRAD_WEIGHT"};
  return kNames[pass <= CIUIC_GEMM_GRAD_WEIGHT ? pass : 0];
}

const ciuic_option_spec* spec_of(const ciuic_descriptor& descriptor, std::string_view key) {
  for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(descriptor.options)) {
    if (key == spec.key) {
      return &spec;
    }
  }
  return nullptr;
}

std::string scaler_of(const TestContext& context) {
  const ciuic_option_spec* spec = spec_of(context.plugin.descriptor(), "scaler");
  if (spec == nullptr || spec->type != CIUIC_TYPE_ENUM) {
    return "";
  }
  const auto given = context.options.find("scaler");
  const auto* word =
      given == context.options.end() ? nullptr : std::get_if<std::string>(&given->second);
  return word != nullptr ? *word : std::string(to_view(spec->def.s));
}

PolicyBench::PolicyBench(const TestContext& context, Seat seat, bool attached)
    : descriptor_(context.plugin.descriptor()),
      threads_(host_.host(), 2),
      tensors_(host_.host()),
      instance_([&] {
        seat.device = {CIUIC_DEVICE_CPU, 0};
        host_.offer("ciuic.threads", threads_.table());
        host_.offer("ciuic.tensor", tensors_.table());
        return context.create(host_, {}, seat);
      }()) {
  if (attached) {
    attach();
  }
}

void PolicyBench::attach() const {
  std::vector<ciuic_module> modules;
  for (const Module& module : kModules) {
    modules.push_back({sizeof(ciuic_module), 0, module.id, 0, to_str(module.name)});
  }
  const GuardedArray<ciuic_module> all(modules, 24);  // as from a newer host
  instance_.check(vt().attach(instance_.self(), all.c()));
  all.forbid();
}

ciuic_dtype PolicyBench::dtype_for(std::string_view module, uint32_t role) const {
  ciuic_dtype out{0xEE, 0xEE, 0xEEEE};
  instance_.check(vt().dtype_for(instance_.self(), to_str(module), role, &out));
  return out;
}

std::optional<Error> PolicyBench::update(bool is_finite) {
  ++step_;
  update_ += is_finite ? 1 : 0;
  ciuic_precision_update& request = *update_request_;
  request.step = step_;
  request.update = update_;
  request.non_finite = is_finite ? 0 : 1 + step_ % 1000 * 977;
  request.grad_norm =
      is_finite ? 1.0 + static_cast<double>(step_ % 7) : std::numeric_limits<double>::quiet_NaN();
  ciuic_status* status = vt().update(instance_.self(), &request);
  return status == nullptr ? std::nullopt : std::optional<Error>(host().take(status));
}

std::optional<ciuic_format> PolicyBench::format(const ciuic_cast& cast) const {
  if (!CIUIC_CAN(&vt(), format)) {
    return std::nullopt;
  }
  const GuardedStruct<ciuic_cast> in(cast);
  const GuardedStruct<ciuic_format> out;
  ciuic_status* status = vt().format(instance_.self(), in.get(), out.get());
  if (status != nullptr) {
    const Error error = host().take(status);
    if (error.code() != CIUIC_UNIMPLEMENTED) {
      throw error;
    }
    return std::nullopt;
  }
  return *out;
}

void PolicyBench::cast(const ciuic_cast& cast) const {
  require(CIUIC_CAN(&vt(), cast), "the policy has format but no cast");
  const GuardedStruct<ciuic_cast> in(cast);
  instance_.check(vt().cast(instance_.self(), in.get(), nullptr));
  in.forbid();
}

int32_t PolicyBench::gemm(const ciuic_gemm& gemm) const {
  if (!CIUIC_CAN(&vt(), gemm)) {
    return CIUIC_UNIMPLEMENTED;
  }
  const GuardedStruct<ciuic_gemm> in(gemm);
  ciuic_status* status = vt().gemm(instance_.self(), in.get(), nullptr);
  in.forbid();
  if (status == nullptr) {
    return CIUIC_OK;
  }
  const Error error = host().take(status);
  gemm_message_ = error.what();
  return error.code();
}

void PolicyBench::save(MemoryState& state) const {
  if (descriptor_.state_save != nullptr) {
    instance_.save(state);
  }
}
void PolicyBench::load(MemoryState& state) const {
  if (descriptor_.state_load != nullptr) {
    instance_.load(state);
  }
}
void PolicyBench::go_on_from(const PolicyBench& other) {
  step_ = other.step_;
  update_ = other.update_;
}

}  // namespace ciuic::testing
