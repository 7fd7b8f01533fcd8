// SPDX-License-Identifier: MIT
//
// Ranks as processes, for transports: forked from a test that has no threads, each with a host of
// its own, all reference services and a "ciuic.kv" that works across them. A rank that throws, dies
// or hangs is reported by its number, with what it did last; all of it before a deadline.
//
//   RankProcesses ranks(3);
//   for (const RankEnd& end : ranks.run(20s, [&](ProcessRank& rank) {
//          auto comm = plugin.create(rank.host, {}, rank.seat());
//          ...
//          return std::string("what the test compares"); })) { ... }
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <ciuic/testing/conformance.hpp>
#include <ciuic/testing/reference_metrics.hpp>
#include <ciuic/testing/reference_tensor.hpp>
#include <ciuic/testing/reference_threads.hpp>
#include <ciuic/testing/shared_store.hpp>
#include <ciuic/testing/test_host.hpp>

namespace ciuic::testing {

/// How a rank ended.
struct RankEnd {
  enum class How { Returned, CheckFailed, NotOffered, Threw, Signalled, Exited, Hung, CutShort };
  How how = How::Hung;
  int rank = 0;
  int code = 0;      // the signal or exit code
  std::string text;  // what the body returned, or the exception's text
  std::string last;  // what it was doing

  [[nodiscard]] std::string describe() const {
    const std::string who = "rank " + std::to_string(rank) + ": ";
    const std::string doing = last.empty() ? "" : "; it was at: " + last;
    switch (how) {
      case How::Returned:
        return who + "fine";
      case How::Signalled:
        return who + "ended by signal " + std::to_string(code) + " (" + strsignal(code) + ")" +
               doing;
      case How::Exited:
        return who + "left with exit code " + std::to_string(code) + doing;
      case How::Hung:
        return who + "hangs" + doing;
      case How::CutShort:
        return who + "was stopped after another rank had failed" + doing;
      default:
        return who + text;
    }
  }
};

/// Inside a rank's process.
class ProcessRank {
 public:
  ProcessRank(int rank, int world, SharedStore& store)
      : threads(host.host()),
        tensor(host.host()),
        rank_(rank),
        world_(world),
        store_(store),
        kv_(host.host(), store, "generation0/") {
    host.offer("ciuic.threads", threads.table());
    host.offer("ciuic.tensor", tensor.table());
    host.offer("ciuic.metrics", metrics.table());
    host.offer("ciuic.kv", kv_.table());
  }

  TestHost host;
  ReferenceThreads threads;
  ReferenceTensor tensor;
  ReferenceMetrics metrics;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int world() const noexcept { return world_; }
  [[nodiscard]] bool is_last() const noexcept { return rank_ + 1 == world_; }
  [[nodiscard]] Seat seat() const noexcept { return {rank_, world_, {CIUIC_DEVICE_CPU, 0}}; }
  [[nodiscard]] SharedStore& store() const noexcept { return store_; }

  /// What this rank does now, shown when it dies or hangs.
  void note(const std::string& text) const { store_.set(note_key(rank_), text.substr(0, 400)); }
  static std::string note_key(int rank) { return "test/note/" + std::to_string(rank); }

  /// From now on "ciuic.kv" is another generation's.
  void start_generation(uint64_t generation) {
    later_kv_.push_back(std::make_unique<SharedKv>(
        host.host(), store_, "generation" + std::to_string(generation) + "/"));
    host.offer("ciuic.kv", later_kv_.back()->table());
  }

  /// All ranks are here, known without the plugin's help.
  void meet(const std::string& where,
            std::chrono::nanoseconds timeout = std::chrono::seconds(60)) const {
    const std::string key = "test/meet/" + where;
    if (store_.add(key, 1) == world_) {
      store_.set(key + "/all", "1");
    }
    wait_for(key + "/all", timeout);
  }
  /// A signal from one rank to others.
  void tell(const std::string& what) const { store_.set("test/" + what, "1"); }
  void await(const std::string& what,
             std::chrono::nanoseconds timeout = std::chrono::seconds(60)) const {
    wait_for("test/" + what, timeout);
  }

 private:
  void wait_for(const std::string& key, std::chrono::nanoseconds timeout) const {
    if (!store_.get(key, timeout)) {
      throw Error(CIUIC_DEADLINE, "the other ranks did not come to " + key);
    }
  }

  int rank_;
  int world_;
  SharedStore& store_;
  SharedKv kv_;
  std::vector<std::unique_ptr<SharedKv>> later_kv_;
};

/// The parent's side.
class RankProcesses {
 public:
  using Body = std::function<std::string(ProcessRank&)>;

  explicit RankProcesses(int world) : world_(world) {}
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;
  ~RankProcesses() {
    for (Child& child : children_) {
      end(child);
    }
  }

  /// This rank may die of SIGKILL without the others being stopped.
  void expect_death_of(int rank) { doomed_.push_back(rank); }

  /// Runs `body` on every rank. When one fails, the others get `grace` to say why as well.
  std::vector<RankEnd> run(std::chrono::nanoseconds limit, const Body& body,
                           std::chrono::nanoseconds grace = std::chrono::seconds(2)) {
    const auto begin = Clock::now();
    auto deadline = begin + limit;
    for (int rank = 0; rank < world_; ++rank) {
      start(rank, body);
    }
    bool is_cut_short = false;
    while (collect()) {
      if (!is_cut_short && failed()) {
        is_cut_short = true;
        deadline = std::min(deadline, Clock::now() + grace);
      }
      if (Clock::now() >= deadline) {
        stop_all(is_cut_short ? RankEnd::How::CutShort : RankEnd::How::Hung);
      }
    }
    return results();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Child {
    int rank;
    pid_t pid;
    int pipe;
    std::string said;
    RankEnd end;
  };

  void start(int rank, const Body& body) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe2");
    }
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
      throw std::system_error(errno, std::generic_category(), "fork");
    }
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) {
        _exit(1);
      }
      close(ends[0]);
      live(rank, ends[1], body);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    children_.push_back({rank, pid, ends[0], "", {}});
  }

  /// The child's life: one answer, then the end, without anybody's destructors.
  [[noreturn]] void live(int rank, int pipe, const Body& body) noexcept {
    std::string answer;
    try {
      // Never freed: after an exception the plugin's threads may still use the host.
      auto& self = *new ProcessRank(rank, world_, store_);
      answer = "r" + body(self);
    } catch (const CheckFailed& e) {
      answer = std::string("c") + e.what();
    } catch (const NotOffered& e) {
      answer = std::string("n") + e.what();
    } catch (const Error& e) {
      answer = std::string("t") + code_name(e.code()) + " (peer " + std::to_string(e.peer()) +
               "): " + e.what();
    } catch (const std::exception& e) {
      answer = std::string("t") + e.what();
    }
    for (size_t at = 0; at < answer.size();) {
      const ssize_t n = write(pipe, answer.data() + at, answer.size() - at);
      if (n <= 0) {
        _exit(1);
      }
      at += static_cast<size_t>(n);
    }
    _exit(0);
  }

  /// Reads and reaps what there is; false when all have ended.
  bool collect() {
    std::vector<pollfd> pipes;
    for (const Child& child : children_) {
      if (child.pid > 0) {
        pipes.push_back({child.pipe, POLLIN, 0});
      }
    }
    if (pipes.empty()) {
      return false;
    }
    poll(pipes.data(), pipes.size(), 5);
    for (Child& child : children_) {
      int status = 0;
      if (child.pid > 0) {
        const bool has_ended = waitpid(child.pid, &status, WNOHANG) == child.pid;
        read_answer(child);
        if (has_ended) {
          judge(child, status);
        } else if (!child.said.empty()) {
          usleep(200);  // its end follows at once
        }
      }
    }
    return true;
  }
  static void read_answer(Child& child) {
    char buffer[65536];
    ssize_t n = 0;
    while ((n = read(child.pipe, buffer, sizeof(buffer))) > 0) {
      child.said.append(buffer, static_cast<size_t>(n));
    }
  }

  void judge(Child& child, int status) {
    using How = RankEnd::How;
    RankEnd& end = child.end;
    child.pid = -1;
    close(child.pipe);
    end.rank = child.rank;
    end.last = store_.find(ProcessRank::note_key(child.rank)).value_or("");
    if (WIFSIGNALED(status)) {
      end.how = How::Signalled;
      end.code = WTERMSIG(status);
      return;
    }
    end.code = WEXITSTATUS(status);
    const char kind = end.code != 0 || child.said.empty() ? 'x' : child.said[0];
    end.how = kind == 'r'   ? How::Returned
              : kind == 'c' ? How::CheckFailed
              : kind == 'n' ? How::NotOffered
              : kind == 't' ? How::Threw
                            : How::Exited;
    end.text = child.said.empty() ? "" : child.said.substr(1);
  }

  [[nodiscard]] bool failed() const {
    return std::any_of(children_.begin(), children_.end(), [this](const Child& child) {
      const bool is_doomed = std::find(doomed_.begin(), doomed_.end(), child.rank) != doomed_.end();
      return child.pid < 0 && !is_doomed && child.end.how != RankEnd::How::Returned &&
             child.end.how != RankEnd::How::NotOffered;
    });
  }

  void stop_all(RankEnd::How why) {
    for (Child& child : children_) {
      if (child.pid > 0) {
        const std::string last = store_.find(ProcessRank::note_key(child.rank)).value_or("");
        end(child);
        child.end.how = why;
        child.end.rank = child.rank;
        child.end.last = last;
      }
    }
  }
  static void end(Child& child) {
    if (child.pid > 0) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
      close(child.pipe);
      child.pid = -1;
    }
  }

  std::vector<RankEnd> results() {
    std::vector<RankEnd> ends;
    for (const Child& child : children_) {
      ends.push_back(child.end);
    }
    children_.clear();
    return ends;
  }

  int world_;
  SharedStore store_;
  std::vector<int> doomed_;
  std::vector<Child> children_;
};

}  // namespace ciuic::testing
