// SPDX-License-Identifier: MIT
#include "mesh_communicator.h"

#include <algorithm>

#include "mesh_work.h"

namespace ciuic::mutants {
namespace {

constexpr std::chrono::seconds kTimeout{30};

std::string instance_prefix(const Context& context) {
  if (context.world() == 1) {
    return {};
  }
  const auto& kv = context.host().service<ciuic_kv_service>("ciuic.kv");
  const std::string key = "instances/" + std::to_string(context.rank());
  int64_t number = 0;
  context.host().check(kv.add(kv.ctx, to_str(key), 1, &number));
  return "instance" + std::to_string(number) + "/";
}

std::vector<int32_t> first_ranks(int count) {
  std::vector<int32_t> ranks;
  for (int r = 0; r < count; ++r) {
    ranks.push_back(r);
  }
  return ranks;
}

}  // namespace

MeshCommunicator::MeshCommunicator(const Context& context, std::shared_ptr<Behaviour> behaviour)
    : MeshCommunicator(context.host(), std::move(behaviour), instance_prefix(context),
                       first_ranks(context.world()), context.rank(), kTimeout) {}

MeshCommunicator::MeshCommunicator(const Host& host, std::shared_ptr<Behaviour> behaviour,
                                   std::string prefix, std::vector<int32_t> ranks, int rank,
                                   std::chrono::nanoseconds timeout)
    : Communicator(host),
      behaviour_(std::move(behaviour)),
      prefix_(std::move(prefix)),
      ranks_(std::move(ranks)),
      rank_(rank) {
  connect(timeout);
}

MeshCommunicator::~MeshCommunicator() {
  behaviour_->before_close();
  engine_->close();
}

void MeshCommunicator::connect(std::chrono::nanoseconds timeout) {
  try {
    auto mesh = std::make_unique<Mesh>(host(), prefix_ + "rank", ranks_, rank_, timeout);
    engine_ = std::make_shared<Engine>(host(), *behaviour_, std::move(mesh));
  } catch (const Error&) {
    behaviour_->after_failed_connect();
    throw;
  }
}

uint64_t MeshCommunicator::capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                                        ciuic_device device) const {
  return device.type == CIUIC_DEVICE_CPU ? behaviour_->capabilities(op, reduce, dtype) : 0;
}

void MeshCommunicator::refuse_denied(const ciuic_collective& c) const {
  const ciuic_tensor* shown = c.in != nullptr ? c.in : c.out;
  const ciuic_dtype dtype = shown == nullptr ? kU8 : shown->t.dtype;
  const bool is_uneven = c.in_counts != nullptr || c.out_counts != nullptr;
  uint64_t needed = CIUIC_COMM_SUPPORTED;
  needed |= is_uneven ? CIUIC_COMM_UNEVEN : 0;
  needed |= c.factor == 0 || c.factor == 1 ? 0 : CIUIC_COMM_FACTOR;
  needed |= c.vote == 0 ? 0 : CIUIC_COMM_VOTE;
  needed |= (c.flags & CIUIC_COLLECTIVE_TREE) != 0 ? CIUIC_COMM_TREE : 0;
  needed |= (c.flags & CIUIC_COLLECTIVE_WIDE) != 0 ? CIUIC_COMM_WIDE : 0;
  if ((behaviour_->capabilities(c.op, c.reduce, dtype) & needed) != needed) {
    throw Error(CIUIC_UNIMPLEMENTED, "op " + std::to_string(c.op) + " with reduction " +
                                         std::to_string(c.reduce) + " of " + dtype_name(dtype) +
                                         " is not supported in this form");
  }
}

Work MeshCommunicator::submit(ArrayView<ciuic_collective> collectives, const ciuic_stream*) {
  behaviour_->before_submit();
  std::vector<Request> requests;
  for (const ciuic_collective& c : collectives) {
    if (behaviour_->refuses_denied()) {
      refuse_denied(c);
    }
    requests.push_back(copy_request(c, rank_, static_cast<int>(ranks_.size())));
    if (requests.back().timeout_ns <= 0) {
      requests.back().timeout_ns = std::chrono::nanoseconds(kTimeout).count();
    }
    behaviour_->adjust(requests.back());
  }
  Work work = make_mesh_work(host(), behaviour_, engine_, engine_->submit(std::move(requests)));
  if (behaviour_->is_blocking()) {
    work.wait(host());
    return {};
  }
  return work;
}

std::unique_ptr<Communicator> MeshCommunicator::split(const ciuic_split& request) {
  engine_->check();
  const int number = num_splits_++;
  if (request.count == 0) {
    return nullptr;
  }
  const std::vector<int32_t> ranks =
      behaviour_->split_order(std::vector<int32_t>(request.ranks, request.ranks + request.count));
  const auto self = std::find(ranks.begin(), ranks.end(), rank_);
  if (self == ranks.end()) {
    throw Error(CIUIC_INVALID, "rank " + std::to_string(rank_) + " is not in its own group");
  }
  std::vector<int32_t> global;
  for (const int32_t r : ranks) {
    global.push_back(ranks_.at(static_cast<size_t>(r)));
  }
  const auto timeout = request.timeout_ns > 0 ? std::chrono::nanoseconds(request.timeout_ns)
                                              : std::chrono::nanoseconds(kTimeout);
  return std::make_unique<MeshCommunicator>(
      host(), behaviour_,
      prefix_ + "split" + std::to_string(number) + "-" + std::to_string(ranks[0]) + "/",
      std::move(global), static_cast<int>(self - ranks.begin()), timeout);
}

void MeshCommunicator::abort(int32_t code) noexcept {
  engine_->abort(Error(code, "the group was aborted by its owner"));
}

void MeshCommunicator::quiesce(int64_t timeout_ns) {
  const auto limit =
      timeout_ns < 0 ? std::chrono::nanoseconds(kTimeout) : std::chrono::nanoseconds(timeout_ns);
  if (!engine_->wait_idle(Clock::now() + limit)) {
    throw Error(CIUIC_DEADLINE, "operations are still under way");
  }
  engine_->pause();
}

}  // namespace ciuic::mutants
