// SPDX-License-Identifier: MIT
#include "process_group.h"

#include <csignal>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <ciuic/view.hpp>

namespace ciuic::plugins::gloo {
namespace {

/// The host's kv service as the store through which Gloo's ranks exchange addresses.
class KvStore final : public c10d::Store {
 public:
  KvStore(KeyValue kv, Milliseconds timeout)
      : c10d::Store(timeout), kv_(std::move(kv)), deadline_(Clock::now() + timeout) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<KvStore>(kv_, timeout_);
  }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    kv_.set(key, std::string(value.begin(), value.end()));
  }
  std::vector<uint8_t> get(const std::string& key) override {
    const std::string value = must_get(key, deadline_);
    return {value.begin(), value.end()};
  }
  int64_t add(const std::string& key, int64_t value) override { return kv_.add(key, value); }
  bool deleteKey(const std::string& key) override {
    kv_.remove(key);
    return true;
  }
  bool check(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      if (!kv_.get(key, Clock::now())) {
        return false;
      }
    }
    return true;
  }
  int64_t getNumKeys() override {
    throw Error(CIUIC_UNIMPLEMENTED, "the kv service does not count keys");
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override {
    const auto deadline = std::min(deadline_, Clock::now() + timeout);
    for (const std::string& key : keys) {
      (void)must_get(key, deadline);
    }
  }

 private:
  [[nodiscard]] std::string must_get(const std::string& key, Clock::time_point deadline) const {
    auto value = kv_.get(key, deadline);
    if (!value) {
      throw Error(CIUIC_DEADLINE, "a peer did not publish its address (key " + key + ")");
    }
    return *std::move(value);
  }

  KeyValue kv_;
  Clock::time_point deadline_;
};

/// Threads made under it take no signals: those are the main thread's.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

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

class TorchProcessGroup final : public ProcessGroup {
 public:
  explicit TorchProcessGroup(const GroupOptions& o) : rank_(o.rank), size_(o.size) {
    const BlockSignals blocked;
    auto options = c10d::ProcessGroupGloo::Options::create(o.timeout);
    options->threads = o.threads;
    options->devices.push_back(o.is_interface
                                   ? c10d::ProcessGroupGloo::createDeviceForInterface(o.address)
                                   : c10d::ProcessGroupGloo::createDeviceForHostname(o.address));
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<KvStore>(o.store, o.timeout), rank_, size_, options);
  }

  void all_reduce(void* data, int64_t num_elements, ciuic_dtype dtype, uint32_t reduce,
                  Milliseconds timeout, Done done) override {
    std::vector<at::Tensor> tensors{wrap(data, num_elements, scalar_type(dtype))};
    c10d::AllreduceOptions options;
    options.reduceOp = reduce_op(reduce);
    options.timeout = timeout;
    start([&] { return group_->allreduce(tensors, options); }, std::move(done));
  }

  void all_to_all(const void* in, void* out, int64_t part_bytes, Milliseconds timeout,
                  Done done) override {
    at::Tensor from = wrap(const_cast<void*>(in), part_bytes * size_, at::kByte);
    at::Tensor to = wrap(out, part_bytes * size_, at::kByte);
    std::vector<int64_t> even;
    c10d::AllToAllOptions options;
    options.timeout = timeout;
    start([&] { return group_->alltoall_base(to, from, even, even, options); }, std::move(done));
  }

  void broadcast(void* data, int64_t bytes, int root, Milliseconds timeout, Done done) override {
    std::vector<at::Tensor> tensors{wrap(data, bytes, at::kByte)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = timeout;
    start([&] { return group_->broadcast(tensors, options); }, std::move(done));
  }

  void barrier(Milliseconds timeout, Done done) override {
    c10d::BarrierOptions options;
    options.timeout = timeout;
    start([&] { return group_->barrier(options); }, std::move(done));
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
  void start(Start&& operation, Done done) {
    try {
      c10::intrusive_ptr<c10d::Work> work;
      {
        const std::lock_guard lock(mutex_);
        work = operation();
      }
      when_done(work, std::move(done));
    } catch (const std::exception&) {
      throw translate(std::current_exception());
    }
  }

  int rank_;
  int size_;
  std::mutex mutex_;  // ProcessGroupGloo's counters have none
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
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
