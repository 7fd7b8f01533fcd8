// SPDX-License-Identifier: MIT
//
// A correct plugin in a library that hides nothing: built without hidden visibility, version script
// or -fno-gnu-unique.
#include "subject.hpp"

#ifndef PLUGIN
#define PLUGIN "exports_everything"
#endif

class ExportsEverything final : public ciuic::mutants::Subject {
 public:
  static constexpr const char* name = PLUGIN;
  using Subject::Subject;
};

CIUIC_PLUGINS(ExportsEverything)
