#include "runtime/timeline.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "runtime/json_array_file.h"
#include "runtime/step_window.h"
#include "runtime/trace_event.h"

namespace hvd {
namespace {

constexpr std::size_t kMostQueued = 1U << 18U;
constexpr std::size_t kWakeAtQueued = 1U << 12U;  // or a burst waits for the period's end
constexpr std::uint64_t kEndBytes = 512;          // room that the last event needs
constexpr auto kFlushPatience = std::chrono::seconds(5);

struct TraceEvent {
  enum class Kind { kSpan, kInstant, kTrackName };
  Kind kind = Kind::kSpan;
  int track = 0;
  std::string name;
  Nanos begin{}, end{};
  std::string args;
};

}  // namespace

// Two parts: what callers append to, under the mutex, and the file, which only the thread touches.
struct Timeline::Writer {
  Writer(TimelineOptions the_options, JsonArrayFile the_file, Nanos start)
      : options(std::move(the_options)),
        start_time(start),
        file(std::move(the_file)),
        window(options.first_step, options.last_step) {}

  // --- any thread
  void add(TraceEvent event) {
    const std::lock_guard lock(mutex);
    if (event.kind != TraceEvent::Kind::kTrackName && !window.holds(event.begin)) return;
    push(std::move(event));
  }
  void start_step(std::uint64_t step, Nanos at);
  void flush();
  void stop();
  void push(TraceEvent event);  // with the mutex

  // --- the thread
  void run();
  [[nodiscard]] std::string line_of(const TraceEvent& event) const;
  [[nodiscard]] bool append_line(std::string line);
  void write(const std::vector<TraceEvent>& events, std::uint64_t num_dropped);
  void write_batch();
  void write_what_fits(std::string_view lines);
  void end(std::string_view reason);

  const TimelineOptions options;
  const Nanos start_time;  // boot time
  JsonArrayFile file;      // the thread's
  std::string batch;       // the thread's
  bool is_ended = false;   // the thread's

  std::mutex mutex;
  std::condition_variable has_work;
  std::condition_variable has_written;
  StepWindow window;               // guarded by mutex
  std::vector<TraceEvent> queue;   // guarded by mutex
  std::uint64_t num_dropped = 0;   // guarded by mutex
  std::uint64_t num_asked = 0;     // flushes; guarded by mutex
  std::uint64_t num_answered = 0;  // guarded by mutex
  bool is_stopping = false;        // guarded by mutex
  std::thread thread;
};

void Timeline::Writer::push(TraceEvent event) {
  if (queue.size() >= kMostQueued) {
    ++num_dropped;
    return;
  }
  queue.push_back(std::move(event));
  if (queue.size() == kWakeAtQueued) has_work.notify_one();
}

void Timeline::Writer::start_step(std::uint64_t step, Nanos at) {
  const std::lock_guard lock(mutex);
  window.start_step(step, at);
  if (options.marks_steps && window.holds(at)) {
    push({TraceEvent::Kind::kInstant, kStepTrack, "CYCLE_START", at, at,
          fmt::format("{{\"step\":{}}}", step)});
  }
}

void Timeline::Writer::flush() {
  std::unique_lock lock(mutex);
  const std::uint64_t own = ++num_asked;
  has_work.notify_one();
  has_written.wait_for(lock, kFlushPatience, [this, own] { return num_answered >= own; });
}

void Timeline::Writer::stop() {
  {
    const std::lock_guard lock(mutex);
    is_stopping = true;
    has_work.notify_one();
  }
  thread.join();
}

void Timeline::Writer::run() {
  const auto is_due = [this] {
    return is_stopping || num_answered < num_asked || queue.size() >= kWakeAtQueued;
  };
  std::unique_lock lock(mutex);
  while (true) {
    has_work.wait_for(lock, options.write_period, is_due);
    const std::vector<TraceEvent> events = std::exchange(queue, {});
    const std::uint64_t dropped = std::exchange(num_dropped, 0);
    const std::uint64_t asked = num_asked;
    const bool is_last = is_stopping;
    const bool is_window_over = window.is_over() || (is_last && window.has_ended());
    lock.unlock();
    write(events, dropped);
    if (is_window_over)
      end(fmt::format("step {} was the last that was asked for", options.last_step));
    lock.lock();
    num_answered = asked;
    has_written.notify_all();
    if (is_last) return;
  }
}

std::string Timeline::Writer::line_of(const TraceEvent& event) const {
  const TracePlace place{options.rank, event.track};
  switch (event.kind) {
    case TraceEvent::Kind::kSpan:
      return span_line(place, event.name, event.begin - start_time, event.end - event.begin,
                       event.args);
    case TraceEvent::Kind::kInstant:
      return instant_line(place, event.name, event.begin - start_time, event.args);
    case TraceEvent::Kind::kTrackName:
      return track_name_line(place, event.name);
  }
  return "";
}

// False if it does not fit below the bound any more.
bool Timeline::Writer::append_line(std::string line) {
  const std::size_t num_bytes = line.size() + JsonArrayFile::kSeparator.size();
  if (file.num_bytes() + batch.size() + num_bytes + kEndBytes > options.max_bytes) return false;
  if (!batch.empty()) batch += JsonArrayFile::kSeparator;
  batch += line;
  return true;
}

void Timeline::Writer::write(const std::vector<TraceEvent>& events, std::uint64_t dropped) {
  if (is_ended) return;
  bool fits = true;
  for (const TraceEvent& event : events) {
    fits = append_line(line_of(event));
    if (!fits) break;
  }
  if (fits && dropped > 0) {
    fits = append_line(instant_line({options.rank, kStepTrack}, "TIMELINE_DROPPED",
                                    boottime_now() - start_time,
                                    fmt::format("{{\"events\":{}}}", dropped)));
  }
  write_batch();
  if (!fits) end(fmt::format("the bound of {} bytes is reached", options.max_bytes));
}

void Timeline::Writer::write_batch() {
  if (batch.empty()) return;
  const std::string lines = std::exchange(batch, {});
  const auto written = file.append(lines);
  if (written) return;
  is_ended = true;
  write_what_fits(lines);
  log(LogLevel::kWarning, "rank {}: the timeline ends here: {}", options.rank,
      written.error().message);
}

// A disk that has no room for all lines may have some for the first ones.
void Timeline::Writer::write_what_fits(std::string_view lines) {
  for (std::size_t size = lines.size() / 2; size > 0; size /= 2) {
    const std::size_t end = lines.rfind(JsonArrayFile::kSeparator, size);
    if (end == std::string_view::npos || !file.append(lines.substr(0, end))) continue;
    lines.remove_prefix(end + JsonArrayFile::kSeparator.size());
  }
}

void Timeline::Writer::end(std::string_view reason) {
  if (is_ended) return;
  batch = instant_line({options.rank, kStepTrack}, "TIMELINE_END", boottime_now() - start_time,
                       fmt::format("{{\"reason\":{}}}", json_string(reason)));
  write_batch();
  is_ended = true;
}

Result<std::unique_ptr<Timeline>> Timeline::open(TimelineOptions options) {
  const std::string subject = fmt::format("timeline of rank {}", options.rank);
  if (options.max_bytes < kLeastTimelineBytes) {
    return make_error("{}: a bound of {} bytes is too low; allow at least {}", subject,
                      options.max_bytes, kLeastTimelineBytes);
  }
  const Nanos start = boottime_now();
  auto file = JsonArrayFile::create(
      options.path, header_lines(options.rank, options.host, start, realtime_now()));
  if (!file) return tl::unexpected(file.error().within(subject));
  auto writer = std::make_unique<Writer>(std::move(options), std::move(*file), start);
  writer->thread = std::thread([raw = writer.get()] { raw->run(); });
  return std::unique_ptr<Timeline>(new Timeline(std::move(writer)));
}

Timeline::Timeline(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}

Timeline::~Timeline() { writer_->stop(); }

void Timeline::name_track(int track, std::string_view name) {
  writer_->add({TraceEvent::Kind::kTrackName, track, std::string(name), {}, {}, {}});
}

void Timeline::start_step(std::uint64_t step, Nanos at) { writer_->start_step(step, at); }

void Timeline::span(int track, std::string_view name, Nanos begin, Nanos end,
                    std::string_view args) {
  writer_->add({TraceEvent::Kind::kSpan, track, std::string(name), begin, end, std::string(args)});
}

void Timeline::instant(int track, std::string_view name, Nanos at) {
  writer_->add({TraceEvent::Kind::kInstant, track, std::string(name), at, at, {}});
}

void Timeline::flush() { writer_->flush(); }

}  // namespace hvd
