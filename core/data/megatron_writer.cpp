// SPDX-License-Identifier: MIT
#include "core/data/megatron_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <unistd.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

constexpr int64_t kNarrowIds = 65500;  // Megatron's own bound
constexpr size_t kBatch = 8192;

[[noreturn]] void storage_failure(const std::string& file) {
  const int error = errno;
  throw Failure(ExitCode::Storage, "cannot write tokens: " + std::string(std::strerror(error)), "",
                {{"file", file}, {"errno", std::to_string(error)}});
}

}  // namespace

MegatronWriter::MegatronWriter(const std::string& prefix, int64_t num_ids)
    : prefix_(prefix), is_wide_(num_ids >= kNarrowIds) {
  const std::string aside = ".partial-" + std::to_string(getpid());
  bin_aside_ = prefix + ".bin" + aside;
  index_aside_ = prefix + ".idx" + aside;
  lengths_aside_ = prefix + ".lengths" + aside;
  bin_ = create(bin_aside_);
  lengths_ = create(lengths_aside_);
}

MegatronWriter::~MegatronWriter() {
  for (const std::string& file : {bin_aside_, index_aside_, lengths_aside_}) {
    ::unlink(file.c_str());
  }
}

MegatronWriter::File MegatronWriter::create(const std::string& path) {
  File file(std::fopen(path.c_str(), "w+be"));
  if (!file) {
    storage_failure(path);
  }
  return file;
}

void MegatronWriter::write(const File& file, const void* data, size_t bytes,
                           const std::string& path) const {
  if (std::fwrite(data, 1, bytes, file.get()) != bytes) {
    storage_failure(path);
  }
}

void MegatronWriter::add(std::span<const int32_t> tokens) {
  if (is_wide_) {
    write(bin_, tokens.data(), tokens.size_bytes(), bin_aside_);
  } else {
    narrow_.assign(tokens.begin(), tokens.end());
    write(bin_, narrow_.data(), narrow_.size() * sizeof(uint16_t), bin_aside_);
  }
  num_tokens_ += static_cast<int64_t>(tokens.size());
  document_tokens_ += static_cast<int64_t>(tokens.size());
}

void MegatronWriter::end_document() {
  if (document_tokens_ > INT32_MAX) {
    throw Failure(ExitCode::Usage,
                  "a document of " + std::to_string(document_tokens_) +
                      " tokens is too long for a Megatron index",
                  "split it");
  }
  const auto length = static_cast<int32_t>(document_tokens_);
  document_tokens_ = 0;
  if (length == 0) {
    return;
  }
  write(lengths_, &length, sizeof(length), lengths_aside_);
  ++num_documents_;
}

void MegatronWriter::publish() {
  write_index();
  finish(bin_, bin_aside_);
  if (std::rename(bin_aside_.c_str(), (prefix_ + ".bin").c_str()) != 0 ||
      std::rename(index_aside_.c_str(), (prefix_ + ".idx").c_str()) != 0) {
    storage_failure(prefix_);
  }
}

void MegatronWriter::finish(File& file, const std::string& path) const {
  if (std::fflush(file.get()) != 0 || ::fsync(fileno(file.get())) != 0) {
    storage_failure(path);
  }
  file.reset();
}

/// Header, lengths, pointers, documents: docs/data.md. What there is one of for each document is
/// made from the file of lengths, a batch at a time.
void MegatronWriter::write_index() {
  File index = create(index_aside_);
  const auto put = [&](const void* data, size_t bytes) { write(index, data, bytes, index_aside_); };
  const auto number = [&](uint64_t value) { put(&value, sizeof(value)); };
  put("MMIDIDX\0\0", 9);
  number(1);
  const uint8_t code = is_wide_ ? 4 : 8;
  put(&code, 1);
  number(static_cast<uint64_t>(num_documents_));
  number(static_cast<uint64_t>(num_documents_) + 1);
  std::vector<int32_t> lengths(kBatch);
  const auto for_lengths = [&](const std::function<void(std::span<const int32_t>)>& take) {
    std::rewind(lengths_.get());
    while (const size_t n = std::fread(lengths.data(), 4, kBatch, lengths_.get())) {
      take(std::span(lengths).first(n));
    }
    if (std::ferror(lengths_.get()) != 0) {
      storage_failure(lengths_aside_);
    }
  };
  if (std::fflush(lengths_.get()) != 0) {
    storage_failure(lengths_aside_);
  }
  for_lengths([&](std::span<const int32_t> some) { put(some.data(), some.size_bytes()); });
  uint64_t at = 0;
  for_lengths([&](std::span<const int32_t> some) {
    for (const int32_t length : some) {
      number(at);
      at += static_cast<uint64_t>(length) * (is_wide_ ? 4 : 2);
    }
  });
  for (int64_t document = 0; document <= num_documents_; ++document) {
    number(static_cast<uint64_t>(document));
  }
  finish(index, index_aside_);
}

}  // namespace ciuic::core
