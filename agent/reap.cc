#include "agent/reap.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "agent/leftovers.h"
#include "agent/shim/job_dir.h"
#include "base/loop.h"

namespace hvd {
namespace {

constexpr Nanos kVerify = std::chrono::seconds(5);
constexpr Nanos kPause = std::chrono::milliseconds(50);
// Beyond the grace, for the kill and its proof.
constexpr Nanos kMargin = std::chrono::seconds(1);
constexpr std::size_t kIdDigits = 8;

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
  return std::any_of(supervisors.begin(), supervisors.end(), [](const ProcStat& process) {
    return process.state != 'T' && process.state != 't';
  });
}

class Reap {
 public:
  Reap(Loop& loop, const AgentArguments& arguments)
      : loop_(loop),
        arguments_(arguments),
        patience_(boottime_now() + arguments.grace + kMargin),
        timer_(loop) {}

  void run() {
    if (is_one_at_work(arguments_) && boottime_now() < patience_) return wait();
    leftovers_.emplace(loop_, everything_of(arguments_), cgroups_of(arguments_));
    leftovers_->sweep(kVerify, [this](const std::vector<ProcStat>& survivors) { end(survivors); });
  }

  [[nodiscard]] const ReapResult& result() const { return result_; }

 private:
  void wait() {
    timer_.expires_after(kPause);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) run();
    });
  }

  void end(const std::vector<ProcStat>& survivors) {
    result_.is_clean = survivors.empty();
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
  nlohmann::ordered_json line = {{"job", arguments.job_id},
                                 {"node", *arguments.node},
                                 {"clean", result.is_clean},
                                 {"killed", result.num_killed},
                                 {"survivors", nlohmann::ordered_json::array()}};
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
             fmt::format("{}-{}-", job_id.substr(0, kIdDigits), node));
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
  if (is_job_dir_of(arguments.job_dir, arguments.job_id, *arguments.node)) {
    remove_job_dir(arguments.job_dir);
  }
  print(reap_line(arguments, reap.result()) + "\n");
  return reap.result().is_clean ? 0 : 1;
}

}  // namespace hvd
