#include "agent/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <utility>

namespace hvd {
namespace {

constexpr std::uint64_t kSegmentBytes = 8u << 20;

// O_TMPFILE where the file system has it, else a name that is taken away at once.
UniqueFd open_unlinked(const std::string& folder) {
  UniqueFd file(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.is_valid()) return file;
  std::string name = folder + "/spool-XXXXXX";
  file.reset(mkostemp(name.data(), O_CLOEXEC));
  if (file.is_valid()) unlink(name.c_str());
  return file;
}

bool write_at(int fd, const char* data, std::size_t size, std::uint64_t offset) {
  while (size > 0) {
    const ssize_t n = pwrite(fd, data, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
  return true;
}

bool read_at(int fd, char* data, std::size_t size, std::uint64_t offset) {
  while (size > 0) {
    const ssize_t n = pread(fd, data, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
  return true;
}

}  // namespace

Spool::Spool(std::string folder, std::uint64_t cap_bytes)
    : folder_(std::move(folder)), cap_bytes_(cap_bytes) {}

bool Spool::open_segment() {
  UniqueFd file = open_unlinked(folder_);
  if (!file.is_valid()) return false;
  segments_.push_back({std::move(file), 0, 0});
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
  if (!write_at(segment.file.get(), framed.data(), framed.size(), segment.written)) {
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
  bool is_read = read_at(segment.file.get(), header.data(), header.size(), segment.read);
  if (is_read) {
    std::memcpy(&length, header.data(), sizeof length);
    is_read = segment.read + sizeof length + length <= segment.written;
  }
  if (is_read) {
    record.resize(length);
    is_read = read_at(segment.file.get(), record.data(), length, segment.read + sizeof length);
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
