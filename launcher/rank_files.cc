#include "launcher/rank_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/signals_blocked.h"
#include "base/unique_fd.h"
#include "launcher/shell_words.h"
#include "launcher/write_queue.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOpen = 128;  // descriptors; ranks may be many more
constexpr mode_t kFileMode = 0666;      // less the umask

std::string file_path(const std::string& dir, std::uint32_t rank, std::uint32_t num_ranks,
                      bool is_stderr) {
  return fmt::format("{}/{}/{}", dir, rank_folder(rank, num_ranks),
                     is_stderr ? "stderr" : "stdout");
}

auto refuse(const std::string& path, const char* what, int code) {
  return make_error(ExitCode::kUsage,
                    "--output-filename: {} {}: {}; name a folder in which files can be made", what,
                    show(path), std::strerror(code));
}

// A pipe or a device in the file's place is refused, and not waited for.
Result<void> make_file(const std::string& path, bool is_new) {
  const int flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | (is_new ? O_TRUNC : 0);
  const UniqueFd file(::open(path.c_str(), flags, kFileMode));
  struct stat status {};
  if (!file.is_valid() || ::fstat(file.get(), &status) != 0) {
    return refuse(path, "cannot write", errno);
  }
  if (!S_ISREG(status.st_mode)) return refuse(path, "not a regular file:", EEXIST);
  return {};
}

// 0, or what write(2) said.
int append_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

std::string rank_folder(std::uint32_t rank, std::uint32_t num_ranks) {
  const std::size_t width = fmt::formatted_size("{}", num_ranks > 0 ? num_ranks - 1 : 0);
  return fmt::format("rank.{:0{}}", rank, width);
}

std::vector<std::string> other_rank_folders(const std::string& dir, std::uint32_t num_ranks) {
  std::set<std::string> ours;
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) ours.insert(rank_folder(rank, num_ranks));
  constexpr std::string_view kPrefix = "rank.";
  std::vector<std::string> others;
  std::error_code error;
  for (fs::directory_iterator entry(dir, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename();
    const bool is_of_a_rank =
        name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
        name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
    if (is_of_a_rank && !ours.contains(name)) others.push_back(std::move(name));
  }
  std::sort(others.begin(), others.end());
  return others;
}

Result<void> make_rank_files(const std::string& dir, std::uint32_t num_ranks, bool is_new) {
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) {
    const std::string folder = fmt::format("{}/{}", dir, rank_folder(rank, num_ranks));
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return refuse(folder, "cannot make", error.value());
    for (const bool is_stderr : {false, true}) {
      auto made = make_file(file_path(dir, rank, num_ranks, is_stderr), is_new);
      if (!made) return made;
    }
  }
  return {};
}

// The thread, what it has to write and the files that it has open.
class RankFiles::Writer {
 public:
  Writer(Loop& loop, std::string dir, std::uint32_t num_ranks, std::weak_ptr<RankFiles*> owner)
      : dir_(std::move(dir)), num_ranks_(num_ranks), owner_(std::move(owner)), queue_(loop) {}

  void push(Batch batch) { queue_.push(std::move(batch)); }
  void abandon() { queue_.abandon(); }

  void run() {
    Batch batch;
    while (queue_.next(&batch)) {
      std::string problem;
      for (const RankBytes& piece : batch.pieces) write(piece, problem);
      post_done(batch, std::move(problem));
    }
  }

 private:
  using Key = std::pair<std::uint32_t, bool>;  // rank, is_stderr

  void write(const RankBytes& piece, std::string& problem) {
    const Key key(piece.rank, piece.is_stderr);
    if (piece.bytes.empty() || broken_.contains(key)) return;
    const std::string path = file_path(dir_, piece.rank, num_ranks_, piece.is_stderr);
    const int fd = open_file(key, path);
    const int error = fd < 0 ? errno : append_all(fd, piece.bytes);
    if (error == 0) return;
    broken_.insert(key);
    files_.erase(key);
    if (!problem.empty()) return;
    problem = fmt::format(
        "--output-filename: {} cannot be written: {}; the files are not complete from here on, "
        "the job goes on",
        show(path), std::strerror(error));
  }

  // Those that are open stay so, until they are too many.
  int open_file(const Key& key, const std::string& path) {
    if (const auto found = files_.find(key); found != files_.end()) return found->second.get();
    if (files_.size() >= kMostOpen) files_.clear();
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kFileMode));
    if (!file.is_valid()) return -1;
    return files_.emplace(key, std::move(file)).first->second.get();
  }

  void post_done(Batch& batch, std::string problem) {
    queue_.post(
        [owner = owner_, on_written = std::move(batch.on_written), problem = std::move(problem)] {
          if (const auto self = owner.lock()) (*self)->batch_done(on_written, problem);
        });
  }

  const std::string dir_;
  const std::uint32_t num_ranks_;
  const std::weak_ptr<RankFiles*> owner_;  // looked at on the loop only
  std::map<Key, UniqueFd> files_;          // the thread's own
  std::set<Key> broken_;                   // the same
  WriteQueue<Batch> queue_;
};

RankFiles::RankFiles(Loop& loop, std::string dir, std::uint32_t num_ranks, OnBroken on_broken)
    : on_broken_(std::move(on_broken)),
      idle_(loop),
      self_(std::make_shared<RankFiles*>(this)),
      writer_(std::make_shared<Writer>(loop, std::move(dir), num_ranks, self_)) {
  idle_.set();
  const SignalsBlocked blocked;  // a blocked SIGXFSZ makes write(2) say EFBIG
  std::thread([writer = writer_] { writer->run(); }).detach();
}

RankFiles::~RankFiles() { writer_->abandon(); }

void RankFiles::submit(std::vector<RankBytes> pieces, std::function<void()> on_written) {
  ++num_open_;
  idle_.clear();
  writer_->push({std::move(pieces), std::move(on_written)});
}

void RankFiles::batch_done(const std::function<void()>& on_written, const std::string& problem) {
  if (--num_open_ == 0) idle_.set();
  if (!problem.empty() && !std::exchange(has_told_, true) && on_broken_) on_broken_(problem);
  if (on_written) on_written();
}

Task<bool> RankFiles::flush(SteadyTime deadline) { return idle_.wait_until(deadline); }

}  // namespace hvd
