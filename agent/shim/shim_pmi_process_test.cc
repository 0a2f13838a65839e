// A worker's PMI descriptor: which one it is, what goes over it, and that it outlives nobody.
#include "tests/support/shim_case.h"

namespace hvd {
namespace {

TEST_F(ShimTest, ThePmiDescriptorIsTheFourthAndTheLast) {
  for (int i = 0; i < 20; ++i) add(program("list_fds")).set_has_pmi(true);
  start_all();
  ASSERT_TRUE(wait_finished());
  for (const WorkerSpec& spec : spawn_.workers()) {
    EXPECT_EQ(seen.out[spec.rank()], "0 1 2 3 \n0 0\n") << "rank " << spec.rank();
  }
}

TEST_F(ShimTest, CarriesWhatAWorkerSaysAndTheAnswer) {
  for (int i = 0; i < 2; ++i) {
    add_shell("echo ask$$ >&3; read answer <&3; echo heard $answer").set_has_pmi(true);
  }
  start_all();
  for (const std::uint32_t rank : {1U, 0U}) {
    ASSERT_TRUE(wait_until([&] { return seen.pmi[rank].find('\n') != std::string::npos; }));
    EXPECT_EQ(seen.pmi[rank], "ask" + std::to_string(seen.started[rank]) + "\n");
    ToShim message;
    message.mutable_pmi()->set_rank(rank);
    message.mutable_pmi()->set_data("you are " + std::to_string(rank) + "\n");
    send(message);
  }
  ASSERT_TRUE(wait_finished());
  for (const std::uint32_t rank : {0U, 1U}) {
    EXPECT_EQ(seen.out[rank], "heard you are " + std::to_string(rank) + "\n");
  }
}

TEST_F(ShimTest, LastWordsAreToldBeforeTheEnd) {
  add_shell("echo first >&3; echo last >&3; exit 7").set_has_pmi(true);
  start_all();
  ASSERT_TRUE(wait_until([&] { return seen.exits.contains(0); }));
  EXPECT_EQ(seen.pmi[0], "first\nlast\n");
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].exited(), 7);
}

TEST_F(ShimTest, AWorkerThatAbortsIsKilledWithItsGroup) {
  add_shell("sleep 600 & echo abort >&3; read answer <&3; exit 3").set_has_pmi(true);
  start_all();
  ASSERT_TRUE(wait_until([&] { return seen.pmi[0] == "abort\n"; }));
  ToShim message;
  message.mutable_pmi()->set_kill(true);
  send(message);
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[0].signalled(), SIGKILL);
  EXPECT_FALSE(seen.exits[0].signal_was_ours());
}

TEST_F(ShimTest, AnAnswerToAWorkerThatHasGoneIsNoError) {
  add("/bin/true").set_has_pmi(true);
  add_shell("read line <&3; exit 5").set_has_pmi(true);
  start_all();
  ASSERT_TRUE(wait_until([&] { return seen.exits.contains(0) && seen.started.contains(1); }));
  for (const std::uint32_t rank : {0U, 9U, 1U}) {
    ToShim message;
    message.mutable_pmi()->set_rank(rank);
    message.mutable_pmi()->set_data("x\n");
    send(message);
  }
  ASSERT_TRUE(wait_finished());
  EXPECT_EQ(seen.exits[1].exited(), 5);
}

}  // namespace
}  // namespace hvd
