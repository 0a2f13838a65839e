#include "launcher/hostlist.h"

#include <arpa/inet.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/parse_number.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::uint32_t kMostSlots = 65536;
constexpr std::size_t kLongestName = 255;
constexpr std::size_t kMostHostsShown = 8;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.' ||
         c == '-';
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), is_name_char);
}

bool is_ipv6(std::string_view text) {
  const auto percent = text.find('%');
  if (percent != std::string_view::npos && !is_plain_name(text.substr(percent + 1))) return false;
  in6_addr address{};
  return inet_pton(AF_INET6, std::string(text.substr(0, percent)).c_str(), &address) == 1;
}

// A leading dash would become an option of ssh or of the program of --rsh.
bool is_user_name(std::string_view user) {
  const auto is_user_char = [](char c) {
    return is_name_char(c) || c == '+' || c == '\\' || c == '@' || c == '$';
  };
  return !user.empty() && user.front() != '-' &&
         std::all_of(user.begin(), user.end(), is_user_char);
}

std::optional<std::uint32_t> parse_up_to(std::string_view text, std::uint32_t highest) {
  const auto number = parse_number<std::uint32_t>(text);
  return number && *number <= highest ? number : std::nullopt;
}

Result<std::uint32_t> parse_slots(std::string_view text, std::string_view name) {
  const auto slots = parse_up_to(strip_blanks(text), kMostSlots);
  if (slots) return *slots;
  return make_error(ExitCode::kUsage,
                    "{} is no number of slots for {}; write a number from 0 to {}, as in {}:8",
                    show(strip_blanks(text)), name, kMostSlots, name);
}

// An entry cut into its parts; the slots are still text.
struct EntryParts {
  std::string_view user;
  std::string_view name;
  std::optional<std::string_view> slots;
};

Result<EntryParts> split_bracketed(std::string_view entry, EntryParts parts,
                                   std::string_view rest) {
  const auto close = rest.find(']');
  if (close == std::string_view::npos || !is_ipv6(rest.substr(1, close - 1))) {
    return make_error(ExitCode::kUsage,
                      "{} has no IPv6 address in its brackets; write it as [fd00::1]:8",
                      show(entry));
  }
  parts.name = rest.substr(1, close - 1);
  const auto tail = strip_blanks(rest.substr(close + 1));
  if (tail.empty()) return parts;
  if (tail.front() != ':') {
    return make_error(ExitCode::kUsage, "{} goes on after its bracket; write it as [fd00::1]:8",
                      show(entry));
  }
  parts.slots = tail.substr(1);
  return parts;
}

Result<EntryParts> split_entry(std::string_view entry) {
  EntryParts parts;
  std::string_view rest = entry;
  if (const auto at = entry.rfind('@'); at != std::string_view::npos) {
    parts.user = entry.substr(0, at);
    rest = entry.substr(at + 1);
    if (!is_user_name(parts.user)) {
      return make_error(ExitCode::kUsage, "{} has no usable user name; write it as user@host:8",
                        show(entry));
    }
  }
  if (!rest.empty() && rest.front() == '[') return split_bracketed(entry, parts, rest);
  if (is_ipv6(rest) || std::count(rest.begin(), rest.end(), ':') > 1) {
    return make_error(ExitCode::kUsage,
                      "{} has more than one colon; write host:slots, and an IPv6 address in "
                      "brackets, as in [fd00::1]:8",
                      show(entry));
  }
  const auto colon = rest.find(':');
  parts.name = strip_blanks(rest.substr(0, colon));
  if (colon != std::string_view::npos) parts.slots = rest.substr(colon + 1);
  return parts;
}

Result<HostSpec> parse_entry(std::string_view entry) {
  const auto parts = split_entry(entry);
  if (!parts) return tl::unexpected(parts.error());
  if (!is_host_name(parts->name)) {
    return make_error(ExitCode::kUsage,
                      "{} is no host; write letters, digits, '_', '.' and '-', not starting with "
                      "'-', as in node1:8, and a comma between hosts",
                      show(entry));
  }
  HostSpec host;
  host.name = parts->name;
  host.user = parts->user;
  if (!parts->slots) return host;
  const auto slots = parse_slots(*parts->slots, host.name);
  if (!slots) return tl::unexpected(slots.error());
  host.slots = *slots;
  return host;
}

void add_note(std::vector<std::string>* notes, std::string note) {
  if (notes != nullptr) notes->push_back(std::move(note));
}

// Builds the list entry by entry: zero slots are left out, repeated hosts are summed where they
// first stood, so that rank order stays the order of first appearance.
class HostListBuilder {
 public:
  explicit HostListBuilder(std::vector<std::string>* notes) : notes_(notes) {}

  Result<void> add(HostSpec host) {
    if (host.slots == 0U) {
      add_note(notes_, fmt::format("host {} has 0 slots and is left out", host.label()));
      return {};
    }
    const auto key = std::tuple(host.user, host.name, host.port);
    const auto [found, is_new] = index_.try_emplace(key, hosts_.size());
    if (is_new) {
      hosts_.push_back(std::move(host));
      num_mentions_.push_back(1);
      return {};
    }
    return merge(found->second, host);
  }

  Result<std::vector<HostSpec>> finish() {
    if (hosts_.empty()) {
      return make_error(ExitCode::kUsage,
                        "no host with slots is left; name at least one, as in node1:8");
    }
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (num_mentions_[i] == 1) continue;
      add_note(notes_, fmt::format("host {} is listed {} times; its slots are summed to {}",
                                   hosts_[i].label(), num_mentions_[i], *hosts_[i].slots));
    }
    return std::move(hosts_);
  }

 private:
  Result<void> merge(std::size_t index, const HostSpec& host) {
    HostSpec& first = hosts_[index];
    if (!first.slots || !host.slots) {
      return make_error(ExitCode::kUsage,
                        "host {} is listed more than once and not always with slots; list it once, "
                        "as in {}:8",
                        host.label(), host.label());
    }
    if (*first.slots + *host.slots > kMostSlots) {
      return make_error(ExitCode::kUsage, "host {} has more than {} slots in all; lower its slots",
                        host.label(), kMostSlots);
    }
    *first.slots += *host.slots;
    ++num_mentions_[index];
    return {};
  }

  std::vector<std::string>* notes_;  // not owned; may be null
  std::vector<HostSpec> hosts_;
  std::vector<std::size_t> num_mentions_;
  std::map<std::tuple<std::string, std::string, std::uint16_t>, std::size_t> index_;
};

// "slots = 4" and "slots=4" are the same to those who wrote hostfiles for other launchers.
std::vector<std::string> split_line(std::string_view line) {
  std::string joined;
  for (const char c : line.substr(0, line.find('#'))) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\r';
    if (c == '=') joined.erase(joined.find_last_not_of(' ') + 1);
    if (is_blank && (joined.empty() || joined.back() == ' ' || joined.back() == '=')) continue;
    joined.push_back(is_blank ? ' ' : c);
  }
  std::vector<std::string> words;
  for (std::size_t at = 0; at < joined.size();) {
    const auto end = std::min(joined.find(' ', at), joined.size());
    if (end > at) words.push_back(joined.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Result<void> apply_key(HostSpec& host, std::string_view word) {
  const auto equals = word.find('=');
  const auto key = word.substr(0, equals);
  if (equals == std::string_view::npos || (key != "slots" && key != "port")) {
    return make_error(ExitCode::kUsage,
                      "{} is not known here; write one host a line, as in node1 slots=8 or node1 "
                      "slots=8 port=2222",
                      show(word));
  }
  const auto value = word.substr(equals + 1);
  if (key == "port") {
    const auto port = parse_up_to(value, 65535);
    if (!port || *port == 0) {
      return make_error(ExitCode::kUsage, "{} is no port; write a number from 1 to 65535",
                        show(word));
    }
    host.port = static_cast<std::uint16_t>(*port);
    return {};
  }
  if (host.slots) {
    return make_error(ExitCode::kUsage, "host {} has its slots twice; write them once, as in {}:8",
                      host.label(), host.label());
  }
  const auto slots = parse_slots(value, host.label());
  if (!slots) return tl::unexpected(slots.error());
  host.slots = *slots;
  return {};
}

Result<void> add_line(std::string_view line, HostListBuilder& builder) {
  const auto words = split_line(line);
  if (words.empty()) return {};
  auto host = parse_entry(words.front());
  if (!host) return tl::unexpected(host.error());
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (auto applied = apply_key(*host, words[i]); !applied) return applied;
  }
  return builder.add(std::move(*host));
}

Result<void> add_entry(std::string_view entry, std::string_view list, HostListBuilder& builder) {
  if (entry.empty()) {
    return make_error(ExitCode::kUsage,
                      "{} has an empty entry; write hosts with single commas between them, as in "
                      "node1:8,node2:8",
                      show(list));
  }
  auto host = parse_entry(entry);
  if (!host) return tl::unexpected(host.error());
  return builder.add(std::move(*host));
}

}  // namespace

bool is_host_name(std::string_view name) { return is_plain_name(name) || is_ipv6(name); }

bool looks_like_host(std::string_view word) {
  if (!word.empty() && word.back() == ',') word.remove_suffix(1);
  const auto colon = word.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto slots = word.substr(colon + 1);
  return !slots.empty() && std::all_of(slots.begin(), slots.end(), is_digit) &&
         parse_entry(word).has_value();
}

Result<std::vector<HostSpec>> parse_hosts(std::string_view text, std::vector<std::string>* notes) {
  HostListBuilder builder(notes);
  for (std::size_t at = 0; at <= text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    const auto added = add_entry(strip_blanks(text.substr(at, comma - at)), text, builder);
    if (!added) return tl::unexpected(added.error());
    at = comma + 1;
  }
  return builder.finish();
}

Result<std::vector<HostSpec>> parse_hostfile(std::string_view text, std::string_view path,
                                             std::vector<std::string>* notes) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  HostListBuilder builder(notes);
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const auto end = std::min(text.find_first_of("\r\n", at), text.size());
    const auto added = add_line(text.substr(at, end - at), builder);
    if (!added) return tl::unexpected(added.error().within(fmt::format("{}:{}", path, number)));
    at = end + (text.substr(end, 2) == "\r\n" ? 2 : 1);
  }
  auto hosts = builder.finish();
  if (!hosts) return tl::unexpected(hosts.error().within(path));
  return hosts;
}

std::string format_hosts(const std::vector<HostSpec>& hosts) {
  std::string result;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i > 0) result += ",";
    if (i == kMostHostsShown && hosts.size() > kMostHostsShown + 1) {
      return result + fmt::format("... ({} hosts)", hosts.size());
    }
    const HostSpec& host = hosts[i];
    if (!host.user.empty()) result += host.user + "@";
    const bool is_address = host.name.find(':') != std::string::npos;
    result += is_address ? fmt::format("[{}]", host.name) : host.name;
    if (host.slots) result += fmt::format(":{}", *host.slots);
  }
  return result;
}

}  // namespace hvd
