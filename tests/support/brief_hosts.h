// Hosts as one line, for tests that compare whole lists.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "launcher/gpu_list.h"
#include "launcher/hostlist.h"

namespace hvd {

// "user@name/port:slots(gpus)<key>{NAME=VALUE}", '?' for unknown slots, blanks between hosts.
[[nodiscard]] inline std::string brief(const Result<std::vector<HostSpec>>& hosts) {
  if (!hosts) return "error: " + hosts.error().message;
  std::string result;
  for (const HostSpec& host : *hosts) {
    if (!result.empty()) result += " ";
    if (!host.user.empty()) result += host.user + "@";
    result += host.name;
    if (host.port != 0) result += fmt::format("/{}", host.port);
    result += host.slots ? fmt::format(":{}", *host.slots) : ":?";
    if (!host.gpus.empty()) result += fmt::format("({})", format_gpus(host.gpus));
    if (!host.key.empty()) result += fmt::format("<{}>", host.key);
    for (const auto& [name, value] : host.env) result += fmt::format("{{{}={}}}", name, value);
  }
  return result;
}

}  // namespace hvd
