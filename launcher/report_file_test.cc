#include "launcher/report_file.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace hvd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

RunFacts failed_run() {
  RunFacts facts;
  facts.job_id = "cafe";
  facts.command = {"python3", "train.py"};
  facts.begun = seconds(10);
  facts.ended = seconds(30);
  facts.clock = {seconds(12), seconds(1769875559)};
  facts.code = 137;
  Cause cause;
  cause.kind = CauseKind::kSignalled;
  cause.value = SIGKILL;
  cause.rank = 1;
  cause.host = "node2";
  cause.pid = 77;
  cause.time = seconds(20) + milliseconds(5);
  cause.oom_proof = "oom_kill rose";
  cause.xids = {"NVRM: Xid 79"};
  cause.error_file = R"({"message": "one\ntwo"})";
  facts.cause = cause;
  facts.last_lines = {"BOOM"};
  facts.num_stopped = 1;
  RankFacts stopped;
  stopped.host = "node1";
  stopped.pid = 7;
  stopped.state = RankState::kStopped;
  stopped.signal = SIGTERM;
  stopped.started = seconds(12);
  stopped.ended = seconds(21);
  RankFacts failed = stopped;
  failed.host = "node2";
  failed.state = RankState::kFailed;
  failed.signal = SIGKILL;
  facts.ranks = {stopped, failed};
  NodeFacts node;
  node.host = "node1";
  node.agent_version = "0.1.0";
  node.layer = "descendants";
  node.is_spawned = true;
  node.is_verified = true;
  NodeFacts hung = node;
  hung.host = "node2";
  hung.is_verified = false;
  hvdrun::v1::Survivor survivor;
  survivor.set_pid(5);
  survivor.set_state("D");
  hung.survivors = {survivor};
  NodeFacts lost = node;
  lost.is_verified = false;
  facts.nodes = {node, hung, lost, NodeFacts{}};
  return facts;
}

TEST(ReportFile, TellsTheCauseTheRanksAndTheNodes) {
  const json report = json::parse(report_json(failed_run()));
  EXPECT_EQ(report["version"], 1);
  EXPECT_EQ(report["reason"], "signalled");
  EXPECT_EQ(report["exit_code"], 137);
  EXPECT_EQ(report["command"], json({"python3", "train.py"}));
  EXPECT_EQ(report["started"], "2026-01-31T16:06:11.000Z");
  const json& cause = report["first_cause"];
  EXPECT_EQ(cause["rank"], 1);
  EXPECT_EQ(cause["host"], "node2");
  EXPECT_EQ(cause["signal"], "SIGKILL");
  EXPECT_EQ(cause["code"], nullptr);
  EXPECT_EQ(cause["oom"], true);
  EXPECT_EQ(cause["oom_proof"], "oom_kill rose");
  EXPECT_EQ(cause["xid"], json({"NVRM: Xid 79"}));
  EXPECT_EQ(cause["traceback"], json({"one", "two"}));
  EXPECT_EQ(cause["last_lines"], json({"BOOM"}));
  EXPECT_EQ(cause["time"], "2026-01-31T16:06:19.005Z");
  EXPECT_EQ(report["ranks"][0]["state"], "stopped");
  EXPECT_EQ(report["ranks"][1]["signal"], "SIGKILL");
  EXPECT_EQ(report["ranks"][1]["ended"], "2026-01-31T16:06:20.000Z");
  EXPECT_EQ(report["nodes"][0]["clean"], "verified");
  EXPECT_EQ(report["nodes"][1]["clean"], "survivors");
  EXPECT_EQ(report["nodes"][1]["survivors"][0]["pid"], 5);
  EXPECT_EQ(report["nodes"][2]["clean"], "unverified");
  EXPECT_EQ(report["nodes"][3]["clean"], "not_used");
  EXPECT_TRUE(report.contains("stall"));
  EXPECT_TRUE(report.contains("gpu"));
}

TEST(ReportFile, OfASuccessHasNoCauseAndOfNoJobTheError) {
  RunFacts facts;
  facts.code = 0;
  json report = json::parse(report_json(facts));
  EXPECT_EQ(report["reason"], "success");
  EXPECT_EQ(report["first_cause"], nullptr);
  EXPECT_EQ(report["started"], nullptr);
  facts.code = 2;
  facts.error = "more ranks than slots";
  report = json::parse(report_json(facts));
  EXPECT_EQ(report["reason"], "error");
  EXPECT_EQ(report["error"], "more ranks than slots");
}

TEST(ReportFile, TakesFurtherSectionsAndSurvivesBytesThatAreNoText) {
  RunFacts facts = failed_run();
  facts.sections = {{"gpu", R"({"mean": 3})"}, {"stall", "no json"}};
  facts.last_lines = {"\xff\xfe"};
  const json report = json::parse(report_json(facts));
  EXPECT_EQ(report["gpu"]["mean"], 3);
  EXPECT_EQ(report["stall"], nullptr);
  EXPECT_EQ(report["first_cause"]["last_lines"].size(), 1U);
}

class ReportOnDisk : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder_); }
  static std::string content_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  [[nodiscard]] int num_files() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_), {}));
  }
  std::string folder_ = fs::temp_directory_path() / "hvdrun_report_XXXXXX";
};

TEST_F(ReportOnDisk, ReplacesWhatStoodThereAndLeavesNothingBeside) {
  const std::string path = folder_ + "/report.json";
  std::ofstream(path) << "old";
  const mode_t before = ::umask(0027);
  ASSERT_TRUE(write_report(path, "new\n"));
  ::umask(before);
  EXPECT_EQ(content_of(path), "new\n");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
  EXPECT_EQ(num_files(), 1);
}

TEST_F(ReportOnDisk, AFailureKeepsTheOldFileAndIsOneSentence) {
  const std::string path = folder_ + "/gone/report.json";
  const auto written = write_report(path, "new\n");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("No such file or directory"));
  EXPECT_EQ(num_files(), 0);
}

}  // namespace
}  // namespace hvd
