// SPDX-License-Identifier: MIT
#include "process_group.h"

#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <ciuic/view.hpp>

#include "communicator/quiet_thread.h"
#include "kv_store.h"
#include "posted_transfers.h"
#include "waiters.h"

namespace ciuic::plugins::gloo {
namespace {

/// The first line without the "[/pytorch/third_party/...:78] " of Gloo; the rest of a c10::Error is
/// a stack.
std::string first_line(const std::exception& e) {
  const auto* error = dynamic_cast<const c10::Error*>(&e);
  std::string text = error != nullptr ? error->what_without_backtrace() : e.what();
  text = text.substr(0, text.find('\n'));
  const size_t place = text.find("] ");
  return text.rfind('[', 0) == 0 && place != std::string::npos ? text.substr(place + 2) : text;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// Gloo's exceptions have one type; the text tells them apart.
Error translate(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return Error(CIUIC_EXHAUSTED, "out of memory");
  } catch (const std::exception& e) {
    const std::string text = first_line(e);
    const bool late =
        contains(text, "Timed out") || contains(text, "timeout") || contains(text, "timed out");
    const bool lost = dynamic_cast<const ::gloo::IoException*>(&e) != nullptr ||
                      contains(text, "closed by peer") || contains(text, "pair closure") ||
                      contains(text, "Connect");
    return Error(late && !contains(text, "pair closure") ? CIUIC_DEADLINE
                 : lost                                  ? CIUIC_UNAVAILABLE
                                                         : CIUIC_INTERNAL,
                 text);
  } catch (...) {
    return Error(CIUIC_INTERNAL, "an exception that is no std::exception was thrown");
  }
}

at::ScalarType scalar_type(ciuic_dtype dtype) {
  if (same(dtype, kF32)) {
    return at::kFloat;
  }
  if (same(dtype, kF64)) {
    return at::kDouble;
  }
  if (same(dtype, kI32)) {
    return at::kInt;
  }
  return same(dtype, kI64) ? at::kLong : at::kByte;
}

c10d::ReduceOp reduce_op(uint32_t reduce) {
  switch (reduce) {
    case CIUIC_REDUCE_MIN:
      return c10d::ReduceOp::MIN;
    case CIUIC_REDUCE_MAX:
      return c10d::ReduceOp::MAX;
    case CIUIC_REDUCE_PROD:
      return c10d::ReduceOp::PRODUCT;
    default:
      return c10d::ReduceOp::SUM;
  }
}

at::Tensor wrap(void* data, int64_t num_elements, at::ScalarType type) {
  return at::from_blob(data, {num_elements}, type);
}

void when_done(const c10::intrusive_ptr<c10d::Work>& work, Done done) {
  work->getFuture()->addCallback([done = std::move(done)](c10::ivalue::Future& future) {
    if (future.hasError()) {
      const Error error = translate(future.exception_ptr());
      done(&error);
    } else {
      done(nullptr);
    }
  });
}

std::optional<Error> wait_for(PostedTransfers& posted, Milliseconds timeout) {
  try {
    posted.wait(timeout);
    return std::nullopt;
  } catch (const std::exception&) {
    return translate(std::current_exception());
  }
}

/// Steps as a work of Gloo's own queue, so that they keep its order and its number of threads.
class StepsWork final : public c10d::ProcessGroupGloo::AsyncWork {
 public:
  StepsWork(std::shared_ptr<::gloo::Context> context, std::vector<Step> steps, uint64_t operation,
            uint32_t signature, Milliseconds timeout)
      : AsyncWork(std::move(context), {}, c10d::OpType::ALLTOALL_BASE, operation, timeout),
        steps_(std::move(steps)),
        operation_(operation),
        signature_(signature) {}

  void run() override {
    for (size_t i = 0; i < steps_.size(); ++i) {
      PostedTransfers posted;
      post_step(posted, *context_, steps_[i], operation_, i, signature_);
      posted.wait(getTimeout());
      if (steps_[i].then) {
        steps_[i].then();
      }
    }
  }
  const std::vector<at::Tensor> getInputTensors() override { return {}; }
  const std::vector<at::Tensor> getOutputTensors() override { return {}; }

 private:
  std::vector<Step> steps_;
  uint64_t operation_;
  uint32_t signature_;
};

/// Opens what ProcessGroupGloo keeps to itself: its queue, its connections, the tags of its
/// collectives.
class OpenGroup final : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;

  void set_next_tag(uint32_t tag) { collectiveCounter_ = tag; }
  [[nodiscard]] std::shared_ptr<::gloo::Context> context() { return getContext(0); }
  c10::intrusive_ptr<c10d::Work> start(c10::intrusive_ptr<StepsWork> work) {
    enqueue(work);
    return work;
  }
};

class TorchProcessGroup final : public ProcessGroup {
 public:
  explicit TorchProcessGroup(const GroupOptions& o) : rank_(o.rank), size_(o.size) {
    const BlockSignals blocked;
    auto options = c10d::ProcessGroupGloo::Options::create(o.timeout);
    options->threads = o.threads;
    options->devices.push_back(o.is_interface
                                   ? c10d::ProcessGroupGloo::createDeviceForInterface(o.address)
                                   : c10d::ProcessGroupGloo::createDeviceForHostname(o.address));
    group_ = c10::make_intrusive<OpenGroup>(c10::make_intrusive<KvStore>(o.store, o.timeout), rank_,
                                            size_, options);
  }

  void all_reduce(void* data, int64_t num_elements, ciuic_dtype dtype, uint32_t reduce,
                  uint32_t signature, Milliseconds timeout, Done done) override {
    std::vector<at::Tensor> tensors{wrap(data, num_elements, scalar_type(dtype))};
    c10d::AllreduceOptions options;
    options.reduceOp = reduce_op(reduce);
    options.timeout = timeout;
    start(
        signature, [&] { return group_->allreduce(tensors, options); }, std::move(done));
  }

  void broadcast(void* data, int64_t bytes, int root, uint32_t signature, Milliseconds timeout,
                 Done done) override {
    std::vector<at::Tensor> tensors{wrap(data, bytes, at::kByte)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = timeout;
    start(
        signature, [&] { return group_->broadcast(tensors, options); }, std::move(done));
  }

  void barrier(uint32_t signature, Milliseconds timeout, Done done) override {
    c10d::BarrierOptions options;
    options.timeout = timeout;
    start(
        signature, [&] { return group_->barrier(options); }, std::move(done));
  }

  void exchange(std::vector<Step> steps, uint32_t signature, Milliseconds timeout,
                Done done) override {
    const auto work = [&] {
      return group_->start(c10::make_intrusive<StepsWork>(group_->context(), std::move(steps),
                                                          num_operations_, signature, timeout));
    };
    start(signature, work, std::move(done));
  }

  void pass(const std::vector<Message>& messages, Milliseconds timeout, Done done) override {
    const auto posted = std::make_shared<PostedTransfers>();
    try {
      const std::lock_guard lock(mutex_);
      for (const Message& message : messages) {
        posted->post(*group_->context(), message.transfer, next_slot(message));
      }
    } catch (const std::exception&) {
      throw translate(std::current_exception());
    }
    waiters_.run([posted, timeout, done = std::move(done)] {
      const std::optional<Error> error = wait_for(*posted, timeout);
      done(error ? &*error : nullptr);
    });
  }

  void break_connections() noexcept override {
    // Gloo has no abort, but a receive that times out closes every pair of its context. Nobody
    // sends with this tag.
    constexpr int kNobodysTag = 0x7F000001;
    float nothing = 0;
    for (int peer = 0; peer < size_; ++peer) {
      try {
        if (peer != rank_) {
          std::vector<at::Tensor> tensors{wrap(&nothing, 1, at::kFloat)};
          c10::intrusive_ptr<c10d::Work> work;
          {
            const std::lock_guard lock(mutex_);
            work = group_->recv(tensors, peer, kNobodysTag);
          }
          work->wait(Milliseconds(1));
        }
      } catch (...) {
        // closed now, or was closed before
      }
    }
  }

 private:
  template <typename Start>
  void start(uint32_t signature, Start&& operation, Done done) {
    try {
      c10::intrusive_ptr<c10d::Work> work;
      {
        const std::lock_guard lock(mutex_);
        group_->set_next_tag(collective_tag(num_operations_, signature));
        work = operation();
        ++num_operations_;
      }
      when_done(work, std::move(done));
    } catch (const std::exception&) {
      throw translate(std::current_exception());
    }
  }

  uint64_t next_slot(const Message& message) {
    // Counters for a limited set of tags: the others, which may be a new one each time, keep their
    // order by Gloo's queues alone.
    constexpr uint32_t kCountedTags = 4096;
    const Transfer& t = message.transfer;
    const uint64_t nth =
        message.tag < kCountedTags ? num_messages_[{t.is_send, t.peer, message.tag}]++ : 0;
    return message_slot(message.tag, nth, mix(message.signature, static_cast<uint64_t>(t.bytes)));
  }

  int rank_;
  int size_;
  std::mutex mutex_;             // ProcessGroupGloo's counters have none
  uint64_t num_operations_ = 0;  // collectives, equal on all ranks
  std::map<std::tuple<bool, int, uint32_t>, uint64_t> num_messages_;
  c10::intrusive_ptr<OpenGroup> group_;
  Waiters waiters_;  // ends before the connections do
};

}  // namespace

std::unique_ptr<ProcessGroup> connect_group(const GroupOptions& options) {
  try {
    return std::make_unique<TorchProcessGroup>(options);
  } catch (const std::exception&) {
    const Error error = translate(std::current_exception());
    throw Error(error.code() == CIUIC_INTERNAL ? int32_t{CIUIC_UNAVAILABLE} : error.code(),
                "gloo: rank " + std::to_string(options.rank) + " of " +
                    std::to_string(options.size) + " connects through " + options.address + ": " +
                    error.what(),
                error.peer());
  }
}

}  // namespace ciuic::plugins::gloo
