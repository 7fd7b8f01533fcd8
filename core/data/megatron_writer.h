// SPDX-License-Identifier: MIT
//
// Writes PREFIX.bin and PREFIX.idx as Megatron does: each document one sequence. Both appear under
// their names when they are whole, the index last; before that nothing of that name is touched.
// Memory does not grow with the number of documents.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ciuic::core {

class MegatronWriter {
 public:
  /// `num_ids`: one more than the largest id; below 65500 a token has 16 bits, else 32. Throws
  /// Failure (Storage).
  MegatronWriter(const std::string& prefix, int64_t num_ids);
  ~MegatronWriter();
  MegatronWriter(const MegatronWriter&) = delete;
  MegatronWriter& operator=(const MegatronWriter&) = delete;

  void add(std::span<const int32_t> tokens);
  void end_document();
  void publish();

  [[nodiscard]] int64_t num_tokens() const { return num_tokens_; }
  [[nodiscard]] int64_t num_documents() const { return num_documents_; }
  [[nodiscard]] bool is_wide() const { return is_wide_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  static File create(const std::string& path);
  void write(const File& file, const void* data, size_t bytes, const std::string& path) const;
  void write_index();
  void finish(File& file, const std::string& path) const;

  std::string prefix_;
  bool is_wide_;
  std::string bin_aside_, index_aside_, lengths_aside_;
  File bin_, lengths_;
  std::vector<uint16_t> narrow_;
  int64_t num_tokens_ = 0;
  int64_t num_documents_ = 0;
  int64_t document_tokens_ = 0;
};

}  // namespace ciuic::core
