#include "agent/horovod_store.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

// One request and what must come back.
struct Step {
  const char* method;
  const char* target;
  std::string body;
  unsigned status;
  std::string answer{};
};

void run(HorovodStore& store, const std::vector<Step>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const HorovodAnswer answer = store.answer(step.method, step.target, step.body);
    EXPECT_EQ(answer.status, step.status) << i << ": " << step.method << " " << step.target;
    EXPECT_EQ(answer.body, step.answer) << i << ": " << step.method << " " << step.target;
  }
}

TEST(HorovodStore, KeepsRawBytesAndOverwritesThem) {
  HorovodStore store({{"global", 2}});
  const std::string bytes("\0\r\n\xff/", 5);
  run(store, {{"GET", "/global/0", "", 404},
              {"PUT", "/global/0", bytes, 200},
              {"GET", "/global/0", "", 200, bytes},
              {"PUT", "/global/0", "later", 200},
              {"GET", "/global/0", "", 200, "later"},
              {"GET", "/global/1", "", 404},
              {"GET", "/local_node1/0", "", 404}});
}

TEST(HorovodStore, AnEmptyValueIsThereAnAbsentOneIsNot) {
  HorovodStore store({{"cross_7", 1}});
  run(store, {{"GET", "/cross_7/0", "", 404},
              {"PUT", "/cross_7/0", "", 200},
              {"GET", "/cross_7/0", "", 200, ""}});
}

TEST(HorovodStore, TakesNamesAsTheyStand) {
  HorovodStore store({});
  run(store, {{"PUT", "/local_[fd00::1]/rank_0", "a", 200},
              {"GET", "/local_[fd00::1]/rank_0", "", 200, "a"},
              {"PUT", "/local_caf\xc3\xa9/0", "b", 200},
              {"GET", "/local_caf%C3%A9/0", "", 404},
              {"GET", "/local_caf\xc3\xa9/0", "", 200, "b"}});
}

TEST(HorovodStore, RefusesOtherPathsAndMethods) {
  HorovodStore store({{"global", 1}});
  for (const char* target : {"", "/", "*", "global/0", "/global", "/global/", "//0", "/global/0/1",
                             "http://node1/global/0"}) {
    run(store, {{"GET", target, "", 400}, {"PUT", target, "x", 400}, {"DELETE", target, "", 400}});
  }
  run(store, {{"POST", "/global/0", "x", 501}, {"HEAD", "/global/0", "", 501}});
  EXPECT_EQ(store.num_bytes(), 0U);
}

TEST(HorovodStore, DeclaredScopeIsEmptiedWhenAllItsRanksHaveFinished) {
  HorovodStore store({{"global", 2}, {"local_node1", 2}});
  run(store, {{"PUT", "/global/rank_0", "node1", 200},
              {"PUT", "/global/0", "a", 200},
              {"PUT", "/global/1", "b", 200},
              {"PUT", "/local_node1/0", "c", 200},
              {"DELETE", "/local_node1/0", "", 200},
              {"DELETE", "/global/1", "", 200},
              {"GET", "/global/1", "", 200, "b"},
              {"DELETE", "/global/0", "", 200},
              {"GET", "/global/0", "", 404},
              {"GET", "/global/1", "", 404},
              {"GET", "/global/rank_0", "", 404},
              {"GET", "/local_node1/0", "", 200, "c"},
              // The other scope's count stands.
              {"DELETE", "/local_node1/1", "", 200},
              {"GET", "/local_node1/0", "", 404}});
  EXPECT_EQ(store.num_bytes(), 0U);
}

TEST(HorovodStore, ARepeatedFinishAndOneOfNobodyDoNotCount) {
  HorovodStore store({{"global", 3}});
  run(store, {{"PUT", "/global/0", "a", 200},
              {"DELETE", "/global/0", "", 200},
              {"DELETE", "/global/0", "", 200},
              {"DELETE", "/global/3", "", 200},
              {"DELETE", "/global/rank_1", "", 200},
              {"DELETE", "/global/1", "", 200},
              {"GET", "/global/0", "", 200, "a"},
              {"DELETE", "/global/2", "", 200},
              {"GET", "/global/0", "", 404}});
}

TEST(HorovodStore, DeclaredScopeServesAgainAfterItWasEmptied) {
  HorovodStore store({{"cross_0", 1}});
  for (const char* value : {"first", "second"}) {
    run(store, {{"GET", "/cross_0/0", "", 404},
                {"PUT", "/cross_0/0", value, 200},
                {"GET", "/cross_0/0", "", 200, value},
                {"DELETE", "/cross_0/0", "", 200}});
  }
}

TEST(HorovodStore, UndeclaredScopeLosesOneKeyAtATime) {
  HorovodStore store({{"global", 4}});
  run(store, {{"DELETE", "/global_process_set_hash_1f/0", "", 200},
              {"PUT", "/global_process_set_hash_1f/0", "a", 200},
              {"PUT", "/global_process_set_hash_1f/1", "b", 200},
              {"DELETE", "/global_process_set_hash_1f/0", "", 200},
              {"GET", "/global_process_set_hash_1f/0", "", 404},
              {"GET", "/global_process_set_hash_1f/1", "", 200, "b"},
              {"DELETE", "/global_process_set_hash_1f/9", "", 200},
              {"DELETE", "/global_process_set_hash_1f/1", "", 200},
              {"GET", "/global_process_set_hash_1f/1", "", 404}});
  EXPECT_EQ(store.num_bytes(), 0U);
}

TEST(HorovodStore, HasABoundForAllTogether) {
  HorovodStore store({{"global", 2}}, 2000);
  run(store, {{"PUT", "/global/0", std::string(1500, 'a'), 200},
              {"PUT", "/global/1", std::string(1500, 'b'), 413},
              {"GET", "/global/1", "", 404},
              // In place of the old one there is room.
              {"PUT", "/global/0", std::string(1600, 'c'), 200},
              {"GET", "/global/0", "", 200, std::string(1600, 'c')}});
  for (int i = 0; i < 100; ++i) {
    // Names count, too.
    (void)store.answer("PUT", "/s" + std::to_string(i) + "/k", "");
  }
  EXPECT_LE(store.num_bytes(), 2000U);
}

}  // namespace
}  // namespace hvd
