// SPDX-License-Identifier: MIT
//
// The sockets of rendezvous: where it is, who listens there, and whether anybody answers. POSIX
// only, no LibTorch. Literal addresses are never looked up; names are resolved once, and the result
// is what everybody is told.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace ciuic::core {

struct Endpoint {
  std::string host;  // a literal address after resolve()
  int port = 0;

  /// "127.0.0.1:29500", "[::1]:29500".
  [[nodiscard]] std::string text() const;
};

/// Reads "host:port", "[v6]:port". Throws INVALID.
[[nodiscard]] Endpoint parse_endpoint(std::string_view text);

/// The literal addresses of a host, at least one. Throws UNAVAILABLE.
[[nodiscard]] std::vector<Endpoint> resolve(const Endpoint& endpoint);

/// A socket that listens, owned by the caller: on the address itself when it is one of this
/// machine's, else on all. Port 0 picks one. Throws UNAVAILABLE; when the port is taken, with the
/// owner's pid if /proc tells.
[[nodiscard]] int listen_on(const Endpoint& endpoint);

/// Does somebody accept connections there? Returns "" or why not.
[[nodiscard]] std::string try_connect(const Endpoint& endpoint, std::chrono::milliseconds timeout);

/// "pid 123 (python3)" or "": the process that listens on a TCP port of this machine.
[[nodiscard]] std::string port_owner(int port);

[[nodiscard]] int port_of(int socket);

/// A free TCP port of the loopback interface, at this moment.
[[nodiscard]] int free_port();

/// "host:pid" of this process.
[[nodiscard]] std::string own_name();

}  // namespace ciuic::core
