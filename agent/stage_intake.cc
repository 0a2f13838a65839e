#include "agent/stage_intake.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/stage_entries.h"
#include "base/disk_file.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr std::uint64_t kStepBytes = 4U << 20U;
constexpr std::uint64_t kEntryCost = 4096;  // of one that has no content, in bytes
constexpr std::uint64_t kCacheBytes = 4ULL << 30U;
constexpr mode_t kOwnersFolder = 0700;  // or the folder could not be filled, and not be removed
constexpr mode_t kOwnersFile = 0400;
constexpr mode_t kPermissions = 0777;

std::string changed(const v1::StageEntry& entry) {
  return fmt::format("{} has changed since hvdrun has read it; start again", entry.path());
}

}  // namespace

StageIntake::StageIntake(Loop& loop, std::string folder, StageCache cache, Handlers handlers)
    : loop_(loop),
      folder_(std::move(folder)),
      cache_(std::move(cache)),
      handlers_(std::move(handlers)) {}

std::string StageIntake::path_of(const v1::StageEntry& entry) const {
  return fmt::format("{}/{}", folder_, entry.path());
}

void StageIntake::take(v1::StageRequest&& request) {
  if (state_ == State::kOver) return;
  if (state_ == State::kEntries) return take_entries(std::move(request));
  if (state_ == State::kContent && request.has_data()) return take_data(request.data());
  end("the launcher sent what was not asked for");
}

void StageIntake::take_entries(v1::StageRequest&& request) {
  for (v1::StageEntry& entry : *request.mutable_entries()) entries_.push_back(std::move(entry));
  if (!request.is_last()) return;
  if (const auto wrong = check_stage_entries(entries_)) {
    return end(fmt::format("the launcher's list of files is wrong: {}", *wrong));
  }
  state_ = State::kPlacing;
  step_soon();
}

void StageIntake::step_soon() {
  boost::asio::post(loop_, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) step();
  });
}

void StageIntake::step() {
  for (std::uint64_t done = 0; done < kStepBytes && state_ == State::kPlacing;) {
    if (next_ == entries_.size()) return ask();
    done += writing_ ? copy_some() : place_next();
  }
  if (state_ == State::kPlacing) step_soon();
}

// The cost of what was done. A file may be open then, and its content comes in further steps.
std::uint64_t StageIntake::place_next() {
  const v1::StageEntry& entry = entries_[next_];
  const std::string path = path_of(entry);
  int error = 0;
  if (entry.kind() == v1::StageEntry::KIND_FILE) {
    place_file(entry);
    return kEntryCost;
  }
  if (entry.kind() == v1::StageEntry::KIND_LINK) {
    if (symlink(entry.target().c_str(), path.c_str()) != 0) error = errno;
  } else if (mkdir(path.c_str(), kOwnersFolder) != 0 ||
             chmod(path.c_str(), (entry.mode() & kPermissions) | kOwnersFolder) != 0) {
    error = errno;
  }
  if (error != 0) {
    fail(entry, error);
  } else {
    ++next_;
  }
  return kEntryCost;
}

void StageIntake::place_file(const v1::StageEntry& entry) {
  UniqueFd from = entry.size() > 0 ? cache_.find(entry.sha256()) : UniqueFd();
  if (entry.size() > 0 && !from.is_valid()) {
    needed_.push_back(next_++);
    return;
  }
  if (!open_file(entry)) return;
  writing_->from = std::move(from);
  if (entry.size() > 0) return;
  if (!is_right(entry)) return end(changed(entry));
  ++next_;
}

// What the cache holds may have been damaged: then it is asked for like the rest.
std::uint64_t StageIntake::copy_some() {
  const v1::StageEntry& entry = entries_[next_];
  std::string data(std::min(kStepBytes, entry.size() - writing_->num_written), '\0');
  const bool is_read =
      read_at(writing_->from.get(), data.data(), data.size(), writing_->num_written) == 0;
  if (is_read) write(data);
  if (state_ == State::kOver) return 0;
  if (is_read && writing_->num_written < entry.size()) return data.size();
  if (is_read && is_right(entry)) {
    ++next_;
    return data.size();
  }
  writing_.reset();
  unlink(path_of(entry).c_str());
  cache_.forget(entry.sha256());
  needed_.push_back(next_++);
  return data.size();
}

void StageIntake::ask() {
  state_ = State::kContent;
  v1::StageNeed need;
  for (const std::uint32_t entry : needed_) need.add_entries(entry);
  handlers_.on_need(std::move(need));
  if (needed_.empty()) end("");
}

void StageIntake::take_data(const v1::StageData& data) {
  if (needed_.empty() || data.entry() != needed_.front()) {
    return end("the launcher sent what was not asked for");
  }
  const v1::StageEntry& entry = entries_[needed_.front()];
  if (!writing_) {
    if (!open_file(entry)) return;
    writing_->kept = cache_.make(entry.size());
  }
  if (data.data().size() > entry.size() - writing_->num_written) {
    return end("the launcher sent more of a file than it has");
  }
  write(data.data());
  if (state_ == State::kOver || writing_->num_written < entry.size()) return;
  if (!is_right(entry)) return end(changed(entry));
  needed_.pop_front();
  if (!needed_.empty()) return;
  cache_.trim(kCacheBytes);
  end("");
}

bool StageIntake::open_file(const v1::StageEntry& entry) {
  writing_.emplace();
  writing_->file.reset(open(path_of(entry).c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            S_IRUSR | S_IWUSR));
  if (writing_->file.is_valid()) return true;
  fail(entry, errno);
  return false;
}

void StageIntake::write(std::string_view data) {
  const int error = write_at(writing_->file.get(), data, writing_->num_written);
  if (error != 0) {
    return fail(entries_[state_ == State::kContent ? needed_.front() : next_], error);
  }
  if (writing_->kept.is_valid() &&
      write_at(writing_->kept.get(), data, writing_->num_written) != 0) {
    writing_->kept.reset();
  }
  writing_->sum.update(data);
  writing_->num_written += data.size();
}

// Whether what was written is what was announced; then the file is finished.
bool StageIntake::is_right(const v1::StageEntry& entry) {
  if (writing_->sum.finish() != entry.sha256()) return false;
  if (writing_->kept.is_valid()) cache_.keep(writing_->kept.get(), entry.sha256());
  fchmod(writing_->file.get(), (entry.mode() & kPermissions) | kOwnersFile);
  writing_.reset();
  return true;
}

void StageIntake::fail(const v1::StageEntry& entry, int error) {
  end(fmt::format("{}: {}", path_of(entry), strerror(error)));
}

void StageIntake::end(const std::string& error) {
  state_ = State::kOver;
  writing_.reset();
  handlers_.on_done(error);
}

}  // namespace hvd
