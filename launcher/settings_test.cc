// Where options come from, and which source counts.
#include "launcher/settings.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "launcher/options.h"
#include "launcher/setting_names.h"

namespace hvd {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Entry = std::pair<std::string, std::string>;

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(dir_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/" + name) << text;
    return dir_ + "/" + name;
  }
  Result<Options> parse(std::vector<std::string> words, const EnvList& here = {}) const {
    words.insert(words.begin(), "hvdrun");
    words.emplace_back("true");
    return parse_options(words, here, {dir_ + "/system", dir_ + "/user"});
  }

  std::string dir_ = std::filesystem::temp_directory_path() / "hvdrun-settings-XXXXXX";
};

TEST_F(SettingsTest, TheStrongestSourceCounts) {
  const std::string file = write("file", "grace: 3\n");
  const EnvList here = {{"HVDRUN_GRACE", "4"}};
  EXPECT_EQ(parse({})->grace, seconds(10));
  write("system", "grace: 1\nlease: 20\n");
  EXPECT_EQ(parse({})->grace, seconds(1));
  write("user", "grace: 2\n");
  EXPECT_EQ(parse({})->grace, seconds(2));
  EXPECT_EQ(parse({})->lease, seconds(20)) << "of the weaker one, what the stronger leaves";
  EXPECT_EQ(parse({"--config-file", file})->grace, seconds(3));
  EXPECT_EQ(parse({"--config-file", file}, here)->grace, seconds(4));
  EXPECT_EQ(parse({"--config-file", file, "--grace", "5"}, here)->grace, seconds(5));
}

TEST_F(SettingsTest, AnOppositeTakesBackWhatAWeakerSourceSets) {
  write("user", "accept_new_host_keys: true\nautotune: true\nverbose: 2\n");
  EXPECT_TRUE(parse({})->accept_new_host_keys);
  EXPECT_FALSE(parse({"--no-accept-new-host-keys"})->accept_new_host_keys);
  EXPECT_FALSE(parse({}, {{"HVDRUN_ACCEPT_NEW_HOST_KEYS", "0"}})->accept_new_host_keys);
  EXPECT_EQ(parse({"--no-autotune"})->env.at(0).second, "0");
  EXPECT_EQ(parse({})->verbosity, 2);
  EXPECT_EQ(parse({"-v"})->verbosity, 1) << "not added";
  EXPECT_EQ(parse({}, {{"HVDRUN_VERBOSE", "0"}})->verbosity, 0);
}

TEST_F(SettingsTest, OptionsThatStandForOneAnotherAreOne) {
  const std::string hosts = write("hosts", "node1:2\n");
  write("user", "hostfile: " + hosts + "\ncontroller: mpi\n");
  EXPECT_FALSE(parse({})) << "mpi is refused from a file, too";
  const auto options = parse({"-H", "node2:1", "--gloo"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->hosts.at(0).name, "node2");
  write("user", "transport: command\nrsh: ssh {host}\n");
  EXPECT_EQ(parse({})->rsh.size(), 2U);
  EXPECT_EQ(parse({"--transport", "ssh"})->rsh.size(), 0U);
  EXPECT_EQ(parse({"--transport", "command"})->rsh.size(), 2U);
}

TEST_F(SettingsTest, VariablesForTheProcessesAddUp) {
  write("user", "x: {A: user, B: user}\n");
  const auto options = parse({"-x", "B=line"});
  ASSERT_TRUE(options);
  EXPECT_THAT(options->env,
              ElementsAre(Entry("A", "user"), Entry("B", "user"), Entry("B", "line")));
}

TEST_F(SettingsTest, ErrorsOfValuesNameTheirPlace) {
  write("user", "lease: 20\ngrace: soon\n");
  const auto of_file = parse({});
  ASSERT_FALSE(of_file);
  EXPECT_EQ(of_file.error().code, ExitCode::kUsage);
  EXPECT_THAT(of_file.error().message, HasSubstr(dir_ + "/user:2: --grace: \"soon\""));
  EXPECT_TRUE(parse({"--grace", "5"})) << "what is not used is not judged";
  std::filesystem::remove(dir_ + "/user");
  const auto of_variable = parse({}, {{"HVDRUN_STDIN", "perhaps"}});
  ASSERT_FALSE(of_variable);
  EXPECT_THAT(of_variable.error().message, HasSubstr("HVDRUN_STDIN: --stdin \"perhaps\": write"));
  write("user", "\nhosts: [node1:x]\n");
  const auto of_hosts = parse({});
  ASSERT_FALSE(of_hosts);
  EXPECT_THAT(of_hosts.error().message, HasSubstr(dir_ + "/user:2: -H: \"x\" is no number"));
  std::filesystem::remove(dir_ + "/user");
  const auto gone = parse({"--config-file", dir_ + "/gone"});
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error().message, HasSubstr("--config-file: file"));
}

TEST_F(SettingsTest, AVariableMayNameTheFile) {
  const std::string file = write("file", "grace: 3\n");
  EXPECT_EQ(parse({}, {{"HVDRUN_CONFIG_FILE", file}})->grace, seconds(3));
  const std::string other = write("other", "grace: 7\n");
  EXPECT_EQ(parse({"--config-file", other}, {{"HVDRUN_CONFIG_FILE", file}})->grace, seconds(7));
}

TEST_F(SettingsTest, OptionsOfFilesAreNotNotedAsUnused) {
  write("user", "ssh_port: 2222\n");
  EXPECT_THAT(parse({"-np", "2"})->notes, IsEmpty());
}

TEST_F(SettingsTest, AnotherJobsVariablesAreNoOptions) {
  const EnvList inside = {{"HVDRUN_JOB_ID", "ab"},
                          {"HVDRUN_NODE", "1"},
                          {"HVDRUN_ADDRESS", "10.0.0.1"},
                          {"HVDRUN_RENDEZVOUS", "/run/s"},
                          {"HVDRUN_TIMELINE", "/tmp/t"},
                          {"HVDRUN_TIMELINE_STEPS", "x"},
                          {"HVDRUN_TIMELINE_MAX_BYTES", "1"},
                          {"HVDRUN_OF_A_NEWER_VERSION", "1"},
                          {"HOROVOD_TIMELINE", "/tmp/t.json"}};
  const auto options = parse({}, inside);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_THAT(options->notes, IsEmpty());
  EXPECT_THAT(options->settings, IsEmpty());
}

TEST_F(SettingsTest, UnknownVariablesAreNotedWithoutTheirValue) {
  const auto options = parse({}, {{"HVDRUN_GRACEE", "hunter2"}, {"HVDRUN_INIT", "tcp://a:1"}});
  ASSERT_TRUE(options);
  EXPECT_THAT(
      options->notes,
      ElementsAre("the variable \"HVDRUN_GRACEE\" has no meaning and is left alone; did you "
                  "mean HVDRUN_GRACE?"));
}

TEST(SettingNames, VariablesAreFrozen) {
  std::vector<std::string> names;
  for (const OptionSpec& option : options_table()) {
    for (const std::string& name : variables_of(option)) names.push_back(name);
  }
  // Scripts depend on these: add at will, never take one away.
  const std::vector<std::string> frozen = {"HVDRUN_NUM_PROC",
                                           "HVDRUN_HOSTS",
                                           "HVDRUN_HOSTFILE",
                                           "HVDRUN_START_TIMEOUT",
                                           "HOROVOD_START_TIMEOUT",
                                           "HVDRUN_TIMEOUT",
                                           "HVDRUN_EXIT_TIMEOUT",
                                           "HVDRUN_GRACE",
                                           "HVDRUN_LEASE",
                                           "HVDRUN_STOP_SIGNAL",
                                           "HVDRUN_TIMEOUT_SIGNAL",
                                           "HVDRUN_FORWARD_SIGNALS",
                                           "HVDRUN_STDIN",
                                           "HVDRUN_STALL_TIMEOUT",
                                           "HVDRUN_ON_STALL",
                                           "HVDRUN_GPU_STATS",
                                           "HVDRUN_MAX_RESTARTS",
                                           "HVDRUN_SPARE",
                                           "HVDRUN_TRANSPORT",
                                           "HVDRUN_RSH",
                                           "HVDRUN_AGENT_RUNNING",
                                           "HVDRUN_SSH_PORT",
                                           "HVDRUN_SSH_IDENTITY_FILE",
                                           "HVDRUN_SSH_CONFIG",
                                           "HVDRUN_ACCEPT_NEW_HOST_KEYS",
                                           "HVDRUN_MASTER_PORT",
                                           "HVDRUN_MASTER_ADDR",
                                           "HVDRUN_NETWORK_INTERFACES",
                                           "HVDRUN_FABRIC",
                                           "HVDRUN_TIMELINE_FILENAME",
                                           "HOROVOD_TIMELINE",
                                           "HVDRUN_TIMELINE_MAX_MB",
                                           "HVDRUN_TIMELINE_MARK_CYCLES",
                                           "HVDRUN_REPORT",
                                           "HVDRUN_EVENTS",
                                           "HVDRUN_OUTPUT_FILENAME",
                                           "HVDRUN_PREFIX_OUTPUT_WITH_TIMESTAMP",
                                           "HVDRUN_NO_TAG_OUTPUT",
                                           "HVDRUN_FUSION_THRESHOLD_MB",
                                           "HVDRUN_CYCLE_TIME_MS",
                                           "HVDRUN_CACHE_CAPACITY",
                                           "HVDRUN_HIERARCHICAL_ALLREDUCE",
                                           "HVDRUN_HIERARCHICAL_ALLGATHER",
                                           "HVDRUN_TORUS_ALLREDUCE",
                                           "HVDRUN_AUTOTUNE",
                                           "HVDRUN_AUTOTUNE_LOG_FILE",
                                           "HVDRUN_AUTOTUNE_WARMUP_SAMPLES",
                                           "HVDRUN_AUTOTUNE_STEPS_PER_SAMPLE",
                                           "HVDRUN_AUTOTUNE_BAYES_OPT_MAX_SAMPLES",
                                           "HVDRUN_AUTOTUNE_GAUSSIAN_PROCESS_NOISE",
                                           "HVDRUN_NO_STALL_CHECK",
                                           "HVDRUN_STALL_CHECK_WARNING_TIME_SECONDS",
                                           "HVDRUN_STALL_CHECK_SHUTDOWN_TIME_SECONDS",
                                           "HVDRUN_MPI_THREADS_DISABLE",
                                           "HVDRUN_TCP",
                                           "HVDRUN_NUM_NCCL_STREAMS",
                                           "HVDRUN_THREAD_AFFINITY",
                                           "HVDRUN_GLOO_TIMEOUT_SECONDS",
                                           "HVDRUN_LOG_LEVEL",
                                           "HVDRUN_LOG_WITHOUT_TIMESTAMP",
                                           "HVDRUN_GLOO",
                                           "HVDRUN_DISABLE_CACHE",
                                           "HVDRUN_MPI_ARGS",
                                           "HVDRUN_BINDING_ARGS",
                                           "HVDRUN_MPI",
                                           "HVDRUN_JSRUN",
                                           "HVDRUN_MIN_NP",
                                           "HVDRUN_MAX_NP",
                                           "HVDRUN_SLOTS_PER_HOST",
                                           "HVDRUN_ELASTIC_TIMEOUT",
                                           "HVDRUN_RESET_LIMIT",
                                           "HVDRUN_BLACKLIST_COOLDOWN_RANGE",
                                           "HVDRUN_HOST_DISCOVERY_SCRIPT",
                                           "HVDRUN_CONFIG_FILE",
                                           "HVDRUN_VERBOSE"};
  EXPECT_THAT(names, testing::IsSupersetOf(frozen));
  // A new option's variable needs no line here, but none may be given to workers as well.
  for (const std::string& name : names) EXPECT_FALSE(is_variable_of_workers(name)) << name;
}

TEST(SettingNames, PlacesOfTheFiles) {
  EXPECT_EQ(default_config_places({}).user_file, "");
  EXPECT_EQ(default_config_places({}).system_file, "/etc/hvdrun/config.yaml");
  EXPECT_EQ(default_config_places({{"HOME", "/home/me"}}).user_file,
            "/home/me/.config/hvdrun/config.yaml");
  EXPECT_EQ(default_config_places({{"HOME", "/home/me"}, {"XDG_CONFIG_HOME", "/x"}}).user_file,
            "/x/hvdrun/config.yaml");
  EXPECT_EQ(default_config_places({{"HOME", "/home/me"}, {"XDG_CONFIG_HOME", "x"}}).user_file,
            "/home/me/.config/hvdrun/config.yaml");
}

}  // namespace
}  // namespace hvd
