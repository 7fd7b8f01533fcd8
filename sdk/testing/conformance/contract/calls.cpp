// SPDX-License-Identifier: MIT
#include "calls.hpp"

namespace ciuic::testing::contract {

namespace {

constexpr double kWorkSeconds = 20;
constexpr int64_t kQuiesceNs = 20'000'000'000;

}  // namespace

void Calls::finish(ciuic_work* work, double patience) const {
  if (work == nullptr) {
    return;
  }
  const Work held(work);
  try {
    check("wait", [&] {
      return work->ops->wait(work, static_cast<int64_t>(kWorkSeconds * patience * 1e9));
    });
  } catch (const Error& e) {
    require(e.code() != CIUIC_DEADLINE,
            "a work did not end within " + std::to_string(kWorkSeconds * patience) + " s");
    throw;
  }
}

Instance::Instance(const TestContext& context, const TestHost& host, const Calls& calls,
                   OptionValues own, Seat seat)
    : descriptor_(context.plugin.descriptor()), calls_(calls) {
  own.insert(context.options.begin(), context.options.end());
  const CreateArgs args(descriptor_, host, std::move(own), std::move(seat));
  try {
    calls_.check("create", [&] { return descriptor_.create(args.c(), &self_); });
  } catch (const Error&) {
    require(self_ == nullptr, "create failed, but gave an instance too: nobody will destroy it");
    throw;
  }
  require(self_ != nullptr, "create reported success, but gave no instance");
}

// A test that fails is on its way out already: then destroy's own troubles are not told.
Instance::~Instance() noexcept(false) {
  if (std::uncaught_exceptions() == 0) {
    destroy();
  } else if (self_ != nullptr) {
    descriptor_.destroy(self_);
  }
}

void Instance::destroy() {
  if (ciuic_instance* self = std::exchange(self_, nullptr)) {
    calls_.run("destroy", [&] { descriptor_.destroy(self); });
  }
}

void Instance::quiesce() const {
  if (descriptor_.quiesce != nullptr) {
    calls_.check("quiesce", [&] { return descriptor_.quiesce(self_, kQuiesceNs); });
  }
}
void Instance::resume() const {
  if (descriptor_.resume != nullptr) {
    calls_.check("resume", [&] { return descriptor_.resume(self_); });
  }
}
void Instance::save(MemoryState& state) const {
  if (descriptor_.state_save != nullptr) {
    const ciuic_writer* writer = state.writer(calls_.host());
    calls_.check("state_save", [&] { return descriptor_.state_save(self_, writer); });
  }
}
void Instance::load(MemoryState& state) const {
  if (descriptor_.state_load != nullptr) {
    const ciuic_reader* reader = state.reader(calls_.host(), descriptor_.state_schema);
    calls_.check("state_load", [&] { return descriptor_.state_load(self_, reader); });
  }
}

}  // namespace ciuic::testing::contract
