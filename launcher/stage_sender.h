// What --stage sends to one node: first all entries, then, piece by piece, the content that the
// node has asked for. Reads the files; sends nothing itself. Thread: the loop's (reads come from
// the page cache: the files have just been summed).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "launcher/stage_source.h"

namespace hvd {

// All entries in requests of a size that gRPC takes; at least one, the last one says so.
[[nodiscard]] std::vector<v1::StageRequest> entry_requests(const StageSource& source);

class StageSender {
 public:
  // `source` is not owned and outlives this.
  explicit StageSender(const StageSource& source) : source_(source) {}

  // Positions that this launcher has not sent are an error of the node's.
  [[nodiscard]] Result<void> need(const v1::StageNeed& need);

  // The next piece; none after the last. An error names a file that is not what it was.
  [[nodiscard]] Result<std::optional<v1::StageRequest>> next();

  [[nodiscard]] std::uint64_t num_bytes_sent() const { return num_bytes_; }
  [[nodiscard]] std::size_t num_files_needed() const { return num_files_; }

 private:
  const StageSource& source_;
  std::deque<std::uint32_t> needed_;  // the first is being sent
  UniqueFd file_;
  std::uint64_t offset_ = 0;
  std::uint64_t num_bytes_ = 0;
  std::size_t num_files_ = 0;
};

}  // namespace hvd
