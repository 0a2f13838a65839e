#include "agent/shim/remains.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>

#include "base/log.h"
#include "base/parse_number.h"

namespace hvd {
namespace {

constexpr int kMaxNames = 4096;
constexpr std::size_t kMaxSentences = 16;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Somebody else may have the number by now, and then the file may be his.
bool is_dead(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

class Folder {
 public:
  Folder(const std::string& path, bool is_shm, const DeadProcesses& dead, Nanos since)
      : path_(path), is_shm_(is_shm), dead_(dead), since_(since) {}

  void clear(std::vector<std::string>& sentences) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(path_.c_str()), closedir);
    if (!dir) return;
    for (int i = 0; i < kMaxNames; ++i) {
      const dirent* entry = readdir(dir.get());
      if (entry == nullptr) return;
      look_at(dirfd(dir.get()), entry->d_name, sentences);
    }
  }

 private:
  void look_at(int dir, const char* name, std::vector<std::string>& sentences) const {
    const pid_t pid = pid_in_name(name);
    const bool is_worker = dead_.workers.contains(pid);
    if (!is_worker && !dead_.others.contains(pid)) return;
    struct stat status {};
    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    const Nanos changed =
        std::chrono::seconds(status.st_ctim.tv_sec) + Nanos(status.st_ctim.tv_nsec);
    if (status.st_uid != geteuid() || changed < since_ || !is_dead(pid)) return;
    const bool may_go =
        is_shm_ && is_worker && S_ISREG(status.st_mode) && is_removable_segment(name);
    if (may_go && unlinkat(dir, name, 0) == 0) {
      return log(LogLevel::kDebug, "removed {}/{} of dead process {}", path_, name, pid);
    }
    sentences.push_back(fmt::format("{}/{} was left by dead process {}", path_, name, pid));
  }

  const std::string& path_;
  const bool is_shm_;
  const DeadProcesses& dead_;
  const Nanos since_;
};

}  // namespace

pid_t pid_in_name(std::string_view name) {
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_word(name[end])) ++end;
    const std::string_view word = name.substr(at, end - at);
    const auto pid = parse_number<pid_t>(word);
    if (pid && *pid > 0) return *pid;
    at = end + 1;
  }
  return 0;
}

bool is_removable_segment(std::string_view name) {
  return name.starts_with("nccl-") || name.starts_with("torch_");
}

std::vector<std::string> clear_remains(const std::string& shm_folder, const std::string& tmp_folder,
                                       const DeadProcesses& dead, Nanos since) {
  std::vector<std::string> sentences;
  Folder(shm_folder, true, dead, since).clear(sentences);
  Folder(tmp_folder, false, dead, since).clear(sentences);
  if (sentences.size() > kMaxSentences) {
    const std::size_t num_more = sentences.size() - kMaxSentences;
    sentences.resize(kMaxSentences);
    sentences.push_back(fmt::format("{} more files were left by dead processes", num_more));
  }
  return sentences;
}

}  // namespace hvd
