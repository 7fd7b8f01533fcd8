// SPDX-License-Identifier: MIT
#include "tools/ciuic/terminal_plot.h"

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/ciuic/arguments.h"

namespace ciuic::tools {
namespace {

constexpr int kLabel = 10;  // characters on the left

/// Dots, the first row at the bottom.
class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width), height_(height), dots_(static_cast<size_t>(width * height), false) {}

  void set(int x, int y) { dots_[static_cast<size_t>(y * width_ + x)] = true; }
  [[nodiscard]] bool at(int x, int y) const { return dots_[static_cast<size_t>(y * width_ + x)]; }
  [[nodiscard]] int height() const { return height_; }

 private:
  int width_, height_;
  std::vector<bool> dots_;
};

/// Each value a dot, joined to the one before it.
void draw(const std::vector<double>& values, double top, Canvas& canvas) {
  int last = -1;
  for (size_t x = 0; x < values.size(); ++x) {
    const int y = static_cast<int>(std::lround(values[x] / top * (canvas.height() - 1)));
    const int from = last < 0 ? y : last + (y > last ? 1 : y < last ? -1 : 0);
    for (int at = std::min(from, y); at <= std::max(from, y); ++at) {
      canvas.set(static_cast<int>(x), at);
    }
    last = y;
  }
}

/// U+2800 and up: a bit a dot, by columns, the lowest row last (Unicode 15, block "Braille
/// Patterns").
std::string braille(const Canvas& canvas, int column, int line) {
  static constexpr int kBits[4][2] = {{0x40, 0x80}, {0x04, 0x20}, {0x02, 0x10}, {0x01, 0x08}};
  int bits = 0;
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 2; ++x) {
      bits |= canvas.at(2 * column + x, 4 * line + y) ? kBits[y][x] : 0;
    }
  }
  const int code = 0x2800 + bits;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

std::string label(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%*.5g ", kLabel - 1, value);
  return text;
}

}  // namespace

PlotStyle PlotStyle::of_stdout() {
  PlotStyle style;
  winsize size{};
  const bool is_terminal = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 2 * kLabel;
  style.columns = is_terminal ? std::min<int>(size.ws_col, 120) - kLabel - 1 : style.columns;
  std::setlocale(LC_CTYPE, "");
  style.is_unicode = std::string(nl_langinfo(CODESET)) == "UTF-8";
  style.has_color = tools::has_color(STDOUT_FILENO);
  return style;
}

int plot_points(const PlotStyle& style) { return style.columns * (style.is_unicode ? 2 : 1); }

std::string plot(const std::string& title, const std::vector<double>& values,
                 const std::string& until, const PlotStyle& style) {
  Canvas canvas(plot_points(style), style.lines * (style.is_unicode ? 4 : 1));
  const double most = *std::max_element(values.begin(), values.end());
  draw(values, most > 0 ? most : 1, canvas);
  std::string out = std::string(kLabel, ' ') + title + "\n";
  for (int line = style.lines - 1; line >= 0; --line) {
    out += line == style.lines - 1 ? label(most) : line == 0 ? label(0) : std::string(kLabel, ' ');
    std::string curve;
    for (int column = 0; column < style.columns; ++column) {
      curve += style.is_unicode ? braille(canvas, column, line)
                                : std::string(1, canvas.at(column, line) ? '*' : ' ');
    }
    out += (style.has_color ? "\x1b[36m" + curve + "\x1b[0m" : curve) + "\n";
  }
  const int room = std::max(1, style.columns - 1 - static_cast<int>(until.size()));
  return out + std::string(kLabel, ' ') + "0" + std::string(static_cast<size_t>(room), ' ') +
         until + "\n";
}

}  // namespace ciuic::tools
