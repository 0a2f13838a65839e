#include "launcher/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launcher/options_table.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

Result<Options> parse_line(Words words, const EnvList& environment = {}) {
  words.insert(words.begin(), "hvdrun");
  return parse_options(words, environment);
}

// Parses what must be right.
Options options_of(const Words& words, const EnvList& environment = {}) {
  const auto options = parse_line(words, environment);
  EXPECT_TRUE(options) << options.error().message;
  return options.value_or(Options{});
}

// A folder that goes with the test.
class ScratchDir {
 public:
  ScratchDir() { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~ScratchDir() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "hvdrun_options_XXXXXX";
};

TEST(OptionsTable, ListOfNamesIsFrozen) {
  Words names;
  for (const OptionSpec& option : options_table()) {
    for (const auto name : option.names) names.emplace_back(name);
    if (!option.opposite.empty()) names.emplace_back(option.opposite);
  }
  // Scripts depend on these: add at will, never take one away.
  EXPECT_THAT(
      names,
      ElementsAre(
          "-np", "-n", "--num-proc", "-H", "--hosts", "--hostfile", "--include", "--exclude",
          "--rank-order", "--virtual-local-rank", "--one-gpu-per-rank", "--no-one-gpu-per-rank",
          "--start-timeout", "--timeout", "--exit-timeout", "--grace", "--lease", "--heartbeat-ms",
          "--stop-signal", "--timeout-signal", "--forward-signals", "--stdin", "--no-stdin",
          "--stall-timeout", "--on-stall", "--on-stall-limit", "--gpu-stats", "--max-restarts",
          "--spare", "-x", "--env-file", "--env-allow", "--env-deny", "--torchelastic",
          "--no-torchelastic", "--local-rank-arg", "--bind", "--report-bindings",
          "--no-report-bindings", "--core-dumps", "--no-pmi", "--pmi", "--transport", "--rsh",
          "--tls-port", "--tls-dir", "--agent-running", "--no-agent-running", "-p", "--ssh-port",
          "-i", "--ssh-identity-file", "--ssh-config", "--accept-new-host-keys",
          "--no-accept-new-host-keys", "--stage", "--master-port", "--master-addr",
          "--network-interfaces", "--network-interface", "--fabric", "--timeline-filename",
          "--timeline-steps", "--timeline-max-mb", "--timeline-mark-cycles",
          "--no-timeline-mark-cycles", "--report", "--events", "--output-filename",
          "-prefix-timestamp", "--prefix-output-with-timestamp", "--no-tag-output", "--tag-output",
          "--fusion-threshold-mb", "--cycle-time-ms", "--cache-capacity",
          "--hierarchical-allreduce", "--no-hierarchical-allreduce", "--hierarchical-allgather",
          "--no-hierarchical-allgather", "--torus-allreduce", "--no-torus-allreduce", "--autotune",
          "--no-autotune", "--autotune-log-file", "--autotune-warmup-samples",
          "--autotune-steps-per-sample", "--autotune-bayes-opt-max-samples",
          "--autotune-gaussian-process-noise", "--no-stall-check", "--stall-check",
          "--stall-check-warning-time-seconds", "--stall-check-shutdown-time-seconds",
          "--mpi-threads-disable", "--no-mpi-threads-disable", "--tcp", "--num-nccl-streams",
          "--thread-affinity", "--gloo-timeout-seconds", "--log-level", "--log-without-timestamp",
          "--log-with-timestamp", "--log-hide-timestamp", "--no-log-hide-timestamp", "--gloo",
          "--disable-cache", "--mpi-args", "--binding-args", "--mpi", "--jsrun", "--min-np",
          "--min-num-proc", "--max-np", "--max-num-proc", "--slots-per-host", "--elastic-timeout",
          "--reset-limit", "--blacklist-cooldown-range", "--host-discovery-script", "--config-file",
          "--show-config", "-v", "--verbose", "--dry-run", "-cb", "--check-build", "-V",
          "--version", "-h", "--help", "--man", "--completion"));
}

TEST(OptionsTable, HasEachOptionOnceAndGroupsTogether) {
  std::vector<OptionId> ids;
  std::vector<OptionGroup> groups;
  for (const OptionSpec& option : options_table()) {
    ids.push_back(option.id);
    if (groups.empty() || groups.back() != option.group) groups.push_back(option.group);
    EXPECT_FALSE(option.help.empty());
    EXPECT_NE(option.help.back(), '.') << option.help;
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(OptionId::kCompletion) + 1);
  std::sort(groups.begin(), groups.end());
  EXPECT_EQ(std::adjacent_find(groups.begin(), groups.end()), groups.end());
}

TEST(Options, AcceptsEverySpellingOfTheGrammar) {
  const std::vector<Words> lines = {
      {"-np", "32", "-H", "node1:32", "true"},
      {"-np=32", "-Hnode1:32", "true"},
      {"--np", "32", "-hosts", "node1:32", "true"},
      {"--num-proc=32", "--hosts=node1:32", "true"},
      {"--num-p", "32", "--hosts", "node1:32", "--", "true"},
      {"-H", "node1:32", "-vnp", "32", "true"},
  };
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const Options options = options_of(lines[i]);
    EXPECT_EQ(options.np, 32U) << i;
    ASSERT_EQ(options.hosts.size(), 1U) << i;
    EXPECT_EQ(options.hosts[0].name, "node1") << i;
    EXPECT_THAT(options.command, ElementsAre("true")) << i;
  }
  EXPECT_FALSE(parse_line(lines.back())) << "long names are not glued to letters";
}

TEST(Options, GluedLettersAndCountedVerbosity) {
  EXPECT_EQ(options_of({"-p2222", "true"}).ssh_port, 2222);
  EXPECT_EQ(options_of({"-xA=1", "true"}).env.at(0).first, "A");
  EXPECT_EQ(options_of({"true"}).verbosity, 0);
  EXPECT_EQ(options_of({"-v", "true"}).verbosity, 1);
  EXPECT_EQ(options_of({"-vv", "true"}).verbosity, 2);
  EXPECT_EQ(options_of({"-v", "--verbose", "true"}).verbosity, 2);
  EXPECT_EQ(options_of({"-vp2222", "true"}).ssh_port, 2222);
}

TEST(Options, DefaultsAreThoseOfTheManual) {
  const Options options = options_of({"true"});
  EXPECT_EQ(options.action, Action::kRun);
  EXPECT_EQ(options.np, std::nullopt);
  EXPECT_EQ(options.start_timeout, seconds(120));
  EXPECT_EQ(options.timeout, std::nullopt);
  EXPECT_EQ(options.exit_timeout, std::nullopt);
  EXPECT_EQ(options.grace, seconds(10));
  EXPECT_EQ(options.lease, seconds(15));
  EXPECT_EQ(options.heartbeat, seconds(1));
  EXPECT_EQ(options.master_port_low, 61000);
  EXPECT_EQ(options.master_port_high, 65535);
  EXPECT_EQ(options.fabric, FabricMode::kRequire);
  EXPECT_EQ(options.transport, TransportKind::kAuto);
  EXPECT_FALSE(options.is_transport_given);
  EXPECT_FALSE(options.accept_new_host_keys);
  EXPECT_THAT(options.notes, IsEmpty());
}

TEST(Options, EveryValueArrives) {
  const ScratchDir dir;
  const auto key = dir.write("key", "k");
  const auto config = dir.write("config", "c");
  const Options options = options_of({"--start-timeout",
                                      "1.5m",
                                      "--timeout=2h",
                                      "--exit-timeout",
                                      "3",
                                      "--grace",
                                      "0.5",
                                      "--lease",
                                      "1.5",
                                      "--heartbeat-ms",
                                      "10",
                                      "-p",
                                      "22",
                                      "-i",
                                      key,
                                      "--ssh-config",
                                      config,
                                      "--accept-new-host-keys",
                                      "--transport",
                                      "ssh",
                                      "--master-port",
                                      "29500-29510",
                                      "--master-addr",
                                      "[fd00::1]",
                                      "--network-interfaces",
                                      "eth0, 10.1.0.0/16",
                                      "--network-interface",
                                      "fd00::/64",
                                      "--fabric",
                                      "warn",
                                      "--dry-run",
                                      "train"});
  EXPECT_EQ(options.start_timeout, seconds(90));
  EXPECT_EQ(options.timeout, seconds(7200));
  EXPECT_EQ(options.exit_timeout, seconds(3));
  EXPECT_EQ(options.grace, milliseconds(500));
  EXPECT_EQ(options.lease, milliseconds(1500));
  EXPECT_EQ(options.heartbeat, milliseconds(10));
  EXPECT_EQ(options.ssh_port, 22);
  EXPECT_EQ(options.ssh_identity_file, key);
  EXPECT_EQ(options.ssh_config, config);
  EXPECT_TRUE(options.accept_new_host_keys);
  EXPECT_EQ(options.transport, TransportKind::kSsh);
  EXPECT_TRUE(options.is_transport_given);
  EXPECT_EQ(options.master_port_low, 29500);
  EXPECT_EQ(options.master_port_high, 29510);
  EXPECT_EQ(options.master_addr, "fd00::1");
  EXPECT_THAT(options.network_interfaces, ElementsAre("eth0", "10.1.0.0/16", "fd00::/64"));
  EXPECT_EQ(options.fabric, FabricMode::kWarn);
  EXPECT_EQ(options.action, Action::kDryRun);
}

TEST(Options, OppositeTakesBackAndTheLastOneCounts) {
  EXPECT_FALSE(options_of({"--accept-new-host-keys", "--no-accept-new-host-keys", "true"})
                   .accept_new_host_keys);
  const Options options = options_of({"-np", "2", "-np", "3", "--num-proc", "4", "true"});
  EXPECT_EQ(options.np, 4U);
  EXPECT_THAT(options.notes, ElementsAre("-np is given more than once; the last one counts"));
}

TEST(Options, CommandKeepsItsWordsByteForByte) {
  const Words command = {"python3",   "-c",       "import sys", "a b",      "it's",
                         "\"q\" -4C", "$HOME",    "*",          "",         "n\nl",
                         "--x=a b",   "--",       "-np",        "9",        "\xc3\xa9",
                         "\\",        "\xff\x01", "-h",         "--version"};
  Words line = {"-np", "2", "-H", "node1:1,node2:1", "--"};
  line.insert(line.end(), command.begin(), command.end());
  const Options separated = options_of(line);
  EXPECT_EQ(separated.command, command);
  EXPECT_EQ(separated.np, 2U);
  EXPECT_EQ(separated.action, Action::kRun);
  line.erase(line.begin() + 4);
  EXPECT_EQ(options_of(line).command, command);
}

TEST(Options, OnlyOneSeparatorIsDropped) {
  EXPECT_THAT(options_of({"-np", "1", "--", "--", "x"}).command, ElementsAre("--", "x"));
  EXPECT_THAT(options_of({"cmd", "--", "x"}).command, ElementsAre("cmd", "--", "x"));
  EXPECT_THAT(options_of({"--", "-odd-program"}).command, ElementsAre("-odd-program"));
  EXPECT_THAT(options_of({"-", "x"}).command, ElementsAre("-", "x"));
}

TEST(Options, HelpAndOtherPrintingWinOverErrors) {
  const std::vector<std::pair<Words, Action>> lines = {
      {{"-h"}, Action::kHelp},
      {{"--bogus", "-np", "x", "--help"}, Action::kHelp},
      {{"-vh"}, Action::kHelp},
      {{"-np", "-1", "-V"}, Action::kVersion},
      {{"-cb"}, Action::kCheckBuild},
      {{"--check"}, Action::kCheckBuild},
      {{"--man"}, Action::kManPage},
      {{"--completion", "bash"}, Action::kBashCompletion},
      {{"--completion", "zsh"}, Action::kZshCompletion},
      {{"--completion", "fish"}, Action::kFishCompletion},
      {{"--version", "--help"}, Action::kVersion},
  };
  for (const auto& [line, action] : lines) {
    EXPECT_EQ(options_of(line).action, action) << testing::PrintToString(line);
  }
}

// Long by its table alone: a row for each mistake and its sentence.
TEST(Options, MistakesAreUsageErrorsWithOneSentence) {
  const ScratchDir dir;
  struct Case {
    Words line;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {{}, "no COMMAND is given"},
      {{"-np", "2"}, "no COMMAND is given"},
      {{""}, "COMMAND is an empty word"},
      {{"-np"}, "option \"-np\" needs a value; write it as -np N"},
      {{"-H"}, "option \"-H\" needs a value"},
      {{"-np2", "true"}, "-np \"p2\": write a number"},
      {{"--hostfil2", "f", "true"}, "did you mean --hostfile?"},
      {{"--time-out", "3", "true"}, "did you mean --timeout?"},
      {{"--qqqqqqqq", "true"}, "option \"--qqqqqqqq\" is unknown; see hvdrun --help"},
      {{"--ver", "true"}, "ambiguous; write one of --verbose, --version"},
      {{"--host", "a", "true"}, "is mpirun's: here it is -H or --hosts"},
      {{"--hostf", "a", "true"}, "\"a\" cannot be read"},
      {{"--nproc_per_node=8", "true"}, "is another launcher's: the ranks of a host are its slots"},
      {{"--bind-to", "core", "true"}, "here it is --bind numa or --bind core"},
      {{"--env-deny", "A B", "true"}, "with commas between them and no blanks"},
      {{"--tls-dir", "/none", "true"}, "used by --transport tls only"},
      {{"--transport", "tls", "--tls-dir", "/none", "true"}, "/none/client.key: No such file"},
      {{"--heart", "5", "true"}, "option \"--heart\" is unknown"},
      {{"-vz", "true"}, "unknown letter \"z\""},
      {{"--dry-run=yes", "true"}, "option \"--dry-run\" takes no value"},
      {{"--odd\x1b[31m", "true"}, "\\x1b[31m"},
      {{"-np", "0", "true"}, "-np \"0\": write a number from 1"},
      {{"-np", "-1", "true"}, "-np \"-1\": write a number from 1"},
      {{"-np", "x", "true"}, "-np \"x\": write a number from 1"},
      {{"-np", "4x", "true"}, "-np \"4x\""},
      {{"-np", "99999999999", "true"}, "-np \"99999999999\""},
      {{"-H", "node1:1", "node2:1", "true"},
       "`node2:1` looks like a host; separate hosts by commas"},
      {{"-H", "node1:1,", "node2:1", "true"}, "`node2:1` looks like a host"},
      {{"-H", "node1:1,", "node2:1,", "node3:2", "true"}, "`node2:1,` looks like a host"},
      {{"-H", "node1:x", "true"}, "-H: \"x\" is no number of slots for node1"},
      {{"-H", ",node1:1,", "true"}, "-H: \",node1:1,\" has an empty entry"},
      {{"-H", "", "true"}, "-H: \"\" has an empty entry"},
      {{"-H", "node1:0", "true"}, "no host with slots is left"},
      {{"-H", "a", "--hostfile", "b", "true"}, "-H and --hostfile are both given"},
      {{"--hostfile", dir.path() + "/none", "true"}, "/none\" cannot be read: No such file"},
      {{"--hostfile", dir.path(), "true"}, "cannot be read: Is a directory"},
      {{"-i", "/no/key", "true"}, "--ssh-identity-file: file \"/no/key\" cannot be read"},
      {{"--ssh-config", "/no/cfg", "true"}, "--ssh-config: file \"/no/cfg\" cannot be read"},
      {{"-p", "0", "true"}, "--ssh-port \"0\": write a number from 1 to 65535"},
      {{"-p", "65536", "true"}, "--ssh-port \"65536\""},
      {{"--transport", "tcp", "true"}, "write one of auto, local, command, ssh, tls"},
      {{"--fabric", "maybe", "true"}, "write one of require, warn, skip"},
      {{"--transport", "command", "true"}, "--transport command needs a program"},
      {{"--rsh", "ssh {host}", "true"}, "--rsh is used by --transport command only"},
      {{"--agent-running", "true"}, "--agent-running is used by --transport command only"},
      {{"--transport", "command", "--agent-running", "true"},
       "--transport command needs a program"},
      {{"--transport", "command", "--rsh", "x {command}", "--agent-running", "true"},
       "with --agent-running there is none"},
      {{"--transport", "command", "--rsh", "ssh 'x", "true"}, "a single quote is not closed"},
      {{"--transport", "command", "--rsh", "  ", "true"}, "no program is named"},
      {{"--master-port", "70000", "true"}, "--master-port \"70000\""},
      {{"--master-port", "200-100", "true"}, "--master-port \"200-100\""},
      {{"--master-port", "1-", "true"}, "--master-port \"1-\""},
      {{"--master-addr", "node1:29500", "true"}, "without a port"},
      {{"--network-interfaces", "eth0,,eth1", "true"}, "\"\" is neither an interface nor a subnet"},
      {{"--network-interfaces", "10.0.0.0/33", "true"}, "\"10.0.0.0/33\" is neither"},
      {{"--grace", "-1", "true"}, "--grace: \"-1\" is no duration"},
      {{"--grace", "3601", "true"}, "from 0 s to 3600 s"},
      {{"--lease", "0.9", "true"}, "from 1 s to 3600 s"},
      {{"--max-restarts", "-1", "true"}, "--max-restarts"},
      {{"--spare", "node9", "true"}, "used by --max-restarts only"},
      {{"--max-restarts", "2", "--spare", "node9::3", "true"}, "--spare"},
      {{"--max-restarts", "2", "--stdin", "true"}, "second attempt"},
      {{"--timeout", "0", "true"}, "--timeout: \"0\" is out of range"},
      {{"--start-timeout", "1e3", "true"}, "--start-timeout: \"1e3\" is no duration"},
      {{"--heartbeat-ms", "2000", "--lease", "2", "true"}, "is not below the lease"},
      {{"-x", "1A=b", "true"}, "-x: \"1A\" is no name of a variable"},
      {{"-x", "=b", "true"}, "-x: \"\" is no name"},
      {{"-x", "A-B", "true"}, "-x: \"A-B\" is no name"},
      {{"--completion", "tcsh", "true"}, "write one of bash, zsh, fish"},
  };
  for (const auto& [line, expected] : cases) {
    const auto options = parse_line(line);
    ASSERT_FALSE(options) << testing::PrintToString(line);
    EXPECT_EQ(options.error().code, ExitCode::kUsage);
    EXPECT_THAT(options.error().message, HasSubstr(expected)) << testing::PrintToString(line);
    EXPECT_EQ(options.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(options.error().message.find('\x1b'), std::string::npos);
  }
}

TEST(Options, ASecretInAnUnusableVariableIsNotShown) {
  const auto options = parse_line({"-x", "A B=hunter2", "true"});
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().message.find("hunter2"), std::string::npos);
}

TEST(Options, ACommandThatLooksLikeAHostRunsBehindTheSeparator) {
  EXPECT_THAT(options_of({"-H", "node1:1", "--", "node2:1"}).command, ElementsAre("node2:1"));
  EXPECT_THAT(options_of({"-H", "node1:1", "true", "node2:1"}).command,
              ElementsAre("true", "node2:1"));
}

TEST(Options, EnvironmentVariablesAreTakenLiterallyOrFromHere) {
  const EnvList here = {{"OWN", "own value"}, {"L", "/a"}, {"EMPTY", ""}};
  const Options options = options_of({"-x", "A=x=y", "-x", "B=", "-x", "OWN", "-x", "UNSET", "-x",
                                      "P=/opt:$L", "-x", "EMPTY", "true"},
                                     here);
  using Entry = std::pair<std::string, std::string>;
  EXPECT_THAT(options.env, ElementsAre(Entry("A", "x=y"), Entry("B", ""), Entry("OWN", "own value"),
                                       Entry("P", "/opt:$L"), Entry("EMPTY", "")));
  EXPECT_THAT(options.notes, ElementsAre(HasSubstr("-x UNSET: the variable is not set here")));
}

TEST(Options, PatternsOfVariablesTakeAllOfHvdrunsOwnThatMatch) {
  const EnvList here = {{"AWS_A", "1"}, {"AWS_B", "2"}, {"SLURM_JOB_ID", "7"}, {"HVDRUN_X", "3"}};
  const Options options =
      options_of({"-x", "AWS_*", "-x", "SLURM_JOB_ID", "-x", "HVDRUN*", "-x", "V=*", "true"}, here);
  using Entry = std::pair<std::string, std::string>;
  EXPECT_THAT(options.env, ElementsAre(Entry("AWS_A", "1"), Entry("AWS_B", "2"),
                                       Entry("SLURM_JOB_ID", "7"), Entry("V", "*")));
  EXPECT_THAT(options.notes, ElementsAre(HasSubstr("\"HVDRUN_X\" has no meaning"),
                                         HasSubstr("-x HVDRUN*: no variable is set here")));
}

TEST(Options, VariablesOfFilesStandBelowThoseOfTheCommandLine) {
  const ScratchDir dir;
  const std::string first = dir.write("first.env", "A=1\nB=1\nOWN\n");
  const std::string second = dir.write("second.env", "B=2\n");
  const Options options =
      options_of({"-x", "A=9", "--env-file", first, "--env-file", second, "true"}, {{"OWN", "o"}});
  EXPECT_EQ(find_env(options.env, "A"), "9");
  EXPECT_EQ(find_env(options.env, "B"), "2");
  EXPECT_EQ(find_env(options.env, "OWN"), "o");
  const auto wrong = parse_line({"--env-file", dir.write("bad.env", "A=1\n?=2\n"), "true"});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("bad.env:2: "));
  EXPECT_THAT(parse_line({"--env-file", "/nowhere/x", "true"}).error().message,
              HasSubstr("/nowhere/x"));
}

TEST(Options, RulesForTheEnvironmentKeepTheirOrder) {
  const Options options =
      options_of({"--env-deny", "*", "--env-allow", "NCCL_*", "--env-deny=NCCL_X", "true"});
  ASSERT_EQ(options.env_request.rules.size(), 3U);
  EXPECT_FALSE(options.env_request.rules[0].is_allow);
  EXPECT_TRUE(options.env_request.rules[1].is_allow);
  EXPECT_EQ(options.env_request.rules[2].pattern, "NCCL_X");
  EXPECT_THAT(parse_line({"--env-deny", "A=1", "true"}).error().message,
              HasSubstr("--env-deny: write"));
  EXPECT_FALSE(parse_line({"--env-allow", "", "true"}));
}

TEST(Options, LocalRankArgumentMayNameTheOption) {
  EXPECT_EQ(options_of({"true"}).env_request.local_rank_option, "");
  const Options plain = options_of({"--local-rank-arg", "python", "x.py"});
  EXPECT_EQ(plain.env_request.local_rank_option, "--local-rank");
  EXPECT_THAT(plain.command, ElementsAre("python", "x.py"));
  EXPECT_EQ(options_of({"--local-rank-arg=local_rank", "true"}).env_request.local_rank_option,
            "--local_rank");
  EXPECT_EQ(options_of({"--local-rank-arg=--local_rank", "true"}).env_request.local_rank_option,
            "--local_rank");
  EXPECT_FALSE(parse_line({"--local-rank-arg=--", "true"}));
  EXPECT_FALSE(parse_line({"--local-rank-arg=a b", "true"}));
}

TEST(Options, BindingIsOffUnlessAskedFor) {
  EXPECT_EQ(options_of({"true"}).env_request.bind, "");
  EXPECT_EQ(options_of({"--bind", "none", "true"}).env_request.bind, "");
  EXPECT_EQ(options_of({"--bind", "core", "--report-bindings", "true"}).env_request.bind, "core");
  EXPECT_EQ(options_of({"true"}).env_request.core_dumps, CoreDumps::kAll);
  EXPECT_EQ(options_of({"-n", "3", "-H", "a:3", "true"}).np, 3U);
  EXPECT_EQ(options_of({"--network-interf", "lo", "true"}).network_interfaces.size(), 1U)
      << "a beginning of two spellings of one option";
  EXPECT_EQ(options_of({"--env-deny", "A,B*", "true"}).env_request.rules.size(), 2U);
  EXPECT_EQ(options_of({"--core-dumps", "rank0", "true"}).env_request.core_dumps,
            CoreDumps::kRank0);
  EXPECT_EQ(options_of({"--core-dumps", "none", "true"}).env_request.core_dumps, CoreDumps::kNone);
  EXPECT_THAT(parse_line({"--bind", "socket", "true"}).error().message,
              HasSubstr("none, numa, core"));
}

TEST(Options, WhatNoProcessCanBeGivenIsRefused) {
  const ScratchDir dir;
  const std::string file = dir.write("big.env", "BIG=" + std::string(200000, 'x') + "\n");
  const auto refused = parse_line({"--env-file", file, "true"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("the variable BIG takes 195.3 KiB"));
  EnvList many;
  for (int i = 0; i < 70; ++i) many.emplace_back("V" + std::to_string(i), std::string(100000, 'x'));
  EXPECT_THAT(parse_line({"true"}, many).error().message, HasSubstr("more than the 6.0 MiB"));
  EXPECT_TRUE(parse_line({"--env-deny", "V*", "true"}, many));
}

TEST(Options, StartTimeoutComesFromTheEnvironmentUnlessGiven) {
  const EnvList both = {{"HOROVOD_START_TIMEOUT", "30"}, {"HVDRUN_START_TIMEOUT", "60"}};
  EXPECT_EQ(options_of({"true"}, both).start_timeout, seconds(60));
  EXPECT_EQ(options_of({"true"}, {{"HOROVOD_START_TIMEOUT", "30"}}).start_timeout, seconds(30));
  EXPECT_EQ(options_of({"true"}, {{"HVDRUN_START_TIMEOUT", ""}}).start_timeout, seconds(120));
  EXPECT_EQ(options_of({"--start-timeout", "5", "true"}, both).start_timeout, seconds(5));
  const auto wrong = parse_line({"true"}, {{"HVDRUN_START_TIMEOUT", "soon"}});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message,
              HasSubstr("HVDRUN_START_TIMEOUT: --start-timeout: \"soon\" is no duration"));
  EXPECT_TRUE(parse_line({"--start-timeout", "5", "true"}, {{"HVDRUN_START_TIMEOUT", "soon"}}));
}

TEST(Options, HeartbeatFitsSeveralTimesIntoAShortLease) {
  EXPECT_EQ(options_of({"--lease", "1.5", "true"}).heartbeat, milliseconds(500));
  EXPECT_EQ(options_of({"--lease", "3600", "true"}).heartbeat, seconds(1));
}

TEST(Options, WithoutHostsTheJobIsLocal) {
  const Options four = options_of({"-np", "4", "true"});
  ASSERT_EQ(four.hosts.size(), 1U);
  EXPECT_EQ(four.hosts[0].name, "localhost");
  EXPECT_EQ(four.hosts[0].slots, 4U);
  EXPECT_EQ(transport_for(four, four.hosts[0]), TransportKind::kLocal);
  EXPECT_EQ(options_of({"true"}).hosts.at(0).slots, std::nullopt);
}

TEST(Options, HostfileIsReadAndNamedInMessages) {
  const ScratchDir dir;
  const auto path = dir.write("hosts", "# mine\nnode1 slots=2\r\nnode2:3\n");
  const Options options = options_of({"-hostfile", path, "true"});
  ASSERT_EQ(options.hosts.size(), 2U);
  EXPECT_EQ(options.hosts[1].slots, 3U);
  EXPECT_EQ(options.hosts_source, "--hostfile " + path);
  const auto wrong =
      parse_line({"--hostfile", dir.write("bad", "node1\n\nnode2 slots=x\n"), "true"});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("/bad:3: \"x\" is no number of slots"));
}

TEST(Options, HostsOfASlurmAllocationAreReachedBySrun) {
  const EnvList slurm = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}};
  const Options options = options_of({"true"}, slurm);
  EXPECT_EQ(format_hosts(options.hosts), "n1:2,n2:2");
  EXPECT_EQ(transport_for(options, options.hosts[0]), TransportKind::kCommand);
  EXPECT_EQ(options.rsh.front(), "srun");
  EXPECT_THAT(options.notes, ElementsAre("hosts of Slurm job 7 (SLURM_JOB_NODELIST), reached by "
                                         "srun: n1:2,n2:2; -H or --hostfile name others"));
  const Options chosen = options_of({"--transport", "ssh", "true"}, slurm);
  EXPECT_EQ(transport_for(chosen, chosen.hosts[0]), TransportKind::kSsh);
  EXPECT_THAT(chosen.rsh, IsEmpty());
  const Options named = options_of({"-H", "a:1", "true"}, slurm);
  EXPECT_EQ(transport_for(named, named.hosts[0]), TransportKind::kSsh);
  EXPECT_THAT(named.notes, IsEmpty());
}

TEST(Options, FiltersRankOrderAndGpusArrive) {
  const Options options = options_of({"-H", "n[1-4]:2", "--include", "n[1-3]", "--exclude", "n2",
                                      "--rank-order", "cyclic", "--one-gpu-per-rank", "true"});
  EXPECT_EQ(format_hosts(options.hosts), "n1:2,n3:2");
  EXPECT_EQ(options.hosts_source, "-H n1:2,n2:2,n3:2,n4:2 --include n[1-3] --exclude n2");
  EXPECT_EQ(options.rank_order, RankOrder::kCyclic);
  EXPECT_TRUE(options.is_one_gpu_per_rank);
  EXPECT_TRUE(options_of({"--virtual-local-rank", "true"}).is_one_gpu_per_rank);
  EXPECT_EQ(options_of({"true"}).rank_order, RankOrder::kBlock);
  const auto wrong = parse_line({"-H", "n1:1", "--include", "n2", "true"});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("--include: \"n2\" matches none of the hosts n1:1"));
  const auto twice = parse_line({"-H", "n1:0,2", "-x", "CUDA_VISIBLE_DEVICES=1", "true"});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("GPUs of host n1 are selected, and -x"));
}

TEST(Options, TransportIsJudgedByTheNameAsWritten) {
  const Options automatic = options_of({"-p", "2222", "true"});
  struct Case {
    HostSpec host;
    TransportKind kind;
  };
  const std::vector<Case> cases = {
      {{.name = "localhost"}, TransportKind::kLocal},
      {{.name = "127.0.0.1"}, TransportKind::kLocal},
      {{.name = "::1"}, TransportKind::kLocal},
      {{.name = "localhost", .user = "me"}, TransportKind::kSsh},
      {{.name = "localhost", .port = 2222}, TransportKind::kSsh},
      {{.name = "127.0.0.2"}, TransportKind::kSsh},
      {{.name = "localhost.example"}, TransportKind::kSsh},
      {{.name = "node1"}, TransportKind::kSsh},
  };
  for (const auto& [host, kind] : cases) {
    EXPECT_EQ(transport_for(automatic, host), kind) << host.user << host.name;
  }
  const Options ssh = options_of({"--transport", "ssh", "true"});
  EXPECT_EQ(transport_for(ssh, {.name = "localhost"}), TransportKind::kSsh);
  const Options local = options_of({"--transport", "local", "true"});
  EXPECT_EQ(transport_for(local, {.name = "node1"}), TransportKind::kLocal);
  const Options explicit_auto = options_of({"--transport", "auto", "true"});
  EXPECT_EQ(transport_for(explicit_auto, {.name = "localhost"}), TransportKind::kLocal);
}

TEST(Options, RshIsSplitIntoWords) {
  const Options options = options_of(
      {"--transport", "command", "--rsh", "kubectl -n 'my space' exec -i {host} --", "true"});
  EXPECT_THAT(options.rsh, ElementsAre("kubectl", "-n", "my space", "exec", "-i", "{host}", "--"));
}

}  // namespace
}  // namespace hvd
