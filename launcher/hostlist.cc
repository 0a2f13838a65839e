#include "launcher/hostlist.h"

#include <algorithm>
#include <utility>

#include "launcher/gpu_list.h"
#include "launcher/host_entry.h"
#include "launcher/host_list_builder.h"
#include "launcher/host_range.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::size_t kMostHostsShown = 8;

// An entry with the numbers that follow it.
struct EntryGroup {
  std::string_view entry;
  std::vector<std::string_view> more;
};

// Its last field lists GPUs, so that an id of one may follow: gpus=0, 0-3, or 0 with more behind
// it.
bool lists_gpus(const EntryGroup& group) {
  const auto colon = group.entry.rfind(':');
  const auto field = colon == std::string_view::npos ? "" : group.entry.substr(colon + 1);
  const bool is_range = field.find('-') != std::string_view::npos && is_gpu_number(field);
  return !group.more.empty() || is_range || group.entry.find("gpus=") != std::string_view::npos;
}

std::vector<EntryGroup> group_items(const std::vector<std::string_view>& items) {
  std::vector<EntryGroup> groups;
  for (const std::string_view item : items) {
    const bool has_host = !groups.empty();
    if (has_host && (is_gpu_number(item) || (is_gpu_id(item) && lists_gpus(groups.back())))) {
      groups.back().more.push_back(item);
    } else {
      groups.push_back({item, {}});
    }
  }
  return groups;
}

Result<void> add_group(const EntryGroup& group, std::string_view list, HostListBuilder& builder) {
  if (group.entry.empty()) {
    return make_error(ExitCode::kUsage,
                      "{} has an empty entry; write hosts with single commas between them, as in "
                      "node1:8,node2:8",
                      show(list));
  }
  auto hosts = parse_host_entry(group.entry, group.more);
  if (!hosts) return tl::unexpected(hosts.error());
  for (HostSpec& host : *hosts) {
    if (auto added = builder.add(std::move(host)); !added) return added;
  }
  return {};
}

std::string format_host(const HostSpec& host) {
  std::string result = host.user.empty() ? "" : host.user + "@";
  const bool is_address = host.name.find(':') != std::string::npos;
  result += is_address ? fmt::format("[{}]", host.name) : host.name;
  const bool is_one_each = !host.gpus.empty() && host.slots == host.gpus.size();
  if (host.slots && !is_one_each) result += fmt::format(":{}", *host.slots);
  if (host.port != 0) result += fmt::format(":port={}", host.port);
  if (!host.gpus.empty()) result += fmt::format(":gpus={}", format_gpus(host.gpus));
  return result;
}

}  // namespace

bool looks_like_host(std::string_view word) {
  if (!word.empty() && word.back() == ',') word.remove_suffix(1);
  const auto colon = word.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto slots = word.substr(colon + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !slots.empty() && std::all_of(slots.begin(), slots.end(), is_digit) &&
         parse_host_entry(word).has_value();
}

Result<std::vector<HostSpec>> parse_hosts(std::string_view text, std::vector<std::string>* notes) {
  HostListBuilder builder(notes);
  for (const EntryGroup& group : group_items(split_host_items(text))) {
    const auto added = add_group(group, text, builder);
    if (!added) return tl::unexpected(added.error());
  }
  return builder.finish();
}

std::string format_hosts(const std::vector<HostSpec>& hosts) {
  std::string result;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i > 0) result += ",";
    if (i == kMostHostsShown && hosts.size() > kMostHostsShown + 1) {
      return result + fmt::format("... ({} hosts)", hosts.size());
    }
    result += format_host(hosts[i]);
  }
  return result;
}

}  // namespace hvd
