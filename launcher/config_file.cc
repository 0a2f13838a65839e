#include "launcher/config_file.h"

#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <sstream>

#include "launcher/nearest_name.h"
#include "launcher/setting_names.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

struct SectionKey {
  std::string_view section;
  std::string_view key;
  OptionId id;
  bool is_inverse = false;  // its `true` is the option's opposite
};

const std::vector<SectionKey>& section_table() {
  using enum OptionId;
  static const std::vector<SectionKey> rows = {
      {"params", "fusion_threshold_mb", kFusionThresholdMb},
      {"params", "cycle_time_ms", kCycleTimeMs},
      {"params", "cache_capacity", kCacheCapacity},
      {"params", "hierarchical_allreduce", kHierarchicalAllreduce},
      {"params", "hierarchical_allgather", kHierarchicalAllgather},
      {"params", "torus_allreduce", kTorusAllreduce},
      {"autotune", "enabled", kAutotune},
      {"autotune", "log_file", kAutotuneLogFile},
      {"autotune", "warmup_samples", kAutotuneWarmupSamples},
      {"autotune", "steps_per_sample", kAutotuneStepsPerSample},
      {"autotune", "bayes_opt_max_samples", kAutotuneBayesOptMaxSamples},
      {"autotune", "gaussian_process_noise", kAutotuneGaussianProcessNoise},
      {"timeline", "filename", kTimelineFilename},
      {"timeline", "mark_cycles", kTimelineMarkCycles},
      {"stall_check", "enabled", kNoStallCheck, true},
      {"stall_check", "warning_time_seconds", kStallCheckWarning},
      {"stall_check", "shutdown_time_seconds", kStallCheckShutdown},
      {"library_options", "mpi_threads_disable", kMpiThreadsDisable},
      {"library_options", "num_nccl_streams", kNumNcclStreams},
      {"library_options", "thread_affinity", kThreadAffinity},
      {"library_options", "gloo_timeout_seconds", kGlooTimeoutSeconds},
      {"logging", "level", kLogLevel},
      {"logging", "with_timestamp", kLogWithoutTimestamp, true},
  };
  return rows;
}

constexpr std::string_view kController = "controller";

const OptionSpec& spec_of(OptionId id) {
  const auto& table = options_table();
  return *std::find_if(table.begin(), table.end(),
                       [id](const OptionSpec& option) { return option.id == id; });
}

bool is_section(std::string_view name) {
  const auto& rows = section_table();
  return std::any_of(rows.begin(), rows.end(),
                     [name](const SectionKey& row) { return row.section == name; });
}

std::string normalized(std::string key) {
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

// Every name that may stand at the top, or in one section.
std::vector<std::string> known_keys(std::string_view section) {
  std::vector<std::string> keys;
  std::set<std::string_view> sections;
  for (const SectionKey& row : section_table()) {
    if (row.section == section) keys.emplace_back(row.key);
    sections.insert(row.section);
  }
  if (!section.empty()) return keys;
  for (const OptionSpec& option : options_table()) {
    for (std::string& key : keys_of(option)) keys.push_back(std::move(key));
  }
  keys.insert(keys.end(), sections.begin(), sections.end());
  keys.emplace_back(kController);
  return keys;
}

class ConfigReader {
 public:
  explicit ConfigReader(const std::string& file) : file_(file) {}

  Result<void> read(const YAML::Node& root) {
    if (root.IsNull() || !root.IsDefined()) return {};  // an empty file
    if (!root.IsMap()) return fail(root, "this is no map; write one KEY: VALUE a line");
    for (const auto& entry : root) {
      if (auto done = read_top(entry.first, entry.second); !done) return done;
    }
    return {};
  }

  std::vector<Occurrence> take() { return std::move(found_); }

 private:
  [[nodiscard]] std::string place(const YAML::Mark& mark) const {
    return mark.is_null() ? file_ : fmt::format("{}:{}", file_, mark.line + 1);
  }
  [[nodiscard]] tl::unexpected<Error> fail(const YAML::Node& node, std::string_view what) const {
    return make_error(ExitCode::kUsage, "{}: {}", place(node.Mark()), what);
  }

  Result<void> unknown_key(const YAML::Node& key, const std::string& name,
                           std::string_view section) const {
    const auto known = known_keys(section);
    const auto nearest = nearest_name(name, {known.begin(), known.end()});
    std::string text =
        fmt::format("key {} is unknown{}", show(key.Scalar()),
                    section.empty() ? "" : fmt::format(" in the section {}", section));
    if (!nearest.empty()) text += fmt::format("; did you mean {}?", nearest);
    if (nearest.empty() && section.empty()) {
      text += "; keys are long options without dashes, see hvdrun --help";
    }
    if (nearest.empty() && !section.empty()) {
      text += fmt::format("; there are {}", fmt::join(known, ", "));
    }
    return fail(key, text);
  }

  // A name may stand once in the file, in whatever spelling and place.
  Result<void> note_name(const YAML::Node& key, const std::string& subject) {
    const int line = key.Mark().line + 1;
    const auto [before, is_new] = lines_.try_emplace(subject, line);
    if (is_new) return {};
    return fail(key, fmt::format("{} is set in line {} already; leave one of them out",
                                 show(key.Scalar()), before->second));
  }

  Result<void> read_top(const YAML::Node& key, const YAML::Node& value) {
    if (!key.IsScalar()) return fail(key, "a key must be one word; write KEY: VALUE");
    const std::string name = normalized(key.Scalar());
    if (is_section(name) && !value.IsScalar()) return read_section(key, name, value);
    if (name == kController) return read_controller(key, value);
    const auto option = find_key(name);
    if (!option && is_section(name)) return read_section(key, name, value);
    if (!option) return unknown_key(key, name, "");
    return note_name(key, std::string(option->spec->names.front())).and_then([&] {
      return read_option(*option, key, value);
    });
  }

  Result<void> read_section(const YAML::Node& key, const std::string& section,
                            const YAML::Node& values) {
    if (auto noted = note_name(key, "section " + section); !noted) return noted;
    if (!values.IsMap()) {
      return fail(key, fmt::format("{} is a section; write its keys below it, there are {}",
                                   section, fmt::join(known_keys(section), ", ")));
    }
    for (const auto& entry : values) {
      if (auto done = read_in_section(section, entry.first, entry.second); !done) return done;
    }
    return {};
  }

  Result<void> read_in_section(std::string_view section, const YAML::Node& key,
                               const YAML::Node& value) {
    if (!key.IsScalar()) return fail(key, "a key must be one word; write KEY: VALUE");
    const std::string name = normalized(key.Scalar());
    const auto& rows = section_table();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const SectionKey& it) {
      return it.section == section && it.key == name;
    });
    if (row == rows.end()) return unknown_key(key, name, section);
    const OptionSpec& spec = spec_of(row->id);
    return note_name(key, std::string(spec.names.front())).and_then([&] {
      return read_option({&spec, row->is_inverse}, key, value);
    });
  }

  // gloo and mpi are options of their own on the command line.
  Result<void> read_controller(const YAML::Node& key, const YAML::Node& value) {
    const std::string name = value.IsScalar() ? value.Scalar() : "";
    if (name != "gloo" && name != "mpi") return fail(key, "controller: write gloo");
    if (auto noted = note_name(key, std::string(kController)); !noted) return noted;
    return add({&spec_of(name == "gloo" ? OptionId::kGloo : OptionId::kMpi), false}, "true",
               place(key.Mark()));
  }

  Result<void> read_option(const KeyedOption& option, const YAML::Node& key,
                           const YAML::Node& value) {
    if (value.IsScalar()) return add(option, value.Scalar(), place(value.Mark()));
    if (value.IsSequence()) return read_list(option, key, value);
    if (value.IsMap() && option.spec->id == OptionId::kEnv) return read_variables(option, value);
    const std::string_view what = value.IsMap() ? "is a map" : "has no value";
    return fail(key, fmt::format("{} {}; write {}", show(key.Scalar()), what, form_of(option)));
  }

  static std::string form_of(const KeyedOption& option) {
    const bool has_argument = option.spec->takes_argument() && !option.is_opposite;
    return has_argument ? std::string(option.spec->argument) : "true or false";
  }

  // A list stands for the option repeated, or for one argument with commas.
  Result<void> read_list(const KeyedOption& option, const YAML::Node& key,
                         const YAML::Node& values) {
    const bool is_repeated = option.spec->repeat == Repeat::kEach;
    const bool is_list = is_repeated || option.spec->argument == "LIST";
    if (!is_list || !option.spec->takes_argument()) {
      return fail(key, fmt::format("{} is a list; write {}", show(key.Scalar()), form_of(option)));
    }
    std::string joined;
    for (const auto& value : values) {
      if (!value.IsScalar()) return fail(value, "an entry of this list is no single value");
      if (!is_repeated) {
        joined += (joined.empty() ? "" : ",") + value.Scalar();
      } else if (auto added = add(option, value.Scalar(), place(value.Mark())); !added) {
        return added;
      }
    }
    return is_repeated ? Result<void>{} : add(option, joined, place(key.Mark()));
  }

  // x: {NAME: VALUE}
  Result<void> read_variables(const KeyedOption& option, const YAML::Node& variables) {
    for (const auto& entry : variables) {
      if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
        return fail(entry.first, "variables are written as NAME: VALUE");
      }
      const std::string name = entry.first.Scalar();
      if (auto noted = note_name(entry.first, "-x " + name); !noted) return noted;
      auto added =
          add(option, fmt::format("{}={}", name, entry.second.Scalar()), place(entry.first.Mark()));
      if (!added) return added;
    }
    return {};
  }

  Result<void> add(const KeyedOption& option, const std::string& text, const std::string& source) {
    if (text.find('\0') != std::string::npos) {
      return make_error(ExitCode::kUsage, "{}: the value holds a null byte", source);
    }
    auto settings = settings_from(option, text, source);
    if (!settings) return tl::unexpected(std::move(settings.error()));
    found_.insert(found_.end(), settings->begin(), settings->end());
    return {};
  }

  const std::string& file_;
  std::vector<Occurrence> found_;
  std::map<std::string, int> lines_;  // where a name stands
};

// Lets a document pass by.
class PassingBy : public YAML::EventHandler {
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// YAML::Load() does not look behind the first document, and YAML::LoadAll() of yaml-cpp 0.7 never
// ends where a stray sign stands behind it, as the comma in "!, a".
bool is_one_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  PassingBy handler;
  return !parser.HandleNextDocument(handler) || !parser.HandleNextDocument(handler);
}

Result<std::vector<Occurrence>> read_document(const std::string& text, const std::string& file) {
  if (!is_one_document(text)) {
    return make_error(ExitCode::kUsage,
                      "{}: something stands behind the first document, as --- or a stray comma; "
                      "write one document",
                      file);
  }
  ConfigReader reader(file);
  if (auto done = reader.read(YAML::Load(text)); !done) return tl::unexpected(done.error());
  return reader.take();
}

}  // namespace

// yaml-cpp throws; nothing of that leaves here.
Result<std::vector<Occurrence>> parse_config(std::string_view text, const std::string& file) {
  if (text.size() > kMostConfigBytes) {
    return make_error(ExitCode::kUsage, "{}: the file is larger than 1 MiB; name the right one",
                      file);
  }
  try {
    return read_document(std::string(text), file);
  } catch (const YAML::Exception& problem) {
    return make_error(ExitCode::kUsage, "{}:{}: this is no YAML: {}", file, problem.mark.line + 1,
                      show(problem.msg));
  } catch (const std::exception& problem) {
    return make_error(ExitCode::kUsage, "{}: this is no YAML: {}", file, show(problem.what()));
  }
}

std::vector<std::string> section_keys() {
  std::vector<std::string> keys;
  for (const SectionKey& row : section_table()) {
    keys.push_back(fmt::format("{}.{}", row.section, row.key));
  }
  return keys;
}

}  // namespace hvd
