// SPDX-License-Identifier: MIT
#include "core/data/token_cache.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "core/data/find_files.h"
#include "core/data/tokenizing_progress.h"
#include "core/log/failure.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kStandsStill = std::chrono::minutes(10);

[[noreturn]] void storage_failure(const std::string& what, const std::string& file) {
  const int error = errno;
  throw Failure(ExitCode::Storage, what + ": " + std::strerror(error), "",
                {{"file", file}, {"errno", std::to_string(error)}});
}

std::string hex(XXH128_hash_t hash) {
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

/// Of everything that the tokens follow from.
std::string key_of(std::string_view content, const Tokenizer* tokenizer, int64_t eos,
                   FileKind kind) {
  const std::string rest = hex(XXH3_128bits(content.data(), content.size())) + " 1 " +
                           (tokenizer != nullptr ? tokenizer->sha256() : "bytes") + " " +
                           (kind == FileKind::JsonLines ? std::to_string(eos) : "text");
  return hex(XXH3_128bits(rest.data(), rest.size()));
}

/// An open file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

/// A cache file on its way: appears under its name with publish(), else is gone.
class Draft {
 public:
  Draft(std::string file, std::string aside)
      : file_(std::move(file)),
        aside_(std::move(aside)),
        out_(::open(aside_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (out_.number() < 0) {
      storage_failure("cannot write tokens", aside_);
    }
    buffer_.resize(sizeof(CacheHeader));
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (!is_published_) {
      ::unlink(aside_.c_str());
    }
  }

  void add(std::span<const int32_t> tokens) {
    constexpr size_t kFull = size_t{4} << 20;
    const size_t at = buffer_.size();
    buffer_.resize(at + tokens.size_bytes());
    std::memcpy(buffer_.data() + at, tokens.data(), tokens.size_bytes());
    num_tokens_ += static_cast<int64_t>(tokens.size());
    if (buffer_.size() > kFull) {
      flush();
    }
  }

  [[nodiscard]] int64_t num_tokens() const { return num_tokens_; }

  void publish() {
    flush();
    CacheHeader header{};
    std::memcpy(header.magic, CacheHeader::kMagic, sizeof(header.magic));
    header.num_tokens = num_tokens_;
    if (::pwrite(out_.number(), &header, sizeof(header), 0) !=
            static_cast<ssize_t>(sizeof(header)) ||
        ::fsync(out_.number()) != 0 || ::rename(aside_.c_str(), file_.c_str()) != 0) {
      storage_failure("cannot write tokens", aside_);
    }
    is_published_ = true;
  }

 private:
  void flush() {
    for (size_t at = 0; at < buffer_.size();) {
      const ssize_t n = ::write(out_.number(), buffer_.data() + at, buffer_.size() - at);
      if (n < 0 && errno != EINTR) {
        storage_failure("cannot write tokens", aside_);
      }
      at += static_cast<size_t>(std::max<ssize_t>(n, 0));
    }
    buffer_.clear();
  }

  std::string file_;
  std::string aside_;
  Descriptor out_;
  std::vector<char> buffer_;
  int64_t num_tokens_ = 0;
  bool is_published_ = false;
};

bool exists(const std::string& file) {
  std::error_code error;
  return fs::exists(file, error);
}

/// How far the draft of another process is: size and time of its last change.
std::pair<int64_t, int64_t> growth_of(const std::string& aside) {
  struct stat info {};
  return ::stat(aside.c_str(), &info) == 0
             ? std::pair<int64_t, int64_t>(info.st_size, info.st_mtim.tv_sec)
             : std::pair<int64_t, int64_t>(-1, 0);
}

/// The right to make a file, as a lock that goes with its process; over without it when somebody
/// else has made the file.
class Turn {
 public:
  Turn(const std::string& file, const std::string& aside, const TokenCache& cache,
       const std::string& name)
      : path_(aside + ".lock") {
    auto growth = growth_of(aside);
    auto grown = Clock::now();
    PeriodicNote note(cache.note);
    while (!exists(file)) {
      if (try_lock()) {
        is_mine_ = !exists(file);
        return;
      }
      std::this_thread::sleep_for(kLook);
      if (const auto now = growth_of(aside); now != growth) {
        growth = now;
        grown = Clock::now();
      }
      if (Clock::now() - grown > kStandsStill) {
        throw Failure(
            ExitCode::Storage,
            "another process makes the tokens of " + name + " and has stood still for ten minutes",
            "end it", {{"file", aside}});
      }
      note.maybe([&] { return "waiting for the tokens of " + name + ", made by another process"; });
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (lock_) {
      ::unlink(path_.c_str());
    }
  }

  [[nodiscard]] bool is_mine() const { return is_mine_; }

 private:
  /// A lock on a file that its holder has removed since is none.
  bool try_lock() {
    lock_.emplace(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (lock_->number() < 0) {
      storage_failure("cannot write tokens", path_);
    }
    struct stat held {};
    struct stat there {};
    if (::flock(lock_->number(), LOCK_EX | LOCK_NB) == 0) {
      if (::fstat(lock_->number(), &held) == 0 && ::stat(path_.c_str(), &there) == 0 &&
          held.st_ino == there.st_ino) {
        return true;
      }
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      storage_failure("cannot lock", path_);
    }
    lock_.reset();
    return false;
  }

  std::string path_;
  std::optional<Descriptor> lock_;
  bool is_mine_ = false;
};

void make(const TokenCache& cache, const TokenizeRequest& request, std::string_view content,
          const std::string& file, const std::string& aside) {
  Draft draft(file, aside);
  TokenizingProgress progress(request.file, static_cast<int64_t>(content.size()));
  PeriodicNote note(cache.note);
  TokenSink sink;
  sink.tokens = [&](std::span<const int32_t> tokens) { draft.add(tokens); };
  sink.end_of_document = [] {};
  sink.progress = [&](int64_t bytes) { note.maybe([&] { return progress.text(bytes); }); };
  tokenize_file(request, content, sink);
  if (draft.num_tokens() == 0) {
    throw Failure(ExitCode::Usage, request.file + " has no text",
                  "leave it out of the configuration's data", {{"file", request.file}});
  }
  draft.publish();
  if (note.has_spoken()) {
    cache.note(request.file + ": " + std::to_string(draft.num_tokens()) + " tokens");
  }
}

/// A run that is refused leaves no folder.
void remove_if_empty(const std::string& folder) {
  std::error_code error;
  if (fs::remove(folder, error)) {
    fs::remove(fs::path(folder).parent_path(), error);
  }
}

}  // namespace

TokenFile TokenCache::open(const std::string& source, const Tokenizer* tokenizer,
                           int64_t eos) const {
  const MappedFile content(source, "leave it out of the configuration's data");
  const FileKind kind = kind_of_file(source);
  const std::string name = fs::path(source).stem().string().substr(0, 100) + "-" +
                           key_of(content.bytes(), tokenizer, eos, kind) + ".tokens";
  const std::string file = folder + "/" + name;
  if (exists(file)) {
    return TokenFile::cached(file, source);
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    errno = error.value();
    storage_failure("cannot make the folder of tokens", folder);
  }
  const std::string aside = folder + "/." + name + ".partial";
  try {
    const Turn turn(file, aside, *this, source);
    if (turn.is_mine()) {
      make(*this, {source, tokenizer, eos, kind == FileKind::JsonLines, true, threads},
           content.bytes(), file, aside);
    }
  } catch (const Failure&) {
    remove_if_empty(folder);
    throw;
  }
  return TokenFile::cached(file, source);
}

}  // namespace ciuic::core
