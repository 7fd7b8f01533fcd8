// SPDX-License-Identifier: MIT
#include "group.hpp"

#include <chrono>

namespace ciuic::testing::communicator {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool says_not_served(int32_t code) {
  return code == CIUIC_UNIMPLEMENTED || code == CIUIC_INVALID || code == CIUIC_PRECONDITION;
}

}  // namespace

std::string Outcome::describe() const {
  if (!has_ended) {
    return "still running after " + std::to_string(seconds) + " s";
  }
  if (!error) {
    return "success after " + std::to_string(seconds) + " s";
  }
  return std::string(code_name(error->code())) + ", peer " + std::to_string(error->peer()) +
         ", after " + std::to_string(seconds) + " s: " + error->what();
}

Group Group::create(const TestContext& test, const ProcessRank& rank, uint64_t generation) {
  const ciuic_descriptor& descriptor = test.plugin.descriptor();
  const CreateArgs made(descriptor, rank.host, test.options, rank.seat());
  ciuic_create_args args = *made.c();
  args.generation = generation;
  ciuic_instance* self = nullptr;
  if (ciuic_status* status = descriptor.create(&args, &self)) {
    const Error error = rank.host.host().take(status);
    require(self == nullptr, "create failed and made an instance all the same");
    if (says_not_served(error.code())) {
      throw WorldNotServed("no group of " + std::to_string(rank.world()) + ": " + error.what());
    }
    throw Error(error.code(), std::string("create: ") + error.what(), error.peer());
  }
  require(self != nullptr, "create succeeded without an instance");
  return Group(descriptor, rank.host.host(), self, rank.rank(), rank.world());
}

uint64_t Group::capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype) const {
  uint64_t bits = 0;
  host_.check(vt().capabilities(self_, op, reduce, dtype, {CIUIC_DEVICE_CPU, 0}, &bits));
  return bits;
}

Work Group::submit(const std::vector<ciuic_collective>& collectives) const {
  ciuic_work* work = nullptr;
  ciuic_status* status = vt().submit(self_, to_array(collectives), nullptr, &work);
  if (status != nullptr) {
    const Error error = host_.take(status);
    require(work == nullptr, std::string("submit failed (") + error.what() +
                                 ") and left a work behind; expected *work = NULL");
    throw error;
  }
  return Work(work);
}

Outcome Group::wait(const Work& work, int64_t timeout_ns) const {
  Outcome out;
  const auto begin = Clock::now();
  if (!work) {
    return out;
  }
  ciuic_work* w = work.get();
  ciuic_status* status = w->ops->wait(w, timeout_ns);
  out.seconds = seconds_since(begin);
  if (status == nullptr) {
    return out;
  }
  const Error error = host_.take(status);
  int32_t done = 0;  // tells the work's DEADLINE from that of the wait
  ciuic_status* again = w->ops->test(w, &done);
  if (again != nullptr) {
    host_.table()->status_free(host_.table()->ctx, again);
    require(done == 1, "test returned a status of a work that has not ended");
  }
  out.has_ended = done != 0;
  if (again != nullptr || error.code() != CIUIC_DEADLINE) {
    out.error.emplace(error);
  }
  return out;
}

Outcome Group::run(const std::vector<ciuic_collective>& collectives, int64_t timeout_ns) const {
  const auto begin = Clock::now();
  Outcome out;
  try {
    out = wait(submit(collectives), timeout_ns);
  } catch (const Error& e) {
    out.error.emplace(e);
  }
  out.seconds = seconds_since(begin);
  return out;
}

void Group::barrier(int64_t timeout_ns) const {
  ciuic_collective c = make_collective(CIUIC_OP_BARRIER);
  c.timeout_ns = timeout_ns;
  float number = 1;
  const Tensor tensor(&number, kF32, {1});
  if (!can(CIUIC_OP_BARRIER, 0, kU8) && !can(CIUIC_OP_BARRIER, 0, kF32)) {
    c.op = CIUIC_OP_ALL_REDUCE;
    c.reduce = CIUIC_REDUCE_SUM;
    c.in = c.out = tensor.ptr();
  }
  const Outcome out = run({c}, 2 * timeout_ns);
  require(out.has_ended, "a barrier of " + std::to_string(size_) + " ranks: " + out.describe());
  if (out.error) {
    throw Error(out.code(), std::string("a barrier: ") + out.error->what(), out.peer());
  }
}

std::optional<Group> Group::split(const std::vector<int32_t>& ranks,
                                  const std::string& name) const {
  ciuic_split request{};
  request.struct_size = sizeof(request);
  request.ranks = ranks.data();
  request.count = static_cast<uint32_t>(ranks.size());
  request.name = to_str(name);
  request.timeout_ns = 20 * kSecond;
  ciuic_instance* child = nullptr;
  host_.check(vt().split(self_, &request, &child));
  if (ranks.empty()) {
    require(child == nullptr, "split with count 0 made an instance; expected NULL");
    return std::nullopt;
  }
  require(child != nullptr, "split of " + std::to_string(ranks.size()) + " ranks made no instance");
  int self = 0;
  while (ranks[static_cast<size_t>(self)] != rank_) {
    ++self;
  }
  return Group(*descriptor_, host_, child, self, static_cast<int>(ranks.size()));
}

std::optional<Error> Group::health() const {
  ciuic_status* status = vt().health(self_);
  return status == nullptr ? std::nullopt : std::optional<Error>(host_.take(status));
}

void Group::quiesce(int64_t timeout_ns) const {
  if (CIUIC_CAN(descriptor_, quiesce)) {
    host_.check(descriptor_->quiesce(self_, timeout_ns));
  }
}

void Group::resume() const {
  if (CIUIC_CAN(descriptor_, resume)) {
    host_.check(descriptor_->resume(self_));
  }
}

void Group::destroy() noexcept {
  if (ciuic_instance* self = std::exchange(self_, nullptr)) {
    descriptor_->destroy(self);
  }
}

}  // namespace ciuic::testing::communicator
