// SPDX-License-Identifier: MIT
#include "star.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace hub {
namespace {

using ciuic::Error;

constexpr int kTickMs = 20;  // how soon an abort is seen

[[noreturn]] void fail(const char* what) {
  throw Error(CIUIC_UNAVAILABLE, std::string("hub: ") + what + ": " + std::strerror(errno));
}

/// An abstract Unix address: in no file system, gone with its socket.
socklen_t make_address(const std::string& name, sockaddr_un& out) {
  out = {};
  out.sun_family = AF_UNIX;
  name.copy(out.sun_path + 1, sizeof(out.sun_path) - 1);  // the leading NUL makes it abstract
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int new_socket() {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return fd >= 0 ? fd : throw Error(CIUIC_EXHAUSTED, "hub: no socket is left");
}

int64_t left_ns(Clock::time_point deadline) {
  return std::max<int64_t>(0, std::chrono::nanoseconds(deadline - Clock::now()).count());
}

}  // namespace

Socket& Socket::operator=(Socket&& o) noexcept {
  std::swap(fd_, o.fd_);
  return *this;
}
Socket::~Socket() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

Star::Star(const ciuic::Host& host, const std::string& key, int rank, std::vector<int32_t> ranks,
           Clock::time_point deadline)
    : rank_(rank), ranks_(std::move(ranks)), sockets_(ranks_.size()) {
  if (size() == 1) {
    return;
  }
  if (rank_ == 0) {
    accept_all(host, key, deadline);
  } else {
    connect_to_hub(host, key, deadline);
  }
}

void Star::accept_all(const ciuic::Host& host, const std::string& key, Clock::time_point deadline) {
  std::random_device random;
  const std::string name = "ciuic-hub-" + std::to_string(getpid()) + "-" +
                           std::to_string(random()) + std::to_string(random());
  sockaddr_un address;
  const socklen_t bytes = make_address(name, address);
  const Socket listener(new_socket());
  if (bind(listener.fd(), reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
      listen(listener.fd(), size()) != 0) {
    fail("listen");
  }
  const auto& kv = host.service<ciuic_kv_service>("ciuic.kv");
  host.check(kv.set(kv.ctx, ciuic::to_str(key), ciuic::to_str(name)));
  for (int accepted = 1; accepted < size(); ++accepted) {
    const auto missing = std::find_if(sockets_.begin() + 1, sockets_.end(),
                                      [](const Socket& s) { return s.fd() < 0; });
    wait_ready(listener.fd(), POLLIN, static_cast<int>(missing - sockets_.begin()), deadline);
    Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.fd() < 0) {
      fail("accept");
    }
    int32_t peer = -1;
    wait_ready(socket.fd(), POLLIN, static_cast<int>(missing - sockets_.begin()), deadline);
    if (recv(socket.fd(), &peer, sizeof(peer), 0) != sizeof(peer) || peer < 1 || peer >= size()) {
      throw Error(CIUIC_INVALID, "hub: a stranger called, no rank of the group");
    }
    sockets_[static_cast<size_t>(peer)] = std::move(socket);
  }
}

void Star::connect_to_hub(const ciuic::Host& host, const std::string& key,
                          Clock::time_point deadline) {
  const auto& kv = host.service<ciuic_kv_service>("ciuic.kv");
  std::string name(100, '\0');
  size_t bytes = name.size();
  host.check(kv.get(kv.ctx, ciuic::to_str(key), left_ns(deadline), name.data(), &bytes));
  name.resize(bytes);
  sockaddr_un address;
  const socklen_t length = make_address(name, address);
  Socket socket(new_socket());
  if (connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
    fail("connect");
  }
  sockets_[0] = std::move(socket);
  const int32_t self = rank_;
  send(0, &self, sizeof(self), deadline);
}

void Star::send(int peer, const void* data, size_t bytes, Clock::time_point deadline) const {
  const int fd = sockets_[static_cast<size_t>(peer)].fd();
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (n > 0) {
      at += n;
      bytes -= static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EINTR) {
      wait_ready(fd, POLLOUT, peer, deadline);
    } else {
      lost(peer);
    }
  }
}

void Star::receive(int peer, void* data, size_t bytes, Clock::time_point deadline) const {
  const int fd = sockets_[static_cast<size_t>(peer)].fd();
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = recv(fd, at, bytes, 0);
    if (n > 0) {
      at += n;
      bytes -= static_cast<size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      wait_ready(fd, POLLIN, peer, deadline);
    } else {
      lost(peer);
    }
  }
}

void Star::wait_ready(int fd, short events, int peer, Clock::time_point deadline) const {
  while (true) {
    check_not_aborted();
    pollfd wanted{fd, events, 0};
    const int ready = poll(&wanted, 1, kTickMs);
    if (ready > 0) {
      return;  // also after a hang-up: the transfer will say so
    }
    if (ready < 0 && errno != EINTR) {
      fail("poll");
    }
    if (Clock::now() >= deadline) {
      const int32_t global = ranks_[static_cast<size_t>(peer)];
      throw Error(CIUIC_DEADLINE, "hub: rank " + std::to_string(global) + " did not come in time",
                  global);
    }
  }
}

void Star::lost(int peer) const {
  const int32_t global = ranks_[static_cast<size_t>(peer)];
  throw Error(CIUIC_UNAVAILABLE, "hub: rank " + std::to_string(global) + " is gone", global);
}

void Star::check_not_aborted() const {
  if (const int32_t code = aborted_.load(); code != CIUIC_OK) {
    throw Error(code, "hub: the group was aborted");
  }
}

}  // namespace hub
