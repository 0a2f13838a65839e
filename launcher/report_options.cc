#include "launcher/report_options.h"

#include <filesystem>

#include "launcher/argv_scan.h"
#include "launcher/output_file.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

// Events may go to a pipe, a device or a file; it is opened when the job begins.
Result<std::string> events_path(std::string_view text) {
  std::error_code error;
  fs::path path = fs::absolute(fs::path(text), error);
  std::error_code missing;
  const fs::file_status status = fs::status(path, missing);
  const bool is_special =
      fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
  if (error || !is_special) return check_output_file(text, "--events");
  return path.string();
}

}  // namespace

Result<void> set_record_option(RecordRequest& request, const Occurrence& it) {
  const bool is_report = it.spec->id == OptionId::kReport;
  std::string& target = is_report ? request.report : request.events;
  if (it.value == kStdoutName) {
    target = it.value;
    return {};
  }
  auto path = is_report ? check_output_file(it.value, "--report") : events_path(it.value);
  if (!path) return tl::unexpected(path.error());
  target = std::move(*path);
  return {};
}

Result<void> check_records(const RecordRequest& request) {
  if (request.report.empty() || request.report != request.events) return {};
  return make_error(ExitCode::kUsage,
                    "--report and --events both name {}; give each a file of its own",
                    show(request.report));
}

}  // namespace hvd
