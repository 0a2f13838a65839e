#include "launcher/timeline_options.h"

#include <limits>
#include <string_view>

#include "launcher/argv_scan.h"
#include "launcher/option_values.h"
#include "launcher/output_file.h"
#include "launcher/shell_words.h"
#include "proto/step_range.h"

namespace hvd {
namespace {

constexpr std::uint32_t kMostMegabytes = 1U << 20U;

Result<void> set_steps(TimelineRequest& request, std::string_view text) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  const auto steps = parse_step_range(text);
  if (!steps || steps->second > kMost) {
    return make_error(ExitCode::kUsage,
                      "--timeline-steps {}: write the first and the last step, as in 100-199",
                      show(text));
  }
  request.steps = *steps;
  return {};
}

}  // namespace

Result<void> set_timeline_option(TimelineRequest& request, const Occurrence& it) {
  switch (it.spec->id) {
    case OptionId::kTimelineFilename: {
      auto path = check_output_file(it.value, it.spec->names.front());
      if (!path) return tl::unexpected(path.error());
      request.path = std::move(*path);
      return {};
    }
    case OptionId::kTimelineSteps:
      return set_steps(request, it.value);
    case OptionId::kTimelineMaxMb: {
      const auto megabytes = parse_count(it.value, it.spec->names.front(), 1, kMostMegabytes);
      if (!megabytes) return tl::unexpected(megabytes.error());
      request.max_bytes = std::uint64_t{*megabytes} << 20U;
      return {};
    }
    default:
      request.marks_cycles = !it.is_opposite;
      return {};
  }
}

void note_unused_timeline_options(const TimelineRequest& request, std::vector<std::string>& notes) {
  const TimelineRequest none;
  if (request.is_wanted()) return;
  if (request.steps || request.marks_cycles || request.max_bytes != none.max_bytes) {
    notes.emplace_back("options about the timeline have no effect without --timeline-filename");
  }
}

EnvList timeline_env(const TimelineRequest& request) {
  if (!request.is_wanted()) return {};
  // The second is for programs that use Horovod: its rank 0 writes that file itself.
  EnvList result = {{"HVDRUN_TIMELINE_MAX_BYTES", fmt::format_int(request.max_bytes).str()},
                    {"HOROVOD_TIMELINE", request.path}};
  if (request.steps) {
    result.emplace_back("HVDRUN_TIMELINE_STEPS",
                        fmt::format("{}-{}", request.steps->first, request.steps->second));
  }
  if (request.marks_cycles) {
    result.emplace_back("HOROVOD_TIMELINE_MARK_CYCLES", *request.marks_cycles ? "1" : "0");
  }
  return result;
}

}  // namespace hvd
