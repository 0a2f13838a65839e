#include "launcher/dry_run.h"

#include <algorithm>
#include <array>

#include "launcher/gpu_list.h"
#include "launcher/plan.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::size_t kNumColumns = 5;
using Row = std::array<std::string, kNumColumns>;

// What is known of a rank's GPUs before the node is reached.
std::string gpus_of(const Options& options, const HostSpec& host, std::uint32_t local_rank) {
  if (!options.is_one_gpu_per_rank) return format_gpus(host.gpus);
  if (host.gpus.empty()) return fmt::format("{} of the node", local_rank);
  return local_rank < host.gpus.size() ? host.gpus[local_rank] : "none left";
}

std::string target_name(const HostSpec& host) {
  std::string result = host.user.empty() ? host.name : fmt::format("{}@{}", host.user, host.name);
  return host.port == 0 ? result : fmt::format("{} port {}", result, host.port);
}

std::string transport_of(const Options& options, const HostSpec& host) {
  return transport_name(transport_for(options, host));
}

std::vector<Row> rows_of_plan(const Options& options, const Plan& plan) {
  std::vector<Row> rows;
  for (const RankPlace& place : plan.ranks) {
    const HostSpec& host = plan.nodes[place.node].host;
    rows.push_back({fmt::format("{}", place.rank), target_name(host),
                    fmt::format("{}", place.local_rank), transport_of(options, host),
                    gpus_of(options, host, place.local_rank)});
  }
  return rows;
}

// Ranks can be numbered only up to the first host whose slots are not known.
std::vector<Row> rows_of_hosts(const Options& options) {
  std::vector<Row> rows;
  std::uint32_t next = 0;
  // Until a host has as many ranks as GPUs.
  bool is_known = options.rank_order == RankOrder::kBlock;
  for (const HostSpec& host : options.hosts) {
    const auto name = target_name(host);
    const auto transport = transport_of(options, host);
    if (!host.slots) {
      rows.push_back({is_known ? fmt::format("{}...", next) : "?", name, "0..GPUs", transport, ""});
      is_known = false;
      continue;
    }
    for (std::uint32_t local = 0; local < *host.slots; ++local) {
      rows.push_back({is_known ? fmt::format("{}", next++) : "?", name, fmt::format("{}", local),
                      transport, gpus_of(options, host, local)});
    }
  }
  return rows;
}

std::string format_table(const std::vector<Row>& rows) {
  const auto has_gpus = [](const Row& row) { return !row.back().empty(); };
  const bool shows_gpus = std::any_of(rows.begin(), rows.end(), has_gpus);
  const Row titles = {"rank", "host", "local rank", "transport", "GPUs"};
  std::array<std::size_t, kNumColumns> widths{};
  for (std::size_t i = 0; i < kNumColumns; ++i) {
    widths[i] = titles[i].size();
    for (const Row& row : rows) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto format_line = [&](const Row& row) {
    const std::string start = fmt::format("{:>{}}  {:<{}}  {:>{}}  ", row[0], widths[0], row[1],
                                          widths[1], row[2], widths[2]);
    if (!shows_gpus || row[4].empty()) return start + row[3] + '\n';
    return start + fmt::format("{:<{}}  {}\n", row[3], widths[3], row[4]);
  };
  std::string result = format_line(titles);
  for (const Row& row : rows) result += format_line(row);
  return result;
}

std::string format_names(const EnvList& variables) {
  std::string result;
  for (const auto& variable : variables) {
    result += (result.empty() ? "" : " ") + quote_word(variable.first);
  }
  return result;
}

std::string format_environment(const Options& options, const EnvList& launcher_environment) {
  const std::size_t num_forwarded =
      filter_launcher_env(launcher_environment, options.env_request.rules).size();
  std::string result = fmt::format("environment: the node's; {} of the {} variables set here; ",
                                   num_forwarded, launcher_environment.size());
  if (!options.env.empty()) result += fmt::format("given {}; ", format_names(options.env));
  EnvList ours = own_rank_variables();
  const EnvList of_horovod = horovod_env("", 0);
  ours.insert(ours.end(), of_horovod.begin(), of_horovod.end());
  return result + fmt::format("and hvdrun's own: {}\n", format_names(ours));
}

std::string format_size(const Options& options) {
  if (options.np) return fmt::format("-np {} ranks of these; ", *options.np);
  return "";
}

}  // namespace

Result<std::string> dry_run_text(const Options& options, const EnvList& launcher_environment,
                                 std::string_view cwd) {
  std::string result;
  std::vector<std::string> notes = options.notes;
  if (can_plan_without_hellos(options.hosts, options.np, options.rank_order)) {
    const auto plan =
        make_plan(options.hosts, options.np, options.hosts_source, options.rank_order);
    if (!plan) return tl::unexpected(plan.error());
    notes.insert(notes.end(), plan->notes.begin(), plan->notes.end());
    result = format_table(rows_of_plan(options, *plan));
  } else {
    result = format_table(rows_of_hosts(options));
    result += fmt::format("{}GPUs: as many as the host has, 1 without; known when it is reached\n",
                          format_size(options));
  }
  for (const std::string& note : notes) result += fmt::format("note: {}\n", note);
  result += fmt::format("\neach runs: {}\n", quote_words(options.command));
  if (!options.rsh.empty()) {
    result += fmt::format("reached by: {}{}\n", quote_words(options.rsh),
                          options.is_agent_running ? ", where an agent runs already" : "");
  }
  result += options.stage.empty()
                ? fmt::format("in: {}\n", quote_word(cwd))
                : fmt::format("in: a new folder with {}\n", quote_words(options.stage));
  result += format_environment(options, launcher_environment);
  return result + "Dry run: nothing was contacted, nothing was started.\n";
}

}  // namespace hvd
