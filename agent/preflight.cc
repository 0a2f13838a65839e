#include "agent/preflight.h"

#include <limits.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "agent/executable.h"
#include "agent/interfaces.h"
#include "base/clock.h"
#include "base/own_program.h"
#include "base/read_file.h"

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

struct Limits {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

Limits limits_of(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return {};
  const auto number = [](rlim_t value) { return value == RLIM_INFINITY ? UINT64_MAX : value; };
  return {number(limit.rlim_cur), number(limit.rlim_max)};
}

// Whether hard limits may be raised.
bool is_above_limits() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  return (data[0].effective & CAP_TO_MASK(CAP_SYS_RESOURCE)) != 0;
}

void tell_limits(v1::HelloReply* reply) {
  const Limits memlock = limits_of(RLIMIT_MEMLOCK);
  const Limits nofile = limits_of(RLIMIT_NOFILE);
  reply->set_memlock_limit(memlock.soft);
  reply->set_nofile_limit(nofile.soft);
  reply->set_memlock_hard(is_above_limits() ? UINT64_MAX : memlock.hard);
  reply->set_nofile_hard(nofile.hard);
  reply->set_core_hard(limits_of(RLIMIT_CORE).hard);
  reply->set_stack_limit(limits_of(RLIMIT_STACK).soft);
}

void tell_command(const v1::Hello& hello, const EnvList& env, v1::HelloReply* reply) {
  const int cwd_error = check_folder(hello.cwd());
  reply->set_cwd_ok(cwd_error == 0);
  reply->set_cwd_errno(cwd_error);
  const ExecutableLookup found =
      find_executable(hello.argv_size() > 0 ? hello.argv(0) : "", env, hello.cwd());
  reply->set_executable(found.path);
  reply->set_executable_errno(found.errno_value);
}

bool has_entries(const std::string& folder) {
  std::error_code error;
  const bool is_empty = std::filesystem::is_empty(folder, error);
  return !error && !is_empty;
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
  reply.set_has_rdma(has_entries(paths.rdma));
  for (v1::Interface& interface : read_interfaces()) {
    *reply.add_interfaces() = std::move(interface);
  }
  tell_command(hello, env, &reply);
  if (const auto gpus = find_env(env, "CUDA_VISIBLE_DEVICES")) reply.set_visible_gpus(*gpus);
  reply.set_pid(getpid());
  reply.set_agent_path(own_program());
  tell_limits(&reply);
  reply.set_boottime_ns(boottime_now().count());
  reply.set_realtime_ns(realtime_now().count());
  return reply;
}

}  // namespace hvd
