#include "agent/timeline_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/disk_file.h"
#include "proto/timeline_name.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr std::uint64_t kPieceBytes = 256U << 10U;

std::vector<std::string> list_names(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  while (const dirent* entry = dir ? readdir(dir.get()) : nullptr)
    names.emplace_back(entry->d_name);
  return names;
}

std::deque<std::string> list_by_rank(const std::string& folder) {
  std::map<std::uint32_t, std::string> by_rank;
  for (std::string& name : list_names(folder)) {
    if (const auto rank = rank_of_timeline(name)) by_rank.emplace(*rank, std::move(name));
  }
  std::deque<std::string> result;
  for (auto& [rank, name] : by_rank) result.push_back(std::move(name));
  return result;
}

// As the runtime calls a timeline before its first write.
std::vector<std::string> list_unready(const std::string& folder) {
  constexpr std::string_view kUnready = ".new";
  std::vector<std::string> names = list_names(folder);
  std::erase_if(names, [kUnready](std::string_view name) {
    if (!name.ends_with(kUnready)) return true;
    return !rank_of_timeline(name.substr(0, name.size() - kUnready.size()));
  });
  return names;
}

// Less than what one write of a timeline may take: the last one has failed, or the next would have.
bool is_disk_full(int file) {
  constexpr std::uint64_t kLeast = 1U << 20U;
  struct statvfs disk {};
  return fstatvfs(file, &disk) == 0 && std::uint64_t{disk.f_bavail} * disk.f_frsize < kLeast;
}

}  // namespace

TimelineFiles::TimelineFiles(std::string folder)
    : folder_(std::move(folder)), names_(list_by_rank(folder_)) {}

// The reason if it cannot be read; empty otherwise.
std::string TimelineFiles::open_next() {
  const std::string path = folder_ + "/" + names_.front();
  offset_ = 0;
  // A pipe of that name must not hold the agent up.
  file_.reset(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!file_.is_valid() || fstat(file_.get(), &info) != 0) return strerror(errno);
  if (!S_ISREG(info.st_mode)) return "no regular file";
  size_ = static_cast<std::uint64_t>(info.st_size);
  return "";
}

std::string TimelineFiles::read_into(v1::FileChunk* chunk, std::uint64_t room) {
  if (!file_.is_valid()) {
    if (std::string reason = open_next(); !reason.empty()) return reason;
  }
  std::string* data = chunk->mutable_data();
  data->resize(std::min({room, kPieceBytes, size_ - offset_}));
  if (const int error = read_at(file_.get(), data->data(), data->size(), offset_); error != 0) {
    data->clear();
    return strerror(error);
  }
  offset_ += data->size();
  return "";
}

v1::OutputReply TimelineFiles::next_piece(std::uint64_t room) {
  v1::OutputReply reply;
  if (is_done_ || room == 0) return reply;
  if (!names_.empty()) {
    v1::FileChunk* const chunk = reply.add_files();
    chunk->set_name(names_.front());
    chunk->set_error(read_into(chunk, room));
    chunk->set_eof(!chunk->error().empty() || offset_ == size_);
    if (chunk->eof()) {
      chunk->set_disk_full(file_.is_valid() && is_disk_full(file_.get()));
      file_.reset();
      names_.pop_front();
    }
  }
  is_done_ = names_.empty();
  reply.set_files_done(is_done_);
  return reply;
}

void remove_timelines(const std::string& folder) {
  for (const std::string& name : list_by_rank(folder)) unlink((folder + "/" + name).c_str());
  for (const std::string& name : list_unready(folder)) unlink((folder + "/" + name).c_str());
}

}  // namespace hvd
