#include "launcher/config_file.h"

#include <gmock/gmock.h>

#include "launcher/setting_names.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "--grace=5 @3": option, value or "no" for one that is taken back, line.
std::vector<std::string> settings_in(std::string_view text) {
  const auto parsed = parse_config(text, "c");
  if (!parsed) return {"error: " + parsed.error().message};
  std::vector<std::string> settings;
  for (const Occurrence& it : *parsed) {
    const std::string value = it.is_opposite ? " no" : it.value.empty() ? "" : "=" + it.value;
    settings.push_back(fmt::format("{}{} @{}", it.spec->names.back(), value, it.source.substr(2)));
  }
  return settings;
}

TEST(ConfigFile, OwnKeysAreLongOptionsWithoutDashes) {
  EXPECT_THAT(settings_in("grace: 5s\n"
                          "start-timeout: 2m   # with a dash\n"
                          "start_timeout2: x\n"),
              ElementsAre(HasSubstr("c:3: key \"start_timeout2\" is unknown; did you mean "
                                    "start_timeout?")));
  EXPECT_THAT(settings_in("# mine\n"
                          "grace: 5s\n"
                          "start-timeout: 2m\n"
                          "np: 4\n"
                          "accept_new_host_keys: yes\n"
                          "stdin: false\n"
                          "verbose: 2\n"
                          "ssh_port: \"2222\"\n"),
              ElementsAre("--grace=5s @2", "--start-timeout=2m @3", "--num-proc=4 @4",
                          "--accept-new-host-keys @5", "--stdin no @6", "--verbose @7",
                          "--verbose @7", "--ssh-port=2222 @8"));
}

TEST(ConfigFile, ListsAreRepeatedOrJoined) {
  EXPECT_THAT(settings_in("hosts: [node1:2, node2:2]\n"
                          "network_interfaces:\n"
                          "  - eth0\n"
                          "  - eth1\n"
                          "x:\n"
                          "  - A=1\n"
                          "  - B\n"),
              ElementsAre("--hosts=node1:2,node2:2 @1", "--network-interface=eth0 @3",
                          "--network-interface=eth1 @4", "-x=A=1 @6", "-x=B @7"));
  EXPECT_THAT(settings_in("x:\n  NCCL_DEBUG: INFO\n  EMPTY: \"\"\n"),
              ElementsAre("-x=NCCL_DEBUG=INFO @2", "-x=EMPTY= @3"));
}

TEST(ConfigFile, ReadsHorovodrunsSections) {
  EXPECT_THAT(settings_in("params:\n"
                          "  fusion_threshold_mb: 32\n"
                          "  cycle_time_ms: 3.5\n"
                          "  hierarchical_allreduce: true\n"
                          "  torus_allreduce: False\n"
                          "autotune:\n"
                          "  enabled: true\n"
                          "  log_file: /tmp/a.csv\n"
                          "timeline:\n"
                          "  filename: /tmp/t.json\n"
                          "  mark_cycles: true\n"
                          "stall_check:\n"
                          "  enabled: false\n"
                          "  warning_time_seconds: 120\n"
                          "logging:\n"
                          "  level: INFO\n"
                          "  with_timestamp: true\n"
                          "controller: gloo\n"),
              ElementsAre("--fusion-threshold-mb=32 @2", "--cycle-time-ms=3.5 @3",
                          "--hierarchical-allreduce @4", "--torus-allreduce no @5", "--autotune @7",
                          "--autotune-log-file=/tmp/a.csv @8",
                          "--timeline-filename=/tmp/t.json @10", "--timeline-mark-cycles @11",
                          "--no-stall-check @13", "--stall-check-warning-time-seconds=120 @14",
                          "--log-level=INFO @16", "--log-without-timestamp no @17", "--gloo @18"));
  EXPECT_THAT(settings_in("stall_check:\n  enabled: true\nlogging: {with_timestamp: false}\n"),
              ElementsAre("--no-stall-check no @2", "--log-without-timestamp @3"));
  EXPECT_THAT(settings_in("autotune: true\nstall_check: false\n"),
              ElementsAre("--autotune @1", "--no-stall-check @2"))
      << "own keys of the sections' names";
}

TEST(ConfigFile, SectionKeysAreFrozen) {
  // Files depend on these: add at will, never take one away.
  EXPECT_THAT(
      section_keys(),
      ElementsAre("params.fusion_threshold_mb", "params.cycle_time_ms", "params.cache_capacity",
                  "params.hierarchical_allreduce", "params.hierarchical_allgather",
                  "params.torus_allreduce", "autotune.enabled", "autotune.log_file",
                  "autotune.warmup_samples", "autotune.steps_per_sample",
                  "autotune.bayes_opt_max_samples", "autotune.gaussian_process_noise",
                  "timeline.filename", "timeline.mark_cycles", "stall_check.enabled",
                  "stall_check.warning_time_seconds", "stall_check.shutdown_time_seconds",
                  "library_options.mpi_threads_disable", "library_options.num_nccl_streams",
                  "library_options.thread_affinity", "library_options.gloo_timeout_seconds",
                  "logging.level", "logging.with_timestamp"));
}

TEST(ConfigFile, EachSectionKeyIsRead) {
  for (const std::string& name : section_keys()) {
    const auto dot = name.find('.');
    const auto parsed =
        parse_config(fmt::format("{}:\n  {}: 1\n", name.substr(0, dot), name.substr(dot + 1)), "c");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->size(), 1U) << name;
  }
}

TEST(ConfigFile, EachOptionOfTheTableHasItsKeys) {
  for (const OptionSpec& option : options_table()) {
    for (const std::string& key : keys_of(option)) {
      const auto found = find_key(key);
      ASSERT_TRUE(found) << key;
      EXPECT_EQ(found->spec, &option);
      EXPECT_FALSE(found->is_opposite);
      EXPECT_TRUE(parse_config(key + ": 1\n", "c")) << key;
    }
    EXPECT_EQ(keys_of(option).empty(),
              option.is_hidden || option.is_per_run || option.id == OptionId::kConfigFile);
  }
}

TEST(ConfigFile, NothingInItIsNothingSet) {
  for (const char* text : {"", "\n", "# only this\n", "---\n", "{}\n", "~\n"}) {
    EXPECT_THAT(settings_in(text), IsEmpty()) << text;
  }
}

TEST(ConfigFile, MistakesAreUsageErrorsWithFileAndLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\ngracee: 5\n", "c:2: key \"gracee\" is unknown; did you mean grace?"},
      {"qqqqqqqq: 1\n", "c:1: key \"qqqqqqqq\" is unknown; keys are long options without dashes"},
      {"heartbeat_ms: 5\n", "c:1: key \"heartbeat_ms\" is unknown"},
      {"help: true\n", "c:1: key \"help\" is unknown"},
      {"config_file: other\n", "c:1: key \"config_file\" is unknown"},
      {"params:\n  fusion: 3\n", "c:2: key \"fusion\" is unknown in the section params"},
      {"params:\n  cycle_time: 3\n", "did you mean cycle_time_ms?"},
      {"grace: 5\n\ngrace: 6\n", "c:3: \"grace\" is set in line 1 already"},
      {"start_timeout: 5\nstart-timeout: 6\n", "c:2: \"start-timeout\" is set in line 1 already"},
      {"np: 1\nnum_proc: 1\n", "c:2: \"num_proc\" is set in line 1"},
      {"params: {}\nparams: {}\n", "c:2: \"params\" is set in line 1"},
      {"cache_capacity: 1\nparams:\n  cache_capacity: 2\n", "c:3: \"cache_capacity\" is set in"},
      {"controller: gloo\ncontroller: gloo\n", "c:2: \"controller\" is set in line 1"},
      {"controller: ddl\n", "c:1: controller: write gloo"},
      {"controller: [gloo]\n", "c:1: controller: write gloo"},
      {"grace:\n", "c:1: \"grace\" has no value; write TIME"},
      {"grace: {a: 1}\n", "c:1: \"grace\" is a map; write TIME"},
      {"grace: [1, 2]\n", "c:1: \"grace\" is a list; write TIME"},
      {"stdin: [1]\n", "c:1: \"stdin\" is a list; write true or false"},
      {"stdin: maybe\n", "c:1: --stdin \"maybe\": write true or false"},
      {"stdin: 2\n", "c:1: --stdin \"2\": write true or false"},
      {"hosts: [[a]]\n", "c:1: an entry of this list is no single value"},
      {"x: {A: [1]}\n", "c:1: variables are written as NAME: VALUE"},
      {"x: {A: 1, A: 2}\n", "c:1: \"A\" is set in line 1 already"},
      {"params: 5\n", "c:1: params is a section; write its keys below it"},
      {"- a\n", "c:1: this is no map"},
      {"hello\n", "c:1: this is no map"},
      {"[a]: 1\n", "c:1: a key must be one word"},
      {"a: b: c\n", "c:1: this is no YAML"},
      {"grace: 5\n\tlease: 6\n", "c:2: this is no YAML"},
      {"grace: *nowhere\n", "this is no YAML"},
      {"grace: 5\n---\nlease: 6\n", "c: something stands behind the first document"},
      {"!, &a ace:e, ;, ;le", "c: something stands behind"},
      {"grace: 5\n]\n", "c:2: this is no YAML"},
      {"<<: {grace: 5}\n", "c:1: key \"<<\" is unknown"},
      {std::string("grace: \"a\\0b\"\n"), "c:1: the value holds a null byte"},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_config(text, "c");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ExitCode::kUsage);
    EXPECT_THAT(parsed.error().message, HasSubstr(expected));
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
}

TEST(ConfigFile, HugeAndDeepOnesEndWithAnError) {
  EXPECT_FALSE(parse_config(std::string(kMostConfigBytes + 1, '#'), "c"));
  EXPECT_FALSE(parse_config(std::string(100'000, '['), "c"));
  EXPECT_FALSE(parse_config("a: " + std::string(100'000, '{'), "c"));
}

}  // namespace
}  // namespace hvd
