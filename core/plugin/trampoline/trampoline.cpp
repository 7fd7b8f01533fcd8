// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/trampoline.h"

#include "core/plugin/trampoline/crumb_board.h"
#include "core/plugin/trampoline/traced_work.h"

namespace ciuic::core {
namespace {

template <typename Vt>
class Trampoline final : public KindLayer<Vt, Trampoline<Vt>> {
 public:
  Trampoline(const ciuic_descriptor& descriptor, ciuic_instance* instance,
             std::shared_ptr<CallGuard> guard)
      : KindLayer<Vt, Trampoline<Vt>>(descriptor.vt, instance),
        descriptor_(descriptor),
        instance_(instance),
        guard_(std::move(guard)) {
    std::apply([](const auto&... slot) { (CrumbBoard::name(slot.name, slot.name), ...); },
               Slots<Vt>::all);
  }
  ~Trampoline() override {
    guard_->call(kDestroyCall, guard_->number(), false, [&] { descriptor_.destroy(instance_); });
  }

  [[nodiscard]] const std::shared_ptr<CallGuard>& guard() const noexcept override { return guard_; }

  template <size_t I, typename Invoke, typename... A>
  auto through(const Invoke& invoke, A... args) {
    constexpr const char* kName = std::get<I>(Slots<Vt>::all).name;
    const uint64_t number = guard_->number();
    const auto call = [&] { return invoke(args...); };
    if constexpr (kEndsWith<ciuic_work**, A...>) {
      ciuic_status* status = guard_->call(kName, number, kWaitsForPeers<Vt, I>, call);
      ciuic_work*& work = *last_of(args...);
      if (status == nullptr && work != nullptr) {
        work = trace_work(work, guard_, kName, number);
      }
      return status;
    } else {
      return guard_->call(kName, number, kWaitsForPeers<Vt, I>, call);
    }
  }

  /// A communicator's split: an instance like its parent.
  [[nodiscard]] std::unique_ptr<Layer> child(ciuic_instance* instance) const {
    return std::make_unique<Trampoline>(descriptor_, instance, guard_);
  }

  ciuic_status* quiesce(int64_t timeout_ns) override {
    return optional(kQuiesceCall, descriptor_.quiesce, timeout_ns);
  }
  ciuic_status* resume() override { return optional(kResumeCall, descriptor_.resume); }
  ciuic_status* set_option(const ciuic_option& option) override {
    return optional(kSetOptionCall, descriptor_.set_option, &option);
  }
  ciuic_status* state_save(const ciuic_writer& writer) override {
    return optional(kStateSaveCall, descriptor_.state_save, &writer);
  }
  ciuic_status* state_load(const ciuic_reader& reader) override {
    return optional(kStateLoadCall, descriptor_.state_load, &reader);
  }

 private:
  template <typename Function, typename... A>
  ciuic_status* optional(const char* name, Function function, A... args) {
    if (function == nullptr) {
      return nullptr;
    }
    return guard_->call(name, guard_->number(), false,
                        [&] { return function(instance_, args...); });
  }

  const ciuic_descriptor& descriptor_;
  ciuic_instance* instance_;
  std::shared_ptr<CallGuard> guard_;
};

}  // namespace

std::unique_ptr<Layer> make_trampoline(const ciuic_descriptor& descriptor, ciuic_instance* instance,
                                       std::shared_ptr<CallGuard> guard) {
  std::unique_ptr<Layer> layer;
  with_table_of(descriptor.kind, [&]<typename Vt>() {
    layer = std::make_unique<Trampoline<Vt>>(descriptor, instance, std::move(guard));
  });
  return layer;
}

}  // namespace ciuic::core
