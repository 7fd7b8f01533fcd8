// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/record_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <span>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Failure(ExitCode::Storage, "record: the call log cannot be written: " + why,
                "choose another path", {{"file", path}});
}

/// Why what is open there must not be replaced; empty: it may be.
std::string obstacle(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    return std::strerror(errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return "it is no plain file";
  }
  constexpr size_t kMagicBytes = 8;
  std::array<char, kMagicBytes> begin{};
  const ssize_t n = pread(fd, begin.data(), begin.size(), 0);
  const bool is_log = n == ssize_t{kMagicBytes} &&
                      call_log_head().starts_with(std::string_view(begin.data(), kMagicBytes));
  return n == 0 || is_log ? "" : "a file is there that is no call log, and it is kept";
}

OpenFile create(const std::string& path) {
  std::error_code ec;  // a folder that cannot be made is said by the open
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ec);
  // O_NONBLOCK: a pipe in the file's place would block the open.
  OpenFile file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!file) {
    refuse(path, std::strerror(errno));
  }
  // Held while the record lives. File systems without locks do not get this far in being careful.
  if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    refuse(path, "another record writes it");
  }
  if (const std::string why = obstacle(file.fd()); !why.empty()) {
    refuse(path, why);
  }
  if (ftruncate(file.fd(), 0) != 0) {
    refuse(path, std::strerror(errno));
  }
  return file;
}

}  // namespace

std::string record_obstacle(const std::string& path) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file ? obstacle(file.fd()) : "";  // whether it can be made is seen when it is made
}

RecordFile::RecordFile(const std::string& path, const LogValue& header, Log& log)
    : path_(path), log_(log), file_(create(path)) {
  if (!file_.write_all(bytes_of(call_log_head()))) {
    refuse(path, std::strerror(errno));
  }
  write({LogRecordType::Header, 0, 0, 0, "", header});
}

uint64_t RecordFile::enter(uint32_t instance, const char* function, LogValue in) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = ++calls_;
  write({LogRecordType::Enter, number, static_cast<uint32_t>(gettid()), instance, function,
         std::move(in)});
  return number;
}

void RecordFile::leave(uint64_t number, LogValue out) {
  const std::lock_guard lock(mutex_);
  write({LogRecordType::Leave, number, static_cast<uint32_t>(gettid()), 0, "", std::move(out)});
}

void RecordFile::done(uint64_t number, LogValue out) {
  const std::lock_guard lock(mutex_);
  write({LogRecordType::Done, number, static_cast<uint32_t>(gettid()), 0, "", std::move(out)});
}

void RecordFile::write(const LogRecord& record) {
  if (!file_) {
    return;
  }
  if (!file_.write_all(bytes_of(call_log_record(record)))) {
    // The run matters more than its log; a torn end is a valid one.
    log_.warn("record: the call log ends here: " + std::string(std::strerror(errno)) +
              " file=" + path_);
    file_.close();
  }
}

}  // namespace ciuic::core
