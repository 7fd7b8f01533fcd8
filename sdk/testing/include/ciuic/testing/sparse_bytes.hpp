// SPDX-License-Identifier: MIT
//
// A file's content: pages that are all zero take no memory, and copies share their pages, so that a
// snapshot of what was synced is cheap and a file of many GiB fits into a test.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>

namespace ciuic::testing {

class SparseBytes {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  [[nodiscard]] uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool operator==(const SparseBytes& o) const {
    if (size_ != o.size_) {
      return false;
    }
    // A page that one of the two lacks is zeros there.
    return covers(o) && o.covers(*this);
  }

  void resize(uint64_t size) {
    for (auto page = pages_.lower_bound(size / kPageBytes); page != pages_.end();) {
      const uint64_t begin = page->first * kPageBytes;
      if (begin >= size) {
        page = pages_.erase(page);
        continue;
      }
      Page cut = *page->second;
      std::fill(cut.begin() + static_cast<int64_t>(size - begin), cut.end(), 0);
      page->second = std::make_shared<const Page>(cut);
      ++page;
    }
    size_ = size;
  }

  void write(uint64_t offset, const char* from, size_t bytes) {
    size_ = std::max(size_, offset + bytes);
    while (bytes > 0) {
      const uint64_t number = offset / kPageBytes;
      const uint64_t at = offset % kPageBytes;
      const size_t part = std::min<uint64_t>(bytes, kPageBytes - at);
      const auto old = pages_.find(number);
      if (old != pages_.end() || !is_zero(from, part)) {
        Page page = old == pages_.end() ? Page{} : *old->second;
        std::memcpy(page.data() + at, from, part);
        pages_[number] = std::make_shared<const Page>(page);
      }
      offset += part;
      from += part;
      bytes -= part;
    }
  }

  /// The caller has compared the range with size().
  void read(uint64_t offset, char* into, size_t bytes) const {
    while (bytes > 0) {
      const uint64_t at = offset % kPageBytes;
      const size_t part = std::min<uint64_t>(bytes, kPageBytes - at);
      const auto page = pages_.find(offset / kPageBytes);
      if (page == pages_.end()) {
        std::memset(into, 0, part);
      } else {
        std::memcpy(into, page->second->data() + at, part);
      }
      offset += part;
      into += part;
      bytes -= part;
    }
  }

 private:
  using Page = std::array<char, kPageBytes>;

  static bool is_zero(const char* from, size_t bytes) {
    return bytes == 0 || (from[0] == 0 && std::memcmp(from, from + 1, bytes - 1) == 0);
  }
  bool covers(const SparseBytes& o) const {
    return std::all_of(pages_.begin(), pages_.end(), [&](const auto& mine) {
      const auto other = o.pages_.find(mine.first);
      return other == o.pages_.end()
                 ? is_zero(mine.second->data(), kPageBytes)
                 : mine.second == other->second || *mine.second == *other->second;
    });
  }

  std::map<uint64_t, std::shared_ptr<const Page>> pages_;
  uint64_t size_ = 0;
};

}  // namespace ciuic::testing
