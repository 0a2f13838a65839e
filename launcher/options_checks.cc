#include "launcher/options_checks.h"

#include <errno.h>
#include <fmt/ranges.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/env_size.h"
#include "proto/tls_files.h"

namespace hvd {

Result<void> check_size(const Options& options, const EnvList& environment) {
  const EnvList forwarded = filter_launcher_env(environment, options.env_request.rules);
  return check_exec_size(options.command, merge_env({&forwarded, &options.env}, {}));
}

Result<void> check_gpu_selection(const Options& options) {
  if (!find_env(options.env, "CUDA_VISIBLE_DEVICES")) return {};
  const auto selects = [](const HostSpec& host) { return !host.gpus.empty(); };
  const auto found = std::find_if(options.hosts.begin(), options.hosts.end(), selects);
  if (found == options.hosts.end()) return {};
  return make_error(ExitCode::kUsage,
                    "GPUs of host {} are selected, and -x gives CUDA_VISIBLE_DEVICES; leave one of "
                    "them out",
                    found->label());
}

Result<void> check_restarts(const Options& options) {
  if (options.restarts.most == 0) {
    if (options.restarts.spares.empty()) return {};
    return make_error(ExitCode::kUsage,
                      "--spare is used by --max-restarts only; add it, or leave --spare out");
  }
  for (const HostSpec& spare : options.restarts.spares) {
    const auto is_same = [&spare](const HostSpec& host) { return host.label() == spare.label(); };
    if (std::none_of(options.hosts.begin(), options.hosts.end(), is_same)) continue;
    return make_error(ExitCode::kUsage,
                      "--spare {}: this host is in use from the start ({}); name another, or leave "
                      "it out",
                      spare.label(), options.hosts_source);
  }
  if (!options.signals.passes_input) return {};
  return make_error(ExitCode::kUsage,
                    "--max-restarts cannot give standard input to a second attempt; leave --stdin "
                    "out, or let rank 0 read a file");
}

Result<void> check_hook_occasion(const Options& options, const EnvList& environment) {
  const EnvList all = merge_env({&environment, &options.env}, {});
  const std::string shut_down = env_value(all, kStallShutdownVariable);
  const bool has_shut_down = !shut_down.empty() && shut_down != "0";
  return check_hook(options.watch, options.timeout.has_value() || has_shut_down);
}

Result<void> check_transport(const Options& options) {
  const bool is_command = options.transport == TransportKind::kCommand;
  if (is_command && options.rsh.empty()) {
    return make_error(ExitCode::kUsage,
                      "--transport command needs a program; name it, as in --rsh 'ssh {{host}}'");
  }
  if (!is_command && !options.rsh.empty()) {
    return make_error(ExitCode::kUsage,
                      "--rsh is used by --transport command only; add --transport command or leave "
                      "--rsh out");
  }
  if (!is_command && options.is_agent_running) {
    return make_error(
        ExitCode::kUsage,
        "--agent-running is used by --transport command only; add --transport command "
        "and --rsh, or leave it out");
  }
  if (options.is_agent_running &&
      std::find(options.rsh.begin(), options.rsh.end(), "{command}") != options.rsh.end()) {
    return make_error(
        ExitCode::kUsage,
        "--rsh has the word {{command}}, but with --agent-running there is none; leave "
        "one of them out");
  }
  return {};
}

Result<void> check_tls(const Options& options) {
  if (options.transport != TransportKind::kTls) {
    if (options.tls_dir.empty()) return {};
    return make_error(ExitCode::kUsage,
                      "--tls-dir is used by --transport tls only; add --transport tls or leave "
                      "--tls-dir out");
  }
  return check_user_files(options.tls_dir).map_error([](const Error& error) {
    return error.within("--transport tls");
  });
}

Result<void> check_user_files(const std::string& folder) {
  const TlsFiles files = user_files_in(folder);
  for (const std::string& file : {files.key, files.certificate, files.authority}) {
    if (::access(file.c_str(), R_OK) == 0) continue;
    return make_error(ExitCode::kUsage,
                      "{}: {}; name the folder with --tls-dir, or have one made by "
                      "hvdctl ca issue --user NAME",
                      file, strerror(errno));
  }
  return {};
}

void note_unused_ssh_options(Options& options, const ArgvScan& scan) {
  const auto is_by_ssh = [&](const HostSpec& host) {
    return transport_for(options, host) == TransportKind::kSsh;
  };
  const auto& spares = options.restarts.spares;
  if (std::any_of(options.hosts.begin(), options.hosts.end(), is_by_ssh) ||
      std::any_of(spares.begin(), spares.end(), is_by_ssh)) {
    return;
  }
  std::vector<std::string_view> unused;
  for (const Occurrence& it : scan.options) {
    const OptionId id = it.spec->id;
    if (id == OptionId::kSshPort || id == OptionId::kSshIdentityFile ||
        id == OptionId::kSshConfig) {
      unused.push_back(it.spec->names.back());
    }
  }
  if (unused.empty()) return;
  options.notes.push_back(
      fmt::format("no host is reached by ssh: {} has no effect", fmt::join(unused, ", ")));
}

}  // namespace hvd
