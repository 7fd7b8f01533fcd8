// SPDX-License-Identifier: MIT
#include "core/data/tokenize_file.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "core/config/utf8.h"
#include "core/data/find_files.h"
#include "core/data/json_lines.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr size_t kChunksAThread = 4;

struct Chunk {
  size_t begin = 0;
  size_t end = 0;
  size_t reached = 0;  // where its last word ends
  std::vector<int32_t> tokens;
  std::vector<size_t> document_ends;  // in tokens
  std::exception_ptr error;
};

std::string place(const std::string& file, std::string_view bytes, size_t at) {
  const auto lines =
      std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return file + ":" + std::to_string(lines + 1);
}

/// Tokens of single texts and documents; one for each thread.
class Writer {
 public:
  explicit Writer(const TokenizeRequest& request) : request_(request) {
    if (request.tokenizer != nullptr) {
      encoder_.emplace(*request.tokenizer);
    }
  }

  [[nodiscard]] Encoder& encoder() { return *encoder_; }

  void text(std::string_view text, std::vector<int32_t>& out) {
    if (encoder_) {
      return encoder_->encode(text, out);
    }
    for (const char c : text) {
      out.push_back(static_cast<unsigned char>(c));
    }
  }

  void document(std::string_view line, const std::string& where, Chunk& chunk) {
    const std::vector<DocumentPart> parts = parse_document(line, where);
    if (parts.empty()) {
      return;
    }
    std::vector<int32_t>& out = chunk.tokens;
    for (const DocumentPart& part : parts) {
      const size_t first = out.size();
      part.kind == DocumentPart::Kind::Text ? text(part.text, out)
                                            : out.push_back(special(part.kind, where));
      if (!part.is_target) {
        mask(where, std::span(out).subspan(first));
      }
    }
    if (request_.appends_eos && (out.empty() || out.back() != request_.eos)) {
      // Behind a question without an answer nothing is trained on either.
      const bool is_target = parts.back().is_target;
      const auto eos = static_cast<int32_t>(request_.eos);
      out.push_back(is_target ? eos : ~eos);
    }
    chunk.document_ends.push_back(out.size());
  }

 private:
  void mask(const std::string& where, std::span<int32_t> tokens) const {
    if (!request_.allows_masks) {
      throw Failure(ExitCode::Usage,
                    where + ": a .bin cannot say that only an answer is trained on",
                    "give the .jsonl itself to data.train");
    }
    for (int32_t& token : tokens) {
      token = ~token;
    }
  }

  [[nodiscard]] int32_t special(DocumentPart::Kind kind, const std::string& where) const {
    using Kind = DocumentPart::Kind;
    const char* const name = kind == Kind::Bos    ? "<｜begin▁of▁sentence｜>"
                             : kind == Kind::Eos  ? "<｜end▁of▁sentence｜>"
                             : kind == Kind::User ? "<｜User｜>"
                                                  : "<｜Assistant｜>";
    const auto id = request_.tokenizer != nullptr ? request_.tokenizer->id_of(name) : std::nullopt;
    if (!id) {
      throw Failure(ExitCode::Usage,
                    where +
                        ": \"messages\" are written in DeepSeek-V3's form, and the tokenizer "
                        "has no token " +
                        name,
                    "give \"prompt\" and \"completion\", or another data.tokenizer");
    }
    if (kind == Kind::Eos && *id != request_.eos) {
      throw Failure(ExitCode::Usage,
                    where + ": an answer ends in " + name + ", token " + std::to_string(*id) +
                        ", but eos is " + std::to_string(request_.eos),
                    "set model.eos_token_id = " + std::to_string(*id));
    }
    return *id;
  }

  const TokenizeRequest& request_;
  std::optional<Encoder> encoder_;
};

class Run {
 public:
  Run(const TokenizeRequest& request, std::string_view bytes, const TokenSink& sink)
      : request_(request), bytes_(bytes), sink_(sink) {
    for (int t = 0; t < std::max(1, request.threads); ++t) {
      writers_.emplace_back(request);
    }
  }

  void text() {
    if (const size_t at = first_invalid_utf8(bytes_); at < bytes_.size()) {
      throw Failure(ExitCode::Usage,
                    place(request_.file, bytes_, at) + ": not UTF-8 at byte " + std::to_string(at) +
                        " of the file",
                    "convert it, as with iconv -t UTF-8", {{"file", request_.file}});
    }
    const bool in_chunks = request_.tokenizer == nullptr || request_.tokenizer->can_restart();
    size_t reached = 0;
    int32_t last = -1;
    waves([&](size_t at) { return in_chunks ? likely_border(at) : bytes_.size(); },
          [this, in_chunks](Chunk& chunk, Writer& writer) { text_chunk(chunk, writer, in_chunks); },
          [&](Chunk& chunk) {
            if (chunk.begin != reached) {  // a word went over its begin: again from where it ends
              chunk.begin = reached;
              chunk.tokens.clear();
              chunk.reached = reached;
              if (reached < chunk.end) {
                text_chunk(chunk, writers_[0], in_chunks);
              }
            }
            reached = chunk.reached;
            last = chunk.tokens.empty() ? last : chunk.tokens.back();
          });
    const auto eos = static_cast<int32_t>(request_.eos);
    if (request_.appends_eos && last != eos) {
      sink_.tokens(std::span(&eos, 1));
    }
    sink_.end_of_document();
  }

  void lines() {
    waves(
        [this](size_t at) {
          const size_t end = bytes_.find('\n', at);
          return end == std::string_view::npos ? bytes_.size() : end + 1;
        },
        [this](Chunk& chunk, Writer& writer) { line_chunk(chunk, writer); }, [](Chunk&) {});
  }

 private:
  void text_chunk(Chunk& chunk, Writer& writer, bool in_chunks) {
    if (request_.tokenizer != nullptr && in_chunks) {
      chunk.reached = writer.encoder().encode_chunk(bytes_, chunk.begin, chunk.end, chunk.tokens);
    } else {
      writer.text(bytes_.substr(chunk.begin, chunk.end - chunk.begin), chunk.tokens);
      chunk.reached = chunk.end;
    }
  }

  void line_chunk(Chunk& chunk, Writer& writer) const {
    for (size_t at = chunk.begin; at < chunk.end;) {
      const size_t end = std::min(bytes_.find('\n', at), chunk.end);
      const std::string_view line = bytes_.substr(at, end - at);
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
        try {
          writer.document(line, request_.file, chunk);
        } catch (const Failure& failure) {  // now the line is counted
          const std::string what = failure.what();
          throw Failure(failure.code(),
                        place(request_.file, bytes_, at) + what.substr(request_.file.size()),
                        failure.remedy(), {{"file", request_.file}});
        }
      }
      at = end + 1;
    }
  }

  /// Near `at` a place where words begin in most tokenizers: behind a line's end, else in front of a
  /// space. A wrong guess costs time and nothing else.
  [[nodiscard]] size_t likely_border(size_t at) const {
    constexpr size_t kFar = 4096;
    if (at >= bytes_.size()) {
      return bytes_.size();
    }
    const std::string_view near = bytes_.substr(at, kFar);
    const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
    for (const char mark : {'\n', ' '}) {
      for (size_t i = near.find(mark); i != std::string_view::npos; i = near.find(mark, i + 1)) {
        if (i + 1 < near.size() && !is_blank(near[i + 1])) {
          return at + i + (mark == '\n' ? 1 : 0);
        }
      }
    }
    while (at < bytes_.size() && (static_cast<unsigned char>(bytes_[at]) & 0xC0) == 0x80) {
      ++at;
    }
    return at;
  }

  /// Cuts the file into chunks, lets all threads do some, gives them on in order, and so on.
  template <typename Border, typename Work, typename Join>
  void waves(Border border, Work work, Join join) {
    size_t begin = 0;
    while (begin < bytes_.size()) {
      std::vector<Chunk> chunks;
      while (begin < bytes_.size() && chunks.size() < kChunksAThread * writers_.size()) {
        const size_t end = std::min(bytes_.size(), border(begin + kChunkBytes));
        Chunk& chunk = chunks.emplace_back();
        chunk.begin = begin;
        chunk.end = end;
        begin = end;
      }
      on_all_threads(chunks, work);
      for (Chunk& chunk : chunks) {
        if (chunk.error) {
          std::rethrow_exception(chunk.error);
        }
        join(chunk);
        give(chunk);
        sink_.progress(static_cast<int64_t>(chunk.end));
      }
    }
  }

  template <typename Work>
  void on_all_threads(std::vector<Chunk>& chunks, Work work) {
    std::atomic<size_t> next{0};
    const auto loop = [&](Writer& writer) noexcept {
      for (size_t i = next++; i < chunks.size(); i = next++) {
        try {
          work(chunks[i], writer);
        } catch (...) {
          chunks[i].error = std::current_exception();
        }
      }
    };
    std::vector<std::jthread> threads;  // joined where this ends
    for (size_t t = 1; t < std::min(writers_.size(), chunks.size()); ++t) {
      try {
        threads.emplace_back(loop, std::ref(writers_[t]));
      } catch (const std::system_error&) {
        break;  // fewer threads do it too
      }
    }
    loop(writers_[0]);
  }

  void give(const Chunk& chunk) const {
    size_t at = 0;
    for (const size_t end : chunk.document_ends) {
      sink_.tokens(std::span(chunk.tokens).subspan(at, end - at));
      sink_.end_of_document();
      at = end;
    }
    if (at < chunk.tokens.size()) {
      sink_.tokens(std::span(chunk.tokens).subspan(at));
    }
  }

  const TokenizeRequest& request_;
  std::string_view bytes_;
  const TokenSink& sink_;
  std::vector<Writer> writers_;
};

}  // namespace

void tokenize_file(const TokenizeRequest& request, std::string_view bytes, const TokenSink& sink) {
  Run run(request, bytes, sink);
  kind_of_file(request.file) == FileKind::JsonLines ? run.lines() : run.text();
}

}  // namespace ciuic::core
