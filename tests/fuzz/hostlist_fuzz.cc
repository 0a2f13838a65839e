// Host lists of -H: whatever the text, hosts that can be used or a sentence; and a list that was
// read is read again as the same one. The same text as --include and --exclude.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "launcher/host_filter.h"
#include "launcher/hostlist.h"

namespace {

void require(bool is_true) {
  if (!is_true) std::abort();
}

void check(const hvd::Result<std::vector<hvd::HostSpec>>& hosts) {
  if (!hosts) {
    require(hosts.error().code == hvd::ExitCode::kUsage && !hosts.error().message.empty());
    return;
  }
  require(!hosts->empty());
  for (const hvd::HostSpec& host : *hosts) {
    require(hvd::is_host_name(host.name) && host.slots != 0U && !host.user.starts_with('-'));
  }
  constexpr std::size_t kShownWhole = 8;
  if (hosts->size() > kShownWhole) return;
  const std::string text = hvd::format_hosts(*hosts);
  const auto again = hvd::parse_hosts(text, nullptr);
  require(again && hvd::format_hosts(*again) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(hvd::parse_hosts(text, nullptr));
  static_cast<void>(hvd::looks_like_host(text));
  const hvd::HostSpec host{.name = "node1", .slots = 8};
  for (const auto filter : {hvd::include_hosts, hvd::exclude_hosts}) check(filter({host}, text));
  return 0;
}
