// SPDX-License-Identifier: MIT
//
// The "ciuic.threads" service. Threads that plugins start block all signals, carry a name and are
// joined before this object goes; compute ranges run on the host's own threads through `parallel`.
#pragma once

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/host.hpp>

namespace ciuic::core {

class ThreadService {
 public:
  /// Runs body over [0, count) in ranges of at least grain; blocks. The training library passes
  /// LibTorch's own pool.
  using Parallel = std::function<void(int64_t count, int64_t grain,
                                      const std::function<void(int64_t begin, int64_t end)>& body)>;

  ThreadService(const ciuic_host* host, unsigned threads, Parallel parallel);
  ThreadService(const ThreadService&) = delete;
  ThreadService& operator=(const ThreadService&) = delete;
  ~ThreadService();

  [[nodiscard]] const ciuic_thread_service& table() const noexcept { return table_; }

 private:
  using Body = ciuic_status* (*)(void*);
  static ciuic_thread_service make_table(ThreadService* self);
  ciuic_work* launch(std::string name, Body body, void* context);

  Host host_;
  unsigned threads_;
  Parallel parallel_;
  ciuic_thread_service table_;
  std::mutex mutex_;
  std::vector<std::thread> started_;
};

}  // namespace ciuic::core
