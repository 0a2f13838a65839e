#include "agent/preflight.h"

#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "agent/executable.h"
#include "agent/interfaces.h"
#include "agent/read_file.h"
#include "base/clock.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

void tell_machine(v1::HelloReply* reply) {
  utsname name{};
  if (uname(&name) != 0) return;
  reply->set_hostname(name.nodename);
  reply->set_machine(name.machine);
  reply->set_kernel(name.release);
}

std::uint64_t network_namespace() {
  struct stat info {};
  return stat("/proc/self/ns/net", &info) == 0 ? info.st_ino : 0;
}

std::uint64_t soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

std::string own_path() {
  std::array<char, PATH_MAX> buffer;
  const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size());
  return n > 0 ? std::string(buffer.data(), static_cast<std::size_t>(n)) : std::string();
}

void tell_command(const v1::Hello& hello, const EnvList& env, v1::HelloReply* reply) {
  const int cwd_error = check_folder(hello.cwd());
  reply->set_cwd_ok(cwd_error == 0);
  reply->set_cwd_errno(cwd_error);
  const std::string path = find_env(env, "PATH").value_or(std::string(kDefaultPath));
  const ExecutableLookup found =
      find_executable(hello.argv_size() > 0 ? hello.argv(0) : "", path, hello.cwd());
  reply->set_executable(found.path);
  reply->set_executable_errno(found.errno_value);
}

}  // namespace

unsigned count_gpus(const std::string& folder) {
  unsigned count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
  }
  return count;
}

v1::HelloReply preflight(const v1::Hello& hello, const EnvList& env, const PreflightPaths& paths) {
  v1::HelloReply reply;
  reply.set_agent_version(HVDRUN_VERSION);
  tell_machine(&reply);
  reply.set_boot_id(read_first_line(paths.boot_id));
  reply.set_network_namespace(network_namespace());
  reply.set_num_gpus(count_gpus(paths.gpus));
  for (v1::Interface& interface : read_interfaces()) {
    *reply.add_interfaces() = std::move(interface);
  }
  tell_command(hello, env, &reply);
  reply.set_pid(getpid());
  reply.set_agent_path(own_path());
  reply.set_memlock_limit(soft_limit(RLIMIT_MEMLOCK));
  reply.set_nofile_limit(soft_limit(RLIMIT_NOFILE));
  reply.set_boottime_ns(boottime_now().count());
  reply.set_realtime_ns(realtime_now().count());
  return reply;
}

}  // namespace hvd
