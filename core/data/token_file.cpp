// SPDX-License-Identifier: MIT
#include "core/data/token_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/config/utf8.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

constexpr const char* kLeaveOut = "leave it out of the configuration's data";

template <typename T>
T read_at(const char* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
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

[[noreturn]] void damaged(const std::string& file, const std::string& what,
                          const std::string& remedy = "write it again") {
  throw Failure(ExitCode::Usage, file + ": " + what, remedy, {{"file", file}});
}

// ---- Megatron ----

constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};
constexpr size_t kMegatronHeader = 34;

struct MegatronIndex {
  TokenFile::Type type = TokenFile::Type::U8;
  uint64_t sequences = 0;
  uint64_t document_entries = 0;
  const char* lengths = nullptr;
  const char* pointers = nullptr;
  const char* documents = nullptr;
};

TokenFile::Type megatron_type(uint8_t code, const std::string& file) {
  using Type = TokenFile::Type;
  switch (code) {
    case 1:
      return Type::U8;
    case 2:
      return Type::I8;
    case 3:
      return Type::I16;
    case 4:
      return Type::I32;
    case 5:
      return Type::I64;
    case 8:
      return Type::U16;
    default:
      damaged(file, "its dtype code is " + std::to_string(code) +
                        ", expected that of an integer: 1 to 5 or 8");
  }
}

/// Where the parts of an .idx are; their sizes fit the file's.
MegatronIndex parse_index(std::string_view bytes, const std::string& file) {
  if (bytes.size() < kMegatronHeader || bytes.substr(0, 9) != kMegatronMagic) {
    damaged(file, "no Megatron index: it does not begin with MMIDIDX", "give the .idx of the .bin");
  }
  const char* const at = bytes.data();
  if (const auto version = read_at<uint64_t>(at + 9, 0); version != 1) {
    damaged(file, "index version " + std::to_string(version) + ", expected 1");
  }
  MegatronIndex index;
  index.type = megatron_type(static_cast<uint8_t>(at[17]), file);
  index.sequences = read_at<uint64_t>(at + 18, 0);
  index.document_entries = read_at<uint64_t>(at + 26, 0);
  const uint64_t most = bytes.size();  // of either count: products stay far from overflow
  const bool is_possible = index.sequences <= most && index.document_entries <= most;
  const uint64_t expected =
      is_possible ? kMegatronHeader + index.sequences * 12 + index.document_entries * 8 : 0;
  if (!is_possible || (bytes.size() != expected && bytes.size() != expected + index.sequences)) {
    damaged(file, "it has " + std::to_string(bytes.size()) + " bytes, which does not fit " +
                      std::to_string(index.sequences) + " sequences and " +
                      std::to_string(index.document_entries) + " document entries");
  }
  if (std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(expected), bytes.end(),
                  [](char mode) { return mode != 0; })) {
    damaged(file, "it has sequences of another mode than text", kLeaveOut);
  }
  index.lengths = at + kMegatronHeader;
  index.pointers = index.lengths + index.sequences * 4;
  index.documents = index.pointers + index.sequences * 8;
  return index;
}

/// Sequences lie one after another and fill the .bin: then it is one stream of tokens. Returns the
/// number of tokens.
int64_t check_sequences(const MegatronIndex& index, int64_t bin_bytes, const std::string& file) {
  const int64_t width = bytes_of(index.type);
  int64_t at = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(index.sequences); ++i) {
    const int64_t length = read_at<int32_t>(index.lengths, i);
    const auto pointer = read_at<int64_t>(index.pointers, i);
    if (length < 0 || pointer != at || length * width > bin_bytes - at) {
      damaged(file, "sequence " + std::to_string(i) + " has " + std::to_string(length) +
                        " tokens at byte " + std::to_string(pointer) + ", expected at byte " +
                        std::to_string(at) + " of the .bin's " + std::to_string(bin_bytes) +
                        ": only sequences one after another are read");
    }
    at += length * width;
  }
  if (at != bin_bytes) {
    damaged(file, "its sequences have " + std::to_string(at) + " bytes, the .bin " +
                      std::to_string(bin_bytes));
  }
  return at / width;
}

void check_documents(const MegatronIndex& index, const std::string& file) {
  int64_t last = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(index.document_entries); ++i) {
    const auto first = read_at<int64_t>(index.documents, i);
    if (first < last || first > static_cast<int64_t>(index.sequences) || (i == 0 && first != 0)) {
      damaged(file, "document entry " + std::to_string(i) + " is " + std::to_string(first) +
                        ", expected the number of a sequence, from 0 and never falling");
    }
    last = first;
  }
  if (index.document_entries > 0 && last != static_cast<int64_t>(index.sequences)) {
    damaged(file, "its last document entry is " + std::to_string(last) + ", expected the " +
                      std::to_string(index.sequences) + " sequences");
  }
}

template <typename T>
void widen(const char* tokens, int64_t begin, int64_t count, int64_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<int64_t>(read_at<T>(tokens, begin + i));
  }
}

}  // namespace

int64_t bytes_of(TokenFile::Type type) {
  using Type = TokenFile::Type;
  switch (type) {
    case Type::U8:
    case Type::I8:
      return 1;
    case Type::U16:
    case Type::I16:
      return 2;
    case Type::I32:
    case Type::U32:
      return 4;
    case Type::I64:
      return 8;
  }
  return 1;
}

TokenFile::TokenFile(std::string name, MappedFile data)
    : name_(std::move(name)), data_(std::move(data)), tokens_(data_.bytes().data()) {}

TokenFile TokenFile::text(const std::string& file) {
  TokenFile made(file, MappedFile(file, kLeaveOut));
  const std::string_view text = made.data_.bytes();
  check_text(file, text);
  made.num_tokens_ = static_cast<int64_t>(text.size());
  made.is_text_ = true;
  return made;
}

TokenFile TokenFile::megatron(const std::string& bin, const std::string& index_file) {
  TokenFile made(bin, MappedFile(bin, kLeaveOut));
  made.index_ = MappedFile(index_file, kLeaveOut);
  const MegatronIndex index = parse_index(made.index_.bytes(), index_file);
  made.type_ = index.type;
  made.num_tokens_ =
      check_sequences(index, static_cast<int64_t>(made.data_.bytes().size()), index_file);
  check_documents(index, index_file);
  made.pointers_ = index.pointers;
  made.documents_ = index.documents;
  made.num_documents_ = std::max<int64_t>(0, static_cast<int64_t>(index.document_entries) - 1);
  return made;
}

TokenFile TokenFile::llm_c(const std::string& bin) {
  constexpr int64_t kHeaderBytes = 256 * 4;
  constexpr int32_t kGpt2 = 20240520;    // version 1, 16 bits a token
  constexpr int32_t kLlama3 = 20240801;  // version 7, 32 bits
  TokenFile made(bin, MappedFile(bin, kLeaveOut));
  const std::string_view bytes = made.data_.bytes();
  const auto size = static_cast<int64_t>(bytes.size());
  const int32_t magic = size < kHeaderBytes ? 0 : read_at<int32_t>(bytes.data(), 0);
  if (magic != kGpt2 && magic != kLlama3) {
    damaged(bin, "no .idx is beside it, as with Megatron's files, and it has no header of llm.c's",
            "give both files of a Megatron dataset, or write it with ciuic tokenize");
  }
  const auto version = read_at<int32_t>(bytes.data(), 1);
  const int64_t count = read_at<int32_t>(bytes.data(), 2);
  const int32_t expected = magic == kGpt2 ? 1 : 7;
  made.type_ = magic == kGpt2 ? Type::U16 : Type::U32;
  if (version != expected) {
    damaged(bin, "version " + std::to_string(version) + " of llm.c's tokens, expected " +
                     std::to_string(expected));
  }
  if (count < 1 || size != kHeaderBytes + count * bytes_of(made.type_)) {
    damaged(bin, "its header says " + std::to_string(count) + " tokens, which does not fit its " +
                     std::to_string(size) + " bytes");
  }
  made.tokens_ += kHeaderBytes;
  made.num_tokens_ = count;
  return made;
}

TokenFile TokenFile::bin(const std::string& bin) {
  const std::string index = std::filesystem::path(bin).replace_extension(".idx").string();
  std::error_code error;
  return std::filesystem::exists(index, error) ? megatron(bin, index) : llm_c(bin);
}

TokenFile TokenFile::cached(const std::string& file, const std::string& name) {
  TokenFile made(name, MappedFile(file, "remove it"));
  const std::string_view bytes = made.data_.bytes();
  CacheHeader header{};
  std::memcpy(&header, bytes.data(), std::min(sizeof(header), bytes.size()));
  const auto room = static_cast<int64_t>(bytes.size() - std::min(sizeof(header), bytes.size()));
  if (std::memcmp(header.magic, CacheHeader::kMagic, sizeof(header.magic)) != 0 ||
      header.version != CacheHeader().version || header.num_tokens < 1 ||
      header.num_tokens != room / 4 || room % 4 != 0) {
    damaged(file, "the cached tokens of " + name + " are damaged",
            "remove it: it is written again");
  }
  made.tokens_ += sizeof(header);
  made.type_ = Type::I32;
  made.num_tokens_ = header.num_tokens;
  made.has_masks_ = true;
  return made;
}

void TokenFile::copy(int64_t begin, int64_t count, int64_t* out) const {
  switch (type_) {
    case Type::U8:
      return widen<uint8_t>(tokens_, begin, count, out);
    case Type::I8:
      return widen<int8_t>(tokens_, begin, count, out);
    case Type::U16:
      return widen<uint16_t>(tokens_, begin, count, out);
    case Type::I16:
      return widen<int16_t>(tokens_, begin, count, out);
    case Type::I32:
      return widen<int32_t>(tokens_, begin, count, out);
    case Type::U32:
      return widen<uint32_t>(tokens_, begin, count, out);
    case Type::I64:
      return widen<int64_t>(tokens_, begin, count, out);
  }
}

int64_t TokenFile::begin_of_document(int64_t document) const {
  const auto sequence = read_at<int64_t>(documents_, document);
  const auto total = static_cast<int64_t>((documents_ - pointers_) / 8);
  return sequence == total ? num_tokens_ : read_at<int64_t>(pointers_, sequence) / bytes_of(type_);
}

int64_t TokenFile::next_document(int64_t token) const {
  int64_t low = 0;
  int64_t high = num_documents_;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    begin_of_document(middle) > token ? void(high = middle) : void(low = middle + 1);
  }
  return low < num_documents_ ? begin_of_document(low) : num_tokens_;
}

}  // namespace ciuic::core
