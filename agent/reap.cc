#include "agent/reap.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "agent/job_dir.h"
#include "agent/leftovers.h"
#include "agent/shim/job_dir.h"
#include "base/loop.h"
#include "base/process_state.h"

namespace hvd {
namespace {

constexpr Nanos kVerify = std::chrono::seconds(5);
constexpr Nanos kReapPause = std::chrono::milliseconds(50);
// Beyond the grace, for the kill and its proof.
constexpr Nanos kMargin = std::chrono::seconds(1);

Container everything_of(const AgentArguments& arguments) {
  Container container;
  container.job_id = arguments.job_id;
  container.node = *arguments.node;
  container.claims_supervisors = true;
  return container;
}

std::vector<JobCgroup> cgroups_of(const AgentArguments& arguments) {
  std::vector<JobCgroup> cgroups;
  const std::string& root = arguments.cgroup_root;
  if (root == "none") return cgroups;
  const std::string top = root.empty() ? find_cgroup_mount() : root;
  for (std::string& path : find_job_cgroups(top, arguments.job_id, *arguments.node)) {
    if (auto cgroup = JobCgroup::open(std::move(path))) cgroups.push_back(std::move(*cgroup));
  }
  return cgroups;
}

// A stopped one ends nothing by itself.
bool is_one_at_work(const AgentArguments& arguments) {
  const auto supervisors = find_supervisors(arguments.job_id, *arguments.node);
  return std::any_of(supervisors.begin(), supervisors.end(),
                     [](const ProcStat& process) { return !is_stopped_state(process.state); });
}

std::vector<std::string> job_dirs(const AgentArguments& arguments) {
  if (arguments.job_dir.empty()) {
    const char* const runtime_dir = getenv("XDG_RUNTIME_DIR");
    return job_dirs_of(job_dir_parents(runtime_dir ? runtime_dir : "", geteuid()), arguments.job_id,
                       *arguments.node);
  }
  if (!is_job_dir_of(arguments.job_dir, arguments.job_id, *arguments.node)) return {};
  return {arguments.job_dir};
}

constexpr const char* kNoProof =
    "agent and shim were killed, and there is no cgroup: a process that has cleared its "
    "environment "
    "and left its parent would not be found";

class Reap {
 public:
  Reap(Loop& loop, const AgentArguments& arguments)
      : loop_(loop),
        arguments_(arguments),
        patience_(boottime_now() + arguments.grace + kMargin),
        timer_(loop) {}

  void run() {
    if (is_one_at_work(arguments_) && boottime_now() < patience_) return wait();
    auto cgroups = cgroups_of(arguments_);
    if (cgroups.empty() && is_abandoned()) result_.doubt = kNoProof;
    leftovers_.emplace(loop_, everything_of(arguments_), std::move(cgroups));
    leftovers_->sweep(kVerify, [this](const std::vector<ProcStat>& survivors) { end(survivors); });
  }

  [[nodiscard]] const ReapResult& result() const { return result_; }

 private:
  // Whoever ends a job removes its folder after that, be it agent or shim: where it still stands,
  // both were killed, or stand still and are about to be.
  [[nodiscard]] bool is_abandoned() const {
    std::error_code ignored;
    const auto dirs = job_dirs(arguments_);
    return std::any_of(dirs.begin(), dirs.end(), [&ignored](const std::string& path) {
      return std::filesystem::exists(path, ignored);
    });
  }

  void wait() {
    timer_.expires_after(kReapPause);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) run();
    });
  }

  void end(const std::vector<ProcStat>& survivors) {
    result_.is_clean = survivors.empty() && result_.doubt.empty();
    result_.num_killed = leftovers_->num_killed();
    for (const ProcStat& process : survivors) {
      result_.survivors.push_back(describe_survivor(process));
    }
  }

  Loop& loop_;
  const AgentArguments& arguments_;
  const Nanos patience_;
  boost::asio::steady_timer timer_;
  std::optional<Leftovers> leftovers_;
  ReapResult result_;
};

void print(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t size = write(STDOUT_FILENO, rest.data(), rest.size());
    if (size <= 0) return;  // nobody listens any more; what was to be done is done
    rest.remove_prefix(static_cast<std::size_t>(size));
  }
}

}  // namespace

std::string reap_line(const AgentArguments& arguments, const ReapResult& result) {
  nlohmann::ordered_json line = {
      {"job", arguments.job_id},  {"node", *arguments.node},
      {"clean", result.is_clean}, {"killed", result.num_killed},
      {"doubt", result.doubt},    {"survivors", nlohmann::ordered_json::array()}};
  for (const auto& survivor : result.survivors) {
    line["survivors"].push_back({{"pid", survivor.pid()},
                                 {"uid", survivor.uid()},
                                 {"state", survivor.state()},
                                 {"wchan", survivor.wchan()},
                                 {"command", survivor.command()},
                                 {"ports", survivor.listening_ports()}});
  }
  // A command need not be UTF-8.
  return line.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

bool is_job_dir_of(std::string_view path, std::string_view job_id, std::uint32_t node) {
  const std::size_t slash = path.rfind('/');
  if (path.empty() || path.front() != '/' || slash == 0 || path.find("/..") != path.npos) {
    return false;
  }
  const std::string_view parent = path.substr(0, slash);
  return parent.substr(parent.rfind('/') + 1).starts_with("hvdrun") &&
         path.substr(slash + 1).starts_with(
             fmt::format("{}-{}-", job_id.substr(0, kJobDirDigits), node));
}

std::vector<std::string> job_dirs_of(const std::vector<std::string>& parents,
                                     std::string_view job_id, std::uint32_t node) {
  std::vector<std::string> paths;
  for (const std::string& parent : parents) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string& path = entry->path().native();
      if (is_job_dir_of(path, job_id, node)) paths.push_back(path);
    }
  }
  return paths;
}

int run_reap(const AgentArguments& arguments) {
  signal(SIGPIPE, SIG_IGN);
  if (!arguments.marker.empty()) {
    print(fmt::format("{} ready {}\n", arguments.marker, HVDRUN_VERSION));
  }
  Loop loop(1);
  Reap reap(loop, arguments);
  reap.run();
  loop.run();
  for (const std::string& path : job_dirs(arguments)) remove_job_dir(path);
  print(reap_line(arguments, reap.result()) + "\n");
  return reap.result().is_clean ? 0 : 1;
}

}  // namespace hvd
