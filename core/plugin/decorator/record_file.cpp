// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/record_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(n < 0 ? 0 : static_cast<size_t>(n));
  }
  return true;
}

int create(const std::string& path) {
  std::error_code ec;  // a folder that cannot be made is said by the open
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ec);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    throw Failure(ExitCode::Storage,
                  std::string("record: cannot write the call log: ") + std::strerror(errno),
                  "choose another path", {{"file", path}});
  }
  return fd;
}

}  // namespace

RecordFile::RecordFile(const std::string& path, const LogValue& header, Log& log)
    : path_(path), log_(log), fd_(create(path)) {
  if (!write_all(fd_, call_log_head())) {
    close(fd_);
    throw Failure(ExitCode::Storage,
                  std::string("record: cannot write the call log: ") + std::strerror(errno), "",
                  {{"file", path}});
  }
  write({LogRecordType::Header, 0, 0, 0, "", header});
}

RecordFile::~RecordFile() {
  if (fd_ >= 0) {
    close(fd_);
  }
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
  if (fd_ < 0) {
    return;
  }
  if (!write_all(fd_, call_log_record(record))) {
    // The run matters more than its log; a torn end is a valid one.
    log_.warn("record: the call log ends here: " + std::string(std::strerror(errno)) +
              " file=" + path_);
    close(fd_);
    fd_ = -1;
  }
}

}  // namespace ciuic::core
