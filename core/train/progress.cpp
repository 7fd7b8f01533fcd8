// SPDX-License-Identifier: MIT
#include "core/train/progress.h"

#include <algorithm>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ciuic::core {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);

int terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 100;
}

std::string formatted(const char* format, auto... values) {
  char text[256];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

}  // namespace

std::string short_duration(double seconds) {
  const auto s = static_cast<long>(seconds + 0.5);
  if (s >= 3600) {
    return formatted("%ldh %02ldm", s / 3600, s / 60 % 60);
  }
  return s >= 60 ? formatted("%ldm %02lds", s / 60, s % 60) : formatted("%lds", s);
}

Progress::Style Progress::choose(bool is_first, bool is_quiet, bool has_steps_on_lines) {
  if (!is_first || is_quiet) {
    return Style::Silent;
  }
  return isatty(STDOUT_FILENO) != 0 && !has_steps_on_lines ? Style::Bar : Style::Lines;
}

Progress::Progress(Style style, uint64_t first_step, uint64_t total_steps)
    : style_(style), first_step_(first_step), total_steps_(total_steps) {}

Progress::~Progress() {
  if (is_bar_drawn_) {
    std::fputs("\n", stdout);
    std::fflush(stdout);
  }
}

std::string Progress::time_to_go(const Step& s) {
  constexpr double kWeight = 0.05;
  // The first step of a process also warms up; it says nothing about the rest.
  if (s.step > first_step_ + 1 || mean_step_seconds_ == 0) {
    mean_step_seconds_ = mean_step_seconds_ == 0 || s.step <= first_step_ + 3
                             ? s.step_seconds
                             : (1 - kWeight) * mean_step_seconds_ + kWeight * s.step_seconds;
  }
  return short_duration(mean_step_seconds_ * static_cast<double>(total_steps_ - s.step));
}

void Progress::clear_bar() {
  if (is_bar_drawn_) {
    std::fputs("\r\033[K", stdout);
    is_bar_drawn_ = false;
  }
}

void Progress::step(const Step& s) {
  if (style_ == Style::Silent) {
    return;
  }
  const std::string left = time_to_go(s);
  if (style_ == Style::Lines) {
    std::printf("step %llu/%llu  loss %.4f  lr %.3g  grad norm %.3g  %.0f tokens/s  %s left\n",
                static_cast<unsigned long long>(s.step),
                static_cast<unsigned long long>(total_steps_), s.loss, s.learning_rate, s.grad_norm,
                s.tokens_per_second, left.c_str());
    std::fflush(stdout);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (s.step != total_steps_ && now - last_draw_ < kRedraw) {
    return;
  }
  last_draw_ = now;
  const std::string text = formatted(
      " %llu/%llu  loss %.4f  %.0f tokens/s  %s left", static_cast<unsigned long long>(s.step),
      static_cast<unsigned long long>(total_steps_), s.loss, s.tokens_per_second, left.c_str());
  const int width = std::clamp(terminal_columns() - static_cast<int>(text.size()) - 3, 8, 40);
  const auto filled = static_cast<int>(static_cast<double>(width) * static_cast<double>(s.step) /
                                       static_cast<double>(total_steps_));
  clear_bar();
  std::printf("[%s%s]%s", std::string(filled, '#').c_str(),
              std::string(width - filled, '.').c_str(), text.c_str());
  std::fflush(stdout);
  is_bar_drawn_ = true;
}

void Progress::note(const std::string& line) {
  if (style_ == Style::Silent) {
    return;
  }
  clear_bar();
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace ciuic::core
