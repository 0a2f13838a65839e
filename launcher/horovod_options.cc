#include "launcher/horovod_options.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include "base/parse_number.h"
#include "launcher/argv_scan.h"
#include "launcher/option_values.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::string_view kAutotuneVariable = "HOROVOD_AUTOTUNE";
constexpr std::string_view kStallWarning = "HOROVOD_STALL_CHECK_TIME_SECONDS";
constexpr std::string_view kStallShutdown = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS";
constexpr double kStallWarningDefault = 60;  // seconds, Horovod's and ours
constexpr std::uint32_t kMostWhole = std::numeric_limits<std::uint32_t>::max();

Result<std::string> whole_number(const Occurrence& it, std::uint64_t factor) {
  const auto count = parse_count(it.value, it.spec->names.front(), 0, kMostWhole);
  if (!count) return tl::unexpected(count.error());
  return fmt::format_int(std::uint64_t{*count} * factor).str();
}

// Kept as it was written: a decimal number means the same to every reader.
Result<std::string> decimal_number(const Occurrence& it, double highest, std::string_view range) {
  const auto number = parse_number<double>(it.value);
  if (number && std::isfinite(*number) && *number >= 0 && *number <= highest) return it.value;
  return make_error(ExitCode::kUsage, "{} {}: write a number {}", it.spec->names.front(),
                    show(it.value), range);
}

Result<std::string> level_name(const Occurrence& it) {
  std::string name = it.value;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  const auto index = parse_choice(name, it.spec->names.front(), it.spec->choices);
  if (!index) return tl::unexpected(index.error());
  return name;
}

Result<std::string> text_value(const Occurrence& it) {
  if (!it.value.empty()) return it.value;
  return make_error(ExitCode::kUsage, "{}: the value is empty; write it as {} {}",
                    it.spec->names.front(), it.spec->names.front(), it.spec->argument);
}

Result<std::string> converted(const Occurrence& it, Conversion conversion) {
  switch (conversion) {
    case Conversion::kMebibytes:
      return whole_number(it, std::uint64_t{1} << 20U);
    case Conversion::kWhole:
      return whole_number(it, 1);
    case Conversion::kDecimal:
      return decimal_number(it, std::numeric_limits<double>::max(), "that is not negative");
    case Conversion::kFraction:
      return decimal_number(it, 1, "from 0 to 1");
    case Conversion::kFlag:
    case Conversion::kOnlyIfSet:
      return it.is_opposite ? "0" : "1";
    case Conversion::kText:
      return text_value(it);
    case Conversion::kLevel:
      return level_name(it);
  }
  return it.value;
}

void erase_variable(EnvList& variables, std::string_view name) {
  std::erase_if(variables, [name](const auto& variable) { return variable.first == name; });
}

// What only --autotune reads.
bool is_of_autotune(OptionId id) {
  return id == OptionId::kAutotuneLogFile || id == OptionId::kAutotuneWarmupSamples ||
         id == OptionId::kAutotuneStepsPerSample || id == OptionId::kAutotuneBayesOptMaxSamples ||
         id == OptionId::kAutotuneGaussianProcessNoise;
}

void leave_out_autotune(EnvList& variables, std::vector<std::string>& notes) {
  if (find_env(variables, kAutotuneVariable) == "1") return;
  const std::size_t before = variables.size();
  for (const Tunable& tunable : tunables()) {
    if (is_of_autotune(tunable.id)) erase_variable(variables, tunable.variable);
  }
  if (variables.size() == before) return;
  notes.emplace_back("the options of --autotune have no effect without it");
}

void note_short_shutdown(const EnvList& variables, const EnvList& inherited,
                         std::vector<std::string>& notes) {
  const auto seconds_of = [](const std::optional<std::string>& text) {
    return parse_number<double>(text.value_or(""));
  };
  const auto shutdown = seconds_of(find_env(variables, kStallShutdown));
  if (!shutdown || *shutdown == 0) return;
  const EnvList all = merge_env({&inherited, &variables}, {});
  const double warning = seconds_of(find_env(all, kStallWarning)).value_or(kStallWarningDefault);
  if (*shutdown > warning) return;
  notes.push_back(fmt::format(
      "--stall-check-shutdown-time-seconds {} has no effect: it must be larger than the warning "
      "time, which is {}",
      *shutdown, warning));
}

struct Foreign {
  OptionId id;
  bool is_refused;
  std::string_view text;  // why, and what to do; empty: accepted without a word
};

constexpr std::string_view kNoElasticJobs =
    "hvdrun has no elastic jobs, the number of processes stays; leave it out, and give "
    "--max-restarts N with --spare HOSTS to go on after a failure";

const std::vector<Foreign>& foreign_table() {
  static const std::vector<Foreign> rows = {
      {OptionId::kGloo, false, ""},
      {OptionId::kDisableCache, false, "hvdrun keeps no results of checks, nothing is reused"},
      {OptionId::kMpiArgs, false, "no mpirun is started that would read them"},
      {OptionId::kBindingArgs, false, "no mpirun is started that would read them"},
      {OptionId::kMpi, true,
       "hvdrun starts no mpirun; leave it out, or start the job by mpirun itself"},
      {OptionId::kJsrun, true,
       "hvdrun starts no jsrun; leave it out, or start the job by jsrun itself"},
      {OptionId::kMinNp, true, kNoElasticJobs},
      {OptionId::kMaxNp, true, kNoElasticJobs},
      {OptionId::kElasticTimeout, true, kNoElasticJobs},
      {OptionId::kResetLimit, true, kNoElasticJobs},
      {OptionId::kBlacklistCooldownRange, true, kNoElasticJobs},
      {OptionId::kSlotsPerHost, true,
       "it belongs to elastic jobs, which hvdrun has not; write the slots with the hosts, as in "
       "-H node1:8 or slots=8 in the file of --hostfile"},
      {OptionId::kHostDiscoveryScript, true,
       "hvdrun has no elastic jobs, the hosts are known before the start; write what the script "
       "prints to a file for --hostfile, and give --max-restarts N with --spare HOSTS to go on "
       "after a failure"},
  };
  return rows;
}

}  // namespace

const std::vector<Tunable>& tunables() {
  using enum Conversion;
  static const std::vector<Tunable> rows = {
      {OptionId::kFusionThresholdMb, "HOROVOD_FUSION_THRESHOLD", kMebibytes},
      {OptionId::kCycleTimeMs, "HOROVOD_CYCLE_TIME", kDecimal},
      {OptionId::kCacheCapacity, "HOROVOD_CACHE_CAPACITY", kWhole},
      {OptionId::kHierarchicalAllreduce, "HOROVOD_HIERARCHICAL_ALLREDUCE", kFlag},
      {OptionId::kHierarchicalAllgather, "HOROVOD_HIERARCHICAL_ALLGATHER", kFlag},
      {OptionId::kTorusAllreduce, "HOROVOD_TORUS_ALLREDUCE", kFlag},
      {OptionId::kAutotune, kAutotuneVariable, kFlag},
      {OptionId::kAutotuneLogFile, "HOROVOD_AUTOTUNE_LOG", kText},
      {OptionId::kAutotuneWarmupSamples, "HOROVOD_AUTOTUNE_WARMUP_SAMPLES", kWhole},
      {OptionId::kAutotuneStepsPerSample, "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", kWhole},
      {OptionId::kAutotuneBayesOptMaxSamples, "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", kWhole},
      {OptionId::kAutotuneGaussianProcessNoise, "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE",
       kFraction},
      {OptionId::kNoStallCheck, "HOROVOD_STALL_CHECK_DISABLE", kFlag},
      {OptionId::kStallCheckWarning, kStallWarning, kWhole},
      {OptionId::kStallCheckShutdown, kStallShutdown, kWhole},
      {OptionId::kMpiThreadsDisable, "HOROVOD_MPI_THREADS_DISABLE", kFlag},
      {OptionId::kTcp, "NCCL_IB_DISABLE", kOnlyIfSet},
      {OptionId::kNumNcclStreams, "HOROVOD_NUM_NCCL_STREAMS", kWhole},
      {OptionId::kThreadAffinity, "HOROVOD_THREAD_AFFINITY", kWhole},
      {OptionId::kGlooTimeoutSeconds, "HOROVOD_GLOO_TIMEOUT_SECONDS", kWhole},
      {OptionId::kLogLevel, "HOROVOD_LOG_LEVEL", kLevel},
      {OptionId::kLogWithoutTimestamp, "HOROVOD_LOG_HIDE_TIME", kFlag},
      {OptionId::kLogHideTimestamp, "HOROVOD_LOG_HIDE_TIME", kFlag},
  };
  return rows;
}

Result<void> set_tunable(EnvList& variables, const Occurrence& it) {
  const auto& rows = tunables();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Tunable& tunable) { return tunable.id == it.spec->id; });
  auto value = converted(it, row->conversion);
  if (!value) return tl::unexpected(value.error());
  erase_variable(variables, row->variable);
  if (row->conversion == Conversion::kOnlyIfSet && it.is_opposite) return {};
  variables.emplace_back(row->variable, std::move(*value));
  return {};
}

void finish_tunables(EnvList& variables, const EnvList& inherited,
                     std::vector<std::string>& notes) {
  leave_out_autotune(variables, notes);
  note_short_shutdown(variables, inherited, notes);
}

Result<void> check_foreign(const Occurrence& it, std::vector<std::string>& notes) {
  if (it.is_opposite) return {};  // "mpi: false" in a file
  const auto& rows = foreign_table();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Foreign& foreign) { return foreign.id == it.spec->id; });
  const std::string_view name = it.spec->names.front();
  if (row->is_refused) return make_error(ExitCode::kUsage, "{}: {}", name, row->text);
  if (!row->text.empty()) notes.push_back(fmt::format("{} has no effect: {}", name, row->text));
  return {};
}

}  // namespace hvd
