#include "launcher/host_filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <string>

#include "launcher/gpu_list.h"
#include "launcher/host_range.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

struct HostPattern {
  std::string text;  // for messages
  std::vector<std::string> names;
  std::vector<std::string> gpus;  // empty: the whole host
};

Result<HostPattern> parse_pattern(std::string_view item) {
  HostPattern pattern{.text = std::string(item), .names = {}, .gpus = {}};
  std::string_view name = item;
  // "[fd00::1]" is an address, "fd00::1" and "node1:0,2" are cut at the last colon.
  const auto colon = item.ends_with(']') ? std::string_view::npos : item.rfind(':');
  if (colon != std::string_view::npos) {
    name = item.substr(0, colon);
    auto gpus = parse_gpus(item.substr(colon + 1));
    if (!gpus) return tl::unexpected(gpus.error().within(show(item)));
    pattern.gpus = std::move(*gpus);
  }
  if (name.empty()) {
    return make_error(ExitCode::kUsage, "{} names no host; write names as in node[1-4],node7:0,2",
                      show(item));
  }
  if (name.front() == '[' && name.back() == ']') {
    pattern.names = {std::string(name.substr(1, name.size() - 2))};
    return pattern;
  }
  auto names = expand_host_range(name);
  if (!names) return tl::unexpected(names.error());
  pattern.names = std::move(*names);
  return pattern;
}

Result<std::vector<HostPattern>> parse_patterns(std::string_view list) {
  std::vector<HostPattern> patterns;
  for (std::size_t at = 0; at <= list.size();) {
    const auto end = std::min(list.find('@', at), list.size());
    bool is_first = true;
    for (const std::string_view item : split_host_items(list.substr(at, end - at))) {
      if (!is_first && is_gpu_number(item) && !patterns.back().gpus.empty()) {
        if (auto added = add_gpus(item, patterns.back().gpus); !added) {
          return tl::unexpected(added.error());
        }
        continue;
      }
      auto pattern = parse_pattern(item);
      if (!pattern) return tl::unexpected(pattern.error());
      patterns.push_back(std::move(*pattern));
      is_first = false;
    }
    at = end + 1;
  }
  return patterns;
}

bool matches(const HostPattern& pattern, const HostSpec& host) {
  return std::any_of(pattern.names.begin(), pattern.names.end(), [&host](const auto& name) {
    return name == host.name || ::fnmatch(name.c_str(), host.name.c_str(), FNM_NOESCAPE) == 0;
  });
}

bool has(const std::vector<std::string>& gpus, const std::string& gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

void set_selection(HostSpec& host, std::vector<std::string> gpus) {
  host.gpus = std::move(gpus);
  host.slots = static_cast<std::uint32_t>(host.gpus.size());
}

Result<void> select_gpus(HostSpec& host, const HostPattern& pattern) {
  if (pattern.gpus.empty()) return {};
  for (const std::string& gpu : pattern.gpus) {
    if (host.gpus.empty() || has(host.gpus, gpu)) continue;
    return make_error(ExitCode::kUsage, "{} selects GPU {}, but host {} is listed with GPUs {}",
                      show(pattern.text), gpu, host.label(), format_gpus(host.gpus));
  }
  set_selection(host, pattern.gpus);
  return {};
}

// Those that the host list gives to the host.
Result<std::vector<std::string>> listed_gpus(const HostSpec& host, const HostPattern& pattern) {
  if (!host.gpus.empty()) return host.gpus;
  if (!host.slots) {
    return make_error(ExitCode::kUsage,
                      "{} takes away GPUs of host {}, whose number is not known; give it slots, as "
                      "in {}:8",
                      show(pattern.text), host.label(), host.label());
  }
  std::vector<std::string> gpus;
  for (std::uint32_t gpu = 0; gpu < *host.slots; ++gpu) gpus.push_back(std::to_string(gpu));
  return gpus;
}

Result<void> take_gpus_away(HostSpec& host, const HostPattern& pattern) {
  auto gpus = listed_gpus(host, pattern);
  if (!gpus) return tl::unexpected(gpus.error());
  for (const std::string& gpu : pattern.gpus) {
    if (std::erase(*gpus, gpu) > 0) continue;
    return make_error(ExitCode::kUsage, "{} takes away GPU {}, which host {} does not have here",
                      show(pattern.text), gpu, host.label());
  }
  set_selection(host, std::move(*gpus));
  return {};
}

// What all patterns that match the host include of it together; nullopt: nothing.
std::optional<HostPattern> joined_pattern(const std::vector<HostPattern>& patterns,
                                          const HostSpec& host) {
  std::optional<HostPattern> joined;
  for (const HostPattern& pattern : patterns) {
    if (!matches(pattern, host)) continue;
    if (!joined) {
      joined = pattern;
    } else if (joined->gpus.empty() || pattern.gpus.empty()) {
      joined->gpus.clear();  // the whole host
    } else {
      for (const std::string& gpu : pattern.gpus) {
        if (!has(joined->gpus, gpu)) joined->gpus.push_back(gpu);
      }
    }
  }
  return joined;
}

Result<void> check_matched(const std::vector<HostPattern>& patterns,
                           const std::vector<HostSpec>& hosts) {
  for (const HostPattern& pattern : patterns) {
    const auto is_match = [&](const HostSpec& host) { return matches(pattern, host); };
    if (std::any_of(hosts.begin(), hosts.end(), is_match)) continue;
    return make_error(ExitCode::kUsage, "{} matches none of the hosts {}", show(pattern.text),
                      format_hosts(hosts));
  }
  return {};
}

Result<std::vector<HostSpec>> require_some(std::vector<HostSpec> hosts) {
  if (!hosts.empty()) return hosts;
  return make_error(ExitCode::kUsage, "no host is left");
}

}  // namespace

Result<std::vector<HostSpec>> include_hosts(std::vector<HostSpec> hosts, std::string_view list) {
  const auto patterns = parse_patterns(list);
  if (!patterns) return tl::unexpected(patterns.error());
  if (auto checked = check_matched(*patterns, hosts); !checked) {
    return tl::unexpected(checked.error());
  }
  std::vector<HostSpec> kept;
  for (HostSpec& host : hosts) {
    const auto pattern = joined_pattern(*patterns, host);
    if (!pattern) continue;
    if (auto done = select_gpus(host, *pattern); !done) return tl::unexpected(done.error());
    kept.push_back(std::move(host));
  }
  return require_some(std::move(kept));
}

Result<std::vector<HostSpec>> exclude_hosts(std::vector<HostSpec> hosts, std::string_view list) {
  const auto patterns = parse_patterns(list);
  if (!patterns) return tl::unexpected(patterns.error());
  if (auto checked = check_matched(*patterns, hosts); !checked) {
    return tl::unexpected(checked.error());
  }
  for (const HostPattern& pattern : *patterns) {
    for (HostSpec& host : hosts) {
      if (!matches(pattern, host) || host.slots == 0U) continue;
      if (pattern.gpus.empty()) {
        host.slots = 0;
      } else if (auto done = take_gpus_away(host, pattern); !done) {
        return tl::unexpected(done.error());
      }
    }
  }
  std::erase_if(hosts, [](const HostSpec& host) { return host.slots == 0U; });
  return require_some(std::move(hosts));
}

}  // namespace hvd
