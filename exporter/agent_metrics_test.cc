#include "exporter/agent_metrics.h"

#include <gmock/gmock.h>
#include <prometheus/text_serializer.h>

#include <set>
#include <sstream>

namespace hvd {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const AgentAnswers& answers) {
  return prometheus::TextSerializer().Serialize(metrics_of(answers));
}

// Names, labels and values; the comments apart.
std::set<std::string> samples_of(const AgentAnswers& answers) {
  std::set<std::string> samples;
  std::istringstream lines(text_of(answers));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) samples.insert(line);
  }
  return samples;
}

TEST(AgentMetricsTest, AnAgentThatIsAwayIsDownAndNothingElse) {
  EXPECT_EQ(samples_of({}), (std::set<std::string>{"hvdrun_agent_up 0"}));
}

TEST(AgentMetricsTest, WhatIsNoObjectIsNoAnswer) {
  for (const char* text : {"", "{", "[]", "12", "\"up\"", "null", "{\"node\":\"\xff\"}"}) {
    EXPECT_EQ(samples_of({text, text, text}), (std::set<std::string>{"hvdrun_agent_up 0"})) << text;
  }
}

TEST(AgentMetricsTest, StatusTellsJobsByState) {
  const std::string status =
      R"({"node":"node1","version":"0.1.0","pid":1,"started":1790000000,"draining":"","max_jobs":8,
          "num_gpus":4,"jobs":[{"state":"running"},{"state":"waiting"},{"state":"running"},{},7]})";
  EXPECT_EQ(samples_of({status, {}, {}}),
            (std::set<std::string>{
                "hvdrun_agent_up 1",
                R"(hvdrun_agent_info{node="node1",version="0.1.0"} 1)",
                "hvdrun_agent_start_time_seconds 1790000000",
                "hvdrun_agent_drained 0",
                "hvdrun_jobs_max 8",
                "hvdrun_gpus 4",
                R"(hvdrun_jobs{state="starting"} 0)",
                R"(hvdrun_jobs{state="running"} 2)",
                R"(hvdrun_jobs{state="waiting"} 1)",
            }));
}

TEST(AgentMetricsTest, AReasonMeansDrained) {
  EXPECT_EQ(samples_of({R"({"draining":"new disk"})", {}, {}}).count("hvdrun_agent_drained 1"), 1);
}

TEST(AgentMetricsTest, WhatStatusDoesNotSayIsAbsent) {
  EXPECT_EQ(
      samples_of({R"({"draining":null,"max_jobs":"8","jobs":{}})", {}, {}}),
      (std::set<std::string>{"hvdrun_agent_up 1", R"(hvdrun_agent_info{node="",version=""} 1)"}));
}

TEST(AgentMetricsTest, CountersAreCounters) {
  const std::string counters =
      R"({"jobs_started":12,"jobs_refused":3,"connections":40,"connections_refused":5,"resumed":2,
          "rss_bytes":12582912,"descriptors":14,"certificate_until":1900000000})";
  const std::string text = text_of({"{}", counters, {}});
  EXPECT_THAT(text, HasSubstr("# TYPE hvdrun_jobs_started_total counter\n"
                              "hvdrun_jobs_started_total 12\n"));
  EXPECT_THAT(text, HasSubstr("hvdrun_jobs_refused_total 3\n"));
  EXPECT_THAT(text, HasSubstr("hvdrun_connections_total 40\n"));
  EXPECT_THAT(text, HasSubstr("hvdrun_connections_refused_total 5\n"));
  EXPECT_THAT(text, HasSubstr("hvdrun_connections_resumed_total 2\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE hvdrun_agent_resident_memory_bytes gauge\n"
                              "hvdrun_agent_resident_memory_bytes 12582912\n"));
  EXPECT_THAT(text, HasSubstr("hvdrun_agent_open_descriptors 14\n"));
  EXPECT_THAT(text, HasSubstr("hvdrun_agent_certificate_end_time_seconds 1900000000\n"));
}

constexpr const char* kGpus =
    R"({"gpus":[{"index":0,"name":"NVIDIA H200","uuid":"GPU-a","utilization":97,"memory_used":1024,
        "memory_total":143771,"temperature":40,"power":120.5,"ecc_corrected":3,"ecc_uncorrected":0,
        "processes":2},{"index":1,"name":"NVIDIA H200","uuid":"GPU-b","temperature":38}],
        "xid":[{"pci":"0000:0f:00","xid":79,"count":1},{"pci":"0000:0f:00","xid":31,"count":4}],
        "problem":""})";

TEST(AgentMetricsTest, GpusHaveBaseUnits) {
  const auto samples = samples_of({{}, {}, kGpus});
  const std::string gpu0 = R"({gpu="0",uuid="GPU-a"} )";
  for (const std::string& sample :
       {"hvdrun_gpu_utilization_ratio" + gpu0 + "0.97",
        "hvdrun_gpu_memory_used_bytes" + gpu0 + "1073741824",
        "hvdrun_gpu_memory_total_bytes" + gpu0 + "150754820096",
        "hvdrun_gpu_temperature_celsius" + gpu0 + "40", "hvdrun_gpu_power_watts" + gpu0 + "120.5",
        "hvdrun_gpu_ecc_corrected_total" + gpu0 + "3",
        "hvdrun_gpu_ecc_uncorrected_total" + gpu0 + "0", "hvdrun_gpu_processes" + gpu0 + "2",
        std::string(R"(hvdrun_gpu_info{gpu="0",uuid="GPU-a",name="NVIDIA H200"} 1)"),
        std::string(R"(hvdrun_gpu_xid_total{pci="0000:0f:00",xid="79"} 1)"),
        std::string(R"(hvdrun_gpu_xid_total{pci="0000:0f:00",xid="31"} 4)"),
        std::string("hvdrun_gpus_readable 1")}) {
    EXPECT_EQ(samples.count(sample), 1) << sample << "\nin\n" << text_of({{}, {}, kGpus});
  }
}

TEST(AgentMetricsTest, WhatNvidiaSmiDoesNotKnowIsAbsent) {
  const std::string text = text_of({{}, {}, kGpus});
  EXPECT_THAT(text, HasSubstr(R"(hvdrun_gpu_temperature_celsius{gpu="1",uuid="GPU-b"} 38)"));
  for (const char* name : {"utilization_ratio", "memory_used_bytes", "power_watts",
                           "ecc_corrected_total", "processes"}) {
    EXPECT_THAT(text, Not(HasSubstr(std::string("hvdrun_gpu_") + name + R"({gpu="1")"))) << name;
  }
}

TEST(AgentMetricsTest, AProblemIsToldAsSuch) {
  EXPECT_EQ(samples_of({{}, {}, R"({"gpus":[],"xid":[],"problem":"nvidia-smi: no answer"})"}),
            (std::set<std::string>{"hvdrun_agent_up 0", "hvdrun_gpus_readable 0"}));
}

// Prometheus refuses a whole scrape with the same labels twice.
TEST(AgentMetricsTest, SameLabelsStandOnce) {
  const std::string gpus =
      R"({"gpus":[{"index":0,"power":1},{"index":0,"power":2},{"index":1.5,"power":3},{"power":4}]})";
  EXPECT_EQ(
      samples_of({{}, {}, gpus}),
      (std::set<std::string>{"hvdrun_agent_up 0", R"(hvdrun_gpu_info{gpu="0",uuid="",name=""} 1)",
                             R"(hvdrun_gpu_power_watts{gpu="0",uuid=""} 1)"}));
}

TEST(AgentMetricsTest, NamesEndNoLineAndNoLabel) {
  const std::string status = R"({"node":"a\"} 1\nforged 1","version":"b\\"})";
  EXPECT_EQ(samples_of({status, {}, {}}).count("forged 1"), 0);
}

}  // namespace
}  // namespace hvd
