// SPDX-License-Identifier: MIT
#include "mesh.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ciuic/error.hpp>

namespace ciuic::mutants {
namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    if (fd < 0) {
      throw Error(CIUIC_UNAVAILABLE, std::string("socket: ") + std::strerror(errno));
    }
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  int take() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::chrono::nanoseconds left_until(Clock::time_point deadline) {
  return std::max<std::chrono::nanoseconds>(deadline - Clock::now(), std::chrono::nanoseconds(0));
}

/// The kernel picks a name that no file has.
std::string listen_anywhere(int socket, int backlog) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  socklen_t size = sizeof(sa_family_t);
  if (bind(socket, reinterpret_cast<sockaddr*>(&name), size) != 0 || listen(socket, backlog) != 0) {
    throw Error(CIUIC_UNAVAILABLE, std::string("listen: ") + std::strerror(errno));
  }
  size = sizeof(name);
  getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  return std::string(name.sun_path, size - sizeof(sa_family_t));
}

int connect_to(const std::string& path) {
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  const auto size = static_cast<socklen_t>(sizeof(sa_family_t) + path.size());
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) {
    throw Error(CIUIC_UNAVAILABLE, std::string("connect: ") + std::strerror(errno));
  }
  return socket.take();
}

}  // namespace

Mesh::Mesh(const Host& host, const std::string& prefix, const std::vector<int32_t>& ranks, int rank,
           std::chrono::nanoseconds timeout)
    : rank_(rank), peers_(ranks.size()) {
  for (size_t r = 0; r < ranks.size(); ++r) {
    peers_[r].global_rank = ranks[r];
  }
  if (ranks.size() > 1) {
    try {
      connect_all(host, prefix, ranks, Clock::now() + timeout);
    } catch (const Error&) {
      for (const Peer& peer : peers_) {
        close(peer.socket);
      }
      throw;
    }
  }
}

Mesh::~Mesh() {
  for (const Peer& peer : peers_) {
    if (peer.socket >= 0) {
      close(peer.socket);
    }
  }
}

void Mesh::connect_all(const Host& host, const std::string& prefix,
                       const std::vector<int32_t>& ranks, Clock::time_point deadline) {
  const auto& kv = host.service<ciuic_kv_service>("ciuic.kv");
  const Socket listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string own = listen_anywhere(listener.get(), static_cast<int>(ranks.size()));
  host.check(kv.set(kv.ctx, to_str(prefix + std::to_string(rank_)), to_str(own)));
  for (int r = 0; r < rank_; ++r) {
    char path[128];
    size_t size = sizeof(path);
    ciuic_status* status = kv.get(kv.ctx, to_str(prefix + std::to_string(r)),
                                  left_until(deadline).count(), path, &size);
    if (status != nullptr) {
      const Error error = host.take(status);
      throw Error(
          error.code(),
          "rank " + std::to_string(ranks[static_cast<size_t>(r)]) + " did not come to the group",
          ranks[static_cast<size_t>(r)]);
    }
    at(r).socket = connect_to(std::string(path, size));
    const auto self = static_cast<int32_t>(rank_);
    (void)!write(at(r).socket, &self, sizeof(self));
  }
  for (int r = rank_ + 1; r < world(); ++r) {
    accept_one(listener.get(), ranks, deadline);
  }
  for (Peer& peer : peers_) {
    fcntl(peer.socket, F_SETFL, O_NONBLOCK);
  }
}

void Mesh::accept_one(int listener, const std::vector<int32_t>& ranks, Clock::time_point deadline) {
  pollfd ready{listener, POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left_until(deadline));
  if (poll(&ready, 1, static_cast<int>(ms.count()) + 1) > 0) {
    Socket socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    int32_t who = -1;
    if (recv(socket.get(), &who, sizeof(who), MSG_WAITALL) == sizeof(who) && who > rank_ &&
        who < world()) {
      at(who).socket = socket.take();
      return;
    }
  }
  for (int r = rank_ + 1; r < world(); ++r) {
    if (at(r).socket < 0) {
      const int32_t missing = ranks[static_cast<size_t>(r)];
      throw Error(CIUIC_DEADLINE, "rank " + std::to_string(missing) + " did not come to the group",
                  missing);
    }
  }
}

void Mesh::send(int to, const Header& header, const std::string& bytes) {
  Header whole = header;
  whole.bytes = bytes.size();
  at(to).outbox.append(reinterpret_cast<const char*>(&whole), sizeof(whole));
  at(to).outbox += bytes;
}

void Mesh::transfer() {
  char buffer[1 << 16];
  for (Peer& peer : peers_) {
    if (peer.socket < 0 || peer.has_closed) {
      continue;
    }
    size_t sent = 0;
    ssize_t n = 0;
    while (sent < peer.outbox.size() && (n = ::send(peer.socket, peer.outbox.data() + sent,
                                                    peer.outbox.size() - sent, MSG_NOSIGNAL)) > 0) {
      sent += static_cast<size_t>(n);
    }
    peer.outbox.erase(0, sent);
    while ((n = recv(peer.socket, buffer, sizeof(buffer), 0)) > 0) {
      peer.inbox.append(buffer, static_cast<size_t>(n));
    }
    peer.has_closed = n == 0 || (errno != EAGAIN && errno != EINTR);
  }
}

std::optional<Message> Mesh::receive(int from) {
  Peer& peer = at(from);
  Message message{};
  if (peer.inbox.size() < sizeof(Header)) {
    return std::nullopt;
  }
  std::memcpy(&message.header, peer.inbox.data(), sizeof(Header));
  if (peer.inbox.size() < sizeof(Header) + message.header.bytes) {
    return std::nullopt;
  }
  message.bytes = peer.inbox.substr(sizeof(Header), message.header.bytes);
  peer.inbox.erase(0, sizeof(Header) + message.header.bytes);
  peer.said_goodbye |= message.header.kind == Header::kGoodbye;
  return message;
}

std::vector<pollfd> Mesh::interests() const {
  std::vector<pollfd> all;
  for (const Peer& peer : peers_) {
    if (peer.socket >= 0 && !peer.has_closed) {
      all.push_back(
          {peer.socket, static_cast<short>(peer.outbox.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    }
  }
  return all;
}

bool Mesh::has_unsent() const {
  for (const Peer& peer : peers_) {
    if (!peer.outbox.empty() && !peer.has_closed) {
      return true;
    }
  }
  return false;
}

}  // namespace ciuic::mutants
