// SPDX-License-Identifier: MIT
//
// One mapped shared library. The only place that knows Boost.DLL. Only staged copies that a child
// process has looked at (loading_pipeline.h) come here.
//
// Opened with RTLD_NOW (a missing symbol is found now and not at step 10 000), RTLD_LOCAL (plugins
// do not see each other) and RTLD_NODELETE: libraries stay mapped to the end of the process, since
// threads, thread-locals and device state outlive dlclose. Not RTLD_DEEPBIND: it breaks sanitizers,
// allocators and iostreams.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ciuic/abi/plugin.h>

namespace ciuic::core {

class Library {
 public:
  /// Throws std::runtime_error with the step that failed and why.
  static Library open(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The descriptors it offers for this host's ABI major, each checked.
  [[nodiscard]] const std::vector<const ciuic_descriptor*>& descriptors() const noexcept {
    return descriptors_;
  }

 private:
  std::string path_;
  std::shared_ptr<void> mapped_;
  std::vector<const ciuic_descriptor*> descriptors_;
};

}  // namespace ciuic::core
