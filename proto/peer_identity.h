// Who a certificate of hvdrun's own authority belongs to: one URI in it says so, nothing else does.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hvd {

struct PeerIdentity {
  enum class Kind { kUser, kNode };
  Kind kind = Kind::kUser;
  std::string name;
  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};

// "user alice", "node node1".
[[nodiscard]] std::string identity_text(const PeerIdentity& identity);

// Letters, digits, '_', '.' and '-', not starting with '-' or '.'; 1 to 253 of them.
[[nodiscard]] bool is_identity_name(std::string_view name);

// IPv4 or IPv6, without brackets and zone.
[[nodiscard]] bool is_ip_address(const std::string& text);

// "spiffe://hvdrun/user/alice", "spiffe://hvdrun/node/node1".
[[nodiscard]] std::string to_uri(const PeerIdentity& identity);
[[nodiscard]] std::optional<PeerIdentity> parse_identity(std::string_view uri);

}  // namespace hvd
