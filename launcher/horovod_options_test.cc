// Every option of horovodrun's command line: what it sets, that it is refused, or what is noted.
#include "launcher/horovod_options.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/support/parsed_options.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;
using Entry = std::pair<std::string, std::string>;

EnvList set_by(const Words& words) {
  const auto options = parse(words);
  EXPECT_TRUE(options) << options.error().message;
  return options ? options->env : EnvList{};
}

struct Tuned {
  Words words;
  Entry entry;
};

// One line for each row of the contract, in its order; prefixes and "=" as argparse takes them.
const std::vector<Tuned>& tuned() {
  static const std::vector<Tuned> cases = {
      {{"--fusion-threshold-mb", "32"}, {"HOROVOD_FUSION_THRESHOLD", "33554432"}},
      {{"--fusion-threshold-mb=0"}, {"HOROVOD_FUSION_THRESHOLD", "0"}},
      {{"--fusion", "4096"}, {"HOROVOD_FUSION_THRESHOLD", "4294967296"}},
      {{"--cycle-time-ms", "3.5"}, {"HOROVOD_CYCLE_TIME", "3.5"}},
      {{"--cache-capacity", "2048"}, {"HOROVOD_CACHE_CAPACITY", "2048"}},
      {{"--hierarchical-allreduce"}, {"HOROVOD_HIERARCHICAL_ALLREDUCE", "1"}},
      {{"--no-hierarchical-allreduce"}, {"HOROVOD_HIERARCHICAL_ALLREDUCE", "0"}},
      {{"--hierarchical-allgather"}, {"HOROVOD_HIERARCHICAL_ALLGATHER", "1"}},
      {{"--no-hierarchical-allgather"}, {"HOROVOD_HIERARCHICAL_ALLGATHER", "0"}},
      {{"--torus-allreduce"}, {"HOROVOD_TORUS_ALLREDUCE", "1"}},
      {{"--no-torus-allreduce"}, {"HOROVOD_TORUS_ALLREDUCE", "0"}},
      {{"--autotune"}, {"HOROVOD_AUTOTUNE", "1"}},
      {{"--no-autotune"}, {"HOROVOD_AUTOTUNE", "0"}},
      {{"--no-stall-check"}, {"HOROVOD_STALL_CHECK_DISABLE", "1"}},
      {{"--stall-check"}, {"HOROVOD_STALL_CHECK_DISABLE", "0"}},
      {{"--stall-check-warning-time-seconds", "30"}, {"HOROVOD_STALL_CHECK_TIME_SECONDS", "30"}},
      {{"--stall-check-shutdown-time-seconds", "90"},
       {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "90"}},
      {{"--mpi-threads-disable"}, {"HOROVOD_MPI_THREADS_DISABLE", "1"}},
      {{"--no-mpi-threads-disable"}, {"HOROVOD_MPI_THREADS_DISABLE", "0"}},
      {{"--tcp"}, {"NCCL_IB_DISABLE", "1"}},
      {{"-tcp"}, {"NCCL_IB_DISABLE", "1"}},
      {{"--num-nccl-streams", "2"}, {"HOROVOD_NUM_NCCL_STREAMS", "2"}},
      {{"--thread-affinity", "3"}, {"HOROVOD_THREAD_AFFINITY", "3"}},
      {{"--gloo-timeout-seconds", "60"}, {"HOROVOD_GLOO_TIMEOUT_SECONDS", "60"}},
      {{"--log-level", "DEBUG"}, {"HOROVOD_LOG_LEVEL", "DEBUG"}},
      {{"--log-level", "warning"}, {"HOROVOD_LOG_LEVEL", "WARNING"}},
      {{"--log-without-timestamp"}, {"HOROVOD_LOG_HIDE_TIME", "1"}},
      {{"--log-with-timestamp"}, {"HOROVOD_LOG_HIDE_TIME", "0"}},
      {{"--log-hide-timestamp"}, {"HOROVOD_LOG_HIDE_TIME", "1"}},
      {{"--no-log-hide-timestamp"}, {"HOROVOD_LOG_HIDE_TIME", "0"}},
  };
  return cases;
}

// With --autotune only.
const std::vector<Tuned>& tuned_with_autotune() {
  static const std::vector<Tuned> cases = {
      {{"--autotune-log-file", "/tmp/log.csv"}, {"HOROVOD_AUTOTUNE_LOG", "/tmp/log.csv"}},
      {{"--autotune-warmup-samples", "5"}, {"HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "5"}},
      {{"--autotune-steps-per-sample", "7"}, {"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "7"}},
      {{"--autotune-bayes-opt-max-samples", "9"}, {"HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "9"}},
      {{"--autotune-gaussian-process-noise", "0.5"},
       {"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "0.5"}},
  };
  return cases;
}

TEST(HorovodOptions, EachTuningOptionSetsItsVariableAndNoOther) {
  for (const auto& [words, entry] : tuned()) {
    EXPECT_THAT(set_by(words), ElementsAre(entry)) << testing::PrintToString(words);
  }
  EXPECT_THAT(set_by({}), IsEmpty());
}

TEST(HorovodOptions, ThoseOfAutotuneNeedIt) {
  for (const auto& [words, entry] : tuned_with_autotune()) {
    Words with = {"--autotune"};
    with.insert(with.end(), words.begin(), words.end());
    EXPECT_THAT(set_by(with), ElementsAre(Entry("HOROVOD_AUTOTUNE", "1"), entry));
    const auto without = parse(words);
    ASSERT_TRUE(without);
    EXPECT_THAT(without->env, IsEmpty());
    EXPECT_THAT(without->notes, ElementsAre(HasSubstr("no effect without it")));
    with.front() = "--no-autotune";
    EXPECT_THAT(set_by(with), ElementsAre(Entry("HOROVOD_AUTOTUNE", "0")));
  }
}

TEST(HorovodOptions, NoTunableIsWithoutACaseAndEachHelpNamesItsVariable) {
  std::set<std::string> covered;
  for (const auto* cases : {&tuned(), &tuned_with_autotune()}) {
    for (const Tuned& it : *cases) covered.insert(it.entry.first);
  }
  std::set<OptionId> ids;
  for (const Tunable& tunable : tunables()) {
    EXPECT_TRUE(covered.contains(std::string(tunable.variable))) << tunable.variable;
    ids.insert(tunable.id);
  }
  for (const OptionSpec& option : options_table()) {
    EXPECT_EQ(ids.contains(option.id), option.group == OptionGroup::kTuning) << option.names[0];
    const auto& rows = tunables();
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const Tunable& it) { return it.id == option.id; });
    if (row != rows.end()) {
      EXPECT_THAT(option.help, HasSubstr(row->variable));
    }
  }
}

TEST(HorovodOptions, TheLastOneCountsAndAnExplicitVariableComesAfter) {
  EXPECT_THAT(set_by({"--torus-allreduce", "--no-torus-allreduce"}),
              ElementsAre(Entry("HOROVOD_TORUS_ALLREDUCE", "0")));
  EXPECT_THAT(set_by({"-x", "HOROVOD_CYCLE_TIME=9", "--cycle-time-ms", "1"}),
              ElementsAre(Entry("HOROVOD_CYCLE_TIME", "1"), Entry("HOROVOD_CYCLE_TIME", "9")));
}

TEST(HorovodOptions, ValuesOutOfRangeAreRefused) {
  expect_usage_errors({
      {{"--fusion-threshold-mb", "-1"}, "--fusion-threshold-mb \"-1\": write a number from 0"},
      {{"--fusion-threshold-mb", "1.5"}, "write a number from 0"},
      {{"--cycle-time-ms", "-0.1"},
       "--cycle-time-ms \"-0.1\": write a number that is not negative"},
      {{"--cycle-time-ms", "nan"}, "not negative"},
      {{"--cycle-time-ms", "inf"}, "not negative"},
      {{"--cycle-time-ms", ""}, "not negative"},
      {{"--cache-capacity", "-1"}, "--cache-capacity"},
      {{"--autotune-warmup-samples", "-1"}, "--autotune-warmup-samples"},
      {{"--autotune-steps-per-sample", "-1"}, "--autotune-steps-per-sample"},
      {{"--autotune-bayes-opt-max-samples", "x"}, "--autotune-bayes-opt-max-samples"},
      {{"--autotune-gaussian-process-noise", "1.1"}, "write a number from 0 to 1"},
      {{"--autotune-gaussian-process-noise", "-0.1"}, "write a number from 0 to 1"},
      {{"--autotune-log-file", ""}, "--autotune-log-file"},
      {{"--stall-check-warning-time-seconds", "-1"}, "--stall-check-warning-time-seconds"},
      {{"--stall-check-shutdown-time-seconds", "-1"}, "--stall-check-shutdown-time-seconds"},
      {{"--num-nccl-streams", "-1"}, "--num-nccl-streams"},
      {{"--thread-affinity", "-1"}, "--thread-affinity"},
      {{"--gloo-timeout-seconds", "-1"}, "--gloo-timeout-seconds"},
      {{"--log-level", "LOUD"}, "write one of TRACE, DEBUG, INFO, WARNING, ERROR, FATAL"},
      {{"--tcp=1"}, "takes no value"},
  });
}

TEST(HorovodOptions, AShutdownNotBehindTheWarningIsNoted) {
  struct Case {
    Words words;
    EnvList here;
    bool is_noted;
  };
  const std::vector<Case> cases = {
      {{"--stall-check-shutdown-time-seconds", "60"}, {}, true},
      {{"--stall-check-shutdown-time-seconds", "61"}, {}, false},
      {{"--stall-check-shutdown-time-seconds", "0"}, {}, false},
      {{"--stall-check-shutdown-time-seconds", "9", "--stall-check-warning-time-seconds", "5"},
       {},
       false},
      {{"--stall-check-shutdown-time-seconds", "9"},
       {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "5"}},
       false},
      {{"--stall-check-shutdown-time-seconds", "99"},
       {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "100"}},
       true},
  };
  for (const Case& it : cases) {
    Words words = {"hvdrun"};
    words.insert(words.end(), it.words.begin(), it.words.end());
    words.emplace_back("true");
    const auto options = parse_options(words, it.here);
    ASSERT_TRUE(options);
    EXPECT_EQ(!options->notes.empty(), it.is_noted) << testing::PrintToString(it.words);
    if (it.is_noted) {
      EXPECT_THAT(options->notes.front(), HasSubstr("larger than the warning"));
    }
  }
}

TEST(HorovodOptions, TheStallCheckGivesAHookItsOccasion) {
  EXPECT_TRUE(parse({"--on-stall", "dump", "--stall-check-shutdown-time-seconds", "90"}));
  EXPECT_FALSE(parse({"--on-stall", "dump", "--stall-check-shutdown-time-seconds", "0"}));
}

TEST(HorovodOptions, WhatHasNoEffectIsAcceptedAndNoted) {
  const std::vector<std::pair<Words, std::vector<std::string>>> cases = {
      {{"--gloo"}, {}},
      {{"--disable-cache"}, {"--disable-cache has no effect: hvdrun keeps no results"}},
      {{"--mpi-args=-mca x 1"}, {"--mpi-args has no effect: no mpirun"}},
      {{"--binding-args", "--bind-to none"}, {"--binding-args has no effect: no mpirun"}},
  };
  for (const auto& [words, notes] : cases) {
    const auto options = parse(words);
    ASSERT_TRUE(options) << testing::PrintToString(words);
    EXPECT_THAT(options->env, IsEmpty());
    ASSERT_EQ(options->notes.size(), notes.size());
    for (std::size_t i = 0; i < notes.size(); ++i) {
      EXPECT_THAT(options->notes[i], HasSubstr(notes[i]));
    }
  }
}

TEST(HorovodOptions, WhatCannotBeHonouredIsRefusedWithWhatToUse) {
  expect_usage_errors({
      {{"--mpi"}, "--mpi: hvdrun starts no mpirun; leave it out"},
      {{"--jsrun"}, "--jsrun: hvdrun starts no jsrun; leave it out"},
      {{"--min-np", "2"}, "--min-np: hvdrun has no elastic jobs"},
      {{"--min-num-proc", "2"}, "--max-restarts N with --spare HOSTS"},
      {{"--max-np", "4"}, "--max-np: hvdrun has no elastic jobs"},
      {{"--max-num-proc=4"}, "--max-np: hvdrun has no elastic jobs"},
      {{"--slots-per-host", "8"}, "-H node1:8"},
      {{"--slots", "8"}, "--slots-per-host: it belongs to elastic jobs"},
      {{"--elastic-timeout", "60"}, "--elastic-timeout: hvdrun has no elastic jobs"},
      {{"--reset-limit", "3"}, "--reset-limit: hvdrun has no elastic jobs"},
      {{"--blacklist-cooldown-range", "1", "2"}, "--blacklist-cooldown-range: hvdrun has no"},
      {{"--host-discovery-script", "./find.sh"}, "to a file for --hostfile"},
  });
}

TEST(HorovodOptions, EachForeignOptionHasItsAnswer) {
  for (const OptionSpec& option : options_table()) {
    if (option.group != OptionGroup::kForeign) continue;
    std::vector<std::string> notes;
    const auto checked = check_foreign({&option, false, "1", ""}, notes);
    if (!checked) {
      EXPECT_THAT(checked.error().message, HasSubstr(option.names.front()));
    }
    const bool is_told = option.help.starts_with("Refused") == !checked &&
                         option.help.starts_with("No effect") == !notes.empty();
    EXPECT_TRUE(is_told) << option.help;
    EXPECT_TRUE(check_foreign({&option, true, "", ""}, notes)) << "taken back in a file";
  }
}

// The rest of the contract's table: what is hvdrun's own as well.
TEST(HorovodOptions, TheOthersOfItsCommandLineActHereToo) {
  const auto options = parse({"-np", "2", "-H", "node1:1,node2:1", "-p2222", "--start-timeout=30",
                              "--verbose", "--network-interface", "eth0", "--network-interface",
                              "eth1,eth2", "--gloo", "-prefix-timestamp"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->np, 2U);
  EXPECT_EQ(options->ssh_port, 2222);
  EXPECT_EQ(options->start_timeout, std::chrono::seconds(30));
  EXPECT_EQ(options->verbosity, 1);
  EXPECT_THAT(options->network_interfaces, ElementsAre("eth0", "eth1", "eth2"));
  EXPECT_TRUE(options->output.has_time);
  EXPECT_THAT(options->notes, IsEmpty());
  EXPECT_EQ(parse({"--num-proc=2"})->np, 2U);
  EXPECT_EQ(parse({"-cb"})->action, Action::kCheckBuild);
  EXPECT_EQ(parse({"--version"})->action, Action::kVersion);
}

}  // namespace
}  // namespace hvd
