// SPDX-License-Identifier: MIT
//
// A layer around another layer. What it does not change goes through.
#pragma once

#include "core/plugin/trampoline/layer.h"

namespace ciuic::core {

template <typename Vt, typename Derived>
class DecoratorLayer : public KindLayer<Vt, Derived> {
 public:
  [[nodiscard]] const std::shared_ptr<CallGuard>& guard() const noexcept override {
    return inner_->guard();
  }
  ciuic_status* quiesce(int64_t timeout_ns) override { return inner_->quiesce(timeout_ns); }
  ciuic_status* resume() override { return inner_->resume(); }
  ciuic_status* set_option(const ciuic_option& option) override {
    return inner_->set_option(option);
  }
  ciuic_status* state_save(const ciuic_writer& writer) override {
    return inner_->state_save(writer);
  }
  ciuic_status* state_load(const ciuic_reader& reader) override {
    return inner_->state_load(reader);
  }

 protected:
  explicit DecoratorLayer(std::unique_ptr<Layer> inner)
      : KindLayer<Vt, Derived>(inner->table(), inner->handle()), inner_(std::move(inner)) {}
  [[nodiscard]] const ciuic_host* host() const noexcept { return inner_->guard()->host(); }

 private:
  std::unique_ptr<Layer> inner_;
};

/// Counted from 1, per function; any thread.
template <typename Vt>
class CallCounts {
 public:
  template <size_t I>
  uint64_t next() noexcept {
    return counts_[I].fetch_add(1, std::memory_order_relaxed) + 1;
  }

 private:
  std::array<std::atomic<uint64_t>, kNumSlots<Vt>> counts_{};
};

}  // namespace ciuic::core
