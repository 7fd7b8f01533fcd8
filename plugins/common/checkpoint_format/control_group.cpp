// SPDX-License-Identifier: MIT
#include "checkpoint_format/control_group.h"

#include <algorithm>
#include <array>

#include <ciuic/error.hpp>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

namespace ciuic::plugins::checkpoint {
namespace {

constexpr size_t kMessageBytes = 1024;

/// At most `bytes` bytes, no character torn.
std::string cut_utf8(std::string text, size_t bytes) {
  if (text.size() > bytes) {
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) {
      --bytes;
    }
    text.resize(bytes);
  }
  return text;
}

}  // namespace

ControlGroup::ControlGroup(const Host& host, int64_t timeout_ns)
    : host_(host), timeout_ns_(timeout_ns) {
  const auto* comm = host.find_service<ciuic_comm_service>("ciuic.comm");
  if (comm == nullptr) {
    return;
  }
  host.check(comm->find(comm->ctx, to_str("control"), &group_));
  rank_ = group_->rank;
  size_ = group_->size;
}

void ControlGroup::together(const std::function<void()>& body) const {
  std::optional<Error> mine;
  try {
    body();
  } catch (const Error& e) {
    mine = e;
  } catch (const std::bad_alloc&) {
    mine = Error(CIUIC_EXHAUSTED, "out of memory");
  } catch (const std::exception& e) {
    mine = Error(CIUIC_INTERNAL, e.what());
  }
  agree(mine);
}

void ControlGroup::agree(const std::optional<Error>& mine) const {
  if (size_ == 1) {
    if (mine) {
      throw Error(*mine);
    }
    return;
  }
  // Highest code first, then lowest rank.
  int64_t worst = mine ? int64_t{mine->code()} * size_ + (size_ - 1 - rank_) : -1;
  all_reduce_max(&worst, 1, "checkpoint: did all ranks succeed");
  if (worst < 0) {
    return;
  }
  const auto code = static_cast<int32_t>(worst / size_);
  const auto culprit = static_cast<int32_t>(size_ - 1 - worst % size_);
  std::array<char, kMessageBytes> message{};
  if (culprit == rank_ && mine) {
    const std::string text = cut_utf8(mine->what(), message.size() - 1);
    std::copy(text.begin(), text.end(), message.begin());
  }
  broadcast(message.data(), kMessageBytes, culprit);
  const int32_t global = group_->ranks[culprit];
  throw Error(code, "rank " + std::to_string(global) + ": " + message.data(), global);
}

void ControlGroup::same_everywhere(uint64_t fingerprint, const std::string& what) const {
  if (size_ == 1) {
    return;
  }
  const auto value = static_cast<int64_t>(fingerprint);
  std::array<int64_t, 2> extremes{value, ~value};
  all_reduce_max(extremes.data(), 2, "checkpoint: same request on all ranks");
  if (extremes[0] != ~extremes[1]) {
    throw Error(CIUIC_INVALID, what + " differ between ranks");
  }
}

void ControlGroup::all_reduce_max(int64_t* values, int64_t count, const char* label) const {
  const Tensor tensor(values, kI64, {count});
  submit(CIUIC_OP_ALL_REDUCE, CIUIC_REDUCE_MAX, 0, tensor.ptr(), tensor.ptr(), label);
}

void ControlGroup::broadcast(char* bytes, int64_t count, int32_t root) const {
  const Tensor tensor(bytes, kU8, {count});
  submit(CIUIC_OP_BROADCAST, 0, root, nullptr, tensor.ptr(), "checkpoint: what went wrong");
}

void ControlGroup::submit(uint32_t op, uint32_t reduce, int32_t peer, const ciuic_tensor* in,
                          const ciuic_tensor* out, const char* label) const {
  ciuic_collective collective{};
  collective.struct_size = sizeof(collective);
  collective.op = op;
  collective.reduce = reduce;
  collective.peer = peer;
  collective.timeout_ns = timeout_ns_;
  collective.in = in;
  collective.out = out;
  collective.label = to_str(label);
  ciuic_work* work = nullptr;
  host_.check(
      group_->vt->submit(group_->self, {&collective, 1, sizeof(collective)}, nullptr, &work));
  Work(work).wait(host_);
}

}  // namespace ciuic::plugins::checkpoint
