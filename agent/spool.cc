#include "agent/spool.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/disk_file.h"

namespace hvd {
namespace {

constexpr std::uint64_t kSegmentBytes = 8u << 20;

}  // namespace

Spool::Spool(std::string folder, std::uint64_t cap_bytes)
    : folder_(std::move(folder)), cap_bytes_(cap_bytes), next_(open_unnamed(folder_)) {}

bool Spool::open_segment() {
  if (!next_.is_valid()) next_ = open_unnamed(folder_);
  if (!next_.is_valid()) return false;
  segments_.push_back({std::move(next_), 0, 0});
  next_ = open_unnamed(folder_);
  return true;
}

bool Spool::append(std::string_view record) {
  const std::uint32_t length = static_cast<std::uint32_t>(record.size());
  const std::uint64_t total = sizeof length + record.size();
  if (num_bytes_ + total > cap_bytes_) return false;
  const bool is_new = segments_.empty() || segments_.back().written >= kSegmentBytes;
  if (is_new && !open_segment()) return false;
  Segment& segment = segments_.back();
  std::string framed(sizeof length, '\0');
  std::memcpy(framed.data(), &length, sizeof length);
  framed.append(record);
  if (write_at(segment.file.get(), framed, segment.written) != 0) {
    // What is half written lies beyond `written` and is overwritten by the next record.
    if (is_new) segments_.pop_back();
    return false;
  }
  segment.written += total;
  num_bytes_ += total;
  return true;
}

std::optional<std::string> Spool::take() {
  if (segments_.empty()) return std::nullopt;
  Segment& segment = segments_.front();
  std::uint32_t length = 0;
  std::array<char, sizeof length> header{};
  std::string record;
  bool is_read = read_at(segment.file.get(), header.data(), header.size(), segment.read) == 0;
  if (is_read) {
    std::memcpy(&length, header.data(), sizeof length);
    is_read = segment.read + sizeof length + length <= segment.written;
  }
  if (is_read) {
    record.resize(length);
    is_read = read_at(segment.file.get(), record.data(), length, segment.read + sizeof length) == 0;
  }
  if (!is_read) {
    drop_oldest_segment();
    return std::nullopt;
  }
  segment.read += sizeof length + length;
  num_bytes_ -= sizeof length + length;
  if (segment.read == segment.written) drop_oldest_segment();
  return record;
}

void Spool::drop_oldest_segment() {
  num_bytes_ -= segments_.front().written - segments_.front().read;
  segments_.pop_front();
}

}  // namespace hvd
