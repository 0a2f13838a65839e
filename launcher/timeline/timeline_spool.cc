#include "launcher/timeline/timeline_spool.h"

#include <cerrno>
#include <cstring>

#include "base/disk_file.h"

namespace hvd {

Result<TimelineSpool> TimelineSpool::open(const std::string& folder) {
  UniqueFd file = open_unnamed(folder);
  if (!file.is_valid()) return make_error("{}: {}", folder, std::strerror(errno));
  return TimelineSpool(std::move(file));
}

Result<void> TimelineSpool::add(const v1::FileChunk& chunk) {
  const bool is_new = files_.empty() || files_.back().name != chunk.name();
  if (is_new) files_.push_back({.name = chunk.name(), .offset = num_bytes_});
  File& file = files_.back();
  if (const int error = write_at(file_.get(), chunk.data(), num_bytes_); error != 0) {
    file.error = fmt::format("no room for the rest on hvdrun's disk ({})", std::strerror(error));
    return make_error("no room for {}: {}", chunk.name(), std::strerror(error));
  }
  num_bytes_ += chunk.data().size();
  file.num_bytes += chunk.data().size();
  file.error = chunk.error();
  file.is_disk_full = chunk.disk_full();
  file.is_whole = chunk.eof() && chunk.error().empty();
  return {};
}

}  // namespace hvd
