// The timelines that this node's workers have left, read in pieces for the launcher: rank by rank,
// each as long as it was when its turn came. Thread: the loop's (reads come from the page cache).
// Does no sending.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/unique_fd.h"
#include "hvdrun/v1/agent.pb.h"

namespace hvd {

class TimelineFiles {
 public:
  // Takes the regular files rank<number>.json of the folder, through no link.
  explicit TimelineFiles(std::string folder);

  // The next piece, at most `room` bytes of data; files_done with the last one. A file that cannot
  // be read ends with the reason. Empty without room.
  [[nodiscard]] hvdrun::v1::OutputReply next_piece(std::uint64_t room);

  [[nodiscard]] bool is_done() const { return is_done_; }

 private:
  [[nodiscard]] std::string open_next();
  [[nodiscard]] std::string read_into(hvdrun::v1::FileChunk* chunk, std::uint64_t room);

  const std::string folder_;
  std::deque<std::string> names_;  // the first is being read
  UniqueFd file_;
  std::uint64_t offset_ = 0;
  std::uint64_t size_ = 0;
  bool is_done_ = false;
};

// Takes the timelines out of the folder, also those that were killed before their first write.
void remove_timelines(const std::string& folder);

}  // namespace hvd
