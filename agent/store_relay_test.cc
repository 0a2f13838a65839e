#include "agent/store_relay.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

struct FakeCall : StoreCall {
  void answer(const v1::StoreReply& reply) override {
    ++num_answers;
    status = reply.status();
    text = reply.text();
  }
  int num_answers = 0;
  v1::StoreStatus status = v1::STORE_STATUS_OK;
  std::string text;
};

v1::StoreRequest make_get(const std::string& key) {
  v1::StoreRequest request;
  request.mutable_get()->set_key(key);
  return request;
}

TEST(StoreRelayTest, AnswersByIdOnce) {
  std::vector<v1::StoreRequest> sent;
  StoreRelay relay([&sent](v1::StoreRequest request) { sent.push_back(std::move(request)); });
  FakeCall a;
  FakeCall b;
  relay.start(make_get("a"), &a);
  relay.start(make_get("b"), &b);
  ASSERT_EQ(sent.size(), 2u);
  v1::StoreReply reply;
  reply.set_id(sent[1].id());
  reply.set_status(v1::STORE_STATUS_TIMEOUT);
  relay.take_reply(reply);
  relay.take_reply(reply);
  EXPECT_EQ(a.num_answers, 0);
  EXPECT_EQ(b.num_answers, 1);
  EXPECT_EQ(b.status, v1::STORE_STATUS_TIMEOUT);
}

TEST(StoreRelayTest, CancelTellsTheLauncherAndEndAnswersAll) {
  std::vector<v1::StoreRequest> sent;
  StoreRelay relay([&sent](v1::StoreRequest request) { sent.push_back(std::move(request)); });
  FakeCall gone;
  FakeCall waiting;
  FakeCall late;
  const auto id = relay.start(make_get("a"), &gone);
  relay.start(make_get("b"), &waiting);
  relay.cancel(id);
  relay.cancel(id);
  EXPECT_EQ(sent.back().cancel(), id);
  EXPECT_EQ(gone.num_answers, 1);
  relay.end_all("the job is ending");
  relay.start(make_get("c"), &late);
  EXPECT_EQ(waiting.text, "the job is ending");
  EXPECT_EQ(late.status, v1::STORE_STATUS_CANCELLED);
  EXPECT_EQ(relay.num_pending(), 0u);
  EXPECT_EQ(sent.size(), 3u);
}

TEST(StoreRelayTest, RefusesWhatIsTooLarge) {
  EXPECT_FALSE(check_store_request(make_get(std::string(256, 'k'))));
  EXPECT_TRUE(check_store_request(make_get(std::string(257, 'k'))));
  EXPECT_TRUE(check_store_request(make_get("")));
  v1::StoreRequest put;
  put.mutable_put()->set_key("k");
  put.mutable_put()->set_value(std::string(1u << 20, 'v'));
  EXPECT_FALSE(check_store_request(put));
  put.mutable_put()->mutable_value()->push_back('v');
  EXPECT_TRUE(check_store_request(put));
}

}  // namespace
}  // namespace hvd
