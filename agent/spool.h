// Records on disk for output that a slow launcher has not yet taken: first in, first out, in
// unlinked files of bounded size, so that what was read is given back to the disk and nothing is
// left behind however the agent ends. The shim removes the job's folder when it leaves, while its
// last words are still on their way: one file is always open ahead, for them. Thread: the loop's
// (writes go to the page cache).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace hvd {

class Spool {
 public:
  // Files are made in `folder`, the first one here; at most `cap_bytes` of records are held.
  Spool(std::string folder, std::uint64_t cap_bytes);

  // False if the cap or the disk is full; nothing is held of the record then.
  [[nodiscard]] bool append(std::string_view record);

  // The oldest record; nullopt if there is none or the disk failed.
  [[nodiscard]] std::optional<std::string> take();

  [[nodiscard]] bool is_empty() const { return segments_.empty(); }
  [[nodiscard]] std::uint64_t num_bytes() const { return num_bytes_; }

 private:
  struct Segment {
    UniqueFd file;
    std::uint64_t written = 0;
    std::uint64_t read = 0;
  };
  [[nodiscard]] bool open_segment();
  void drop_oldest_segment();

  const std::string folder_;
  const std::uint64_t cap_bytes_;
  UniqueFd next_;                 // of the next segment; invalid if none could be made
  std::deque<Segment> segments_;  // each has something to read
  std::uint64_t num_bytes_ = 0;
};

}  // namespace hvd
