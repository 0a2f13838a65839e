#include "agent/beat_book.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;

v1::WorkerBeat beat(std::uint32_t rank, std::uint64_t scheduled = 1) {
  v1::WorkerBeat beat;
  beat.set_rank(rank);
  beat.set_size(4);
  beat.set_period_ms(1000);
  beat.set_scheduled(scheduled);
  return beat;
}

char stopped(pid_t pid) { return pid == 42 ? 'T' : '\0'; }

TEST(BeatBook, WhatCameIsCollectedOnceAndTheLastOneCounts) {
  BeatBook book;
  book.take(beat(1, 1), 42, seconds(100));
  book.take(beat(1, 2), 42, seconds(100));
  book.take(beat(3, 7), 0, seconds(100));
  const auto beats = book.collect(seconds(101), stopped);
  ASSERT_EQ(beats.beats_size(), 2);
  EXPECT_EQ(beats.beats(0).scheduled(), 2u);
  EXPECT_EQ(beats.beats(0).pid(), 42);
  EXPECT_EQ(beats.beats(0).silent_ms(), 0);
  EXPECT_EQ(beats.beats(1).rank(), 3u);
  EXPECT_EQ(book.collect(seconds(101), stopped).beats_size(), 0);
}

TEST(BeatBook, ALateWorkerIsToldOfOncePerPeriodWithItsState) {
  BeatBook book;
  book.take(beat(1), 42, seconds(100));
  (void)book.collect(seconds(100), stopped);
  EXPECT_EQ(book.collect(seconds(102), stopped).beats_size(), 0) << "two periods are not late";
  auto beats = book.collect(milliseconds(102250), stopped);
  ASSERT_EQ(beats.beats_size(), 1);
  EXPECT_EQ(beats.beats(0).silent_ms(), 2250);
  EXPECT_EQ(beats.beats(0).process_state(), "T");
  EXPECT_EQ(beats.beats(0).pid(), 42);
  EXPECT_EQ(book.collect(milliseconds(102500), stopped).beats_size(), 0);
  EXPECT_EQ(book.collect(milliseconds(103250), stopped).beats_size(), 1);
  book.take(beat(1), 42, seconds(110));
  beats = book.collect(seconds(110), stopped);
  ASSERT_EQ(beats.beats_size(), 1);
  EXPECT_EQ(beats.beats(0).silent_ms(), 0) << "it speaks again";
}

TEST(BeatBook, AProcessThatIsNotKnownHasNoState) {
  BeatBook book;
  book.take(beat(0), 0, seconds(100));
  book.take(beat(1), 7, seconds(100));
  (void)book.collect(seconds(100), stopped);
  const auto beats = book.collect(seconds(103), stopped);
  ASSERT_EQ(beats.beats_size(), 2);
  EXPECT_EQ(beats.beats(0).process_state(), "");
  EXPECT_EQ(beats.beats(1).process_state(), "");
  EXPECT_GT(beats.beats(1).silent_ms(), 0);
}

TEST(BeatBook, WhoHasLeftIsNotLate) {
  BeatBook book;
  book.take(beat(1), 42, seconds(100));
  book.forget(1);
  EXPECT_TRUE(book.is_empty());
  EXPECT_EQ(book.collect(seconds(200), stopped).beats_size(), 0);
}

TEST(BeatBook, AWorkerCannotSpeakAsTheAgentNorWithoutMeasure) {
  BeatBook book;
  v1::WorkerBeat liar = beat(1);
  liar.set_silent_ms(99);
  liar.set_process_state("D");
  liar.set_pid(1);
  book.take(liar, 42, seconds(100));
  v1::WorkerBeat flood = beat(2);
  flood.set_waiting_for(std::string(1 << 20, 'x'));
  book.take(flood, 42, seconds(100));
  const auto beats = book.collect(seconds(100), stopped);
  ASSERT_EQ(beats.beats_size(), 1);
  EXPECT_EQ(beats.beats(0).silent_ms(), 0);
  EXPECT_EQ(beats.beats(0).process_state(), "");
  EXPECT_EQ(beats.beats(0).pid(), 42);
}

}  // namespace
}  // namespace hvd
