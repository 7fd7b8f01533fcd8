// SPDX-License-Identifier: MIT
//
// How far the tokens of a file are, for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace ciuic::core {

class TokenizingProgress {
 public:
  TokenizingProgress(std::string what, int64_t bytes) : what_(std::move(what)), bytes_(bytes) {}

  /// "tokenizing a.txt: 34 %, 12.3 MB/s, 40 s to go".
  [[nodiscard]] std::string text(int64_t done) const;

 private:
  std::string what_;
  int64_t bytes_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Says something now and then: first after two seconds, then every ten.
class PeriodicNote {
 public:
  explicit PeriodicNote(const std::function<void(const std::string&)>& say) : say_(say) {}

  template <typename Text>
  void maybe(Text text) {
    if (is_due()) {
      say_(text());
    }
  }
  [[nodiscard]] bool has_spoken() const { return has_spoken_; }

 private:
  bool is_due();

  const std::function<void(const std::string&)>& say_;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(2);
  bool has_spoken_ = false;
};

}  // namespace ciuic::core
