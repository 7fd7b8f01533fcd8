// SPDX-License-Identifier: MIT
//
// Ranks as processes: starts the executable CIUIC_RANK_PROGRAM and collects what it says. Only children of
// this process are killed, each by its pid.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ciuic::tests {

/// One started rank.
class RankProcess {
 public:
  /// `under`: a program that starts it, with its arguments.
  explicit RankProcess(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& under = {});
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;
  ~RankProcess();  // kills it if it still runs

  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill() const;
  /// Waits for its end, at most until the deadline, and then kills it.
  void finish(std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] int exit_code() const { return exit_code_; }  // 128 + signal when it was killed
  [[nodiscard]] const std::string& output() const { return output_; }
  /// The last line "key=value" of its output.
  [[nodiscard]] std::string value(const std::string& key) const;
  [[nodiscard]] double number(const std::string& key) const {
    return std::atof(value(key).c_str());
  }

 private:
  void read_some(int timeout_ms);

  pid_t pid_ = -1;
  int pipe_ = -1;
  int exit_code_ = -1;
  std::string output_;
};

/// Runs `world` ranks of a scenario to their end.
[[nodiscard]] std::vector<RankProcess> run_ranks(
    int world, const std::string& scenario, std::chrono::seconds limit = std::chrono::seconds(60));

/// As a check of googletest; shows what a failed rank said.
void expect_all_succeed(const std::vector<RankProcess>& ranks);

}  // namespace ciuic::tests
