#include "launcher/stage_sender.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/disk_file.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::size_t kEntryBytes = 512U << 10U;  // of one request, about
constexpr std::uint64_t kPieceBytes = 256U << 10U;

}  // namespace

std::vector<v1::StageRequest> entry_requests(const StageSource& source) {
  std::vector<v1::StageRequest> requests(1);
  std::size_t num_bytes = 0;
  for (const v1::StageEntry& entry : source.entries) {
    if (num_bytes > kEntryBytes) {
      requests.emplace_back();
      num_bytes = 0;
    }
    num_bytes += entry.ByteSizeLong();
    *requests.back().add_entries() = entry;
  }
  requests.back().set_is_last(true);
  return requests;
}

Result<void> StageSender::need(const v1::StageNeed& need) {
  for (const std::uint32_t entry : need.entries()) {
    const bool is_file = entry < source_.entries.size() &&
                         source_.entries[entry].kind() == v1::StageEntry::KIND_FILE &&
                         source_.entries[entry].size() > 0;
    if (!is_file) return make_error("asks for a file that was not named");
    needed_.push_back(entry);
  }
  num_files_ = needed_.size();
  return {};
}

Result<std::optional<v1::StageRequest>> StageSender::next() {
  if (needed_.empty()) return std::nullopt;
  const std::uint32_t entry = needed_.front();
  const std::string& path = source_.sources[entry];
  const std::uint64_t size = source_.entries[entry].size();
  const auto refuse = [&path](int error) {
    return make_error("--stage {}: {}", show(path),
                      error == EIO ? "it has changed since hvdrun has read it; start again"
                                   : std::strerror(error));
  };
  if (!file_.is_valid()) file_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_.is_valid()) return refuse(errno);
  v1::StageRequest request;
  request.mutable_data()->set_entry(entry);
  std::string* const data = request.mutable_data()->mutable_data();
  data->resize(std::min(kPieceBytes, size - offset_));
  const int error = read_at(file_.get(), data->data(), data->size(), offset_);
  if (error != 0) return refuse(error);
  offset_ += data->size();
  num_bytes_ += data->size();
  if (offset_ == size) {
    file_.reset();
    offset_ = 0;
    needed_.pop_front();
  }
  return request;
}

}  // namespace hvd
