#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <random>
#include <string>

#include "base/stream_pair.h"
#include "proto/resumable_stream.h"
#include "proto/resume_engine.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;

std::string all_of(ResumeEngine& from) {
  std::string all;
  for (std::string part = from.next_wire(); !part.empty(); part = from.next_wire()) all += part;
  return all;
}

// Until neither has anything to say; what `to` has taken over.
std::string exchange(ResumeEngine& from, ResumeEngine& to) {
  std::string came;
  while (true) {
    const std::string there = all_of(from);
    const std::string back = all_of(to);
    if (there.empty() && back.empty()) return came;
    EXPECT_TRUE(to.take_wire(there));
    came += to.take_over();
    EXPECT_TRUE(from.take_wire(back));
    to.acknowledge_soon();
  }
}

TEST(ResumeEngine, CarriesBytesAndTheEndAndKnowsThatBothAreThere) {
  ResumeEngine a;
  ResumeEngine b;
  a.connect();
  b.connect();
  a.give("hello");
  EXPECT_EQ(exchange(a, b), "hello");
  EXPECT_FALSE(b.is_ended());
  a.give_end();
  EXPECT_FALSE(a.is_given_taken());
  EXPECT_EQ(exchange(a, b), "");
  EXPECT_TRUE(b.is_ended());
  EXPECT_TRUE(a.is_given_taken());
}

TEST(ResumeEngine, ABreakCostsNoByteAndRepeatsNone) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ResumeEngine a;
    ResumeEngine b;
    std::string given;
    std::string came;
    for (int cut = 0; cut < 20; ++cut) {
      a.connect();
      b.connect();
      const std::string more(random() % 3000, static_cast<char>('a' + cut));
      a.give(more);
      given += more;
      // Both greetings, then some of what there is, cut at any byte.
      ASSERT_TRUE(a.take_wire(all_of(b)));
      std::string there = all_of(a);
      there.resize(random() % (there.size() + 1));
      ASSERT_TRUE(b.take_wire(there));
      came += b.take_over();
      if (random() % 2 == 0) b.acknowledge_soon();
    }
    a.give_end();
    a.connect();
    b.connect();
    came += exchange(a, b);
    EXPECT_EQ(came, given) << round;
    EXPECT_TRUE(b.is_ended());
    EXPECT_TRUE(a.is_given_taken());
  }
}

TEST(ResumeEngine, KeepsNoMoreThanItsBound) {
  ResumeEngine a;
  a.connect();
  EXPECT_EQ(a.room(), ResumeEngine::kMostKept);
  a.give(std::string(ResumeEngine::kMostKept, 'x'));
  EXPECT_EQ(a.room(), 0);
  ResumeEngine b;
  b.connect();
  EXPECT_EQ(exchange(a, b).size(), ResumeEngine::kMostKept);
  EXPECT_EQ(a.room(), ResumeEngine::kMostKept);
}

std::string frame(char kind, unsigned size, unsigned place, const std::string& data = "") {
  std::string text(1, kind);
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(size >> shift);
  text += std::string(4, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(place >> shift);
  return text + data;
}

TEST(ResumeEngine, RefusesWhatNoOtherEndSays) {
  const std::string hello = frame(1, 0, 0);
  const struct {
    std::string bytes;
    const char* why;
  } cases[] = {
      {frame(2, 1, 0, "x"), "begins with one greeting"},
      {hello + hello, "begins with one greeting"},
      {frame(1, 0, 7), "the other end stands at byte 7"},
      {hello + frame(2, 1, 5, "x"), "bytes of place 5 came where 0 was next"},
      {hello + frame(2, 1, 0, "x") + frame(2, 1, 0, "x"), "bytes of place 0 came where 1"},
      {hello + frame(4, 0, 0) + frame(2, 1, 0, "x"), "bytes of place 0"},
      {hello + frame(4, 0, 9), "an end at place 9"},
      {hello + frame(3, 0, 1), "acknowledged that were never sent"},
      {hello + frame(2, 70000, 0), "a frame of kind 2 with 70000 bytes"},
      {hello + frame(3, 8, 0), "a frame of kind 3 with 8 bytes"},
      {hello + frame(9, 0, 0), "unknown kind 9"},
  };
  for (const auto& [bytes, why] : cases) {
    ResumeEngine engine;
    engine.connect();
    const auto taken = engine.take_wire(bytes);
    ASSERT_FALSE(taken) << why;
    EXPECT_THAT(taken.error().message, HasSubstr(why));
  }
}

// Two ends, the user's side of each, and connections between them.
struct Twins {
  Loop loop{1};
  std::pair<UniqueFd, UniqueFd> left_pair = std::move(*make_stream_pair());
  std::pair<UniqueFd, UniqueFd> right_pair = std::move(*make_stream_pair());
  std::shared_ptr<ResumableStream> left;
  std::shared_ptr<ResumableStream> right;
  std::string left_over = "not over";
  std::string right_over = "not over";

  Twins() {
    left = ResumableStream::start(loop, std::move(left_pair.second), Nanos(0),
                                  {{}, [this](const std::string& why) { left_over = why; }});
    right = ResumableStream::start(loop, std::move(right_pair.second), Nanos(0),
                                   {{}, [this](const std::string& why) { right_over = why; }});
  }

  void connect() {
    auto pair = std::move(*make_stream_pair());
    left->attach(std::move(pair.first));
    right->attach(std::move(pair.second));
  }
};

Task<void> write_all(Loop& loop, UniqueFd& fd, std::string bytes) {
  boost::asio::posix::stream_descriptor out(loop, fd.release());
  co_await boost::asio::async_write(out, boost::asio::buffer(bytes), kAwait);
}

Task<void> read_all(Loop& loop, UniqueFd& fd, std::string* bytes) {
  boost::asio::posix::stream_descriptor in(loop, fd.release());
  std::string part(100'000, '\0');
  while (true) {
    const auto [error, size] = co_await in.async_read_some(boost::asio::buffer(part), kAwait);
    if (error) co_return;
    bytes->append(part, 0, size);
  }
}

TEST(ResumableStream, IsWholeAfterManyConnections) {
  Twins twins;
  std::string sent(30'000'000, '\0');
  std::mt19937 random(3);
  for (char& c : sent) c = static_cast<char>(random());
  std::string came;
  twins.connect();
  boost::asio::co_spawn(twins.loop, write_all(twins.loop, twins.left_pair.first, sent),
                        boost::asio::detached);
  boost::asio::co_spawn(twins.loop, read_all(twins.loop, twins.right_pair.first, &came),
                        boost::asio::detached);
  int num_cuts = 0;
  for (; twins.right_over == "not over" && num_cuts < 10'000; ++num_cuts) {
    for (unsigned i = 0; i < random() % 60 && twins.loop.poll_one() > 0; ++i) {
    }
    if (num_cuts % 20 == 0) twins.connect();
    if (came.size() == sent.size()) break;
  }
  twins.connect();
  twins.loop.restart();
  twins.loop.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(came == sent) << came.size();
  EXPECT_EQ(twins.left_over, "");
  EXPECT_EQ(twins.right_over, "");
  EXPECT_GT(num_cuts, 100);
}

TEST(ResumableStream, AConnectionThatSaysNothingIsBroken) {
  Loop loop(1);
  auto pair = std::move(*make_stream_pair());
  std::string why;
  auto stream = ResumableStream::start(
      loop, std::move(pair.first), std::chrono::milliseconds(50),
      {[&why, &loop](const std::string& text) { why = text, loop.stop(); }, {}});
  auto wire = std::move(*make_stream_pair());
  stream->attach(std::move(wire.first));
  loop.run_for(std::chrono::seconds(5));
  EXPECT_THAT(why, HasSubstr("nothing came for 0.05 s"));
  stream->close();
}

TEST(ResumableStream, WhatCameBeforeTheEndOfAConnectionIsTakenThoughNothingCanBeWritten) {
  Loop loop(1);
  auto pair = std::move(*make_stream_pair());
  std::string why;
  auto stream = ResumableStream::start(loop, std::move(pair.second), Nanos(0),
                                       {[&why](const std::string& text) { why = text; }, {}});
  ResumeEngine ours;  // as the stream's: what it says first
  ours.connect();
  ResumeEngine other;
  other.connect();
  ASSERT_TRUE(other.take_wire(ours.next_wire()));
  const std::string words(3 * ResumeEngine::kMostData, 'w');
  other.give(words);
  auto wire = std::move(*make_stream_pair());
  const int buffer = 1 << 20;
  setsockopt(wire.second.get(), SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  for (std::string bytes = other.next_wire(); !bytes.empty(); bytes = other.next_wire()) {
    ASSERT_EQ(::send(wire.second.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  wire.second.reset();
  stream->attach(std::move(wire.first));
  std::string came;
  boost::asio::co_spawn(loop, read_all(loop, pair.first, &came), boost::asio::detached);
  loop.run_for(std::chrono::milliseconds(200));
  EXPECT_EQ(came.size(), words.size());
  EXPECT_EQ(why, "End of file");
  stream->close();
}

TEST(ResumableStream, OnlyWhatComesCountsAsHeard) {
  Twins twins;
  const SteadyTime started = twins.left->last_heard();
  auto deaf = std::move(*make_stream_pair());
  twins.left->attach(std::move(deaf.first));
  twins.loop.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(twins.left->last_heard(), started);
  const SteadyTime connected = std::chrono::steady_clock::now();
  twins.connect();
  twins.loop.run_for(std::chrono::milliseconds(20));
  EXPECT_GE(twins.left->last_heard(), connected);
  twins.left->close();
  twins.right->close();
}

TEST(ResumableStream, NonsenseEndsIt) {
  Loop loop(1);
  auto pair = std::move(*make_stream_pair());
  std::string why;
  auto stream = ResumableStream::start(loop, std::move(pair.first), Nanos(0),
                                       {{}, [&why](const std::string& text) { why = text; }});
  auto wire = std::move(*make_stream_pair());
  stream->attach(std::move(wire.first));
  ASSERT_EQ(::send(wire.second.get(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  loop.run_for(std::chrono::seconds(5));
  EXPECT_THAT(why, HasSubstr("the stream is damaged"));
  EXPECT_TRUE(stream->is_over());
}

}  // namespace
}  // namespace hvd
