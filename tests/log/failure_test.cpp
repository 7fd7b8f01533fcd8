// SPDX-License-Identifier: MIT
#include "core/log/failure.h"

#include <gtest/gtest.h>

namespace ciuic::core {
namespace {

TEST(Failure, NothingThatAPluginOrAFileSaysReachesTheTerminalRaw) {
  Failure failure(ExitCode::Plugin, "optimizer evil: \x1b[2J\nciuic: done", "see \x1b[1mthis",
                  {{"file", "lib\x1b[A.so"}});
  failure.detail(
      "refused \xc2\x9b"
      "K");
  EXPECT_EQ(format(failure),
            "refused \\x9bK\n"
            "ciuic: error: optimizer evil: \\x1b[2J\\nciuic: done: file=lib\\x1b[A.so; see "
            "\\x1b[1mthis");
}

TEST(Failure, FramesOfAForeignErrorAreDetails) {
  const Failure failure = to_failure(std::runtime_error("shape mismatch\nframe #0\nframe #1"));
  EXPECT_EQ(failure.code(), ExitCode::Internal);
  EXPECT_EQ(format(failure),
            "frame #0\nframe #1\nciuic: error: shape mismatch; this is a bug in ciuic");
}

}  // namespace
}  // namespace ciuic::core
