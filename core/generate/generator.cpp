// SPDX-License-Identifier: MIT
#include "core/generate/generator.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "core/generate/streamed_text.h"

namespace ciuic::core {
namespace {

// Tokens of a prompt that are read at once: enough for large products, few enough for the memory of
// their activations.
constexpr int64_t kChunkTokens = 512;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Generator::Generator(LoadedModel& model, const TextCodec& codec, uint64_t seed)
    : model_(model), codec_(codec), sampler_(codec.candidates(), seed), cache_(model.new_cache()) {}

void Generator::add(std::string_view text) {
  const std::vector<int64_t> tokens = codec_.encode(text);
  pending_.insert(pending_.end(), tokens.begin(), tokens.end());
}

void Generator::reset() {
  cache_.clear();
  pending_.clear();
}

// False: interrupted.
bool Generator::read_pending(const std::function<bool()>& is_interrupted) {
  while (!pending_.empty()) {
    if (is_interrupted()) {
      return false;
    }
    const int64_t count = std::min(kChunkTokens, static_cast<int64_t>(pending_.size()));
    logits_ = model_.next_logits({pending_.data(), static_cast<size_t>(count)}, cache_);
    pending_.erase(pending_.begin(), pending_.begin() + count);
  }
  return true;
}

Generator::Result Generator::generate(const Request& request,
                                      const std::function<void(std::string_view)>& show,
                                      const std::function<bool()>& is_interrupted) {
  if (context_tokens() == 0) {
    pending_.push_back(codec_.first_token());
  }
  Result result;
  if (context_tokens() > most_tokens()) {
    result.end = End::ContextFull;
    return result;
  }
  result.prompt_tokens = static_cast<int64_t>(pending_.size());
  if (request.max_tokens == 0) {
    return result;
  }
  const auto begin = std::chrono::steady_clock::now();
  const bool is_read = read_pending(is_interrupted);
  result.prompt_seconds = seconds_since(begin);
  if (!is_read) {
    result.end = End::Interrupted;
    return result;
  }
  const auto middle = std::chrono::steady_clock::now();
  continue_text(request, show, is_interrupted, result);
  result.generation_seconds = seconds_since(middle);
  return result;
}

void Generator::continue_text(const Request& request,
                              const std::function<void(std::string_view)>& show,
                              const std::function<bool()>& is_interrupted, Result& result) {
  StreamedText text(request.stops);
  result.end = End::MaxTokens;
  for (;;) {
    const int64_t token = sampler_.pick(logits_, request.sampling);
    if (token == codec_.eos()) {
      result.end = End::EndOfText;
      break;
    }
    ++result.generated_tokens;
    pending_.push_back(token);
    if (const std::string shown = text.push(codec_.decode(token)); !shown.empty()) {
      show(shown);
    }
    if (text.has_stopped()) {
      result.end = End::StopText;
      break;
    }
    if (result.generated_tokens >= request.max_tokens) {
      break;
    }
    if (context_tokens() > most_tokens()) {
      result.end = End::ContextFull;
      break;
    }
    if (!read_pending(is_interrupted)) {
      result.end = End::Interrupted;
      break;
    }
  }
  if (const std::string rest = text.finish(); !rest.empty()) {
    show(rest);
  }
}

}  // namespace ciuic::core
