// SPDX-License-Identifier: MIT
#include "runner_message.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <poll.h>
#include <unistd.h>

namespace ciuic::testing {
namespace {

bool write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t done = write(fd, data, size);
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      return false;
    }
    data += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

bool readable(int fd, int64_t deadline_ns) {
  while (true) {
    const int64_t left_ms = (deadline_ns - now_ns()) / 1'000'000 + 1;
    pollfd entry{fd, POLLIN, 0};
    const int got =
        poll(&entry, 1, deadline_ns < 0 ? -1 : static_cast<int>(std::max<int64_t>(left_ms, 0)));
    if (got > 0) {
      return true;
    }
    if (got == 0 || errno != EINTR) {
      return false;
    }
  }
}

bool read_all(int fd, char* data, size_t size, int64_t deadline_ns) {
  while (size > 0) {
    if (!readable(fd, deadline_ns)) {
      return false;
    }
    const ssize_t done = read(fd, data, size);
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      return false;
    }
    data += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

constexpr uint64_t kMark = 0x63697569'636d7367;  // "ciuicmsg"
constexpr uint64_t kMost = 1 << 26;              // a damaged length must not become an allocation

}  // namespace

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

bool write_message(int fd, const Message& message) {
  std::string bytes;
  const auto put = [&](uint64_t n) { bytes.append(reinterpret_cast<const char*>(&n), sizeof(n)); };
  put(kMark);
  put(message.size());
  for (const std::string& text : message) {
    put(text.size());
    bytes += text;
  }
  return write_all(fd, bytes.data(), bytes.size());
}

Arrival read_message(int fd, int64_t deadline_ns, Message& out) {
  const auto number = [&](uint64_t& n) {
    return read_all(fd, reinterpret_cast<char*>(&n), sizeof(n), deadline_ns);
  };
  out.clear();
  uint64_t mark = 0;
  uint64_t count = 0;
  if (!number(mark)) {
    return Arrival::Nothing;
  }
  if (mark != kMark) {
    return Arrival::Garbled;
  }
  if (!number(count)) {
    return Arrival::Nothing;
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    if (!number(size)) {
      return Arrival::Nothing;
    }
    if (size > kMost || count > kMost) {
      return Arrival::Garbled;
    }
    std::string& text = out.emplace_back(size, '\0');
    if (!read_all(fd, text.data(), size, deadline_ns)) {
      return Arrival::Nothing;
    }
  }
  return Arrival::Complete;
}

std::optional<uint64_t> whole_number(const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && last == end && !text.empty() ? std::optional(value) : std::nullopt;
}

}  // namespace ciuic::testing
