// SPDX-License-Identifier: MIT
//
// A curve in text: Unicode braille, 2 x 4 dots a character, where the locale can show it; else
// ASCII.
#pragma once

#include <string>
#include <vector>

namespace ciuic::tools {

struct PlotStyle {
  int columns = 72;  // characters of the curve, its labels beside it
  int lines = 6;
  bool is_unicode = false;
  bool has_color = false;

  /// What stdout can show: its width, the locale's encoding, colours by has_color().
  static PlotStyle of_stdout();
};

/// How many values a curve has.
int plot_points(const PlotStyle& style);

/// From 0 to the largest of `values`, one a dot column. `until` labels the right end.
std::string plot(const std::string& title, const std::vector<double>& values,
                 const std::string& until, const PlotStyle& style);

}  // namespace ciuic::tools
