// SPDX-License-Identifier: MIT
#include "network.h"

#include <algorithm>
#include <arpa/inet.h>
#include <bit>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

namespace ciuic::plugins::gloo {
namespace {

std::string to_host(const sockaddr* address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof(text));
  return text;
}

uint32_t to_number(const std::string& host) {
  in_addr address{};
  inet_pton(AF_INET, host.c_str(), &address);
  return ntohl(address.s_addr);
}

/// The source address of the default route; nothing is sent.
std::string default_source() {
  const int s = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  to.sin_addr.s_addr = htonl(0xC0000201);  // 192.0.2.1, an address for documentation
  sockaddr_in from{};
  socklen_t size = sizeof(from);
  const bool routed = ::connect(s, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0 &&
                      ::getsockname(s, reinterpret_cast<sockaddr*>(&from), &size) == 0;
  ::close(s);
  return routed ? to_host(reinterpret_cast<sockaddr*>(&from)) : "";
}

bool same_network(const Address& a, const Address& b) {
  const int bits = std::min(a.prefix_bits, b.prefix_bits);
  const uint32_t mask = bits == 0 ? 0 : ~uint32_t{0} << (32 - bits);
  return (to_number(a.host) & mask) == (to_number(b.host) & mask);
}

bool has_host(const std::vector<Address>& addresses, const std::string& host) {
  return std::any_of(addresses.begin(), addresses.end(),
                     [&](const Address& a) { return a.host == host; });
}

}  // namespace

std::vector<Address> own_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> guard(first, freeifaddrs);
  std::vector<Address> out;
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    const bool usable = (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_LOOPBACK) == 0;
    if (usable && i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET) {
      out.push_back({to_host(i->ifa_addr), std::popcount(to_number(to_host(i->ifa_netmask)))});
    }
  }
  const std::string source = default_source();
  std::stable_partition(out.begin(), out.end(), [&](const Address& a) { return a.host == source; });
  return out;
}

std::string to_text(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& a : addresses) {
    text += text.empty() ? "" : ",";
    text += a.host + "/" + std::to_string(a.prefix_bits);
  }
  return text;
}

std::vector<Address> from_text(const std::string& text) {
  std::vector<Address> out;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const size_t slash = item.find('/');
    out.push_back({item.substr(0, slash), std::atoi(item.c_str() + slash + 1)});
  }
  return out;
}

std::string choose_address(const std::vector<Address>& own,
                           const std::vector<std::vector<Address>>& peers) {
  std::string best;
  int64_t best_count = -1;
  for (const Address& mine : own) {
    const bool repeated =
        std::any_of(peers.begin(), peers.end(), [&](const std::vector<Address>& peer) {
          return has_host(peer, mine.host) &&
                 peer.front().host != own.front().host;  // not another rank of this machine
        });
    const auto reached =
        std::count_if(peers.begin(), peers.end(), [&](const std::vector<Address>& peer) {
          return std::any_of(peer.begin(), peer.end(),
                             [&](const Address& a) { return same_network(mine, a); });
        });
    if (!repeated && reached > best_count) {
      best = mine.host;
      best_count = reached;
    }
  }
  return best;
}

bool is_literal(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

}  // namespace ciuic::plugins::gloo
