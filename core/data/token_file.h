// SPDX-License-Identifier: MIT
//
// One file as a sequence of tokens, mapped and not read: text of which a token is a byte, Megatron's
// .bin and .idx, llm.c's .bin, or what core/data/token_cache.h wrote. docs/data.md says what each
// holds.
//
// Thread rule: const after construction, any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/data/mapped_file.h"

namespace ciuic::core {

class TokenFile {
 public:
  enum class Type { U8, I8, U16, I16, I32, U32, I64 };

  /// Each throws Failure (Usage) with what is wrong with the file.
  static TokenFile text(const std::string& file);
  static TokenFile megatron(const std::string& bin, const std::string& index);
  static TokenFile llm_c(const std::string& bin);
  /// Of either kind: Megatron's if an .idx is beside it.
  static TokenFile bin(const std::string& bin);
  /// `file` was written by TokenCache; `name` is what it was made from.
  static TokenFile cached(const std::string& file, const std::string& name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int64_t num_tokens() const { return num_tokens_; }
  /// Whether ids may be outside a vocabulary: not those of bytes.
  [[nodiscard]] bool is_text() const { return is_text_; }
  /// Whether a negative token is one that is no target (~id).
  [[nodiscard]] bool has_masks() const { return has_masks_; }

  /// Tokens [begin, begin + count), inside the file, as they stand there: no id is checked.
  void copy(int64_t begin, int64_t count, int64_t* out) const;

  /// The first token after `token` with which the file's own index lets a document begin;
  /// num_tokens() if there is none. Documents that end in eos are not told here.
  [[nodiscard]] int64_t next_document(int64_t token) const;

 private:
  TokenFile(std::string name, MappedFile data);

  [[nodiscard]] int64_t begin_of_document(int64_t document) const;

  std::string name_;
  MappedFile data_;
  MappedFile index_;                 // Megatron's, else nothing
  const char* tokens_ = nullptr;     // in data_
  const char* pointers_ = nullptr;   // in index_: where each sequence begins, in bytes
  const char* documents_ = nullptr;  // in index_: the first sequence of each document
  Type type_ = Type::U8;
  int64_t num_tokens_ = 0;
  int64_t num_documents_ = 0;  // of the index
  bool is_text_ = false;
  bool has_masks_ = false;
};

int64_t bytes_of(TokenFile::Type type);

/// The header of a cached file; the tokens follow as int32, ~id for those that are no targets.
struct CacheHeader {
  static constexpr char kMagic[8] = {'C', 'I', 'U', 'I', 'C', 'T', 'O', 'K'};
  char magic[8];
  uint64_t version = 1;
  int64_t num_tokens = 0;
  uint64_t unused = 0;
};

}  // namespace ciuic::core
