#include "launcher/hvdctl/control_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <nlohmann/json.hpp>

#include "launcher/hvdctl/control_options.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Kind = ControlFailure::Kind;

constexpr const char* kFirst = "0123456789abcdef0123456789abcdef";
constexpr const char* kSecond = "01234567ffffffff0123456789abcdef";
constexpr std::int64_t kNoon = 1'764'504'000;  // 2025-11-30 12:00 UTC

NodeStatus status_of(const std::string& json) {
  const auto status = parse_status(json);
  EXPECT_TRUE(status) << status.error().why;
  return status.value_or(NodeStatus{});
}

std::string job_json(const std::string& id, int index, const std::string& more = "") {
  return fmt::format(R"({{"job":"{}","index":{},"client":"alice","user":"ann","from":"10.0.0.9",)"
                     R"("state":"running","since":{},"gpus":"0,1","unit":"u.service"{}}})",
                     id, index, kNoon + index, more);
}

NodeReport node_with(const std::string& name, const std::string& jobs) {
  return {name,
          status_of(fmt::format(R"({{"node":"{}","version":"0.1.0","started":5,"draining":"",)"
                                R"("max_jobs":8,"num_gpus":4,"jobs":[{}]}})",
                                name, jobs))};
}

NodeReport node_without(const std::string& name, Kind kind, const std::string& why) {
  return {name, tl::unexpected(ControlFailure{kind, why})};
}

class UtcText : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST(ControlAnswer, IsOfTheMarkerAlone) {
  EXPECT_EQ(take_answer("M ok {\"a\":1}", "M"), "{\"a\":1}");
  EXPECT_EQ(take_answer("M ok {}\r", "M"), "{}");
  const std::pair<const char*, std::pair<Kind, const char*>> others[] = {
      {"M error alice is no admin", {Kind::kRefused, "alice is no admin"}},
      {"refused: user eve is none of the clients", {Kind::kRefused, "user eve is none"}},
      {"X ok {}", {Kind::kFaulty, "it begins with \"X ok {}\""}},
      {"M okay {}", {Kind::kFaulty, "it begins with"}},
      {"M", {Kind::kFaulty, "it begins with \"M\""}},
      {"", {Kind::kFaulty, "it begins with \"\""}},
  };
  for (const auto& [line, expected] : others) {
    const auto answer = take_answer(line, "M");
    ASSERT_FALSE(answer) << line;
    EXPECT_EQ(answer.error().kind, expected.first) << line;
    EXPECT_THAT(answer.error().why, HasSubstr(expected.second));
  }
}

TEST(ControlAnswer, StatusIsTakenWithWhatIsNewAndWithoutWhatIsMissing) {
  const NodeStatus full =
      node_with("n1", job_json(kFirst, 3, R"(,"new":{"deep":[1]})")).status.value();
  EXPECT_EQ(full.version, "0.1.0");
  EXPECT_EQ(full.max_jobs, 8U);
  ASSERT_EQ(full.jobs.size(), 1U);
  EXPECT_EQ(full.jobs[0].index, 3U);
  EXPECT_EQ(full.jobs[0].user, "ann");
  EXPECT_EQ(full.jobs[0].since, kNoon + 3);
  const NodeStatus bare = status_of(R"({"node":"n1","jobs":[]})");
  EXPECT_EQ(bare.version, "");
  EXPECT_TRUE(bare.jobs.empty());
}

TEST(ControlAnswer, WhatMakesNoSenseIsSaid) {
  const std::pair<std::string, const char*> wrong[] = {
      {"", "it is no object"},
      {"[]", "it is no object"},
      {"{\"node\":\"n1\"", "it is no object"},
      {R"({"jobs":[]})", "\"node\" is missing"},
      {R"({"node":7,"jobs":[]})", "\"node\" is no text"},
      {R"({"node":"n1"})", "\"jobs\" is no list"},
      {R"({"node":"n1","jobs":{}})", "\"jobs\" is no list"},
      {R"({"node":"n1","jobs":[7]})", "it is no object"},
      {R"({"node":"n1","jobs":[{"job":"../x"}]})", "\"job\" is no id of a job"},
      {R"({"node":"n1","num_gpus":-1,"jobs":[]})", "\"num_gpus\" is no whole number"},
      {R"({"node":"n1","num_gpus":1.5,"jobs":[]})", "\"num_gpus\" is no whole number"},
      {"{\"node\":\"n\xff\",\"jobs\":[]}", "it is no object"},
      {std::string(1 << 20, '['), "it is no object"},
  };
  for (const auto& [json, why] : wrong) {
    const auto status = parse_status(json);
    ASSERT_FALSE(status) << json.substr(0, 80);
    EXPECT_EQ(status.error().kind, Kind::kFaulty);
    EXPECT_THAT(status.error().why, HasSubstr(why)) << json.substr(0, 80);
  }
  EXPECT_FALSE(parse_stopped(R"({"stopped":"all"})"));
  EXPECT_EQ(parse_stopped(R"({"stopped":2})"), 2U);
  EXPECT_FALSE(parse_draining(R"({"draining":true})"));
  EXPECT_EQ(parse_draining(R"({"draining":"work"})"), "work");
}

TEST(ControlJobs, PartsOfOneJobStandTogetherInItsOrder) {
  const auto jobs = join_jobs({node_with("n2", job_json(kFirst, 1)),
                               node_without("n3", Kind::kUnreachable, "gone"),
                               node_with("n1", job_json(kSecond, 2) + "," + job_json(kFirst, 0))});
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].id, kFirst);
  ASSERT_EQ(jobs[0].parts.size(), 2U);
  EXPECT_EQ(jobs[0].parts[0].node, "n1");
  EXPECT_EQ(jobs[0].parts[0].report, 2U);
  EXPECT_EQ(jobs[0].parts[1].node, "n2");
  EXPECT_EQ(jobs[0].since(), kNoon);
  EXPECT_EQ(jobs[1].id, kSecond);
}

TEST(ControlJobs, ABeginningNamesOneJobOrNone) {
  const auto jobs = join_jobs({node_with("n1", job_json(kFirst, 0) + "," + job_json(kSecond, 0))});
  EXPECT_EQ(shown_digits(jobs), 9U);
  EXPECT_EQ(shown_digits({jobs[0]}), 8U);
  EXPECT_EQ(find_job(jobs, kSecond)->id, kSecond);
  EXPECT_EQ(find_job(jobs, "012345678")->id, kFirst);
  EXPECT_THAT(
      find_job(jobs, "01234567").error().message,
      HasSubstr(fmt::format("the beginning of 2 jobs: {}, {}; give more digits", kFirst, kSecond)));
  EXPECT_THAT(find_job(jobs, "abcdef").error().message,
              HasSubstr("no job here begins with abcdef"));
  EXPECT_TRUE(check_job_word("abcdef"));
  EXPECT_TRUE(check_job_word(kFirst));
  for (const std::string word : {"", "abcde", "ABCDEF", "abcdeg", "abcdef\n", "../../"}) {
    EXPECT_FALSE(check_job_word(word)) << word;
  }
  EXPECT_FALSE(check_job_word(std::string(kFirst) + "0"));
}

TEST_F(UtcText, TablesAreAligned) {
  std::vector<NodeReport> reports = {
      node_with("node1", job_json(kFirst, 0)),
      node_without("node10", Kind::kUnreachable, "no answer within 10.0 s")};
  reports.push_back(node_with("n2", job_json(kFirst, 1, R"(,"gpus":"all")")));
  reports.back().status->draining = "new disks";
  EXPECT_EQ(nodes_table(reports),
            "NODE    VERSION  JOBS  GPUS  STATE\n"
            "node1   0.1.0    1/8   4     ok\n"
            "node10  -        -     -     unreachable: no answer within 10.0 s\n"
            "n2      0.1.0    1/8   4     draining: new disks\n");
  EXPECT_EQ(jobs_table(join_jobs(reports), kNoon + 86'400),
            "JOB       USER  FROM            SINCE        GPUS     STATE    NODES\n"
            "01234567  ann   alice@10.0.0.9  11-30 12:00  0,1/all  running  node1,n2\n");
  EXPECT_THAT(jobs_table(join_jobs(reports), kNoon + 86'400 * 365), HasSubstr("  2025-11-30  "));
  EXPECT_EQ(jobs_table({}, kNoon), "JOB  USER  FROM  SINCE  GPUS  STATE  NODES\n");
}

TEST_F(UtcText, NothingOfANodeReachesTheTerminalRaw) {
  const std::string evil = R"(\u001b[31mred\u001b]0;title\u0007\t\u009b2J\nline é)";
  NodeReport report = node_with("node1", "");
  report.status = status_of(fmt::format(
      R"({{"node":"x","version":"{0}","draining":"{0}","jobs":[{{"job":"{1}","user":"{0}",)"
      R"("client":"{0}","from":"{0}","state":"{0}","gpus":"{0}","unit":"{0}","since":{2}}}]}})",
      evil, kFirst, INT64_MAX));
  const std::vector<NodeReport> reports = {report,
                                           node_without("n2", Kind::kRefused, "a\x1b[2Jb\xff")};
  const auto jobs = join_jobs(reports);
  for (const std::string& text :
       {nodes_table(reports), jobs_table(jobs, kNoon), nodes_json(reports),
        jobs_json(jobs, reports), failure_text(reports[1].status.error())}) {
    EXPECT_EQ(text.find_first_of("\x1b\x07\t\r"), std::string::npos) << text;
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
    EXPECT_EQ(text.find('\xff'), std::string::npos) << text;
  }
  EXPECT_THAT(nodes_table(reports), HasSubstr("\\x1b[31mred"));
  EXPECT_THAT(nodes_table(reports), HasSubstr("line é"));
  EXPECT_THAT(jobs_table(jobs, kNoon), HasSubstr("  ?  "));
  EXPECT_EQ(shown_cut(std::string(1000, 'a')), std::string(300, 'a') + "...");
}

TEST_F(UtcText, JsonHasAllThatTheTablesHave) {
  std::vector<NodeReport> reports = {node_with("node1", job_json(kFirst, 0)),
                                     node_without("n2", Kind::kFaulty, "odd")};
  const auto nodes = nlohmann::json::parse(nodes_json(reports), nullptr, false)["nodes"];
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0]["state"], "ok");
  EXPECT_EQ(nodes[0]["jobs"], 1);
  EXPECT_EQ(nodes[1]["state"], "faulty");
  EXPECT_EQ(nodes[1]["reason"], "odd");
  const auto all = nlohmann::json::parse(jobs_json(join_jobs(reports), reports), nullptr, false);
  EXPECT_EQ(all["jobs"][0]["job"], kFirst);
  EXPECT_EQ(all["jobs"][0]["nodes"][0]["unit"], "u.service");
  EXPECT_EQ(all["errors"][0]["error"], "faulty: odd");
}

TEST(ControlOptions, TakesWhatHvdrunTakes) {
  const EnvList home = {{"HOME", "/home/ann"}};
  auto options = parse_control({"kill", "-H", "node[1-2]:8,bob@node1:4,node3:port=7", "abcdef"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->job, "abcdef");
  auto targets = targets_of(*options, home);
  ASSERT_TRUE(targets) << targets.error().message;
  EXPECT_EQ(targets->tls_dir, "/home/ann/.config/hvdrun/tls");
  std::vector<std::string> nodes;
  for (const NodeAddress& node : targets->nodes)
    nodes.push_back(fmt::format("{} {}", node.host, node.port));
  EXPECT_THAT(nodes, ElementsAre("node1 50451", "node2 50451", "node3 7"));
  targets = targets_of(
      *options, {{"HOME", "/home/ann"}, {"HVDRUN_TLS_DIR", "/keys"}, {"HVDRUN_TLS_PORT", "99"}});
  ASSERT_TRUE(targets) << targets.error().message;
  EXPECT_EQ(targets->tls_dir, "/keys");
  EXPECT_EQ(targets->nodes[0].port, 99);
  options =
      parse_control({"nodes", "--hosts=node1", "--tls-dir", "/other", "--tls-port", "5", "--json"});
  targets = targets_of(*options, {{"HVDRUN_TLS_DIR", "/keys"}});
  EXPECT_EQ(targets->tls_dir, "/other");
  EXPECT_EQ(targets->nodes[0].port, 5);
  targets = targets_of(*parse_control({"drain", "--reason", "new disks"}), home);
  ASSERT_EQ(targets->nodes.size(), 1U);
  EXPECT_EQ(targets->nodes[0].host, "");
  EXPECT_EQ(targets->socket, "/run/hvdrun/agent.sock");
  EXPECT_EQ(parse_control({"kill", "abcdef", "--timeout", "1.5s"})->timeout,
            std::chrono::milliseconds(1500));
}

TEST(ControlOptions, RefusesInOneSentence) {
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"nodes", "x"}, "x is no option of hvdctl nodes; see hvdctl nodes --help"},
      {{"nodes", "-H"}, "-H needs a value"},
      {{"nodes", "-X"}, "-X is no option"},
      {{"nodes", "-H", ""}, "--hosts is empty"},
      {{"nodes", "-H", "a", "--hostfile", "b"}, "both given"},
      {{"nodes", "-H", "a", "--socket", "b"}, "leave one of them out"},
      {{"nodes", "--tls-dir", "b"}, "with -H or --hostfile only"},
      {{"nodes", "--socket", std::string(108, 's')}, "107 are the most"},
      {{"nodes", "--reason", "b"}, "--reason is no option of hvdctl nodes"},
      {{"nodes", "--timeout", "0"}, "--timeout"},
      {{"nodes", "--tls-port", "70000", "-H", "a"}, "--tls-port"},
      {{"kill"}, "needs a job"},
      {{"kill", "-H", "abcdef"}, "-H needs a value"},
      {{"kill", "abc"}, "\"abc\" is no job; give the 32 digits"},
      {{"kill", "abcdef", "fedcba"}, "fedcba is no option"},
      {{"drain", "--json"}, "--json is no option"},
      {{"drain", "--reason", "a\nb"}, "--reason a\\x0ab is out of place"},
      {{"drain", "--reason", std::string(257, 'r')}, "1 to 256 bytes"},
  };
  for (const auto& [words, said] : wrong) {
    const auto options = parse_control(words);
    ASSERT_FALSE(options) << said;
    EXPECT_EQ(options.error().code, ExitCode::kUsage) << said;
    EXPECT_THAT(options.error().message, HasSubstr(said));
    EXPECT_THAT(options.error().message, Not(HasSubstr("\n")));
  }
  const auto hosts = targets_of(*parse_control({"nodes", "-H", "node[3-1]"}), {});
  ASSERT_FALSE(hosts);
  EXPECT_THAT(hosts.error().message, HasSubstr("-H: "));
  const auto file = targets_of(*parse_control({"nodes", "--hostfile", "/none"}), {});
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("/none"));
}

TEST(ControlOptions, EachVerbHasItsHelp) {
  EXPECT_THAT(control_help(ControlVerb::kKill), HasSubstr("hvdctl kill JOB [options]: "));
  EXPECT_THAT(control_help(ControlVerb::kKill), HasSubstr("\n  -H, --hosts LIST "));
  EXPECT_THAT(control_help(ControlVerb::kKill), Not(HasSubstr("--json")));
  EXPECT_THAT(control_help(ControlVerb::kDrain), HasSubstr("--reason TEXT"));
  for (const char* verb : {"nodes", "jobs", "kill", "drain", "undrain"}) {
    EXPECT_TRUE(is_control_verb(verb));
    EXPECT_THAT(control_summary(), HasSubstr(fmt::format("  {} ", verb)));
    EXPECT_TRUE(parse_control({verb, "--help"})->wants_help);
  }
  EXPECT_FALSE(is_control_verb("ca"));
}

}  // namespace
}  // namespace hvd
