// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/last_words.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace ciuic::core {
namespace {

struct Speaker {
  int rank = 0;
  int report_fd = -1;
  char host[256] = "unknown";
  char log[4096] = "";
};
constinit Speaker speaker;  // set before ranks run, read when they die

void write_all(int fd, const char* data, size_t size) noexcept {
  while (size > 0) {
    const ssize_t n = write(fd, data, size);
    if (n <= 0) {
      if (n < 0 && errno == EINTR) {
        continue;
      }
      return;  // nobody is left to tell
    }
    data += n;
    size -= static_cast<size_t>(n);
  }
}

}  // namespace

void set_last_words(int rank, int report_fd) {
  speaker.rank = rank;
  speaker.report_fd = report_fd;
  gethostname(speaker.host, sizeof(speaker.host) - 1);
}

void say_done(int exit_code) noexcept {
  if (speaker.report_fd >= 0) {
    WordLine mark;
    mark << kDoneMark << int64_t{exit_code};
    write_all(speaker.report_fd, "", 1);
    write_all(speaker.report_fd, mark.data(), mark.size());
  }
}

void set_last_words_log(const char* path) {
  std::strncpy(speaker.log, path, sizeof(speaker.log) - 1);
}

WordLine& WordLine::operator<<(const char* text) noexcept {
  for (; *text != '\0' && size_ < sizeof(text_) - 1; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    text_[size_++] =
        byte < 0x20 || byte == 0x7F ? '?' : *text;  // a plugin's version may be any text
  }
  return *this;
}

WordLine& WordLine::operator<<(int64_t number) noexcept {
  char digits[24];
  size_t n = sizeof(digits);
  digits[--n] = '\0';
  uint64_t rest = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  do {
    digits[--n] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (number < 0) {
    digits[--n] = '-';
  }
  return *this << digits + n;
}

void say_crumb(WordLine& line, const Crumb& crumb, const char* verb) noexcept {
  line << "plugin " << crumb.plugin->label.c_str() << " " << verb << " " << crumb.function
       << (crumb.is_wait ? " (waiting for peers)" : "") << ", call "
       << static_cast<int64_t>(crumb.sequence);
}

void say_place(WordLine& line) noexcept {
  line << " rank=" << speaker.rank << " host=" << speaker.host;
}

void write_last_words(const WordLine& line) noexcept {
  if (speaker.log[0] != '\0') {
    const int fd = open(speaker.log, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd >= 0) {
      write_all(fd, line.data(), line.size());
      write_all(fd, "\n", 1);
      close(fd);
    }
  }
  if (speaker.report_fd >= 0) {
    write_all(speaker.report_fd, line.data(), line.size());
  } else {
    write_all(STDERR_FILENO, line.data(), line.size());
    write_all(STDERR_FILENO, "\n", 1);
  }
}

}  // namespace ciuic::core
