#include "agent/cgroup_place.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/shim/job_cgroup.h"
#include "base/own_program.h"
#include "base/sys.h"

namespace hvd {
namespace {

constexpr int kScopeMillis = 2000;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// Whether the user has a systemd of his own that can be asked.
bool has_user_manager() {
  const char* folder = getenv("XDG_RUNTIME_DIR");
  if (folder == nullptr) return false;
  return access(fmt::format("{}/systemd/private", folder).c_str(), F_OK) == 0 ||
         access(fmt::format("{}/bus", folder).c_str(), F_OK) == 0;
}

// Starts a program with no input, and no output that anybody would read, in a group of its own.
pid_t start_quietly(std::vector<std::string> words) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, words.front().c_str(), &actions, &attributes,
                                 pointers(words).data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  return error == 0 ? pid : -1;
}

// Runs it to its end, but no longer than the limit.
Result<void> run_quietly(const std::vector<std::string>& words) {
  const pid_t pid = start_quietly(words);
  if (pid < 0) return make_error("{}: {}", words.front(), strerror(errno));
  const UniqueFd pidfd(sys::pidfd_open(pid));
  pollfd wait{pidfd.get(), POLLIN, 0};
  const bool has_ended = poll(&wait, 1, kScopeMillis) == 1;
  if (!has_ended) kill(-pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!has_ended) return make_error("{} has not answered in {} ms", words.front(), kScopeMillis);
  if (status != 0) return make_error("{} gave no scope", words.front());
  return {};
}

// Comes back only with the reason why there is no scope. A first scope of the same kind is tried by
// a child, because after the exec nobody could fall back.
std::string enter_scope(const AgentArguments& arguments, const std::vector<std::string>& argv) {
  if (!has_user_manager()) return "no systemd of the user to ask for one";
  const std::string self = own_program();
  const std::string unit = job_cgroup_name(arguments.job_id, *arguments.node);
  const auto tried = run_quietly(scope_command(unit + "-check", {self, "scope-check"}));
  if (!tried) return tried.error().message;
  std::vector<std::string> program = without_user_scope(argv);
  program.front() = self;
  std::vector<std::string> words = scope_command(unit, program);
  execvp(words.front().c_str(), pointers(words).data());
  return fmt::format("{}: {}", words.front(), strerror(errno));
}

bool is_writable(const std::string& folder) {
  return access(folder.c_str(), W_OK | X_OK) == 0 &&
         access((folder + "/cgroup.procs").c_str(), W_OK) == 0;
}

}  // namespace

std::vector<std::string> scope_command(const std::string& unit,
                                       const std::vector<std::string>& program) {
  std::vector<std::string> words = {"systemd-run", "--user",       "--scope",        "-q",
                                    "-p",          "Delegate=yes", "--unit=" + unit, "--"};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

std::vector<std::string> without_user_scope(const std::vector<std::string>& argv) {
  std::vector<std::string> words = argv;
  std::erase(words, "--user-scope");
  return words;
}

CgroupPlace find_cgroup_place(const AgentArguments& arguments,
                              const std::vector<std::string>& argv) {
  if (arguments.cgroup_root == "none") return {"", "switched off"};
  if (!arguments.cgroup_root.empty()) return {arguments.cgroup_root, ""};
  const auto own = own_cgroup();
  if (!own) return {"", own.error().message};
  if (is_writable(*own)) return {*own, ""};
  std::string problem = fmt::format("{} is not writable for us", *own);
  if (arguments.wants_user_scope && arguments.node && geteuid() != 0) {
    problem += ", and " + enter_scope(arguments, argv);
  }
  return {"", problem};
}

int check_scope() {
  const auto parent = own_cgroup();
  if (!parent) return 1;
  const auto made = JobCgroup::make(*parent, "check", 0);
  return made && made->remove() ? 0 : 1;
}

}  // namespace hvd
