#include "launcher/watch_records.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace hvd {
namespace {

Cause stalled() {
  Cause cause;
  cause.kind = CauseKind::kStalled;
  cause.rank = 2;
  cause.text = "rank 2 sleeps";
  return cause;
}

TEST(WatchRecords, AStallNamesItsRankAndHoldsAllThatWasFound) {
  RankEvidence rank;
  rank.host = "node2";
  rank.found.set_rank(2);
  rank.found.set_pid(4711);
  rank.found.set_state("T");
  rank.found.set_text("frame \xff\n");
  rank.found.set_problem("ended with code 3");
  EXPECT_EQ(json_text(stall_json(stalled(), {2, 0}, "py-spy dump", {rank})),
            R"({"rank":2,"hung":[2,0],"reason":"rank 2 sleeps","command":"py-spy dump","ranks":[)"
            R"({"rank":2,"host":"node2","pid":4711,"state":"T","hangs":true,"text":"frame )"
            "\xEF\xBF\xBD"
            R"(\n","num_left_out":0,"problem":"ended with code 3"}]})");
  Cause timeout;
  timeout.kind = CauseKind::kTimeout;
  EXPECT_TRUE(stall_json(timeout, {})["rank"].is_null());
}

TEST(WatchRecords, GpusHaveLowestAndMeanAndNullForWhatIsNotKnown) {
  GpuStats stats;
  v1::GpuSummary summary;
  auto* gpu = summary.add_gpus();
  gpu->set_index(1);
  gpu->set_has_utilization(true);
  gpu->set_utilization(40);
  stats.take(0, "node1", summary);
  EXPECT_EQ(json_text(gpu_now_json(stats)),
            R"({"gpus":[{"host":"node1","gpu":1,"utilization":40,"memory_mib":null}]})");
  EXPECT_EQ(json_text(gpu_run_json(stats)["gpus"]),
            R"([{"host":"node1","gpu":1,"num_samples":1,"utilization":{"lowest":40,"mean":40.0},)"
            R"("memory_mib":{"lowest":null,"mean":null,"total":null}}])");
}

}  // namespace
}  // namespace hvd
