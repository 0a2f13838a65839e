#include "launcher/env_options.h"

#include <algorithm>

#include "launcher/argv_scan.h"
#include "launcher/env_file.h"
#include "launcher/option_values.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::string_view kWildcards = "*?[";

bool is_name_pattern(std::string_view text) {
  return text.find('=') == std::string_view::npos &&
         text.find_first_of(kWildcards) != std::string_view::npos;
}

// -x 'NCCL_*': all of hvdrun's own that match, also those that would stay at home.
void add_matching(EnvRequest& request, const std::string& pattern, const EnvList& own,
                  std::vector<std::string>& notes) {
  bool is_any = false;
  for (const auto& [name, value] : own) {
    if (name.starts_with("HVDRUN_") || !matches_pattern(pattern, name)) continue;
    request.given.emplace_back(name, value);
    is_any = true;
  }
  if (!is_any) notes.push_back(fmt::format("-x {}: no variable is set here that matches", pattern));
}

// Rank, size and the like: the last word is hvdrun's.
void note_if_ours(std::string_view giver, const std::string& name,
                  std::vector<std::string>& notes) {
  static const EnvList ours = own_rank_variables();
  if (!find_env(ours, name)) return;
  notes.push_back(fmt::format(
      "{} {}: hvdrun sets this variable itself for each process; yours is left out", giver, name));
}

Result<void> add_given(EnvRequest& request, const std::string& text, const EnvList& own,
                       std::vector<std::string>& notes) {
  if (is_name_pattern(text)) {
    add_matching(request, text, own, notes);
    return {};
  }
  const auto parsed = parse_env_name(text);
  if (!parsed) return tl::unexpected(parsed.error());
  const auto& [name, value_at] = *parsed;
  note_if_ours("-x", name, notes);
  if (value_at != std::string::npos) {
    std::string value = text.substr(value_at);
    if (mentions_itself(name, value)) notes.push_back("-x: " + literal_note(name));
    request.given.emplace_back(name, std::move(value));
    return {};
  }
  auto value = find_env(own, name);
  if (value) {
    request.given.emplace_back(name, std::move(*value));
  } else {
    notes.push_back(fmt::format("-x {}: the variable is not set here and is left out", name));
  }
  return {};
}

Result<void> add_file(EnvRequest& request, const std::string& path, const EnvList& own,
                      std::vector<std::string>& notes) {
  const auto text = read_file(path, "--env-file");
  if (!text) return tl::unexpected(text.error());
  auto variables = parse_env_file(*text, path, own, notes);
  if (!variables) return tl::unexpected(variables.error());
  for (auto& variable : *variables) {
    note_if_ours("--env-file " + path, variable.first, notes);
    request.from_files.push_back(std::move(variable));
  }
  return {};
}

Result<void> add_rule(EnvRequest& request, const Occurrence& it, bool is_allow) {
  if (it.value.empty() || it.value.find('=') != std::string::npos) {
    return make_error(ExitCode::kUsage,
                      "{}: write the name of a variable or a pattern without '=', as in {} 'AWS_*'",
                      it.spec->names.front(), it.spec->names.front());
  }
  std::string_view rest = it.value;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    if (one.empty() || one.find_first_of(" \t\n") != std::string_view::npos) {
      return make_error(ExitCode::kUsage,
                        "{} {}: write names or patterns with commas between them and no blanks",
                        it.spec->names.front(), show(it.value));
    }
    request.rules.push_back({is_allow, std::string(one)});
  }
  return {};
}

Result<void> set_local_rank_option(EnvRequest& request, const std::string& name) {
  const std::string_view bare =
      std::string_view(name).substr(std::min(name.find_first_not_of('-'), name.size()));
  const bool is_word = bare.find_first_of(" \t\n=") == std::string_view::npos;
  if (!name.empty() && (bare.empty() || !is_word)) {
    return make_error(ExitCode::kUsage,
                      "--local-rank-arg {}: write the option's name, as in "
                      "--local-rank-arg=local_rank",
                      show(name));
  }
  request.local_rank_option = name.empty() ? "--local-rank" : fmt::format("--{}", bare);
  return {};
}

}  // namespace

EnvList EnvRequest::user_env() const {
  EnvList all = from_files;
  all.insert(all.end(), given.begin(), given.end());
  return all;
}

Result<void> set_environment_option(EnvRequest& request, const Occurrence& it, const EnvList& own,
                                    std::vector<std::string>& notes) {
  switch (it.spec->id) {
    case OptionId::kEnvFile:
      return add_file(request, it.value, own, notes);
    case OptionId::kEnvAllow:
    case OptionId::kEnvDeny:
      return add_rule(request, it, it.spec->id == OptionId::kEnvAllow);
    case OptionId::kTorchelastic:
      request.is_torchelastic = !it.is_opposite;
      return {};
    case OptionId::kNoPmi:
      request.answers_pmi = it.is_opposite;
      return {};
    case OptionId::kBind: {
      const auto choice = parse_choice(it.value, "--bind", it.spec->choices);
      if (!choice) return tl::unexpected(choice.error());
      request.bind = *choice == 0 ? std::string() : it.value;  // none
      return {};
    }
    case OptionId::kCoreDumps: {
      const auto choice = parse_choice(it.value, "--core-dumps", it.spec->choices);
      if (!choice) return tl::unexpected(choice.error());
      request.core_dumps = static_cast<CoreDumps>(*choice);
      return {};
    }
    case OptionId::kReportBindings:
      request.reports_bindings = !it.is_opposite;
      return {};
    case OptionId::kLocalRankArg:
      return set_local_rank_option(request, it.value);
    default:
      return add_given(request, it.value, own, notes);
  }
}

}  // namespace hvd
