// SPDX-License-Identifier: MIT
#include "core/parallel/rendezvous_socket.h"

#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <set>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <ciuic/error.hpp>

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

/// A file descriptor that closes itself.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct FreeAddresses {
  void operator()(addrinfo* a) const { freeaddrinfo(a); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses look_up(const Endpoint& endpoint, int flags, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  error = getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  return Addresses(error == 0 ? found : nullptr);
}

Addresses literal(const Endpoint& endpoint) {
  int error = 0;
  Addresses found = look_up(endpoint, AI_NUMERICHOST, error);
  if (!found) {
    throw Error(CIUIC_INTERNAL, endpoint.host + " is not a literal address");
  }
  return found;
}

/// Listening sockets' inodes of a port, from one of the /proc/net tables.
void add_inodes(const char* table, int port, std::set<std::string>& inodes) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
        inode;
    const size_t colon = local.rfind(':');
    if (state == "0A" && colon != std::string::npos &&
        std::strtol(local.c_str() + colon + 1, nullptr, 16) == port) {
      inodes.insert("socket:[" + inode + "]");
    }
  }
}

bool holds_one_of(const fs::path& process, const std::set<std::string>& inodes) {
  std::error_code ignored;
  for (const auto& fd : fs::directory_iterator(process / "fd", ignored)) {
    if (inodes.contains(fs::read_symlink(fd.path(), ignored).string())) {
      return true;
    }
  }
  return false;
}

int bind_and_listen(const addrinfo& address, int& error) {
  Socket s(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (s.get() < 0 || ::bind(s.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(s.get(), 1024) != 0) {
    error = errno;
    return -1;
  }
  return s.release();
}

std::string errno_text(int error) { return std::strerror(error); }

}  // namespace

std::string Endpoint::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Endpoint parse_endpoint(std::string_view text) {
  const auto bad = [&](const char* why) {
    return Error(CIUIC_INVALID, "address \"" + std::string(text) + "\": " + why +
                                    "; write host:port, 10.0.0.1:29500 or [::1]:29500");
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    throw bad("it has no port");
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    throw bad("an IPv6 address stands in brackets");
  }
  Endpoint endpoint{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (error != std::errc() || end != port.data() + port.size() || endpoint.port < 0 ||
      endpoint.port > 65535) {
    throw bad("the port is not a number from 0 to 65535");
  }
  if (host.empty()) {
    throw bad("it has no host");
  }
  return endpoint;
}

std::vector<Endpoint> resolve(const Endpoint& endpoint) {
  int error = 0;
  Addresses found = look_up(endpoint, AI_NUMERICHOST, error);
  if (!found) {
    found = look_up(endpoint, 0, error);
  }
  if (!found) {
    throw Error(CIUIC_UNAVAILABLE, "host name " + endpoint.host + " does not resolve (" +
                                       gai_strerror(error) +
                                       "); use a literal address or fix the name");
  }
  std::vector<Endpoint> out;
  for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
    char host[NI_MAXHOST];
    if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) ==
        0) {
      out.push_back({host, endpoint.port});
    }
  }
  return out;
}

int listen_on(const Endpoint& endpoint) {
  int error = 0;
  const Addresses own = literal(endpoint);
  int socket = bind_and_listen(*own, error);
  if (socket < 0 &&
      error == EADDRNOTAVAIL) {  // not an address of this machine: a forwarded or virtual one
    const Addresses any = literal({own->ai_family == AF_INET6 ? "::" : "0.0.0.0", endpoint.port});
    socket = bind_and_listen(*any, error);
  }
  if (socket >= 0) {
    return socket;
  }
  if (error == EADDRINUSE) {
    const std::string owner = port_owner(endpoint.port);
    throw Error(CIUIC_UNAVAILABLE, "rendezvous port " + std::to_string(endpoint.port) + " of " +
                                       endpoint.host + " is in use" +
                                       (owner.empty() ? "" : " by " + owner) +
                                       "; stop that process or choose another port");
  }
  throw Error(CIUIC_UNAVAILABLE, "cannot listen on " + endpoint.text() + ": " + errno_text(error));
}

std::string try_connect(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  const Addresses address = literal(endpoint);
  const Socket s(::socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (s.get() < 0) {
    return errno_text(errno);
  }
  if (::connect(s.get(), address->ai_addr, address->ai_addrlen) == 0) {
    return "";
  }
  if (errno != EINPROGRESS) {
    return errno_text(errno);
  }
  pollfd wait{s.get(), POLLOUT, 0};
  const int ready = ::poll(&wait, 1, static_cast<int>(timeout.count()));
  if (ready == 0) {
    return "no answer";
  }
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(s.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return ready < 0 ? errno_text(errno) : error == 0 ? "" : errno_text(error);
}

std::string port_owner(int port) {
  std::set<std::string> inodes;
  add_inodes("/proc/net/tcp", port, inodes);
  add_inodes("/proc/net/tcp6", port, inodes);
  if (inodes.empty()) {
    return "";
  }
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    const std::string pid = process.path().filename();
    if (std::isdigit(static_cast<unsigned char>(pid[0])) != 0 &&
        holds_one_of(process.path(), inodes)) {
      std::ifstream comm(process.path() / "comm");
      std::string name;
      std::getline(comm, name);
      return "pid " + pid + " (" + name + ")";
    }
  }
  return "";
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

int free_port() {
  const Socket s(listen_on({"127.0.0.1", 0}));
  return port_of(s.get());
}

std::string own_name() {
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  return std::string(host) + ":" + std::to_string(::getpid());
}

}  // namespace ciuic::core
