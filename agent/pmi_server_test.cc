#include "agent/pmi_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvd {
namespace {

using testing::HasSubstr;

v1::PmiWorld world_of(std::uint32_t size, const std::string& mapping = "(vector,(0,2,2))") {
  v1::PmiWorld world;
  world.set_size(size);
  world.set_num_nodes(2);
  world.set_process_mapping(mapping);
  return world;
}

class PmiServerTest : public testing::Test {
 protected:
  // What the rank reads because of this line.
  std::string ask(std::uint32_t rank, const std::string& line) {
    last_ = server_.take(rank, line + "\n");
    return heard(rank);
  }
  std::string heard(std::uint32_t rank) const {
    std::string text;
    for (const PmiReply& reply : last_.replies) {
      if (reply.rank == rank) text += reply.close ? "<closed>" : reply.data;
    }
    return text;
  }
  void init(std::uint32_t rank) { ask(rank, "cmd=init pmi_version=1 pmi_subversion=1"); }
  static std::string put(const std::string& key, const std::string& value) {
    return fmt::format("cmd=put kvsname=kvs_job key={} value={}", key, value);
  }
  static std::string get(const std::string& key) {
    return fmt::format("cmd=get kvsname=kvs_job key={}", key);
  }

  PmiServer server_{world_of(4), "job", {2, 3}};
  PmiStep last_;
};

constexpr const char* kPutDone = "cmd=put_result rc=0 msg=success\n";
constexpr const char* kNoKey = "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";

TEST_F(PmiServerTest, AnswersWhatMpichAsksAtItsStart) {
  struct Case {
    const char* asked;
    const char* answer;
  };
  for (const auto& [asked, answer] : {
           Case{"cmd=init pmi_version=1 pmi_subversion=1",
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"},
           Case{"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"},
           Case{"cmd=get_appnum", "cmd=appnum appnum=0\n"},
           Case{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_job\n"},
           Case{"cmd=get_universe_size", "cmd=universe_size size=4\n"},
           Case{"cmd=get kvsname=kvs_job key=PMI_process_mapping",
                "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n"},
           Case{"cmd=publish_name service=s port=p",
                "cmd=publish_result rc=-1 info=not_supported\n"},
           Case{"cmd=unpublish_name service=s", "cmd=unpublish_result rc=-1 info=not_supported\n"},
           Case{"cmd=lookup_name service=s", "cmd=lookup_result rc=-1 info=not_supported\n"},
           Case{"cmd=getbyidx idx=0", "cmd=getbyidx_results rc=-1 reason=not_supported\n"},
           Case{"cmd=dance\x01", "cmd=dance?_result rc=-1 msg=unknown_command\n"},
           Case{"cmd=finalize", "cmd=finalize_ack\n"},
       }) {
    EXPECT_EQ(ask(2, asked), answer);
  }
}

TEST_F(PmiServerTest, AnotherVersionIsRefused) {
  EXPECT_THAT(ask(2, "cmd=init pmi_version=2 pmi_subversion=0"), HasSubstr("rc=-1"));
  EXPECT_EQ(server_.ending(2), "");
}

TEST_F(PmiServerTest, KeysAreSeenOnTheNodeAtOnceAndElsewhereAfterTheBarrier) {
  init(2);
  init(3);
  EXPECT_EQ(ask(2, put("card", "here")), kPutDone);
  EXPECT_EQ(ask(3, get("card")), "cmd=get_result rc=0 msg=success value=here\n");
  EXPECT_EQ(ask(3, get("far")), kNoKey);
  EXPECT_EQ(ask(2, "cmd=barrier_in"), "");
  EXPECT_FALSE(last_.fence) << "rank 3 has not come";
  EXPECT_EQ(ask(3, "cmd=barrier_in"), "");
  ASSERT_TRUE(last_.fence);
  ASSERT_EQ(last_.fence->puts_size(), 1);
  EXPECT_EQ(last_.fence->puts(0).key(), "card");
  EXPECT_EQ(last_.fence->puts(0).value(), "here");

  v1::PmiPuts others;
  others.add_puts()->set_key("far");
  others.mutable_puts(0)->set_value("there");
  last_ = server_.take_fence(others);
  for (const std::uint32_t rank : {2U, 3U}) EXPECT_EQ(heard(rank), "cmd=barrier_out\n");
  EXPECT_EQ(ask(2, get("far")), "cmd=get_result rc=0 msg=success value=there\n");
}

TEST_F(PmiServerTest, ABarrierTellsOnlyWhatIsNew) {
  for (const std::uint32_t rank : {2U, 3U}) init(rank);
  ask(2, put("a", "1"));
  for (const std::uint32_t rank : {2U, 3U}) ask(rank, "cmd=barrier_in");
  ASSERT_TRUE(last_.fence);
  last_ = server_.take_fence({});
  ask(3, put("b", "2"));
  for (const std::uint32_t rank : {3U, 2U}) ask(rank, "cmd=barrier_in");
  ASSERT_TRUE(last_.fence);
  ASSERT_EQ(last_.fence->puts_size(), 1);
  EXPECT_EQ(last_.fence->puts(0).key(), "b");
}

TEST_F(PmiServerTest, AKeyIsWrittenOnce) {
  init(2);
  init(3);
  EXPECT_EQ(ask(2, put("a", "1")), kPutDone);
  EXPECT_EQ(ask(3, put("a", "1")), kPutDone);
  EXPECT_EQ(ask(3, put("a", "2")), "cmd=put_result rc=-1 msg=duplicate_key\n");
  EXPECT_EQ(ask(2, get("a")), "cmd=get_result rc=0 msg=success value=1\n");
}

TEST_F(PmiServerTest, LimitsOfKeyAndValueHoldToTheByte) {
  init(2);
  const std::string key(PmiServer::kMaxKey, 'k');
  const std::string value(PmiServer::kMaxValue, 'v');
  EXPECT_EQ(ask(2, put(key, value)), kPutDone);
  EXPECT_EQ(ask(2, get(key)), "cmd=get_result rc=0 msg=success value=" + value + "\n");
  EXPECT_THAT(ask(2, put(key + "k", "v")), HasSubstr("rc=-1 msg=invalid_key_length"));
  EXPECT_THAT(ask(2, put("", "v")), HasSubstr("rc=-1 msg=invalid_key_length"));
  EXPECT_THAT(ask(2, put("k", value + "v")), HasSubstr("rc=-1 msg=invalid_val_length"));
  EXPECT_THAT(ask(2, "cmd=put kvsname=another key=k value=v"), HasSubstr("msg=unknown_kvsname"));
  EXPECT_EQ(ask(2, "cmd=get kvsname=another key=" + key), kNoKey);
}

TEST_F(PmiServerTest, WhatIsPutBetweenTwoBarriersIsBounded) {
  init(2);
  const std::string value(PmiServer::kMaxValue, 'v');
  std::size_t num_taken = 0;
  for (int i = 0; ask(2, put(fmt::format("key{}", i), value)) == kPutDone; ++i) ++num_taken;
  EXPECT_THAT(heard(2), HasSubstr("kvs_is_full"));
  EXPECT_LE(num_taken * value.size(), PmiServer::kMaxFenceBytes);
  EXPECT_GT(num_taken, 3000U);
}

TEST_F(PmiServerTest, SeveralCommandsInOnePieceGetTheirAnswersInOrder) {
  EXPECT_EQ(ask(2, "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_appnum\n" + put("a", "1")),
            std::string("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
                        "cmd=appnum appnum=0\n") +
                kPutDone);
}

TEST_F(PmiServerTest, HalfALineIsAnsweredWithNoBytes) {
  last_ = server_.take(2, "cmd=in");
  ASSERT_EQ(last_.replies.size(), 1U);
  EXPECT_EQ(last_.replies[0].data, "");
  EXPECT_FALSE(last_.replies[0].close);
}

TEST_F(PmiServerTest, GarbageClosesTheDescriptorOfThatRankOnly) {
  const std::vector<std::string> garbage = {std::string(PmiLines::kMaxLine + 1, 'x'),
                                            std::string("\0\xff\n", 3), "GET / HTTP/1.1\r\n\r\n",
                                            "cmd=put key=a value=b\n", "cmd=barrier_in\n"};
  for (const std::string& bytes : garbage) {
    PmiServer server(world_of(4), "job", {0, 1});
    last_ = server.take(0, bytes);
    EXPECT_EQ(heard(0), "<closed>");
    ASSERT_EQ(last_.problems.size(), 1U);
    EXPECT_THAT(last_.problems[0], HasSubstr("rank 0 sent"));
    EXPECT_TRUE(server.take(0, "cmd=init pmi_version=1\n").replies.empty()) << "it stays closed";
    last_ = server.take(1, "cmd=init pmi_version=1 pmi_subversion=1\n");
    EXPECT_THAT(heard(1), HasSubstr("rc=0"));
  }
}

TEST_F(PmiServerTest, ARankOfAnotherNodeIsNotAnswered) {
  EXPECT_TRUE(server_.take(0, "cmd=init pmi_version=1 pmi_subversion=1\n").replies.empty());
}

TEST_F(PmiServerTest, ASecondBarrierBeforeTheFirstHasEndedIsGarbage) {
  init(2);
  ask(2, "cmd=barrier_in");
  EXPECT_EQ(ask(2, "cmd=barrier_in"), "<closed>");
}

TEST_F(PmiServerTest, AFailedBarrierClosesAllAndSaysWhy) {
  for (const std::uint32_t rank : {2U, 3U}) init(rank);
  for (const std::uint32_t rank : {2U, 3U}) ask(rank, "cmd=barrier_in");
  last_ = server_.fail_fence("no room");
  for (const std::uint32_t rank : {2U, 3U}) EXPECT_EQ(heard(rank), "<closed>");
  ASSERT_EQ(last_.problems.size(), 1U);
  EXPECT_THAT(last_.problems[0], HasSubstr("no room"));
}

TEST_F(PmiServerTest, ASpawnIsRefusedOnceAllItsProgramsAreTold) {
  init(2);
  EXPECT_EQ(ask(2, "mcmd=spawn\nnprocs=1\ntotspawns=2\nspawnssofar=1\nendcmd"), "");
  EXPECT_EQ(ask(2, "mcmd=spawn\nnprocs=1\ntotspawns=2\nspawnssofar=2\nendcmd"),
            "cmd=spawn_result rc=-1 msg=not_supported\n");
  EXPECT_EQ(ask(2, "mcmd=spawn\nnprocs=1\nendcmd"), "cmd=spawn_result rc=-1 msg=not_supported\n");
}

TEST_F(PmiServerTest, TellsHowARankHasLeft) {
  EXPECT_EQ(server_.ending(2), "") << "it never used MPI";
  init(2);
  EXPECT_EQ(server_.ending(2), "ended between MPI_Init and MPI_Finalize");
  ask(2, "cmd=finalize");
  EXPECT_EQ(server_.ending(2), "");
  init(3);
  EXPECT_EQ(ask(3, "cmd=abort exitcode=7"), "") << "after an answer MPI_Abort would return";
  ASSERT_EQ(last_.replies.size(), 1U);
  EXPECT_TRUE(last_.replies[0].kill);
  EXPECT_EQ(server_.ending(3), "called MPI_Abort with code 7");
  EXPECT_EQ(server_.abort_code(3), 7);
  EXPECT_EQ(server_.abort_code(2), std::nullopt);
  EXPECT_EQ(server_.abort_code(0), std::nullopt);
}

TEST_F(PmiServerTest, WithoutAMappingTheKeyIsMissing) {
  PmiServer server(world_of(4, ""), "job", {0});
  last_ = server.take(0, "cmd=init pmi_version=1\n" + get("PMI_process_mapping") + "\n");
  EXPECT_THAT(heard(0), HasSubstr(kNoKey));
}

}  // namespace
}  // namespace hvd
