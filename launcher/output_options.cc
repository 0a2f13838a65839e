#include "launcher/output_options.h"

#include <filesystem>

#include "launcher/argv_scan.h"

namespace hvd {

Result<void> set_output_option(OutputRequest& request, const Occurrence& it) {
  switch (it.spec->id) {
    case OptionId::kPrefixTimestamp:
      request.has_time = !it.is_opposite;
      return {};
    case OptionId::kNoTagOutput:
      request.has_marks = it.is_opposite;
      return {};
    default:
      break;
  }
  if (it.value.empty()) {
    return make_error(ExitCode::kUsage, "--output-filename \"\": no folder is named");
  }
  std::error_code error;
  request.folder = std::filesystem::absolute(it.value, error).string();
  if (error) return make_error(ExitCode::kUsage, "--output-filename: {}", error.message());
  return {};
}

}  // namespace hvd
