// The trace files of one node as they come in, one behind the other in a file without a name on the
// disk where the merged one will stand. Thread: the loop's (writes go to the page cache); the merge
// reads it in its own thread when nothing more comes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/agent.pb.h"
#include "proto/v1.h"

namespace hvd {

class TimelineSpool {
 public:
  struct File {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t num_bytes = 0;
    bool is_whole = false;
    std::string error = {};     // why it ends before its end
    bool is_disk_full = false;  // of the node, where the rank wrote it
  };

  [[nodiscard]] static Result<TimelineSpool> open(const std::string& folder);

  // Pieces come file by file, in order.
  [[nodiscard]] Result<void> add(const v1::FileChunk& chunk);

  [[nodiscard]] const std::vector<File>& files() const { return files_; }
  [[nodiscard]] std::uint64_t num_bytes() const { return num_bytes_; }
  [[nodiscard]] int descriptor() const { return file_.get(); }

 private:
  explicit TimelineSpool(UniqueFd file) : file_(std::move(file)) {}

  UniqueFd file_;
  std::vector<File> files_;
  std::uint64_t num_bytes_ = 0;
};

}  // namespace hvd
