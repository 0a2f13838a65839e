#include "hvdrun/sync_options.h"

#include <algorithm>
#include <cstdlib>

#include "base/parse_number.h"

namespace hvd {

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "none";
    case Compression::kFloat16:
      return "fp16";
    case Compression::kBfloat16:
      return "bf16";
  }
  return "an unknown compression";
}

Result<SyncOptions> sync_options_from_environment(SyncOptions options) {
  const char* const variable = std::getenv("HOROVOD_FUSION_THRESHOLD");
  if (variable == nullptr) return options;
  const std::string_view text = variable;
  const auto num_bytes = parse_number<std::size_t>(text);
  if (!num_bytes) {
    return make_error(ExitCode::kUsage,
                      "HOROVOD_FUSION_THRESHOLD=\"{}\": give a number of bytes, or 0 for a bucket "
                      "for each tensor",
                      text);
  }
  options.bucket_bytes = *num_bytes;
  options.first_bucket_bytes = std::min(options.first_bucket_bytes, *num_bytes);
  return options;
}

}  // namespace hvd
