#include "launcher/host_entry.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "base/blanks.h"
#include "base/parse_number.h"
#include "launcher/gpu_list.h"
#include "launcher/host_list_builder.h"
#include "launcher/host_range.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::size_t kLongestName = 255;

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

Error twice(const HostSpec& host, std::string_view what) {
  return {fmt::format("host {} has its {} twice; write it once, as in {}:8", host.label(), what,
                      host.label()),
          ExitCode::kUsage};
}

// An entry cut into its parts; what stands between the colons is still text.
struct EntryParts {
  std::string_view user;
  std::string_view name;
  bool is_address = false;  // the name stood in brackets
  std::vector<std::string_view> fields;
};

void add_fields(std::string_view text, EntryParts& parts) {
  for (std::size_t at = 0; at <= text.size();) {
    const auto colon = std::min(text.find(':', at), text.size());
    parts.fields.push_back(strip_blanks(text.substr(at, colon - at)));
    at = colon + 1;
  }
}

Result<EntryParts> split_bracketed(std::string_view entry, EntryParts parts,
                                   std::string_view rest) {
  const auto close = rest.find(']');
  if (close == std::string_view::npos || !is_ipv6(rest.substr(1, close - 1))) {
    return make_error(ExitCode::kUsage,
                      "{} has no IPv6 address in its brackets; write it as [fd00::1]:8, and a "
                      "range of names as node[1-4]",
                      show(entry));
  }
  parts.name = rest.substr(1, close - 1);
  parts.is_address = true;
  const auto tail = strip_blanks(rest.substr(close + 1));
  if (tail.empty()) return parts;
  if (tail.front() != ':') {
    return make_error(ExitCode::kUsage, "{} goes on after its bracket; write it as [fd00::1]:8",
                      show(entry));
  }
  add_fields(tail.substr(1), parts);
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
  const auto colon = rest.find(':');
  parts.name = strip_blanks(rest.substr(0, colon));
  if (colon != std::string_view::npos) add_fields(rest.substr(colon + 1), parts);
  const auto is_bare = [](std::string_view field) {
    return field.find('=') == std::string_view::npos;
  };
  if (is_ipv6(rest) || std::count_if(parts.fields.begin(), parts.fields.end(), is_bare) > 1) {
    return make_error(ExitCode::kUsage,
                      "{} has more than one colon; write host:slots, a port as host:slots:port=N, "
                      "and an IPv6 address in brackets, as in [fd00::1]:8",
                      show(entry));
  }
  return parts;
}

// "8", "gpus=0" and "port=2222". A number is slots, or the first GPU if further ones follow.
Result<void> apply_field(HostSpec& host, std::string_view field, bool begins_gpus) {
  const auto equals = field.find('=');
  if (equals == std::string_view::npos) {
    const bool is_range = field.find('-', 1) != std::string_view::npos && is_gpu_number(field);
    return begins_gpus || is_range ? set_gpus(host, field) : set_slots(host, field);
  }
  const auto key = strip_blanks(field.substr(0, equals));
  const auto value = strip_blanks(field.substr(equals + 1));
  if (key == "gpus") return set_gpus(host, value);
  if (key == "port") return set_port(host, value);
  return make_error(ExitCode::kUsage,
                    "{} is not known for {}; in a host list there are slots, gpus=LIST and port=N, "
                    "as in node1:8:port=2222",
                    show(field), host.label());
}

Result<void> add_more_gpus(HostSpec& host, std::string_view last_field,
                           const std::vector<std::string_view>& more) {
  const bool is_list = last_field.starts_with("gpus") || is_gpu_number(last_field);
  for (const std::string_view item : more) {
    if (!is_list || is_gpu_id(item)) {
      return make_error(ExitCode::kUsage,
                        "{} after {} may be a host or a GPU: a number alone is a GPU of the host "
                        "before it, if that has begun a list, as in node1:0,2 or node1:gpus=0,2; "
                        "ids of GPUs can be given in a hostfile",
                        show(item), host.label());
    }
    if (auto added = add_gpus(item, host.gpus); !added) return added;
  }
  return {};
}

Result<HostSpec> make_host(const EntryParts& parts, const std::vector<std::string_view>& more) {
  HostSpec host;
  host.name = parts.name;
  host.user = parts.user;
  for (std::size_t i = 0; i < parts.fields.size(); ++i) {
    const bool begins_gpus = i + 1 == parts.fields.size() && !more.empty();
    const auto applied = apply_field(host, parts.fields[i], begins_gpus);
    if (!applied) return tl::unexpected(applied.error());
  }
  if (more.empty()) return host;
  const auto added =
      add_more_gpus(host, parts.fields.empty() ? std::string_view{} : parts.fields.back(), more);
  if (!added) return tl::unexpected(added.error());
  return host;
}

Error bare_number(std::string_view name, std::string_view entry) {
  return {fmt::format("{} is a number and has no host before it; write a host's GPUs as in "
                      "node1:0,2, and a host of that name as {}:1",
                      show(name), entry),
          ExitCode::kUsage};
}

// `is_bare`: nothing but the name is written.
Result<std::vector<HostSpec>> expand(const HostSpec& host, std::string_view entry, bool is_bare) {
  const auto names = expand_host_range(host.name);
  if (!names) return tl::unexpected(names.error());
  if (names->size() * host.gpus.size() > kMostGpus) {
    return make_error(ExitCode::kUsage, "{} has more than {} GPUs in all; name fewer", show(entry),
                      kMostGpus);
  }
  std::vector<HostSpec> hosts(names->size(), host);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!is_plain_name((*names)[i])) {
      return make_error(ExitCode::kUsage,
                        "{} is no host; write letters, digits, '_', '.' and '-', not starting with "
                        "'-', as in node1:8, and a comma between hosts",
                        show(entry));
    }
    if (is_bare && is_gpu_number((*names)[i])) {
      return tl::unexpected(bare_number((*names)[i], entry));
    }
    hosts[i].name = (*names)[i];
  }
  return hosts;
}

}  // namespace

bool is_host_name(std::string_view name) { return is_plain_name(name) || is_ipv6(name); }

Result<std::vector<HostSpec>> parse_host_entry(std::string_view entry,
                                               const std::vector<std::string_view>& more) {
  const auto parts = split_entry(entry);
  if (!parts) return tl::unexpected(parts.error());
  const bool is_bare = !parts->is_address && parts->fields.empty() && parts->user.empty();
  if (is_bare && is_gpu_number(entry)) return tl::unexpected(bare_number(entry, entry));
  auto host = make_host(*parts, more);
  if (!host) return tl::unexpected(host.error());
  if (parts->is_address) return std::vector<HostSpec>{std::move(*host)};
  return expand(*host, entry, is_bare);
}

Result<void> set_slots(HostSpec& host, std::string_view value) {
  if (host.slots) return tl::unexpected(twice(host, "slots"));
  const auto slots = parse_up_to(strip_blanks(value), kMostSlots);
  if (!slots) {
    return make_error(ExitCode::kUsage,
                      "{} is no number of slots for {}; write a number from 0 to {}, as in {}:8",
                      show(strip_blanks(value)), host.label(), kMostSlots, host.label());
  }
  host.slots = *slots;
  return {};
}

Result<void> set_port(HostSpec& host, std::string_view value) {
  if (host.port != 0) return tl::unexpected(twice(host, "port"));
  const auto port = parse_up_to(value, 65535);
  if (!port || *port == 0) {
    return make_error(ExitCode::kUsage, "\"port={}\" is no port; write a number from 1 to 65535",
                      value);
  }
  host.port = static_cast<std::uint16_t>(*port);
  return {};
}

Result<void> set_user(HostSpec& host, std::string_view value) {
  if (!host.user.empty()) return tl::unexpected(twice(host, "user"));
  if (!is_user_name(value)) {
    return make_error(ExitCode::kUsage, "{} is no usable user name; write it as user=alice",
                      show(value));
  }
  host.user = value;
  return {};
}

Result<void> set_gpus(HostSpec& host, std::string_view value) {
  if (!host.gpus.empty()) return tl::unexpected(twice(host, "GPUs"));
  auto gpus = parse_gpus(value);
  if (!gpus) return tl::unexpected(gpus.error().within(fmt::format("host {}", host.label())));
  host.gpus = std::move(*gpus);
  return {};
}

}  // namespace hvd
