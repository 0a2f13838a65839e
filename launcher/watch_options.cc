#include "launcher/watch_options.h"

#include <fmt/format.h>

#include <string_view>

#include "base/replace_all.h"
#include "launcher/argv_scan.h"
#include "launcher/duration.h"
#include "launcher/placeholders.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr DurationLimits kStallLimits = {seconds(1), hours(24 * 365)};
constexpr DurationLimits kHookLimits = {milliseconds(1), seconds(60)};
constexpr DurationLimits kGpuLimits = {milliseconds(100), hours(1)};

Result<nanoseconds> duration_of(const Occurrence& it, DurationLimits limits) {
  return parse_duration(it.value, it.spec->names.front(), limits);
}

Result<void> set_hook(WatchRequest& request, std::string_view text) {
  auto words = split_words(text);
  if (!words) return tl::unexpected(words.error().within(fmt::format("--on-stall {}", show(text))));
  if (words->empty() || words->front().empty()) {
    return make_error(ExitCode::kUsage,
                      "--on-stall {}: no program is named; write it as in --on-stall 'py-spy dump "
                      "--pid {{pid}}'",
                      show(text));
  }
  request.hook = std::move(*words);
  return check_placeholders(request.hook, {"{pid}", "{rank}", "{host}"}, "--on-stall");
}

}  // namespace

Result<void> set_watch_option(WatchRequest& request, const Occurrence& it) {
  const auto assign = [](auto& target, const auto& value) -> Result<void> {
    if (!value) return tl::unexpected(value.error());
    target = *value;
    return {};
  };
  switch (it.spec->id) {
    case OptionId::kStallTimeout:
      return assign(request.stall_timeout, duration_of(it, kStallLimits));
    case OptionId::kOnStall:
      return set_hook(request, it.value);
    case OptionId::kOnStallLimit:
      return assign(request.hook_limit, duration_of(it, kHookLimits));
    default:
      return assign(request.gpu_period, duration_of(it, kGpuLimits));
  }
}

Result<void> check_hook(const WatchRequest& request, bool has_limit) {
  if (request.hook.empty() || request.stall_timeout || has_limit) return {};
  return make_error(ExitCode::kUsage,
                    "--on-stall runs only before a job is stopped that hangs; give --stall-timeout "
                    "TIME or --timeout TIME as well");
}

std::vector<std::string> hook_words(const std::vector<std::string>& hook, std::uint32_t rank,
                                    const std::string& host) {
  std::vector<std::string> words = hook;
  for (std::string& word : words) {
    replace_all(word, "{rank}", fmt::format_int(rank).str());
    replace_all(word, "{host}", host);
  }
  return words;
}

}  // namespace hvd
