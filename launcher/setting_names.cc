#include "launcher/setting_names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::array<std::string_view, 21> kVariablesOfWorkers = {
    // given to workers
    "HVDRUN_JOB_ID", "HVDRUN_NODE", "HVDRUN_ADDRESS", "HVDRUN_RENDEZVOUS", "HVDRUN_TIMELINE",
    "HVDRUN_TIMELINE_STEPS", "HVDRUN_TIMELINE_MAX_BYTES",
    // read by the runtime and the agent
    "HVDRUN_INIT", "HVDRUN_ABORT_TIMEOUT_MS", "HVDRUN_DUMP_DIR", "HVDRUN_ALLOW_SHARED_GPU",
    "HVDRUN_BEAT_MS", "HVDRUN_FRAME_DIR", "HVDRUN_CGROUP_ROOT", "HVDRUN_KERNEL_LOG", "HVDRUN_SYSFS",
    // read by the tests
    "HVDRUN_BIN", "HVDRUN_LONG", "HVDRUN_TESTBED", "HVDRUN_TEST_CLOCK", "HVDRUN_CHAOS_SEED"};

std::string with_underscores(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

bool is_long_name(std::string_view name) { return name.starts_with("--"); }

std::optional<bool> parse_switch(std::string_view text) {
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return std::nullopt;
}

bool has_place_in_files(const OptionSpec& option) {
  // A file cannot name another one.
  return !option.is_hidden && !option.is_per_run && option.id != OptionId::kConfigFile;
}

}  // namespace

std::string variable_of(const OptionSpec& option) {
  if (option.is_hidden || option.is_per_run) return "";
  const auto& names = option.names;
  const auto name = std::find_if(names.begin(), names.end(), is_long_name);
  if (name == names.end()) return "";
  std::string variable = "HVDRUN_" + with_underscores(bare_name(*name));
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return is_variable_of_workers(variable) ? "" : variable;
}

std::vector<std::string> variables_of(const OptionSpec& option) {
  std::vector<std::string> variables;
  if (std::string own = variable_of(option); !own.empty()) variables.push_back(std::move(own));
  for (const auto other : option.variables) {
    const bool is_known = !variables.empty() && variables.front() == other;
    if (option.takes_argument() && !is_known) variables.emplace_back(other);
  }
  return variables;
}

std::vector<std::string> keys_of(const OptionSpec& option) {
  std::vector<std::string> keys;
  if (!has_place_in_files(option)) return keys;
  for (const auto name : option.names) {
    if (!is_short_name(name)) keys.push_back(with_underscores(bare_name(name)));
  }
  // -x, which has no long name.
  if (keys.empty()) keys.emplace_back(bare_name(option.names.front()));
  return keys;
}

std::optional<KeyedOption> find_key(std::string_view key) {
  const std::string name = with_underscores(key);
  for (const OptionSpec& option : options_table()) {
    const auto keys = keys_of(option);
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) return KeyedOption{&option, false};
    const bool has_opposite = !keys.empty() && !option.opposite.empty();
    if (has_opposite && with_underscores(bare_name(option.opposite)) == name) {
      return KeyedOption{&option, true};
    }
  }
  return std::nullopt;
}

bool is_variable_of_workers(std::string_view name) {
  return std::find(kVariablesOfWorkers.begin(), kVariablesOfWorkers.end(), name) !=
         kVariablesOfWorkers.end();
}

Result<std::vector<Occurrence>> settings_from(const KeyedOption& option, const std::string& text,
                                              const std::string& source) {
  const OptionSpec& spec = *option.spec;
  if (spec.takes_argument() && !option.is_opposite) {
    return std::vector<Occurrence>{{&spec, false, text, source}};
  }
  if (spec.id == OptionId::kVerbose && text == "2") {
    return std::vector<Occurrence>(2, {&spec, false, "", source});
  }
  const auto is_on = parse_switch(text);
  if (!is_on) {
    return make_error(ExitCode::kUsage, "{}: {} {}: write true or false", source,
                      spec.names.front(), show(text));
  }
  return std::vector<Occurrence>{{&spec, *is_on == option.is_opposite, "", source}};
}

}  // namespace hvd
