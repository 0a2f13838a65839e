#include "launcher/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>

#include "launcher/config_file.h"
#include "launcher/nearest_name.h"
#include "launcher/option_values.h"
#include "launcher/setting_names.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::string_view kOwnPrefix = "HVDRUN_";
constexpr std::string_view kOtherMeaning = "DYNAMIC";

// Options that stand for one another.
const std::vector<std::vector<OptionId>>& alternatives() {
  static const std::vector<std::vector<OptionId>> sets = {
      {OptionId::kHosts, OptionId::kHostfile},
      {OptionId::kGloo, OptionId::kMpi, OptionId::kJsrun},
      {OptionId::kLogWithoutTimestamp, OptionId::kLogHideTimestamp},
  };
  return sets;
}

void decide(std::set<OptionId>& decided, const Occurrence& it) {
  if (it.spec->id == OptionId::kEnv) return;  // adds up
  decided.insert(it.spec->id);
  for (const auto& set : alternatives()) {
    if (std::find(set.begin(), set.end(), it.spec->id) != set.end()) {
      decided.insert(set.begin(), set.end());
    }
  }
  if (it.spec->id == OptionId::kTransport && it.value != "command") {
    decided.insert({OptionId::kRsh, OptionId::kAgentRunning});
  }
}

// HOROVOD_TIMELINE that names no file of this job: the program starts its timeline itself, or the
// job around this one has told its workers.
bool is_for_the_program(std::string_view name, std::string_view value, const EnvList& environment) {
  if (name != "HOROVOD_TIMELINE") return false;
  return value == kOtherMeaning || find_env(environment, "HVDRUN_JOB_ID").has_value();
}

void note_unknown_variables(const EnvList& environment, std::vector<std::string>& notes) {
  // Inside a job an agent of another version may have set what this one does not know.
  if (find_env(environment, "HVDRUN_JOB_ID")) return;
  std::vector<std::string> known;
  for (const OptionSpec& option : options_table()) {
    if (std::string name = variable_of(option); !name.empty()) known.push_back(std::move(name));
  }
  for (const auto& variable : environment) {
    const std::string& name = variable.first;
    if (!name.starts_with(kOwnPrefix) || is_variable_of_workers(name)) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view stem = std::string_view(name).substr(kOwnPrefix.size());
    std::vector<std::string_view> stems;
    for (const std::string& one : known)
      stems.push_back(std::string_view(one).substr(kOwnPrefix.size()));
    const auto nearest = nearest_name(stem, stems);
    notes.push_back(fmt::format("the variable {} has no meaning and is left alone{}", show(name),
                                nearest.empty()
                                    ? "; it would be HVDRUN_ and an option's long name, as in "
                                      "HVDRUN_NUM_PROC"
                                    : fmt::format("; did you mean {}{}?", kOwnPrefix, nearest)));
  }
}

Result<std::vector<Occurrence>> read_config(const std::string& path, std::string_view name) {
  const auto text = read_file(path, name);
  if (!text) return tl::unexpected(text.error());
  return parse_config(*text, path);
}

// A default place may have no file; one that this user may not read is told and goes without.
Result<std::vector<Occurrence>> read_default_config(const std::string& path,
                                                    std::vector<std::string>& notes) {
  if (path.empty()) return {};
  if (::access(path.c_str(), R_OK) == 0) return read_config(path, "configuration");
  if (errno != ENOENT && errno != ENOTDIR) {
    notes.push_back(fmt::format("configuration {} cannot be read and is left out: {}", show(path),
                                std::strerror(errno)));
  }
  return {};
}

std::string config_file_of(const std::vector<Occurrence>& settings) {
  const auto named = std::find_if(settings.rbegin(), settings.rend(), [](const Occurrence& it) {
    return it.spec->id == OptionId::kConfigFile;
  });
  return named == settings.rend() ? "" : named->value;
}

}  // namespace

std::string user_config_folder(const EnvList& environment) {
  const std::string xdg = env_value(environment, "XDG_CONFIG_HOME");
  if (xdg.starts_with('/')) return xdg + "/hvdrun";
  const std::string home = env_value(environment, "HOME");
  return home.starts_with('/') ? home + "/.config/hvdrun" : std::string();
}

ConfigPlaces default_config_places(const EnvList& environment) {
  ConfigPlaces places;
  places.system_file = "/etc/hvdrun/config.yaml";
  const std::string folder = user_config_folder(environment);
  if (!folder.empty()) places.user_file = folder + "/config.yaml";
  return places;
}

Result<std::vector<Occurrence>> settings_of_environment(const EnvList& environment,
                                                        std::vector<std::string>& notes) {
  std::vector<Occurrence> settings;
  for (const OptionSpec& option : options_table()) {
    for (const std::string& name : variables_of(option)) {
      const std::string value = env_value(environment, name);
      if (value.empty() || is_for_the_program(name, value, environment)) continue;
      auto found = settings_from({&option, false}, value, name);
      if (!found) return tl::unexpected(found.error());
      settings.insert(settings.end(), found->begin(), found->end());
      break;
    }
  }
  note_unknown_variables(environment, notes);
  return settings;
}

std::vector<Occurrence> merge_settings(const std::vector<std::vector<Occurrence>>& sources) {
  std::set<OptionId> decided;
  std::vector<std::vector<Occurrence>> kept;
  for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
    std::vector<Occurrence>& here = kept.emplace_back();
    std::copy_if(source->begin(), source->end(), std::back_inserter(here),
                 [&](const Occurrence& it) { return !decided.contains(it.spec->id); });
    for (const Occurrence& it : here) decide(decided, it);
  }
  std::vector<Occurrence> merged;
  for (auto source = kept.rbegin(); source != kept.rend(); ++source) {
    merged.insert(merged.end(), source->begin(), source->end());
  }
  return merged;
}

Result<std::vector<Occurrence>> gather_settings(const std::vector<Occurrence>& given,
                                                const EnvList& environment,
                                                const ConfigPlaces& places,
                                                std::vector<std::string>& notes) {
  const auto of_environment = settings_of_environment(environment, notes);
  if (!of_environment) return of_environment;
  for (const Occurrence& it : given) {
    if (it.spec->id != OptionId::kConfigFile || !it.value.empty()) continue;
    return make_error(ExitCode::kUsage, "--config-file is empty; name a file, or leave it out");
  }
  std::string named = config_file_of(given);
  if (named.empty()) named = config_file_of(*of_environment);
  std::vector<Occurrence> of_file;
  if (!named.empty()) {
    auto read = read_config(named, "--config-file");
    if (!read) return read;
    of_file = std::move(*read);
  }
  const auto of_user = read_default_config(places.user_file, notes);
  if (!of_user) return of_user;
  const auto of_system = read_default_config(places.system_file, notes);
  if (!of_system) return of_system;
  return merge_settings({*of_system, *of_user, of_file, *of_environment, given});
}

}  // namespace hvd
