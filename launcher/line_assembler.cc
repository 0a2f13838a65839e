#include "launcher/line_assembler.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "launcher/visible.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

bool is_line_end(char c) { return c == '\n' || c == '\r'; }

// The length of the line at the start of the bytes with its end, 0 if the end is not there. A \r as
// the last byte is no end yet: a \n may follow.
std::size_t line_length(std::string_view bytes) {
  const void* newline = memchr(bytes.data(), '\n', bytes.size());
  const std::size_t limit =
      newline == nullptr ? bytes.size() : static_cast<const char*>(newline) - bytes.data();
  const void* found = memchr(bytes.data(), '\r', limit);
  if (found == nullptr) return newline == nullptr ? 0 : limit + 1;
  const std::size_t carriage = static_cast<const char*>(found) - bytes.data();
  if (carriage + 1 == bytes.size()) return 0;
  return bytes[carriage + 1] == '\n' ? carriage + 2 : carriage + 1;
}

}  // namespace

LineAssembler::LineAssembler(std::uint32_t world_size, SinkTraits traits, Nanos idle)
    : traits_(traits), idle_(idle), sources_(std::size_t{world_size} * 2) {
  for (std::uint32_t rank = 0; rank < world_size; ++rank) {
    source(rank, false).prefix = fmt::format("[{}]<stdout>:", rank);
    source(rank, true).prefix = fmt::format("[{}]<stderr>:", rank);
    source(rank, true).is_stderr = true;
  }
}

void LineAssembler::set_beginning(bool has_marks, std::function<std::string()> stamp) {
  stamp_ = std::move(stamp);
  if (has_marks) return;
  for (Source& from : sources_) from.prefix.clear();
}

void LineAssembler::add(const v1::LogChunk& chunk, SteadyTime now) {
  if (std::size_t{chunk.rank()} * 2 >= sources_.size()) return;
  Source& from = source(chunk.rank(), chunk.stream() == v1::STREAM_STDERR);
  if (chunk.dropped() > 0) {
    finish(from);
    tell_dropped(chunk);
  }
  if (!chunk.data().empty()) add_bytes(from, chunk.data(), now);
  if (chunk.eof()) finish(from);
}

void LineAssembler::tell_dropped(const v1::LogChunk& chunk) {
  add_own_line(fmt::format("[hvdrun] rank {} {}: {} bytes dropped (output is read too slowly)",
                           chunk.rank(), chunk.stream() == v1::STREAM_STDERR ? "stderr" : "stdout",
                           chunk.dropped()));
}

void LineAssembler::add_bytes(Source& from, std::string_view bytes, SteadyTime now) {
  if (std::exchange(from.was_interrupted, false)) {
    // The line was ended for it already.
    bytes.remove_prefix(bytes.starts_with("\r\n") ? 2 : bytes.starts_with('\n') ? 1 : 0);
  }
  bytes = complete_carriage(from, bytes);
  bytes = complete_held(from, bytes);
  if (from.held.empty()) bytes = print_lines(from, bytes);
  hold(from, bytes, now);
}

// A \r came last in the bytes before: now it shows whether a \n belongs to it.
std::string_view LineAssembler::complete_carriage(Source& from, std::string_view bytes) {
  if (bytes.empty()) return bytes;
  const std::string_view newline = bytes.substr(0, bytes.front() == '\n' ? 1 : 0);
  Source*& open = open_line(from.is_stderr);
  if (from.held.ends_with('\r')) {
    from.held.append(newline);
    print_split(from, std::exchange(from.held, {}));
  } else if (open == &from && from.has_printed_carriage) {
    if (newline.empty()) {
      open = nullptr;
    } else {
      print(from, newline);
    }
  } else {
    return bytes;
  }
  return bytes.substr(newline.size());
}

// By as little copying as possible: lines behind the held one are printed straight from the chunk.
std::string_view LineAssembler::complete_held(Source& from, std::string_view bytes) {
  const std::size_t length = from.held.empty() ? 0 : line_length(bytes);
  if (length == 0) return bytes;
  from.held.append(bytes.substr(0, length));
  print_split(from, std::exchange(from.held, {}));
  return bytes.substr(length);
}

// Prints every complete line; returns the rest.
std::string_view LineAssembler::print_lines(Source& from, std::string_view rest) {
  while (const std::size_t length = line_length(rest)) {
    print_split(from, rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return rest;
}

void LineAssembler::hold(Source& from, std::string_view bytes, SteadyTime now) {
  if (bytes.empty()) return;
  from.held.append(bytes);
  const std::string_view rest = print_pieces(from, from.held);
  from.held.erase(0, from.held.size() - rest.size());
  from.last_data = now;
  const SteadyTime due = now + idle_;
  if (!deadline_ || due < *deadline_) deadline_ = due;
}

// Prints what is too much for one line as lines; returns the rest, never empty.
std::string_view LineAssembler::print_pieces(Source& from, std::string_view line) {
  constexpr std::size_t kLineEnd = 2;
  while (line.size() > kMaxLine + kLineEnd) {
    print(from, line.substr(0, kMaxLine));
    sink(from.is_stderr).push_back('\n');
    line.remove_prefix(kMaxLine);
  }
  return line;
}

void LineAssembler::print_split(Source& from, std::string_view line) {
  print(from, print_pieces(from, line));
}

std::string& LineAssembler::sink(bool is_stderr) {
  const auto fits = [&](const OutputSegment& segment) { return segment.is_stderr == is_stderr; };
  // One sink: order between the streams is kept, so only the last segment can be continued.
  if (traits_.is_same_sink) {
    if (!batch_.empty() && fits(batch_.back())) return batch_.back().bytes;
  } else if (const auto found = std::find_if(batch_.begin(), batch_.end(), fits);
             found != batch_.end()) {
    return found->bytes;
  }
  batch_.push_back({is_stderr, {}});
  return batch_.back().bytes;
}

// Ends the line of another source that stands unfinished at the end of the sink.
void LineAssembler::interrupt(const Source* next, bool is_stderr) {
  Source*& open = open_line(is_stderr);
  if (open == nullptr || open == next) return;
  sink(open->is_stderr).push_back('\n');
  open->was_interrupted = true;
  open = nullptr;
}

// One line with its end, or the part of it that has not been printed.
void LineAssembler::print(Source& from, std::string_view line) {
  interrupt(&from, from.is_stderr);
  std::string& out = sink(from.is_stderr);
  Source*& open = open_line(from.is_stderr);
  if (open != &from && stamp_) out.append(stamp_());
  if (open != &from) out.append(from.prefix);
  open = nullptr;
  const bool is_terminal = from.is_stderr ? traits_.is_stderr_terminal : traits_.is_stdout_terminal;
  if (!is_terminal) {
    out.append(line);
    return;
  }
  std::size_t text = line.size();
  while (text > 0 && text + 2 > line.size() && is_line_end(line[text - 1])) --text;
  append_visible(out, line.substr(0, text));
  out.append(line.substr(text));
}

void LineAssembler::print_unfinished(Source& from) {
  from.has_printed_carriage = from.held.ends_with('\r');
  print(from, std::exchange(from.held, {}));
  open_line(from.is_stderr) = &from;
}

void LineAssembler::finish(Source& from) {
  if (!from.held.empty()) print_unfinished(from);
  if (open_line(from.is_stderr) == &from) interrupt(nullptr, from.is_stderr);
  from.was_interrupted = false;
}

void LineAssembler::add_own_line(std::string_view line) {
  interrupt(nullptr, true);
  std::string& out = sink(true);
  out.append(line);
  out.push_back('\n');
}

void LineAssembler::flush_idle(SteadyTime now) {
  deadline_.reset();
  for (Source& from : sources_) {
    if (from.held.empty()) continue;
    const SteadyTime due = from.last_data + idle_;
    if (due <= now) {
      print_unfinished(from);
    } else if (!deadline_ || due < *deadline_) {
      deadline_ = due;
    }
  }
}

void LineAssembler::flush_all() {
  for (Source& from : sources_) finish(from);
  deadline_.reset();
}

OutputBatch LineAssembler::take() { return std::exchange(batch_, {}); }

}  // namespace hvd
