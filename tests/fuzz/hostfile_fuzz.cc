// Hostfiles: whatever the bytes, hosts that can be used or a sentence that begins with the file.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "launcher/hostfile.h"

namespace {

void require(bool is_true) {
  if (!is_true) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto hosts = hvd::parse_hostfile(text, "hosts", nullptr);
  if (!hosts) {
    require(hosts.error().code == hvd::ExitCode::kUsage);
    require(hosts.error().message.starts_with("hosts:"));
    return 0;
  }
  require(!hosts->empty());
  for (const hvd::HostSpec& host : *hosts) {
    require(hvd::is_host_name(host.name) && host.slots != 0U && !host.user.starts_with('-'));
  }
  return 0;
}
