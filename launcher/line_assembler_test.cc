#include "launcher/line_assembler.h"

#include <gmock/gmock.h>

#include "launcher/visible.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;

const SteadyTime kStart{seconds(1000)};

v1::LogChunk chunk(std::uint32_t rank, std::string data, v1::Stream stream = v1::STREAM_STDOUT) {
  v1::LogChunk chunk;
  chunk.set_rank(rank);
  chunk.set_stream(stream);
  chunk.set_data(std::move(data));
  return chunk;
}
v1::LogChunk err(std::uint32_t rank, std::string data) {
  return chunk(rank, std::move(data), v1::STREAM_STDERR);
}

struct Sinks {
  std::string out;
  std::string err;
  std::string both;  // in the order of writing
};
Sinks take(LineAssembler& lines) {
  Sinks sinks;
  for (const OutputSegment& segment : lines.take()) {
    (segment.is_stderr ? sinks.err : sinks.out) += segment.bytes;
    sinks.both += segment.bytes;
  }
  return sinks;
}

TEST(LineAssembler, PrefixesWholeLinesAndKeepsTheStreamsApart) {
  LineAssembler lines(4, {});
  lines.add(chunk(0, "one\ntwo\n"), kStart);
  lines.add(err(3, "bad\n"), kStart);
  lines.add(chunk(1, "\n"), kStart);
  const Sinks sinks = take(lines);
  EXPECT_EQ(sinks.out, "[0]<stdout>:one\n[0]<stdout>:two\n[1]<stdout>:\n");
  EXPECT_EQ(sinks.err, "[3]<stderr>:bad\n");
  EXPECT_TRUE(lines.take().empty());
}

TEST(LineAssembler, LinesBeginAsAskedFor) {
  int second = 0;
  LineAssembler timed(2, {});
  timed.set_beginning(true, [&second] { return std::to_string(++second); });
  timed.add(chunk(0, "a\nb\nc"), kStart);
  timed.flush_idle(kStart + LineAssembler::kIdle);
  timed.add(chunk(0, "d\n"), kStart);
  timed.add_own_line("own");
  const Sinks sinks = take(timed);
  EXPECT_EQ(sinks.out, "1[0]<stdout>:a\n2[0]<stdout>:b\n3[0]<stdout>:cd\n") << "one each line";
  EXPECT_EQ(sinks.err, "own\n");
  LineAssembler plain(2, {});
  plain.set_beginning(false, {});
  plain.add(chunk(1, "a\n"), kStart);
  plain.add(err(0, "b\n"), kStart);
  const Sinks bare = take(plain);
  EXPECT_EQ(bare.out + bare.err, "a\nb\n");
}

TEST(LineAssembler, JoinsALineFromItsPiecesWithoutTearingOthers) {
  LineAssembler lines(2, {});
  lines.add(chunk(0, "par"), kStart);
  lines.add(chunk(1, "whole\n"), kStart);
  lines.add(chunk(0, "tial\nnext"), kStart);
  lines.add(chunk(0, "\n"), kStart);
  EXPECT_EQ(take(lines).out, "[1]<stdout>:whole\n[0]<stdout>:partial\n[0]<stdout>:next\n");
}

TEST(LineAssembler, EveryWayOfCuttingGivesTheSameLines) {
  const std::string text = "a\r\nb\rc\n\r\n\rdd\r\r\ne\n";
  const std::string expected =
      "[0]<stdout>:a\r\n[0]<stdout>:b\r[0]<stdout>:c\n[0]<stdout>:\r\n[0]<stdout>:\r"
      "[0]<stdout>:dd\r[0]<stdout>:\r\n[0]<stdout>:e\n";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      LineAssembler lines(1, {});
      lines.add(chunk(0, text.substr(0, first)), kStart);
      lines.add(chunk(0, text.substr(first, second - first)), kStart);
      lines.add(chunk(0, text.substr(second)), kStart);
      EXPECT_EQ(take(lines).out, expected) << first << " " << second;
    }
  }
}

TEST(LineAssembler, AnIdlePartIsPrintedAndContinuedWithoutAPrefix) {
  LineAssembler lines(2, {}, milliseconds(400));
  EXPECT_FALSE(lines.next_deadline());
  lines.add(chunk(0, "name? "), kStart);
  EXPECT_EQ(lines.next_deadline(), kStart + milliseconds(400));
  lines.flush_idle(kStart + milliseconds(399));
  EXPECT_EQ(take(lines).out, "");
  lines.flush_idle(kStart + milliseconds(400));
  EXPECT_EQ(take(lines).out, "[0]<stdout>:name? ");
  EXPECT_FALSE(lines.next_deadline());
  lines.add(chunk(0, "Bob\nhello\n"), kStart + seconds(1));
  EXPECT_EQ(take(lines).out, "Bob\n[0]<stdout>:hello\n");
}

TEST(LineAssembler, AnInterruptedPartGetsANewLineAndANewPrefix) {
  LineAssembler lines(2, {});
  lines.add(chunk(0, "name? "), kStart);
  lines.flush_idle(kStart + LineAssembler::kIdle);
  lines.add(err(1, "does not interrupt another sink\n"), kStart);
  lines.add(chunk(1, "other\n"), kStart);
  lines.add(chunk(0, "Bob\n"), kStart);
  EXPECT_EQ(take(lines).out, "[0]<stdout>:name? \n[1]<stdout>:other\n[0]<stdout>:Bob\n");
}

TEST(LineAssembler, AnInterruptedPartWhoseEndFollowsLeavesNoEmptyLine) {
  LineAssembler lines(2, {});
  lines.add(chunk(0, "done"), kStart);
  lines.flush_idle(kStart + LineAssembler::kIdle);
  lines.add(chunk(1, "other\n"), kStart);
  lines.add(chunk(0, "\nnext\n"), kStart);
  EXPECT_EQ(take(lines).out, "[0]<stdout>:done\n[1]<stdout>:other\n[0]<stdout>:next\n");
}

TEST(LineAssembler, AProgressBarIsShownWhileItIdlesAndItsNextStateHasAPrefix) {
  LineAssembler lines(1, {});
  lines.add(chunk(0, "10%\r"), kStart);
  lines.flush_idle(kStart + LineAssembler::kIdle);
  EXPECT_EQ(take(lines).out, "[0]<stdout>:10%\r");
  lines.add(chunk(0, "20%\r"), kStart);
  lines.flush_idle(kStart + 2 * LineAssembler::kIdle);
  EXPECT_EQ(take(lines).out, "[0]<stdout>:20%\r");
  lines.add(chunk(0, "\ndone\n"), kStart);
  EXPECT_EQ(take(lines).out, "\n[0]<stdout>:done\n");
}

TEST(LineAssembler, TheEndOfAStreamEndsItsLine) {
  LineAssembler lines(2, {});
  v1::LogChunk last = chunk(0, "last");
  last.set_eof(true);
  lines.add(last, kStart);
  lines.add(chunk(1, "held"), kStart);
  EXPECT_EQ(take(lines).out, "[0]<stdout>:last\n");
  lines.flush_all();
  EXPECT_EQ(take(lines).out, "[1]<stdout>:held\n");
  EXPECT_FALSE(lines.next_deadline());
}

TEST(LineAssembler, LongLinesAreSplitAndNothingIsLost) {
  for (const std::size_t piece : {1000UL, 65536UL, 300000UL}) {
    LineAssembler lines(1, {});
    const std::string line(200000, 'x');
    for (std::size_t i = 0; i < line.size(); i += piece) {
      lines.add(chunk(0, line.substr(i, piece)), kStart);
    }
    lines.add(chunk(0, "\nshort\n"), kStart);
    const std::string out = take(lines).out;
    EXPECT_EQ(std::count(out.begin(), out.end(), 'x'), 200000) << piece;
    EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 5) << piece;
    EXPECT_TRUE(out.ends_with("x\n[0]<stdout>:short\n")) << piece;
  }
}

TEST(LineAssembler, DroppedBytesAreTold) {
  LineAssembler lines(4, {});
  lines.add(err(3, "cut he"), kStart);
  v1::LogChunk after = err(3, "later\n");
  after.set_dropped(1234);
  lines.add(after, kStart);
  EXPECT_EQ(take(lines).err,
            "[3]<stderr>:cut he\n"
            "[hvdrun] rank 3 stderr: 1234 bytes dropped (output is read too slowly)\n"
            "[3]<stderr>:later\n");
}

TEST(LineAssembler, BytesAreOpaqueUnlessTheSinkIsATerminal) {
  const std::string nasty("\0\xff\x1b]0;title\a", 12);
  LineAssembler raw(1, {});
  raw.add(chunk(0, nasty + "\n"), kStart);
  EXPECT_EQ(take(raw).out, "[0]<stdout>:" + nasty + "\n");
  LineAssembler terminal(1, {true, false, false});
  terminal.add(chunk(0, nasty + "\r\n"), kStart);
  terminal.add(err(0, nasty + "\n"), kStart);
  const Sinks sinks = take(terminal);
  EXPECT_EQ(sinks.out, "[0]<stdout>:\\x00\\xff\\x1b]0;title\\x07\r\n");
  EXPECT_EQ(sinks.err, "[0]<stderr>:" + nasty + "\n");
}

TEST(LineAssembler, OneSinkForBothKeepsTheOrderAndInterruptsAcrossStreams) {
  LineAssembler lines(1, {true, true, true});
  lines.add(chunk(0, "a\n"), kStart);
  lines.add(err(0, "b\n"), kStart);
  lines.add(chunk(0, "prompt"), kStart);
  lines.flush_idle(kStart + LineAssembler::kIdle);
  lines.add(err(0, "c\n"), kStart);
  lines.add_own_line("hvdrun: note");
  EXPECT_EQ(take(lines).both,
            "[0]<stdout>:a\n[0]<stderr>:b\n[0]<stdout>:prompt\n[0]<stderr>:c\nhvdrun: note\n");
}

TEST(LineAssembler, RanksOutsideTheJobAreIgnored) {
  LineAssembler lines(2, {});
  lines.add(chunk(2, "x\n"), kStart);
  lines.add(chunk(UINT32_MAX, "x\n"), kStart);
  EXPECT_TRUE(lines.take().empty());
}

// Against a plain copy of the same bytes, which every machine can do: no quadratic step, no work
// per byte.
TEST(LineAssembler, CostsAFewCopiesOfItsBytes) {
  std::string block;
  while (block.size() + 80 <= 64 * 1024) block += std::string(79, 'x') + "\n";
  const v1::LogChunk input = chunk(7, block);
  const auto timed = [](const auto& body) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 400; ++i) body();
    return std::chrono::steady_clock::now() - start;
  };
  std::size_t num_bytes = 0;
  const auto find_and_copy = [&] {
    std::string copy;
    std::size_t at = 0;
    for (std::size_t end; (end = block.find('\n', at)) != std::string::npos; at = end + 1) {
      copy.append("[7]<stdout>:").append(block, at, end + 1 - at);
    }
    num_bytes += copy.size();
  };
  LineAssembler lines(8, {});
  const auto assemble = [&] {
    lines.add(input, kStart);
    num_bytes -= lines.take().at(0).bytes.size();
  };
  auto best_ratio = 1e9;
  for (int round = 0; round < 5; ++round) {
    const double plain = static_cast<double>(timed(find_and_copy).count());
    best_ratio = std::min(best_ratio, static_cast<double>(timed(assemble).count()) / plain);
  }
  EXPECT_EQ(num_bytes, 0U);
  RecordProperty("ratio", std::to_string(best_ratio));
  EXPECT_LT(best_ratio, 3);
}

std::string visible(std::string_view line) {
  std::string out;
  append_visible(out, line);
  return out;
}

TEST(Visible, TextTabsAndColoursPass) {
  EXPECT_EQ(visible("plain\ttext"), "plain\ttext");
  EXPECT_EQ(visible("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(visible("\x1b[1;31mred"), "\x1b[1;31mred\x1b[0m");
}

TEST(Visible, WhatTalksToTheTerminalIsShown) {
  EXPECT_EQ(visible("\x1b]52;c;aGk=\a"), "\\x1b]52;c;aGk=\\x07");
  EXPECT_EQ(visible("\x1b[2J\x1b[1A"), "\\x1b[2J\\x1b[1A");
  EXPECT_EQ(visible("\x1bPq\x1b\\"), "\\x1bPq\\x1b\\");
  EXPECT_EQ(visible("\xc2\x9b"
                    "31m"),
            "\\xc2\\x9b31m");
  EXPECT_EQ(visible("\x9b"
                    "31m\x7f\b"),
            "\\x9b31m\\x7f\\x08");
  EXPECT_EQ(visible("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(visible("\x1b[" + std::string(40, '1') + "m"), "\\x1b[" + std::string(40, '1') + "m");
  EXPECT_EQ(visible("cut \x1b[3"), "cut \\x1b[3");
}

}  // namespace
}  // namespace hvd
