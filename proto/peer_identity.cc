#include "proto/peer_identity.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace hvd {
namespace {

constexpr std::size_t kLongestName = 253;  // of a host
constexpr std::string_view kUserPrefix = "spiffe://hvdrun/user/";
constexpr std::string_view kNodePrefix = "spiffe://hvdrun/node/";

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

std::string_view prefix_of(PeerIdentity::Kind kind) {
  return kind == PeerIdentity::Kind::kUser ? kUserPrefix : kNodePrefix;
}

}  // namespace

std::string identity_text(const PeerIdentity& identity) {
  return (identity.kind == PeerIdentity::Kind::kUser ? "user " : "node ") + identity.name;
}

bool is_identity_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name.front() != '-' &&
         name.front() != '.' && std::all_of(name.begin(), name.end(), is_name_char);
}

bool is_ip_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

std::string to_uri(const PeerIdentity& identity) {
  return std::string(prefix_of(identity.kind)) + identity.name;
}

std::optional<PeerIdentity> parse_identity(std::string_view uri) {
  for (const auto kind : {PeerIdentity::Kind::kUser, PeerIdentity::Kind::kNode}) {
    const std::string_view prefix = prefix_of(kind);
    if (!uri.starts_with(prefix)) continue;
    const std::string_view name = uri.substr(prefix.size());
    if (is_identity_name(name)) return PeerIdentity{kind, std::string(name)};
  }
  return std::nullopt;
}

}  // namespace hvd
