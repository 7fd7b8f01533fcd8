// SPDX-License-Identifier: MIT
#include "flight.hpp"

#include <chrono>
#include <thread>

namespace ciuic::testing::communicator {

void need_sum(const Scene& scene, uint64_t bits) {
  if (!scene.group.can(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_SUM, kF32, bits)) {
    throw NotOffered(bits == CIUIC_COMM_ASYNC ? "capabilities deny ASYNC"
                                              : "capabilities deny sums of f32");
  }
}

Flight take_off(Scene& scene, const Case& c, int64_t timeout_ns) {
  Flight flight{make_buffers(c, scene.group.rank(), scene.group.size()), {}};
  const auto structs = std::make_unique<CallStructs>();
  flight.buffers->describe_call(*structs,
                                timeout_ns > 0 ? timeout_ns : scene.patient(20 * kSecond));
  scene.rank.note(describe(c, scene.group.size()));
  flight.work = scene.group.submit({structs->c});
  return flight;
}

void land(Scene& scene, const Flight& flight, const std::string& what) {
  const Outcome out = scene.group.wait(flight.work, scene.patient(30 * kSecond));
  require(out.ok(), what + ": rank " + std::to_string(scene.group.rank()) + ": got " +
                        out.describe() + ", expected success");
  const auto fault = flight.buffers->find_fault();
  require(!fault, what + ": " + fault.value_or(""));
  scene.tried();
}

Case sum_of(const Scene& scene, int64_t count) {
  Case c;
  c.op = CIUIC_OP_ALL_REDUCE;
  c.reduce = CIUIC_REDUCE_SUM;
  c.count = count;
  c.salt = mix(scene.test.seed, static_cast<uint64_t>(count));
  return c;
}

void CallbackProbe::watch(const Scene& scene, const Work& work) const {
  state_->host = scene.group.host();
  if (!work) {
    state_->calls = 1;
    return;
  }
  state_->host.check(work.get()->ops->on_done(work.get(), &call, state_));
}

void CallbackProbe::call(void* context, const ciuic_status* status) {
  auto* state = static_cast<State*>(context);
  if (state->is_closed) {  // the host may be gone: its table is not asked
    ++state->late;
    return;
  }
  if (status != nullptr) {
    state->code = state->host.read(status).code();
  }
  ++state->calls;
}

std::string CallbackProbe::describe() const {
  return "called " + std::to_string(calls()) + " times, with status " + code_name(code());
}

bool CallbackProbe::comes_within(int64_t nanoseconds) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
  while (calls() == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return calls() > 0;
}

void CallbackProbe::expect_once(const Scene& scene, const std::string& what) const {
  require(comes_within(scene.patient(5 * kSecond)),
          what + ": the callback of on_done has not been called; expected exactly once");
  require(calls() == 1,
          what + ": the callback of on_done was " + describe() + "; expected exactly once");
}

}  // namespace ciuic::testing::communicator
