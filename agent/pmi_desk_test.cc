#include "agent/pmi_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/log.h"

namespace hvd {
namespace {

using testing::HasSubstr;

constexpr const char* kInit = "cmd=init pmi_version=1 pmi_subversion=1\n";
constexpr const char* kBarrier = "cmd=barrier_in\n";

class PmiDeskTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel, std::string_view text) { log_ += text; });
  }
  void TearDown() override { set_log_sink(nullptr); }

  void make(std::uint32_t num_nodes) {
    v1::Spawn spawn;
    for (const std::uint32_t rank : {0U, 1U}) spawn.add_workers()->set_rank(rank);
    spawn.mutable_pmi()->set_size(2 * num_nodes);
    spawn.mutable_pmi()->set_num_nodes(num_nodes);
    desk_.emplace(spawn, "job", store_,
                  [this](const v1::ToShim& message) { sent_.push_back(message.pmi()); });
  }
  void say(std::uint32_t rank, const std::string& bytes) {
    v1::ShimPmi piece;
    piece.set_rank(rank);
    piece.set_data(bytes);
    desk_->take(piece);
  }
  void enter_barrier() {
    for (const std::uint32_t rank : {0U, 1U}) say(rank, std::string(kInit) + kBarrier);
  }
  void reply(v1::StoreStatus status, const std::string& value, const std::string& text = {}) {
    v1::StoreReply reply;
    reply.set_id(asked_.back().id());
    reply.set_status(status);
    reply.set_value(value);
    reply.set_text(text);
    store_.take_reply(reply);
  }
  std::string heard(std::uint32_t rank) const {
    std::string text;
    for (const v1::ShimPmi& piece : sent_) {
      if (piece.rank() == rank) text += piece.close() ? "<closed>" : piece.data();
    }
    return text;
  }
  v1::ExitReport ended(std::uint32_t rank, int code, bool is_stopped = false) const {
    v1::ExitReport report;
    report.set_rank(rank);
    report.set_exited(code);
    report.set_stopped(is_stopped);
    desk_->note_end(report);
    return report;
  }

  std::vector<v1::StoreRequest> asked_;
  StoreRelay store_{[this](v1::StoreRequest request) { asked_.push_back(std::move(request)); }};
  std::vector<v1::ShimPmi> sent_;
  std::string log_;
  std::optional<PmiDesk> desk_;
};

TEST_F(PmiDeskTest, AJobOfOneNodeAsksNobody) {
  make(1);
  enter_barrier();
  EXPECT_TRUE(asked_.empty());
  EXPECT_THAT(heard(0), HasSubstr("cmd=barrier_out\n"));
  EXPECT_THAT(heard(1), HasSubstr("cmd=barrier_out\n"));
}

TEST_F(PmiDeskTest, TheNodeMeetsTheOthersWithOneMessageForAllItsRanks) {
  make(2);
  say(0, std::string(kInit) + "cmd=put kvsname=kvs_job key=a value=1\n");
  enter_barrier();
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_[0].fence().sequence(), 1U);
  v1::PmiPuts puts;
  ASSERT_TRUE(puts.ParseFromString(asked_[0].fence().puts()));
  EXPECT_EQ(puts.puts_size(), 1);
  EXPECT_THAT(heard(1), Not(HasSubstr("barrier_out")));

  puts.mutable_puts(0)->set_key("b");
  reply(v1::STORE_STATUS_OK, puts.SerializeAsString());
  EXPECT_THAT(heard(1), HasSubstr("cmd=barrier_out\n"));
  say(1, "cmd=get kvsname=kvs_job key=b\n");
  EXPECT_THAT(heard(1), HasSubstr("value=1\n"));
  for (const std::uint32_t rank : {0U, 1U}) say(rank, kBarrier);
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_EQ(asked_[1].fence().sequence(), 2U);
}

TEST_F(PmiDeskTest, ABarrierThatCannotEndClosesAndSaysWhy) {
  for (const bool is_unreadable : {false, true}) {
    SetUp();
    make(2);
    sent_.clear();
    enter_barrier();
    reply(is_unreadable ? v1::STORE_STATUS_OK : v1::STORE_STATUS_TOO_LARGE, "\xff\xff", "too much");
    EXPECT_THAT(heard(0), HasSubstr("<closed>"));
    EXPECT_THAT(log_, HasSubstr(is_unreadable ? "cannot be read" : "too much"));
  }
}

TEST_F(PmiDeskTest, TheEndOfTheJobIsNoFailureOfTheBarrier) {
  make(2);
  enter_barrier();
  store_.end_all("the job is ending");
  EXPECT_THAT(heard(0), Not(HasSubstr("<closed>")));
  EXPECT_EQ(log_, "");
}

TEST_F(PmiDeskTest, WhoLeavesMpiInTheMiddleNeverEndsWithZero) {
  make(1);
  EXPECT_EQ(ended(0, 0).exited(), 0) << "it never used MPI";
  say(0, kInit);
  const v1::ExitReport left = ended(0, 0);
  EXPECT_EQ(left.exited(), 1);
  EXPECT_EQ(left.mpi_end(), "ended between MPI_Init and MPI_Finalize");
  EXPECT_EQ(ended(0, 3).exited(), 3);
  EXPECT_EQ(ended(0, 3).mpi_end(), "") << "its code says it";
  EXPECT_EQ(ended(0, 0, true).exited(), 0) << "it was stopped";
  say(0, "cmd=finalize\n");
  EXPECT_EQ(ended(0, 0).exited(), 0);
}

TEST_F(PmiDeskTest, AnAbortIsToldWithItsCode) {
  make(1);
  say(0, std::string(kInit) + "cmd=abort exitcode=5\n");
  EXPECT_EQ(ended(0, 5).exited(), 5);
  EXPECT_EQ(ended(0, 5).mpi_end(), "called MPI_Abort with code 5");
  EXPECT_EQ(ended(0, 0).exited(), 5);
  say(1, std::string(kInit) + "cmd=abort exitcode=0\n");
  EXPECT_EQ(ended(1, 0).exited(), 1) << "an abort is no success";
  EXPECT_TRUE(sent_.back().kill());
  v1::ExitReport killed;
  killed.set_rank(0);
  killed.set_signalled(SIGKILL);
  killed.mutable_oom()->set_kills(1);
  desk_->note_end(killed);
  EXPECT_EQ(killed.exited(), 5) << "that was ours";
  EXPECT_EQ(killed.mpi_end(), "called MPI_Abort with code 5");
  EXPECT_FALSE(killed.has_oom());
  v1::ExitReport crashed;
  crashed.set_rank(0);
  crashed.set_signalled(SIGSEGV);
  desk_->note_end(crashed);
  EXPECT_EQ(crashed.signalled(), SIGSEGV);
  EXPECT_EQ(crashed.mpi_end(), "");
}

}  // namespace
}  // namespace hvd
