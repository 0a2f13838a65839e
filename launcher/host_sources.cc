#include "launcher/host_sources.h"

#include <filesystem>
#include <utility>

#include "launcher/allocation.h"
#include "launcher/host_filter.h"
#include "launcher/option_values.h"

namespace hvd {
namespace {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  return names;
}

AllocationFiles real_files() {
  return {.read = [](const std::string& path) { return read_file(path, "hosts"); },
          .exists = [](const std::string& path) { return std::filesystem::exists(path); },
          .list = names_in};
}

}  // namespace

Result<bool> take_allocation(Options& options, const EnvList& environment) {
  auto found = find_allocation(environment, real_files());
  if (!found) return tl::unexpected(found.error());
  if (!*found) return false;
  Allocation& allocation = **found;
  const bool is_transport_chosen =
      options.is_transport_given && options.transport != TransportKind::kAuto;
  const bool is_by_srun = !allocation.rsh.empty() && !is_transport_chosen && options.rsh.empty();
  if (is_by_srun) {
    options.transport = TransportKind::kCommand;
    options.is_transport_given = true;
    options.rsh = std::move(allocation.rsh);
  }
  options.notes.push_back(fmt::format("hosts of {}{}: {}; -H or --hostfile name others",
                                      allocation.source, is_by_srun ? ", reached by srun" : "",
                                      format_hosts(allocation.hosts)));
  options.hosts = std::move(allocation.hosts);
  options.hosts_source = std::move(allocation.source);
  return true;
}

Result<void> filter_hosts(Options& options, const std::optional<std::string>& include,
                          const std::optional<std::string>& exclude) {
  if (include) {
    auto hosts = include_hosts(std::move(options.hosts), *include);
    if (!hosts) return tl::unexpected(hosts.error().within("--include"));
    options.hosts = std::move(*hosts);
    options.hosts_source += fmt::format(" --include {}", *include);
  }
  if (exclude) {
    auto hosts = exclude_hosts(std::move(options.hosts), *exclude);
    if (!hosts) return tl::unexpected(hosts.error().within("--exclude"));
    options.hosts = std::move(*hosts);
    options.hosts_source += fmt::format(" --exclude {}", *exclude);
  }
  return {};
}

}  // namespace hvd
