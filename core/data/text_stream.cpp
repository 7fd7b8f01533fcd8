// SPDX-License-Identifier: MIT
#include "core/data/text_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <ciuic/error.hpp>

#include "core/config/utf8.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

Failure unreadable(const std::string& file) {
  const int error = errno;
  return Failure(ExitCode::Usage, file + " cannot be read: " + std::strerror(error), "",
                 {{"file", file}, {"errno", std::to_string(error)}});
}

void check_text(const std::string& file, std::string_view text) {
  const size_t at = first_invalid_utf8(text);
  if (at == text.size()) {
    return;
  }
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  throw Failure(ExitCode::Usage,
                file + ":" + std::to_string(line) + ": not UTF-8 at byte " + std::to_string(at) +
                    " of the file",
                "convert it, as with iconv -t UTF-8", {{"file", file}});
}

void check_ids(const TokenIds& ids, size_t num_files) {
  constexpr int64_t kBytes = 256;
  if (ids.vocab_size < kBytes) {
    throw Failure(ExitCode::Usage,
                  "data.tokenizer \"bytes\" makes tokens 0 to 255; the model's vocab_size is " +
                      std::to_string(ids.vocab_size));
  }
  if (num_files > 1 && (ids.eos < 0 || ids.eos >= ids.vocab_size)) {
    throw Failure(ExitCode::Usage,
                  "an eos token stands between two files; the model's eos_token_id is " +
                      (ids.eos < 0 ? "not set"
                                   : std::to_string(ids.eos) + ", its vocab_size " +
                                         std::to_string(ids.vocab_size)),
                  "set model.eos_token_id, such as 257");
  }
}

}  // namespace

/// A whole file in memory as the kernel pages it. Somebody who shortens the file under a run ends
/// it by SIGBUS.
class TextStream::Mapping {
 public:
  explicit Mapping(const std::string& file) {
    // O_NONBLOCK: a pipe in a file's place would block the open; files ignore it.
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info {};
    if (descriptor < 0 || ::fstat(descriptor, &info) != 0) {
      const Failure failure = unreadable(file);
      close(descriptor);
      throw failure;
    }
    if (!S_ISREG(info.st_mode) || info.st_size == 0) {
      close(descriptor);
      throw Failure(ExitCode::Usage,
                    file + (S_ISREG(info.st_mode) ? " is empty" : " is no plain file"),
                    "leave it out of data.train and data.validation", {{"file", file}});
    }
    size_ = static_cast<size_t>(info.st_size);
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const bool is_mapped = data_ != MAP_FAILED;
    const Failure failure = unreadable(file);
    close(descriptor);
    if (!is_mapped) {
      throw failure;
    }
  }
  ~Mapping() {
    if (size_ > 0) {
      ::munmap(data_, size_);
    }
  }
  Mapping(Mapping&& o) noexcept : data_(o.data_), size_(std::exchange(o.size_, 0)) {}
  Mapping& operator=(Mapping&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }

  [[nodiscard]] std::string_view text() const { return {static_cast<const char*>(data_), size_}; }

 private:
  static void close(int descriptor) {
    if (descriptor >= 0) {
      ::close(descriptor);
    }
  }

  void* data_ = nullptr;
  size_t size_ = 0;
};

TextStream::TextStream(std::vector<std::string> files, TokenIds ids)
    : files_(std::move(files)), eos_(ids.eos) {
  check_ids(ids, files_.size());
  for (const std::string& file : files_) {
    mappings_.emplace_back(file);
    const std::string_view text = mappings_.back().text();
    check_text(file, text);
    num_tokens_ += begins_.empty() ? 0 : 1;  // the eos in front
    begins_.push_back(num_tokens_);
    num_tokens_ += static_cast<int64_t>(text.size());
  }
}

TextStream::~TextStream() = default;
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;

template <typename T>
void TextStream::copy(int64_t begin, int64_t count, T* out) const {
  if (begin < 0 || count < 0 || count > num_tokens_ - begin) {
    throw Error(CIUIC_INTERNAL, "tokens [" + std::to_string(begin) + ", +" + std::to_string(count) +
                                    ") of a stream of " + std::to_string(num_tokens_));
  }
  if (count == 0) {
    return;
  }
  const int64_t end = begin + count;
  auto file = static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) -
                                  begins_.begin()) -
              1;
  for (int64_t at = begin; at < end; ++file) {
    const std::string_view text = mappings_[file].text();
    const int64_t first = at - begins_[file];
    const int64_t length = std::min(end - at, static_cast<int64_t>(text.size()) - first);
    for (int64_t i = 0; i < length; ++i) {
      *out++ = static_cast<unsigned char>(text[static_cast<size_t>(first + i)]);
    }
    at += length;
    if (at < end) {
      *out++ = static_cast<T>(eos_);
      ++at;
    }
  }
}

void TextStream::tokens(int64_t begin, int64_t count, int64_t* out) const {
  copy(begin, count, out);
}
void TextStream::tokens(int64_t begin, int64_t count, int32_t* out) const {
  copy(begin, count, out);
}

}  // namespace ciuic::core
