// Chunks of the ranks' output -> whole lines with the prefix "[rank]<stdout>:" or
// "[rank]<stderr>:". Pure: the time goes in, bytes for the two sinks come out.
//
// A line ends at \n, \r or \r\n, which are kept. Bytes are opaque; only for a terminal control
// sequences are made visible. An unfinished line is held until its end, the end of its stream or a
// short idle time. After the idle time it is printed as it is (a prompt); what follows then
// continues it without a prefix, unless another line came in between: that one starts on a new
// line, and so does the continuation, with a prefix. Lines longer than kMaxLine are split.
//
// Memory: one unfinished line for each rank and stream, and the output until take().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"

namespace hvd {

struct SinkTraits {
  bool is_stdout_terminal = false;
  bool is_stderr_terminal = false;
  bool is_same_sink = false;  // both are one terminal, pipe or file: their lines share it
};

struct OutputSegment {
  bool is_stderr = false;
  std::string bytes;
};
// In the order in which they are to be written. At most one segment a sink, unless the sinks are
// one.
using OutputBatch = std::vector<OutputSegment>;

class LineAssembler {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;
  static constexpr Nanos kIdle = std::chrono::seconds(2);

  LineAssembler(std::uint32_t world_size, SinkTraits traits, Nanos idle = kIdle);

  // How lines begin, before the first chunk: without "[rank]<stdout>:", and with what `stamp`
  // returns before each, empty: nothing.
  void set_beginning(bool has_marks, std::function<std::string()> stamp);

  // Chunks of one rank and stream come in order. Chunks of ranks outside the job are ignored.
  void add(const hvdrun::v1::LogChunk& chunk, SteadyTime now);

  // A line of hvdrun itself for stderr, without its line end; it never falls into another line.
  void add_own_line(std::string_view line);

  // Prints the unfinished lines that have been idle for long enough; with flush_all() all of them,
  // each with a line end, for the end of the job.
  void flush_idle(SteadyTime now);
  void flush_all();

  // When flush_idle() is due; nullopt while nothing is held.
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const { return deadline_; }

  // What is ready, empty if nothing is.
  [[nodiscard]] OutputBatch take();

 private:
  // One stream of one rank.
  struct Source {
    std::string prefix;
    std::string held;  // the unfinished line, as far as it has not been printed
    SteadyTime last_data{};
    bool is_stderr = false;
    bool has_printed_carriage = false;  // the unfinished line in the sink ends with \r
    bool was_interrupted = false;       // it was ended for another source's line
  };

  Source& source(std::uint32_t rank, bool is_stderr) { return sources_[rank * 2 + is_stderr]; }
  void add_bytes(Source& from, std::string_view bytes, SteadyTime now);
  std::string_view complete_carriage(Source& from, std::string_view bytes);
  std::string_view complete_held(Source& from, std::string_view bytes);
  std::string_view print_lines(Source& from, std::string_view rest);
  std::string_view print_pieces(Source& from, std::string_view line);
  void print_split(Source& from, std::string_view line);
  void hold(Source& from, std::string_view bytes, SteadyTime now);
  void print(Source& from, std::string_view line);
  void print_unfinished(Source& from);
  void finish(Source& from);
  void interrupt(const Source* next, bool is_stderr);
  void tell_dropped(const hvdrun::v1::LogChunk& chunk);
  std::string& sink(bool is_stderr);
  Source*& open_line(bool is_stderr) { return open_[traits_.is_same_sink ? 0 : is_stderr]; }

  const SinkTraits traits_;
  const Nanos idle_;
  std::function<std::string()> stamp_;
  std::vector<Source> sources_;
  std::array<Source*, 2> open_{};  // whose unfinished line stands at the end of the sink
  std::optional<SteadyTime> deadline_;
  OutputBatch batch_;
};

}  // namespace hvd
