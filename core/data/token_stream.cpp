// SPDX-License-Identifier: MIT
#include "core/data/token_stream.h"

#include <algorithm>

#include <ciuic/error.hpp>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

void check_ids(const TokenIds& ids, const std::vector<TokenFile>& files) {
  constexpr int64_t kBytes = 256;
  const bool has_text =
      std::any_of(files.begin(), files.end(), [](const TokenFile& file) { return file.is_text(); });
  if (has_text && ids.vocab_size < kBytes) {
    throw Failure(ExitCode::Usage,
                  "data.tokenizer \"bytes\" makes tokens 0 to 255; the model's vocab_size is " +
                      std::to_string(ids.vocab_size));
  }
  if (files.size() > 1 && (ids.eos < 0 || ids.eos >= ids.vocab_size)) {
    throw Failure(ExitCode::Usage,
                  "an eos token stands between two files; the model's eos_token_id is " +
                      (ids.eos < 0 ? "not set"
                                   : std::to_string(ids.eos) + ", its vocab_size " +
                                         std::to_string(ids.vocab_size)),
                  "set model.eos_token_id, such as 257");
  }
}

}  // namespace

TokenStream::TokenStream(std::vector<TokenFile> files, TokenIds ids)
    : files_(std::move(files)), ids_(ids) {
  check_ids(ids, files_);
  for (size_t f = 0; f < files_.size(); ++f) {
    num_tokens_ += f > 0 && !ends_in_eos(files_[f - 1]) ? 1 : 0;
    begins_.push_back(num_tokens_);
    num_tokens_ += files_[f].num_tokens();
    // The rest is looked at when it is used.
    constexpr int64_t kLook = int64_t{1} << 20;
    std::vector<int64_t> first(
        static_cast<size_t>(files_[f].is_text() ? 0 : std::min(kLook, files_[f].num_tokens())));
    if (!first.empty()) {
      raw(begins_[f], static_cast<int64_t>(first.size()), first.data());
    }
  }
}

bool TokenStream::ends_in_eos(const TokenFile& file) const {
  int64_t last = 0;
  file.copy(file.num_tokens() - 1, 1, &last);
  return (file.has_masks() && last < 0 ? ~last : last) == ids_.eos;
}

size_t TokenStream::file_of(int64_t token) const {
  return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), token) -
                             begins_.begin()) -
         1;
}

void TokenStream::check(const TokenFile& file, int64_t first, int64_t count,
                        const int64_t* tokens) const {
  if (file.is_text()) {
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t id = file.has_masks() && tokens[i] < 0 ? ~tokens[i] : tokens[i];
    if (id < 0 || id >= ids_.vocab_size) {
      throw Failure(ExitCode::Usage,
                    file.name() + ": token " + std::to_string(first + i) + " is " +
                        std::to_string(id) + ", expected 0 to " +
                        std::to_string(ids_.vocab_size - 1) + " (the model's vocab_size is " +
                        std::to_string(ids_.vocab_size) + ")",
                    "use the tokenizer of these tokens' model, or a larger model.vocab_size",
                    {{"file", file.name()}});
    }
  }
}

/// As the files have them, ~id for a token that is no target.
void TokenStream::raw(int64_t begin, int64_t count, int64_t* out) const {
  const int64_t end = begin + count;
  size_t f = file_of(begin);
  for (int64_t at = begin; at < end; ++f) {
    const TokenFile& file = files_[f];
    const int64_t first = at - begins_[f];
    const int64_t length = std::min(end - at, file.num_tokens() - first);
    if (length > 0) {
      file.copy(first, length, out);
      check(file, first, length, out);
      out += length;
      at += length;
    }
    if (at < end && (f + 1 == files_.size() || at < begins_[f + 1])) {
      *out++ = ids_.eos;
      ++at;
    }
  }
}

/// The first token after `token` with which a document begins, by file or index.
int64_t TokenStream::next_document(int64_t token) const {
  const size_t f = file_of(token);
  const int64_t inside = token - begins_[f];
  const int64_t next =
      inside < files_[f].num_tokens() ? files_[f].next_document(inside) : files_[f].num_tokens();
  if (next < files_[f].num_tokens()) {
    return begins_[f] + next;
  }
  return f + 1 < files_.size() ? begins_[f + 1] : num_tokens_;
}

void TokenStream::piece(int64_t begin, int64_t count, int64_t* inputs, int64_t* targets,
                        int32_t* starts) const {
  if (begin < 0 || count < 0 || count >= num_tokens_ - begin) {
    throw Error(CIUIC_INTERNAL, "tokens [" + std::to_string(begin) + ", +" + std::to_string(count) +
                                    ") and the next of a stream of " + std::to_string(num_tokens_));
  }
  if (count == 0) {
    return;
  }
  raw(begin, count, inputs);
  std::copy(inputs + 1, inputs + count, targets);
  raw(begin + count, 1, targets + count - 1);
  for (int64_t i = 0; i < count; ++i) {
    inputs[i] = inputs[i] < 0 ? ~inputs[i] : inputs[i];
    targets[i] = targets[i] < 0 ? kNoTarget : targets[i];
  }
  if (starts == nullptr) {
    return;
  }
  int64_t next = next_document(begin);
  int32_t start = 0;
  for (int64_t i = 0; i < count; ++i) {
    starts[i] = start;
    const bool ends = inputs[i] == ids_.eos || begin + i + 1 == next;
    if (ends) {
      targets[i] = kNoTarget;
      start = static_cast<int32_t>(i + 1);
    }
    next = begin + i + 1 == next && i + 1 < count ? next_document(next) : next;
  }
}

}  // namespace ciuic::core
