#include "launcher/report_options.h"

#include <array>
#include <climits>
#include <filesystem>
#include <utility>

#include "launcher/argv_scan.h"
#include "launcher/output_file.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

// Opened by its name it would be a second, unordered way to the same place, or a file cut off.
bool is_stdout(std::string_view text) {
  return text == kStdoutName || text == "/dev/stdout" || text == "/dev/fd/1" ||
         text == "/proc/self/fd/1";
}

// Whether both are one file, however spelled: by links, too, and where it does not exist yet.
bool is_one_place(const std::string& a, const std::string& b) {
  if (a == b) return !a.empty();
  if (a.empty() || b.empty() || a == kStdoutName || b == kStdoutName) return false;
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path plain = fs::weakly_canonical(a, error);
  return !error && plain == fs::weakly_canonical(b, error) && !error;
}

// Events may go to a pipe, a device or a file; it is opened when the job begins.
Result<std::string> events_path(std::string_view text) {
  std::error_code error;
  fs::path path = fs::absolute(fs::path(text), error);
  std::error_code missing;
  const fs::file_status status = fs::status(path, missing);
  const bool is_special = fs::is_fifo(status) || fs::is_character_file(status);
  if (error || !is_special) return check_output_file(text, "--events");
  return path.string();
}

}  // namespace

Result<void> set_record_option(RecordRequest& request, const Occurrence& it) {
  const bool is_report = it.spec->id == OptionId::kReport;
  std::string& target = is_report ? request.report : request.events;
  if (is_stdout(it.value)) {
    target = std::string(kStdoutName);
    return {};
  }
  auto path = is_report ? check_output_file(it.value, "--report") : events_path(it.value);
  if (!path) return tl::unexpected(path.error());
  target = std::move(*path);
  return {};
}

Result<void> check_records(const RecordRequest& request, const std::string& timeline) {
  const std::array<std::pair<const char*, std::string>, 3> outputs = {
      {{"--report", request.report},
       {"--events", request.events},
       {"--timeline-filename", timeline}}};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    for (std::size_t j = i + 1; j < outputs.size(); ++j) {
      const auto& [other, other_path] = outputs[j];
      if (!is_one_place(path, other_path)) continue;
      return make_error(ExitCode::kUsage, "{} and {} both name {}; give each a file of its own",
                        option, other, show(path));
    }
  }
  // It is written beside its place, under a longer name, and takes that when it is whole.
  const auto slash = request.report.rfind('/');
  const std::size_t length = request.report.size() - (slash == std::string::npos ? 0 : slash + 1);
  constexpr std::size_t kLongest = NAME_MAX - kTemporaryEnd.size();
  if (length <= kLongest) return {};
  return make_error(ExitCode::kUsage, "--report: a name of {} bytes is too long; use {} at most",
                    length, kLongest);
}

}  // namespace hvd
