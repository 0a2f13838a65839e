#include "agent/gpu_watch.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "agent/executable.h"
#include "base/clock.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kProgram = "nvidia-smi";
// A program that ends with the job's ranks is nothing to tell of: their ends may be on the way.
constexpr seconds kAfterEnd{1};

// The driver may take seconds to wake the GPUs up.
milliseconds patience_for(milliseconds period) {
  return std::clamp<milliseconds>(10 * period, seconds(1),
                                  std::max<milliseconds>(seconds(30), 3 * period));
}

std::vector<std::string> words_for(milliseconds period) {
  const bool is_whole = period % seconds(1) == milliseconds(0);
  return {kProgram, "--query-gpu=index,utilization.gpu,memory.used,memory.total",
          "--format=csv,noheader,nounits", is_whole ? "-l" : "-lms",
          fmt::format_int(is_whole ? period / seconds(1) : period.count()).str()};
}

}  // namespace

GpuWatch::GpuWatch(Loop& loop, milliseconds period, std::function<void(const std::string&)> tell)
    : loop_(loop), period_(period), tell_(std::move(tell)), patience_(loop) {}

void GpuWatch::start(const EnvList& env, const std::string& cgroup) {
  const auto found = find_executable(kProgram, env, "/");
  if (found.errno_value != 0) {
    return tell_once(
        fmt::format("no GPU statistics: {}: {}", kProgram, strerror(found.errno_value)));
  }
  auto program = OutsideProgram::start(loop_, {found.path, words_for(period_), env, "/", cgroup},
                                       {[this](std::string_view bytes) {
                                          if (lines_.add(bytes)) expect_word();
                                        },
                                        [this](const std::string& how) { take_end(how); }});
  if (!program) return tell_once("no GPU statistics: " + program.error().message);
  program_ = std::move(*program);
  expect_word();
}

void GpuWatch::take_end(const std::string& how) {
  std::string text = fmt::format("no GPU statistics: {} {}", kProgram, how);
  if (!lines_.last_words().empty()) text += fmt::format(" (it said: {})", lines_.last_words());
  patience_.start(kAfterEnd, [this, text] { tell_once(text); });
}

// It is not killed: a driver that is slow today may answer again.
void GpuWatch::expect_word() {
  const milliseconds patience = patience_for(period_);
  patience_.start(patience, [this, patience] {
    tell_once(fmt::format("no GPU statistics: {} has said nothing for {}", kProgram,
                          format_duration(patience)));
  });
}

void GpuWatch::tell_once(const std::string& text) {
  if (!std::exchange(is_told_, true)) tell_(text);
}

}  // namespace hvd
