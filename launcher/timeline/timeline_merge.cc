#include "launcher/timeline/timeline_merge.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/disk_file.h"
#include "base/plural.h"
#include "launcher/timeline/trace_index.h"
#include "proto/timeline_name.h"

namespace hvd {
namespace {

constexpr std::size_t kBufferBytes = 1U << 20U;

// A spool's bytes as text, for as long as this lives.
class MappedText {
 public:
  MappedText(int fd, std::uint64_t num_bytes) : num_bytes_(num_bytes) {
    if (num_bytes_ > 0) start_ = mmap(nullptr, num_bytes_, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  ~MappedText() {
    if (is_valid() && num_bytes_ > 0) munmap(start_, num_bytes_);
  }
  MappedText(const MappedText&) = delete;
  MappedText& operator=(const MappedText&) = delete;

  [[nodiscard]] bool is_valid() const { return start_ != MAP_FAILED; }
  [[nodiscard]] std::string_view part(std::uint64_t offset, std::uint64_t size) const {
    return num_bytes_ == 0 ? "" : std::string_view(static_cast<const char*>(start_) + offset, size);
  }

 private:
  void* start_ = nullptr;
  const std::uint64_t num_bytes_;
};

// The array under a name of its own until it is whole; taken away if it never becomes so.
class ArrayWriter {
 public:
  explicit ArrayWriter(const MergeTarget& target)
      : target_(target), unready_(target.path + ".XXXXXX") {
    file_.reset(mkostemp(unready_.data(), O_CLOEXEC));
    if (!file_.is_valid()) error_ = errno;
  }
  ~ArrayWriter() {
    if (file_.is_valid()) unlink(unready_.c_str());
  }
  ArrayWriter(const ArrayWriter&) = delete;
  ArrayWriter& operator=(const ArrayWriter&) = delete;

  void add(std::string_view line) {
    buffer_ += std::exchange(is_empty_, false) ? "[\n" : ",\n";
    buffer_ += line;
    if (buffer_.size() >= kBufferBytes) write_out();
  }
  [[nodiscard]] bool is_broken() const { return error_ != 0; }
  [[nodiscard]] std::uint64_t num_bytes() const { return num_bytes_; }

  Result<void> finish() {
    buffer_ += is_empty_ ? "[\n]\n" : "\n]\n";
    write_out();
    if (error_ == 0 && fchmod(file_.get(), target_.mode) != 0) error_ = errno;
    if (error_ == 0 && rename(unready_.c_str(), target_.path.c_str()) != 0) error_ = errno;
    if (error_ == 0) {
      file_.reset();
      return {};
    }
    return make_error("{} cannot be written: {}", target_.path, std::strerror(error_));
  }

 private:
  void write_out() {
    if (error_ == 0) error_ = write_at(file_.get(), buffer_, num_bytes_);
    num_bytes_ += buffer_.size();
    buffer_.clear();
  }

  const MergeTarget target_;
  std::string unready_;
  UniqueFd file_;
  std::string buffer_;
  std::uint64_t num_bytes_ = 0;
  int error_ = 0;
  bool is_empty_ = true;
};

struct RankFile {
  const MergeSource* source = nullptr;
  const TimelineSpool::File* file = nullptr;
};

std::map<std::uint32_t, RankFile> by_rank(const std::vector<MergeSource>& sources) {
  std::map<std::uint32_t, RankFile> ranks;
  for (const MergeSource& source : sources) {
    for (const TimelineSpool::File& file : source.spool->files()) {
      if (const auto rank = rank_of_timeline(file.name))
        ranks.emplace(*rank, RankFile{&source, &file});
    }
  }
  return ranks;
}

void add_events(std::string_view text, const TraceIndex& index, Nanos shift,
                const std::atomic<bool>& is_cancelled, ArrayWriter& writer) {
  for (const TraceLine& line : index.metadata) writer.add(text.substr(line.offset, line.num_bytes));
  for (const TraceLine& line : index.events) {
    if (is_cancelled || writer.is_broken()) return;
    writer.add(moved_line(text, line, shift));
  }
}

// Why there may be less than the rank had to tell; empty: nothing is known of that.
std::string early_end(const TimelineSpool::File& file) {
  if (!file.error.empty()) return file.error;
  if (file.is_disk_full) return "the disk of its node is full";
  return file.num_bytes == 0 ? "its file is empty, as a full disk leaves it" : "";
}

void note_problems(std::uint32_t rank, const RankFile& it, const TraceIndex& index,
                   MergedTimeline& result) {
  const auto note = [&](const std::string& what) {
    result.warnings.push_back(
        fmt::format("{}: timeline of rank {}: {}", it.source->host, rank, what));
  };
  const std::string reason = early_end(*it.file);
  if (!index.has_clock) {
    return note(reason.empty() ? "left out, because it has no clock in its head"
                               : fmt::format("nothing of it could be kept: {}", reason));
  }
  if (!reason.empty()) {
    note(fmt::format("it ends early: {}; {} of it are kept", reason,
                     counted(index.events.size(), "event")));
  }
  // The last line of what was cut off is no surprise.
  const std::uint64_t expected = it.file->is_whole ? 0 : 1;
  if (index.num_unreadable > expected) {
    note(fmt::format("{} of it cannot be read", counted(index.num_unreadable, "line")));
  }
}

}  // namespace

Result<MergedTimeline> merge_timelines(const std::vector<MergeSource>& sources, Nanos job_start,
                                       const MergeTarget& target,
                                       const std::atomic<bool>& is_cancelled) {
  MergedTimeline result;
  const auto ranks = by_rank(sources);
  if (ranks.empty()) return result;
  ArrayWriter writer(target);
  for (const auto& [rank, it] : ranks) {
    const TimelineSpool& spool = *it.source->spool;
    const MappedText spooled(spool.descriptor(), spool.num_bytes());
    if (!spooled.is_valid()) return make_error("{}: {}", target.path, std::strerror(errno));
    const std::string_view text = spooled.part(it.file->offset, it.file->num_bytes);
    const TraceIndex index = index_trace(text, rank);
    note_problems(rank, it, index, result);
    if (!index.has_clock) continue;
    add_events(text, index, trace_shift(index.start, it.source->to_launcher, job_start),
               is_cancelled, writer);
    if (is_cancelled) return make_error("{}: the merge was broken off", target.path);
    ++result.num_ranks;
  }
  if (result.num_ranks == 0) return result;
  if (auto finished = writer.finish(); !finished) return tl::unexpected(finished.error());
  result.num_bytes = writer.num_bytes();
  return result;
}

}  // namespace hvd
