// The one table of hvdrun's options. It feeds the parser (argv_scan), --help, the man page, the
// shell completion and the test that freezes the list of names. A new option is a row here and a
// setter in options.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hvd {

enum class OptionId {
  kNumProc,
  kHosts,
  kHostfile,
  kInclude,
  kExclude,
  kRankOrder,
  kOneGpuPerRank,
  kStartTimeout,
  kTimeout,
  kExitTimeout,
  kGrace,
  kLease,
  kMaxRestarts,
  kSpare,
  kEnv,
  kEnvFile,
  kEnvAllow,
  kEnvDeny,
  kTorchelastic,
  kLocalRankArg,
  kBind,
  kReportBindings,
  kCoreDumps,
  kNoPmi,
  kTransport,
  kRsh,
  kTlsPort,
  kTlsDir,
  kAgentRunning,
  kSshPort,
  kSshIdentityFile,
  kSshConfig,
  kAcceptNewHostKeys,
  kStage,
  kMasterPort,
  kMasterAddr,
  kNetworkInterfaces,
  kFabric,
  kTimelineFilename,
  kTimelineSteps,
  kTimelineMaxMb,
  kTimelineMarkCycles,
  kStopSignal,
  kTimeoutSignal,
  kForwardSignals,
  kStdin,
  kReport,
  kEvents,
  kVerbose,
  kDryRun,
  kCheckBuild,
  kVersion,
  kHelp,
  kHeartbeatMs,
  kStallTimeout,
  kOnStall,
  kOnStallLimit,
  kGpuStats,
  kOutputFilename,
  kPrefixTimestamp,
  kNoTagOutput,
  kFusionThresholdMb,
  kCycleTimeMs,
  kCacheCapacity,
  kHierarchicalAllreduce,
  kHierarchicalAllgather,
  kTorusAllreduce,
  kAutotune,
  kAutotuneLogFile,
  kAutotuneWarmupSamples,
  kAutotuneStepsPerSample,
  kAutotuneBayesOptMaxSamples,
  kAutotuneGaussianProcessNoise,
  kNoStallCheck,
  kStallCheckWarning,
  kStallCheckShutdown,
  kMpiThreadsDisable,
  kTcp,
  kNumNcclStreams,
  kThreadAffinity,
  kGlooTimeoutSeconds,
  kLogLevel,
  kLogWithoutTimestamp,
  kLogHideTimestamp,
  kGloo,
  kDisableCache,
  kMpiArgs,
  kBindingArgs,
  kMpi,
  kJsrun,
  kMinNp,
  kMaxNp,
  kSlotsPerHost,
  kElasticTimeout,
  kResetLimit,
  kBlacklistCooldownRange,
  kHostDiscoveryScript,
  kConfigFile,
  kShowConfig,
  kMan,
  kCompletion,
};

enum class OptionGroup {
  kHosts,
  kTime,
  kSignals,
  kHangs,
  kRestarts,
  kEnvironment,
  kNodes,
  kNetwork,
  kTimeline,
  kRecords,
  kOutput,
  kTuning,
  kForeign,
  kConfiguration,
  kInformation,
};
[[nodiscard]] std::string_view group_title(OptionGroup group);  // "Reaching the nodes"

// How often an option may stand: of kOnce the last one counts, and that is told.
enum class Repeat { kOnce, kEach };

struct OptionSpec {
  OptionId id;
  OptionGroup group;
  std::vector<std::string_view> names;           // with dashes, as documented: "-np", "--num-proc"
  std::string_view argument;                     // "N"; empty: takes none
  std::string_view help;                         // one or two sentences, no full stop at the end
  std::string_view opposite = {};                // hidden "--no-..." that takes it back
  std::vector<std::string_view> variables = {};  // give the default, first one set wins
  std::vector<std::string_view> choices = {};    // all values, if they are few
  Repeat repeat = Repeat::kOnce;
  bool is_file = false;               // the argument is a file's name
  bool is_argument_optional = false;  // only as in --name=ARGUMENT
  bool is_hidden = false;             // not documented, and must be spelled out
  bool is_per_run = false;            // no default of it in files or the environment

  // As its next word, where it has not come with '='.
  [[nodiscard]] bool takes_argument() const { return !argument.empty() && !is_argument_optional; }
};

// In the order in which help and man page show them; groups are contiguous.
[[nodiscard]] const std::vector<OptionSpec>& options_table();

// "-p": one dash and one character, a short option to getopt; all others are long.
[[nodiscard]] bool is_short_name(std::string_view name);
// Without its dashes.
[[nodiscard]] std::string_view bare_name(std::string_view name);
// "-np N, --num-proc N", as it stands in help.
[[nodiscard]] std::string option_heading(const OptionSpec& option);
// help and, if there are any, the variables: "... [env: HVDRUN_START_TIMEOUT]".
[[nodiscard]] std::string option_description(const OptionSpec& option);

}  // namespace hvd
