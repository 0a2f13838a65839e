#include "agent/job_record.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/gpu_table.h"
#include "agent/job_place.h"
#include "base/unix_address.h"
#include "tests/support/temporary_folder.h"

namespace hvd {
namespace {

JobRecord some_record() {
  JobRecord record;
  record.job_id = std::string(32, 'a');
  record.node = 2;
  record.client = "ci";
  record.address = "10.0.0.9";
  record.user = "build";
  record.uid = 1201;
  record.unit = unit_of(record);
  record.key_sum = sum_of_key("the key");
  record.gpus = *parse_gpu_claim("0,1");
  record.since = 1'800'000'000;
  record.is_ended = true;
  return record;
}

using JobRecordFile = TemporaryFolder;
using JobFolder = TemporaryFolder;

TEST_F(JobRecordFile, StaysItselfThroughItsFile) {
  const auto records = JobRecords::open(path_ + "/records");
  ASSERT_TRUE(records) << records.error().message;
  const JobRecord record = some_record();
  ASSERT_TRUE(records->write(record));
  std::ofstream(path_ + "/records/x.json") << "{\"job\": 1}";
  const auto read = records->read();
  ASSERT_EQ(read.size(), 1);
  EXPECT_EQ(to_json(read[0]), to_json(record));
  EXPECT_TRUE(has_key(read[0], "the key"));
  EXPECT_FALSE(has_key(read[0], "a key"));
  EXPECT_FALSE(has_key(JobRecord(), ""));
  struct stat info {};
  ASSERT_EQ(stat((path_ + "/records").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
  ASSERT_EQ(stat((path_ + "/records/" + record.name() + ".json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
  records->remove(record);
  EXPECT_TRUE(records->read().empty());
}

TEST_F(JobRecordFile, AFolderThatOthersMadeIsRefused) {
  const std::string path = path_ + "/records";
  std::filesystem::create_directory_symlink(path_, path);
  EXPECT_FALSE(JobRecords::open(path));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  chmod(path.c_str(), 0777);
  EXPECT_FALSE(JobRecords::open(path));
  chmod(path.c_str(), 0700);
  EXPECT_TRUE(JobRecords::open(path));
}

TEST(JobPlace, AUnitIsTheUsersAndHoldsItsAgentOnly) {
  const JobPlaceConfig config{"/run/hvdrun/jobs", "/usr/bin/hvd-agent", true, {}};
  const auto words = unit_command(config, some_record(), {"--cgroup-root", "none"});
  const std::string id(32, 'a');
  EXPECT_EQ(words[0], "/usr/bin/systemd-run");
  for (const std::string& wanted :
       {"--unit=hvdrun-job-" + id + "-2.service", std::string("User=build"),
        std::string("KillMode=mixed"), std::string("TasksMax=infinity"),
        std::string("LimitMEMLOCK=infinity"), std::string("NoNewPrivileges=yes"),
        std::string("--pipe"), std::string("--unit")}) {
    EXPECT_NE(std::find(words.begin(), words.end(), wanted), words.end()) << wanted;
  }
  EXPECT_EQ(words.back(), "none");
  for (const std::string& word : words) EXPECT_EQ(word.find("key"), std::string::npos);
}

TEST_F(JobFolder, AJobLivesAsLongAsSomebodyListens) {
  Loop loop(1);
  const JobPlace place(loop, {path_, "/usr/bin/hvd-agent", false, {}});
  const JobRecord record = some_record();
  EXPECT_FALSE(place.is_alive(record));
  const std::string path = path_ + "/" + record.name();
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = unix_address(path);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  EXPECT_TRUE(place.reach(record));
  // One waits, and nobody takes it: it lives, and is busy.
  const auto waits = place.reach(record);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(place.is_alive(record));
  EXPECT_EQ(place.names(), std::vector<std::string>{record.name()});
  listener.reset();
  EXPECT_FALSE(place.is_alive(record));
  place.clear(record);
  EXPECT_TRUE(place.names().empty());
}

TEST(GpuTable, LeavesOutWhatNobodyKnows) {
  EXPECT_EQ(
      gpu_table_json("0, NVIDIA H200, GPU-1, 97, 1234, 143771, 40, 120.50, 0, 0\n"
                     "1, Tesla \"X\", GPU-2, [N/A], 10, 100, [Not Supported], [N/A], [N/A], [N/A]\n"
                     "No devices were found\n"),
      R"([{"ecc_corrected":0.0,"ecc_uncorrected":0.0,"index":0,"memory_total":143771.0,)"
      R"("memory_used":1234.0,"name":"NVIDIA H200","power":120.5,"temperature":40.0,)"
      R"("utilization":97.0,"uuid":"GPU-1"},{"index":1,"memory_total":100.0,)"
      R"("memory_used":10.0,"name":"Tesla \"X\"","uuid":"GPU-2"}])");
}

}  // namespace
}  // namespace hvd
