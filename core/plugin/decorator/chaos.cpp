// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/chaos.h"

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <signal.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <xxhash.h>

#include <ciuic/work.hpp>

#include "core/plugin/decorator/decorator_layer.h"

namespace ciuic::core {
namespace {

/// A number from 0 to 1 that depends on these alone.
double chance(const ChaosSpec& spec, int rank, const char* function, uint64_t call) {
  const uint64_t place[3] = {static_cast<uint64_t>(rank), XXH64(function, std::strlen(function), 0),
                             call};
  const uint64_t bits = XXH64(place, sizeof(place), static_cast<uint64_t>(spec.seed));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// Works that do not end before their deadline, as if a peer were silent.
class LostWorks {
 public:
  LostWorks() = default;
  LostWorks(const LostWorks&) = delete;
  LostWorks& operator=(const LostWorks&) = delete;
  ~LostWorks() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    over_.notify_all();
    for (std::thread& t : threads_) {
      t.join();
    }
  }

  ciuic_work* add(const ciuic_host* host, std::chrono::nanoseconds deadline) {
    const Completion lost{Host(host)};
    Work work = lost.work();
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, lost, deadline] {
      {
        std::unique_lock waiting(mutex_);
        over_.wait_for(waiting, deadline, [this] { return is_over_; });
      }
      lost.fail(Error(CIUIC_DEADLINE, "chaos: the collective was dropped"));
    });
    return work.release();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

std::chrono::nanoseconds deadline_of(ciuic_array collectives, std::chrono::nanoseconds otherwise) {
  const ArrayView<ciuic_collective> all(collectives);
  return all.empty() || all[0].timeout_ns <= 0 ? otherwise
                                               : std::chrono::nanoseconds(all[0].timeout_ns);
}

template <typename Vt>
class Chaos final : public DecoratorLayer<Vt, Chaos<Vt>> {
 public:
  Chaos(const ChaosSpec& spec, int rank, std::chrono::nanoseconds deadline,
        std::unique_ptr<Layer> inner)
      : DecoratorLayer<Vt, Chaos<Vt>>(std::move(inner)),
        spec_(spec),
        rank_(rank),
        deadline_(deadline) {}

  template <size_t I, typename Invoke, typename... A>
  auto through(const Invoke& invoke, A... args) -> std::invoke_result_t<const Invoke&, A...> {
    using R = std::invoke_result_t<const Invoke&, A...>;
    constexpr auto& kSlot = std::get<I>(Slots<Vt>::all);
    if (!strikes<I>()) {
      return invoke(args...);
    }
    if (spec_.delay.count() > 0) {
      std::this_thread::sleep_for(spec_.delay);
    }
    if (spec_.kills) {
      kill(getpid(), SIGKILL);
    }
    if constexpr (std::is_same_v<R, ciuic_status*>) {
      if (spec_.error) {
        const Host host(this->host());
        return host.status(*spec_.error, std::string("chaos: an error instead of ") + kSlot.name);
      }
    }
    return drop<I>(invoke, args...);
  }

  std::unique_ptr<Layer> child(ciuic_instance* instance) const {
    return std::make_unique<Chaos>(spec_, rank_, deadline_,
                                   std::unique_ptr<Layer>(&Layer::of(instance)));
  }

 private:
  template <size_t I>
  bool strikes() {
    constexpr const char* kName = std::get<I>(Slots<Vt>::all).name;
    if ((spec_.rank && *spec_.rank != rank_) ||
        (!spec_.function.empty() && spec_.function != kName)) {
      return false;
    }
    const uint64_t n = spec_.function.empty() ? all_.fetch_add(1, std::memory_order_relaxed) + 1
                                              : counts_.template next<I>();
    return spec_.call ? n == static_cast<uint64_t>(*spec_.call)
                      : chance(spec_, rank_, kName, n) < spec_.probability;
  }

  template <size_t I, typename Invoke, typename... A>
  auto drop(const Invoke& invoke, A... args) {
    constexpr std::string_view kName = std::get<I>(Slots<Vt>::all).name;
    if constexpr (kName == "communicator.submit") {
      if (spec_.drops) {
        *last_of(args...) =
            lost_.add(this->host(), deadline_of(std::get<0>(std::tie(args...)), deadline_));
        return static_cast<ciuic_status*>(nullptr);
      }
    }
    if constexpr (kName == "profiler.emit") {
      if (spec_.drops) {
        return;
      }
    }
    return invoke(args...);
  }

  const ChaosSpec spec_;
  const int rank_;
  const std::chrono::nanoseconds deadline_;
  CallCounts<Vt> counts_;
  std::atomic<uint64_t> all_{0};
  LostWorks lost_;
};

}  // namespace

std::unique_ptr<Layer> make_chaos(const ChaosSpec& spec, const DecoratorContext& context,
                                  std::unique_ptr<Layer> inner) {
  std::unique_ptr<Layer> layer;
  with_table_of(context.kind, [&]<typename Vt>() {
    layer = std::make_unique<Chaos<Vt>>(spec, context.rank, context.collective_timeout,
                                        std::move(inner));
  });
  return layer;
}

}  // namespace ciuic::core
