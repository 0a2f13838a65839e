#include "agent/shim/job_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <utility>

#include "agent/shim/folder_lock.h"
#include "base/lines.h"
#include "base/read_file.h"

namespace hvd {
namespace {

constexpr Nanos kOldJobEnds = std::chrono::seconds(1);
// Folders looked at for a job's: a machine has some hundreds.
constexpr int kMaxFolders = 20'000;
constexpr int kMaxDepth = 512;  // deeper than a path can be long, with names of some letters

bool is_cgroup2(const char* path) {
  struct statfs info {};
  return statfs(path, &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC;
}

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(path.c_str()), closedir);
  if (!dir) return names;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

// Every folder from `path` down, a folder before those in it. `visit` says whether to go on below.
void walk(const std::string& path, int depth, int& num_left,
          const std::function<bool(const std::string&)>& visit) {
  if (depth > kMaxDepth || --num_left < 0 || !visit(path)) return;
  for (const std::string& name : folders_in(path)) {
    walk(fmt::format("{}/{}", path, name), depth + 1, num_left, visit);
  }
}

std::vector<std::string> tree(const std::string& path) {
  std::vector<std::string> folders;
  int num_left = kMaxFolders;
  walk(path, 0, num_left, [&](const std::string& folder) {
    folders.push_back(folder);
    return true;
  });
  return folders;
}

// Deepest first. A folder with a process in it stays, and what is above it.
void remove_tree(const std::string& path) {
  const std::vector<std::string> folders = tree(path);
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) rmdir(folder->c_str());
}

Result<void> remove_old(const std::string& path) {
  const auto old = JobCgroup::open(path);
  if (!old) return tl::unexpected(old.error());
  if (!old->kill() || !old->wait_empty(kOldJobEnds) || !old->remove()) {
    return make_error("{}: an older job of this name is still in it", path);
  }
  return {};
}

// So that each leaf has a memory.events of its own, which may prove why a rank was killed. Where
// the parent does not hand the controller on, nothing is counted.
void count_memory(const std::string& path) {
  const UniqueFd fd(::open((path + "/cgroup.subtree_control").c_str(), O_WRONLY | O_CLOEXEC));
  constexpr std::string_view kWanted = "+memory";
  if (!fd.is_valid()) return;
  [[maybe_unused]] const ssize_t n = ::write(fd.get(), kWanted.data(), kWanted.size());
}

}  // namespace

std::optional<std::string> parse_own_cgroup(std::string_view text) {
  constexpr std::string_view kStart = "0::/";
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!line.starts_with(kStart)) continue;
    if (line.find("/..") != std::string_view::npos) return std::nullopt;
    return std::string(line.substr(kStart.size() - 1));
  }
  return std::nullopt;
}

bool is_populated_in(std::string_view events) {
  return events.find("populated 1") != std::string_view::npos;
}

std::string job_cgroup_name(std::string_view job_id, std::uint32_t node) {
  return fmt::format("hvd-{}-n{}", job_id, node);
}

std::string find_cgroup_mount() {
  for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    if (is_cgroup2(path)) return path;
  }
  return {};
}

Result<std::string> own_cgroup() {
  const std::string mount = find_cgroup_mount();
  if (mount.empty()) return make_error("cgroup v2 is not mounted");
  const auto path = parse_own_cgroup(read_small_file("/proc/self/cgroup"));
  if (!path) return make_error("our own cgroup cannot be seen below {}", mount);
  return *path == "/" ? mount : mount + *path;
}

std::vector<std::string> find_job_cgroups(const std::string& top, std::string_view job_id,
                                          std::uint32_t node) {
  const std::string ending = "/" + job_cgroup_name(job_id, node);
  std::vector<std::string> found;
  if (top.empty()) return found;
  int num_left = kMaxFolders;
  walk(top, 0, num_left, [&](const std::string& folder) {
    if (!folder.ends_with(ending)) return true;
    found.push_back(folder);
    return false;
  });
  return found;
}

JobCgroup::JobCgroup(std::string path, UniqueFd kill, UniqueFd events)
    : path_(std::move(path)), kill_(std::move(kill)), events_(std::move(events)) {}

Result<JobCgroup> JobCgroup::open(std::string path) {
  UniqueFd kill(::open((path + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (!kill.is_valid()) return make_error("{}/cgroup.kill: {}", path, std::strerror(errno));
  UniqueFd events(::open((path + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  if (!events.is_valid()) return make_error("{}/cgroup.events: {}", path, std::strerror(errno));
  return JobCgroup(std::move(path), std::move(kill), std::move(events));
}

Result<JobCgroup> JobCgroup::make(const std::string& parent, std::string_view job_id,
                                  std::uint32_t node) {
  std::string path = fmt::format("{}/{}", parent, job_cgroup_name(job_id, node));
  if (mkdir(path.c_str(), 0755) != 0) {
    if (errno != EEXIST) return make_error("{}: {}", parent, std::strerror(errno));
    if (auto removed = remove_old(path); !removed) return tl::unexpected(removed.error());
    if (mkdir(path.c_str(), 0755) != 0) return make_error("{}: {}", path, std::strerror(errno));
  }
  // Who may not move a process within the parent may not start one below it either.
  if (access((parent + "/cgroup.procs").c_str(), W_OK) != 0) {
    const int reason = errno;
    rmdir(path.c_str());
    return make_error("{}/cgroup.procs: {}", parent, std::strerror(reason));
  }
  auto made = open(path);
  if (!made) rmdir(path.c_str());
  if (!made) return made;
  count_memory(path);
  made->lock_ = lock_folder(path, LOCK_SH);
  return made;
}

UniqueFd JobCgroup::make_leaf(const std::string& name) const {
  const std::string path = fmt::format("{}/{}", path_, name);
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return {};
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool JobCgroup::kill() const { return pwrite(kill_.get(), "1", 1, 0) == 1; }

bool JobCgroup::is_populated() const {
  std::array<char, 256> text{};
  const ssize_t n = pread(events_.get(), text.data(), text.size(), 0);
  if (n < 0 && errno == ENODEV) return false;  // removed, which only an empty one can be
  return n <= 0 || is_populated_in({text.data(), static_cast<std::size_t>(n)});
}

bool JobCgroup::wait_empty(Nanos limit) const {
  const Nanos deadline = boottime_now() + limit;
  while (is_populated()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - boottime_now());
    pollfd wait{events_.get(), POLLPRI, 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) == 0) return false;
  }
  return true;
}

std::set<pid_t> JobCgroup::pids() const {
  std::set<pid_t> pids;
  for (const std::string& folder : tree(path_)) {
    std::ifstream file(folder + "/cgroup.procs");
    for (pid_t pid = 0; file >> pid;) {
      if (pid > 0) pids.insert(pid);
    }
  }
  return pids;
}

bool JobCgroup::remove() const {
  remove_tree(path_);
  return access(path_.c_str(), F_OK) != 0 && errno == ENOENT;
}

}  // namespace hvd
