// SPDX-License-Identifier: MIT
#include "core/train/metrics_file.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace ciuic::core {
namespace {

TEST(MetricsFile, CountsAttempts) {
  const TemporaryFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  for (uint64_t attempt = 1; attempt <= 3; ++attempt) {
    MetricsFile file(path);
    EXPECT_EQ(file.attempt(), attempt);
    file.write(JsonLine("run").add("attempt", attempt));
    file.write(JsonLine("step").add("step", uint64_t{1}));
  }
}

TEST(MetricsFile, ATornLastLineIsCutOff) {
  const TemporaryFolder folder;
  const std::string whole = "{\"type\": \"run\"}\n{\"type\": \"step\", \"step\": 1}\n";
  const std::string path = folder.write("metrics.jsonl", whole + "{\"type\": \"step\", \"st");
  MetricsFile file(path);
  EXPECT_EQ(file.attempt(), 2u);
  file.write(JsonLine("end"));
  EXPECT_EQ(read_text(path), whole + "{\"type\": \"end\"}\n");
}

TEST(MetricsFile, ALineIsOnDiskWhenWriteReturns) {
  const TemporaryFolder folder;
  MetricsFile file(folder.file("metrics.jsonl"));
  file.write(JsonLine("step"));
  EXPECT_EQ(read_text(folder.file("metrics.jsonl")), "{\"type\": \"step\"}\n");
}

TEST(MetricsFile, AnEndThatIsNotTrueAnyMoreGetsAnother) {
  const TemporaryFolder folder;
  const std::string step = "{\"type\": \"step\", \"step\": 1}\n";
  const std::string end = "{\"type\": \"end\", \"exit_code\": 0, \"seconds\": 2.5}\n";
  const std::string path = folder.write("metrics.jsonl", step + end);
  MetricsFile::correct_end(path, 0);
  EXPECT_EQ(read_text(path), step + end);
  MetricsFile::correct_end(path, 5);
  EXPECT_EQ(read_text(path),
            step + end + "{\"type\": \"end\", \"exit_code\": 5, \"seconds\": 2.5}\n");
  folder.write("metrics.jsonl", step);
  MetricsFile::correct_end(path, 5);
  EXPECT_EQ(read_text(path), step) << "killed: no end";
}

}  // namespace
}  // namespace ciuic::core
