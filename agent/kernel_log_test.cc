#include "agent/kernel_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hvd {
namespace {

namespace fs = std::filesystem;
using hvdrun::v1::KernelFact;

constexpr const char* kGroupKill =
    "3,2087,35814505701,-;Memory cgroup out of memory: Killed process 4711 (python3) "
    "total-vm:1000kB, anon-rss:9kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB "
    "oom_score_adj:0";
constexpr const char* kXid =
    "4,2088,35814505999,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen "
    "off "
    "the bus.";

TEST(KernelRecord, OfAKillForLackOfMemory) {
  auto fact = parse_kernel_record(kGroupKill);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->kind(), KernelFact::KIND_OUT_OF_MEMORY);
  EXPECT_EQ(fact->pid(), 4711);
  EXPECT_TRUE(
      fact->text().starts_with("Memory cgroup out of memory: Killed process 4711 (python3)"));
  fact = parse_kernel_record("3,1,2,-;Out of memory: Killed process 12 (a) b) total-vm:1kB");
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->pid(), 12);
}

TEST(KernelRecord, OfADriversError) {
  auto fact = parse_kernel_record(kXid);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->kind(), KernelFact::KIND_XID);
  EXPECT_EQ(fact->code(), 79);
  EXPECT_EQ(fact->device(), "0000:3b:00");
  EXPECT_EQ(fact->pid(), 1234);
  fact = parse_kernel_record("4,1,2,c;NVRM: Xid (0000:01:00): 13, Graphics Exception");
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->code(), 13);
  EXPECT_EQ(fact->device(), "0000:01:00");
  EXPECT_EQ(fact->pid(), 0);
}

TEST(KernelRecord, OfAProgramOrOfNothingThatConcernsUsIsLeftOut) {
  for (const char* record :
       {"", ";", "x", "6,1,2,-;br0: port 3 entered blocking state",
        "12,1,2,-;Out of memory: Killed process 4711 (python3)",  // facility of users
        "3,1,2,-;Out of memory: Killed process (python3)", "3,1,2,-;Killed process 99999999999 (x)",
        "4,1,2,-;NVRM: Xid (PCI:0000:3b:00", "4,1,2,-;NVRM: Xid (PCI:0000:3b:00): x",
        " SUBSYSTEM=pci", "-3,1,2,-;Killed process 3 (x)"}) {
    EXPECT_FALSE(parse_kernel_record(record)) << record;
  }
}

class KernelLogTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/kmsg";
    append(kGroupKill);  // before the job
  }
  void TearDown() override { fs::remove_all(folder_); }
  void append(const std::string& text, const char* end = "\n") const {
    std::ofstream(path_, std::ios::app) << text << end;
  }
  std::string folder_ = fs::temp_directory_path() / "hvdrun_kmsg_XXXXXX";
  std::string path_;
};

TEST_F(KernelLogTest, BeginsBehindWhatIsThereAndTellsEachFactOnce) {
  KernelLog log(path_);
  EXPECT_EQ(log.problem(), "");
  EXPECT_EQ(log.read_new().facts_size(), 0);
  append(kXid);
  append(" SUBSYSTEM=pci");
  append(kXid);
  append("6,1,2,-;something else");
  const auto facts = log.read_new();
  ASSERT_EQ(facts.facts_size(), 1);
  EXPECT_EQ(facts.facts(0).code(), 79);
  EXPECT_GT(facts.facts(0).time_ns(), 0);
  append(kXid);
  EXPECT_EQ(log.read_new().facts_size(), 0);
}

TEST_F(KernelLogTest, ARecordInTwoPiecesIsOne) {
  KernelLog log(path_);
  append(std::string(kXid).substr(0, 40), "");
  EXPECT_EQ(log.read_new().facts_size(), 0);
  append(std::string(kXid).substr(40));
  EXPECT_EQ(log.read_new().facts_size(), 1);
}

TEST_F(KernelLogTest, AFloodIsBounded) {
  KernelLog log(path_);
  for (int i = 0; i < 300; ++i) {
    append("4,1,2,-;NVRM: Xid (PCI:0000:3b:00): " + std::to_string(i) + ", x");
  }
  EXPECT_EQ(log.read_new().facts_size(), static_cast<int>(KernelLog::kMaxFacts));
  EXPECT_EQ(log.read_new().facts_size(), 0);
}

TEST_F(KernelLogTest, WhatCannotBeReadSaysWhy) {
  KernelLog log(folder_ + "/none");
  EXPECT_EQ(log.problem(), "No such file or directory");
  EXPECT_EQ(log.read_new().facts_size(), 0);
}

}  // namespace
}  // namespace hvd
