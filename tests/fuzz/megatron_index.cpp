// SPDX-License-Identifier: MIT
//
// Any bytes as the .idx of a small .bin: refused, or every token and document is inside the .bin.
// The files are in memory only.
#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "core/data/token_file.h"
#include "core/log/failure.h"
#include "expect.h"

using ciuic::core::Failure;
using ciuic::core::TokenFile;

namespace {

constexpr size_t kBinBytes = 64;

/// A file without a name, as long as this lives.
class MemoryFile {
 public:
  MemoryFile(const void* data, size_t size) : descriptor_(memfd_create("fuzz", 0)) {
    expect(descriptor_ >= 0 && write(descriptor_, data, size) == static_cast<ssize_t>(size),
           "no file in memory");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<uint8_t> kTokens(kBinBytes, 7);
  const MemoryFile bin(kTokens.data(), kTokens.size());
  const MemoryFile index(data, size);
  try {
    const TokenFile file = TokenFile::megatron(bin.path(), index.path());
    const int64_t count = file.num_tokens();
    expect(count > 0 && count <= static_cast<int64_t>(kBinBytes), "too many tokens");
    std::vector<int64_t> tokens(static_cast<size_t>(count));
    file.copy(0, count, tokens.data());
    for (int64_t at = 0; at < count;) {
      const int64_t next = file.next_document(at);
      expect(next > at && next <= count, "a document outside the file");
      at = next;
    }
  } catch (const Failure& failure) {
    expect(*failure.what() != '\0', "a failure without a word");
  }
  return 0;
}
