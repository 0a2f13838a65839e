#include "agent/job_dir.h"

#include <errno.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

namespace hvd {
namespace {

constexpr std::size_t kTimelineIdDigits = 16;

// Makes the folder if it is missing, then checks what stands there: never through a link.
Result<void> claim_parent(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return make_error("{}: {}", path, strerror(errno));
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return make_error("{}: {}", path, strerror(errno));
  if (!S_ISDIR(info.st_mode)) return make_error("{} is not a folder", path);
  if (info.st_uid != geteuid()) return make_error("{} belongs to user {}", path, info.st_uid);
  if ((info.st_mode & 0077) != 0) {
    return make_error("{} is open to others (mode {:o}); it must be 0700", path,
                      info.st_mode & 07777);
  }
  // A read-only file system, or one without a free inode, is told before the folder is planned.
  if (access(path.c_str(), W_OK | X_OK) != 0) return make_error("{}: {}", path, strerror(errno));
  struct statvfs space {};
  if (statvfs(path.c_str(), &space) == 0 && space.f_files > 0 && space.f_favail == 0) {
    return make_error("{}: {}", path, strerror(ENOSPC));
  }
  return {};
}

Result<std::string> plan_below(const std::string& parent, std::string_view job_id, unsigned node) {
  if (auto claimed = claim_parent(parent); !claimed) return tl::unexpected(claimed.error());
  std::uint32_t fresh = 0;
  if (getrandom(&fresh, sizeof(fresh), 0) != sizeof(fresh)) return make_error("no random numbers");
  std::string path =
      fmt::format("{}/{}-{}-{:08x}", parent, job_id.substr(0, kJobDirDigits), node, fresh);
  if (rendezvous_path(path).size() >= sizeof(sockaddr_un::sun_path)) {
    return make_error("{} is too long a path for a socket", path);
  }
  return path;
}

std::string in_tmp(uid_t uid) { return fmt::format("/tmp/hvdrun-{}", uid); }
std::string in_var_tmp(uid_t uid) { return fmt::format("/var/tmp/hvdrun-{}", uid); }

bool is_anothers(const std::string& path, uid_t uid) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && (info.st_uid != uid || !S_ISDIR(info.st_mode));
}

// By two commands any user could keep another from running jobs.
bool are_names_taken(uid_t uid) {
  return is_anothers(in_tmp(uid), uid) && is_anothers(in_var_tmp(uid), uid);
}

// Those that were made where somebody else had taken the names above.
std::vector<std::string> own_folders_in_tmp(uid_t uid) {
  std::vector<std::string> found;
  const std::string prefix = in_tmp(uid) + "-";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/tmp", error)) {
    const std::string path = entry.path().string();
    if (path.starts_with(prefix) && !is_anothers(path, uid)) found.push_back(path);
  }
  return found;
}

}  // namespace

std::vector<std::string> job_dir_parents(std::string_view runtime_dir, uid_t uid) {
  std::vector<std::string> parents;
  if (!runtime_dir.empty() && runtime_dir.front() == '/') {
    parents.push_back(fmt::format("{}/hvdrun", runtime_dir));
  }
  parents.push_back(in_tmp(uid));
  parents.push_back(in_var_tmp(uid));
  if (are_names_taken(uid)) {
    for (std::string& path : own_folders_in_tmp(uid)) parents.push_back(std::move(path));
  }
  return parents;
}

std::string make_other_parent(uid_t uid) {
  if (!are_names_taken(uid)) return {};
  std::string path = in_tmp(uid) + "-XXXXXX";  // mkdtemp writes over the X
  return mkdtemp(path.data()) == nullptr ? std::string() : path;
}

Result<std::string> plan_job_dir(const std::vector<std::string>& parents, std::string_view job_id,
                                 unsigned node) {
  std::string reasons;
  for (const std::string& parent : parents) {
    auto path = plan_below(parent, job_id, node);
    if (path) return path;
    reasons += (reasons.empty() ? "" : "; ") + path.error().message;
  }
  return make_error("no folder for the job can be made: {}", reasons);
}

std::vector<std::string> timeline_dir_parents(uid_t uid) { return {in_var_tmp(uid), in_tmp(uid)}; }

Result<std::string> plan_timeline_dir(const std::vector<std::string>& parents,
                                      std::string_view job_id, unsigned node) {
  std::string reasons;
  for (const std::string& parent : parents) {
    const auto claimed = claim_parent(parent);
    if (claimed) {
      return fmt::format("{}/{}-{}-timeline", parent, job_id.substr(0, kTimelineIdDigits), node);
    }
    reasons += (reasons.empty() ? "" : "; ") + claimed.error().message;
  }
  return make_error("no folder for the timeline can be made: {}", reasons);
}

Result<void> make_job_dir(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0) return make_error("{}: {}", path, strerror(errno));
  return {};
}

std::string stage_cache_dir(const std::vector<std::string>& parents) {
  for (const std::string& parent : parents) {
    if (claim_parent(parent)) return parent + "/staged";
  }
  return "";
}

std::string staged_path(std::string_view job_dir) { return fmt::format("{}/files", job_dir); }

std::string rendezvous_path(std::string_view job_dir) {
  return fmt::format("{}/rendezvous.sock", job_dir);
}

}  // namespace hvd
