// Configuration files: whatever the bytes, settings with their place or a sentence that begins with
// the file.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "launcher/config_file.h"

namespace {

void require(bool is_true) {
  if (!is_true) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings = hvd::parse_config(text, "config");
  if (!settings) {
    const hvd::Error& error = settings.error();
    require(error.code == hvd::ExitCode::kUsage && error.message.starts_with("config:"));
    for (const char c : error.message) require(static_cast<unsigned char>(c) >= ' ');
    return 0;
  }
  for (const hvd::Occurrence& it : *settings) {
    require(it.spec != nullptr && it.source.starts_with("config:"));
    require(!it.spec->is_hidden && !it.spec->is_per_run);
    require(it.value.empty() || (it.spec->takes_argument() && !it.is_opposite));
    require(it.value.find('\0') == std::string::npos);
  }
  return 0;
}
