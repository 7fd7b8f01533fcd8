// SPDX-License-Identifier: MIT
//
// A text that a model continues: a context that grows, cached (core/model/latent_cache.h), so that a
// token costs one step and what was said before costs nothing.
//
//   add("In the beginning")  ->  generate()  ->  add("\nAnd then")  ->  generate()  ...
//
// Thread rule: one call at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/generate/sampler.h"
#include "core/generate/text_codec.h"
#include "core/train/loaded_model.h"

namespace ciuic::core {

class Generator final {
 public:
  struct Request {
    int64_t max_tokens = 200;
    Sampling sampling;
    std::vector<std::string> stops;
  };
  enum class End { MaxTokens, EndOfText, StopText, ContextFull, Interrupted };
  struct Result {
    End end = End::MaxTokens;
    int64_t prompt_tokens = 0, generated_tokens = 0;
    double prompt_seconds = 0, generation_seconds = 0;
  };

  Generator(LoadedModel& model, const TextCodec& codec, uint64_t seed);

  /// Appends to the context.
  void add(std::string_view text);
  /// Continues it. `show` gets whole characters as they come; `is_interrupted` is asked between
  /// tokens, and between pieces of the prompt. Throws: Failure (Numbers).
  Result generate(const Request& request, const std::function<void(std::string_view)>& show,
                  const std::function<bool()>& is_interrupted);
  /// An empty context. The random numbers go on.
  void reset();

  /// Tokens in the context, how many there may be, and what the cache takes of memory.
  [[nodiscard]] int64_t context_tokens() const {
    return cache_.length() + static_cast<int64_t>(pending_.size());
  }
  [[nodiscard]] int64_t most_tokens() const { return cache_.limit(); }
  [[nodiscard]] int64_t cache_bytes() const { return cache_.bytes(); }

 private:
  bool read_pending(const std::function<bool()>& is_interrupted);
  void continue_text(const Request& request, const std::function<void(std::string_view)>& show,
                     const std::function<bool()>& is_interrupted, Result& result);

  LoadedModel& model_;
  const TextCodec& codec_;
  Sampler sampler_;
  LatentCache cache_;
  std::vector<int64_t> pending_;  // of the context, and not in the cache yet
  std::vector<float> logits_;     // after the last token in the cache
};

}  // namespace ciuic::core
