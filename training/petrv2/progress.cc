#include "training/petrv2/progress.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "training/formats/disk_write.h"

namespace hvd::petrv2 {

bool LineSchedule::is_due(std::uint64_t num_steps, std::optional<SteadyTime> last_line,
                          SteadyTime now) const {
  if (!is_terminal) return num_steps >= log_every;
  return !last_line || now - *last_line >= std::chrono::seconds(1);
}

Result<void> Progress::Sink::write_line(std::string line) {
  if (fd < 0) return {};
  line += '\n';
  const int error = write_all(fd, line);
  if (error == 0) return {};
  fd = -1;
  return tl::unexpected(write_error(name, error, line.size()));
}

Result<Progress> Progress::open(const ProgressOptions& options) {
  if (options.log_every < 1) return make_error("--log-every must be at least 1");
  Sink text{"standard output", UniqueFd(), options.stdout_fd};
  Sink json;
  if (options.json == "-") {
    json = std::move(text);
    text = {"standard error", UniqueFd(), options.stderr_fd};
  } else if (!options.json.empty()) {
    json.owned.reset(::open(options.json.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    json.name = options.json;
    json.fd = json.owned.get();
    if (json.fd < 0) return tl::unexpected(write_error(options.json, errno, 0));
  }
  const LineSchedule schedule{::isatty(text.fd) == 1, options.log_every};
  return Progress(schedule, std::move(text), std::move(json));
}

Result<void> Progress::report(const StepReport& report, SteadyTime now, double wall_time) {
  window_.add(report);
  const auto json_written = json_.write_line(json_line(report, wall_time));
  if (schedule_.is_due(window_.num_steps(), last_line_, now)) {
    if (auto written = finish(now); !written) return written;
  }
  return json_written;
}

Result<void> Progress::finish(SteadyTime now) {
  if (window_.is_empty()) return {};
  last_line_ = now;
  const std::string line = window_.line();
  window_.clear();
  return text_.write_line(line);
}

}  // namespace hvd::petrv2
