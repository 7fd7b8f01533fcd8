// SPDX-License-Identifier: MIT
//
// ciuic.lock and the TOML reader beneath it on any text: problems are values, and what is a lock is
// the same lock when it is written and read again.
#include "core/plugin/lock_file.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "expect.h"

using ciuic::core::LockFile;
using ciuic::core::Problem;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<Problem> problems;
  const LockFile lock = LockFile::parse(text, "ciuic.lock", problems);
  if (!problems.empty()) {
    return 0;
  }
  expect(!lock.plugins().empty(), "a lock of nothing has no problem");
  const LockFile again = LockFile::parse(lock.text(), "ciuic.lock", problems);
  expect(problems.empty(), "a lock's own text has problems");
  expect(again.plugins().size() == lock.plugins().size(), "a lock's own text has other plugins");
  for (const auto& plugin : lock.plugins()) {
    const auto* found = again.find(plugin.kind, plugin.name);
    expect(found != nullptr && found->sha256 == plugin.sha256 && found->version == plugin.version &&
               found->file == plugin.file,
           "a plugin differs after writing and reading");
  }
  return 0;
}
