// SPDX-License-Identifier: MIT
//
// Which of this machine's addresses do peers on other machines reach? Gloo itself would take what
// the host name resolves to, which is often a loopback address.
#pragma once

#include <string>
#include <vector>

namespace ciuic::plugins::gloo {

/// An IPv4 address with its network: {"10.0.0.5", 24}.
struct Address {
  std::string host;
  int prefix_bits = 32;
};

/// Addresses of interfaces that are up, without loopback; the default route's first.
[[nodiscard]] std::vector<Address> own_addresses();

/// As text for the peers, and back: "10.0.0.5/24,192.168.1.2/16".
[[nodiscard]] std::string to_text(const std::vector<Address>& addresses);
[[nodiscard]] std::vector<Address> from_text(const std::string& text);

/// The first of `own` whose network most peers are in. Addresses that a peer has as well (a bridge
/// that is numbered alike on every machine) lead nowhere and do not count. Empty when there is
/// none.
[[nodiscard]] std::string choose_address(const std::vector<Address>& own,
                                         const std::vector<std::vector<Address>>& peers);

/// Is this an address rather than an interface's name?
[[nodiscard]] bool is_literal(const std::string& text);

}  // namespace ciuic::plugins::gloo
