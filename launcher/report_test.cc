#include "launcher/report.h"

#include <gmock/gmock.h>

namespace hvd {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ReportInput failure() {
  ReportInput input;
  input.cause.kind = CauseKind::kExited;
  input.cause.rank = 6;
  input.cause.host = "node2";
  input.cause.pid = 12;
  input.cause.value = 1;
  input.cause.time = seconds(100);
  input.clock = {seconds(88), seconds(0)};
  return input;
}

std::string last_line(const std::string& text) {
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

TEST(Report, QuotesTheTailAndEndsWithTheSentence) {
  ReportInput input = failure();
  input.tail = {"noise", "BOOM-CAUSE"};
  input.num_stopped = 6;
  input.num_failed_after = 1;
  const std::string text = report_text(input);
  EXPECT_THAT(text, StartsWith("hvdrun: the last 2 lines that rank 6 (node2) wrote to stderr:\n"
                               "  | noise\n  | BOOM-CAUSE\n"
                               "hvdrun: 6 ranks stopped by hvdrun, 1 failed after it\n"));
  EXPECT_THAT(last_line(text), StartsWith("hvdrun: rank 6 (node2, pid 12) exited with code 1 at "));
  EXPECT_THAT(last_line(text), HasSubstr("12 s after the start\n"));
}

TEST(Report, NamesRanksThatStoodStill) {
  ReportInput input = failure();
  input.stood_still = {{3, "node1", 77}};
  EXPECT_EQ(report_text(input).find("hvdrun: rank 3 (node1, pid 77) stood still when the job was "
                                    "ended: a signal had stopped it (state T)\n"),
            0U);
  input.stood_still.assign(10, {3, "node1", 77});
  EXPECT_THAT(report_text(input), HasSubstr("hvdrun: 2 more ranks stood still\n"));
}

TEST(Report, IsOneLineWhereNothingElseIsKnown) {
  const std::string text = report_text(failure());
  EXPECT_EQ(text, last_line(text));
}

TEST(Report, TheLastLineIsOneLineWhateverATextHolds) {
  ReportInput input = failure();
  input.cause.kind = CauseKind::kStartFailed;
  input.cause.text = "node1: agent said:\nfirst\x1b[2J\nsecond";
  const std::string text = report_text(input);
  EXPECT_EQ(text, last_line(text));
  EXPECT_THAT(text, HasSubstr("second"));
}

TEST(Report, ShowsTheTracebackThatTheWorkerRecorded) {
  ReportInput input = failure();
  input.cause.error_file =
      R"({"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": "Traceback:\n  File a\nValueError: bad"}}})";
  EXPECT_THAT(report_text(input),
              StartsWith("hvdrun: the error that rank 6 (node2) recorded:\n  | Traceback:\n"
                         "  |   File a\n  | ValueError: bad\n"));
  input.tail = {"Traceback:", "  File a", "ValueError: bad"};  // it is on the screen already
  EXPECT_THAT(report_text(input), Not(HasSubstr("recorded")));
}

TEST(Report, NamesSurvivorsAndNodesThatNobodyHeardOf) {
  ReportInput input = failure();
  input.job_id = "cafe";
  hvdrun::v1::Survivor survivor;
  survivor.set_pid(77);
  survivor.set_uid(1000);
  survivor.set_state("D");
  survivor.set_wchan("nfs_wait");
  survivor.set_command("python train.py");
  input.survivors = {{"node1", {survivor}}};
  survivor.add_listening_ports(29500);
  input.survivors.push_back({"node2", {survivor}});
  input.unverified = {{"node3", "no connection: refused\x1b[2J"}, {"node4", ""}};
  input.node_lines = {"node5: verified clean"};
  const std::string text = report_text(input);
  EXPECT_THAT(text, HasSubstr("hvdrun: node1: process 77 (uid 1000, state D, in nfs_wait) outlived "
                              "SIGKILL: python train.py\n"));
  EXPECT_THAT(text, HasSubstr("nfs_wait, listens on TCP port 29500) outlived"));
  EXPECT_THAT(text, HasSubstr("hvdrun: node3: unverified: no connection: refused\\x1b[2J\n"));
  EXPECT_THAT(text, HasSubstr("hvdrun: node4: unverified: it never said that it had finished\n"));
  EXPECT_THAT(text, HasSubstr("hvdrun: node5: verified clean\n"));
  EXPECT_THAT(text, HasSubstr("HVDRUN_JOB_ID=cafe"));
}

TEST(Report, TheTableOfWhatDoesNotFitStandsBeforeTheSentence) {
  ReportInput input = failure();
  input.cause.kind = CauseKind::kRegistration;
  input.cause.text = "the ranks do not fit together";
  input.cause.details = {"nodes  NCCL", "node1  2.27.3\x1b[2J"};
  input.num_stopped = 2;
  EXPECT_THAT(report_text(input),
              StartsWith("hvdrun:   nodes  NCCL\nhvdrun:   node1  2.27.3\\x1b[2J\n"
                         "hvdrun: 2 ranks stopped by hvdrun\n"
                         "hvdrun: the ranks do not fit together at "));
}

TEST(Report, TellsWhatTheKernelSaidAndNotWithoutEnd) {
  ReportInput input = failure();
  for (int i = 0; i < 20; ++i) {
    input.kernel_log.push_back({"node1", "NVRM: Xid " + std::to_string(i)});
  }
  const std::string text = report_text(input);
  EXPECT_THAT(text, HasSubstr("hvdrun: node1: the kernel's log since the start: NVRM: Xid 15\n"
                              "hvdrun: 4 more such lines\n"));
  EXPECT_THAT(text, Not(HasSubstr("Xid 16")));
}

TEST(Report, OfFailuresAloneItCallsTheCauseByName) {
  ReportInput input = failure();
  input.num_failed_after = 2;
  EXPECT_THAT(report_text(input), StartsWith("hvdrun: 2 ranks failed after the first cause\n"));
}

TEST(Report, WhatARankWroteCannotActOnATerminalAlsoFromALog) {
  ReportInput input = failure();
  input.tail = {"\x1b]0;x\a", "over\rwritten", "\x1b[31mred"};
  EXPECT_THAT(report_text(input), HasSubstr("  | \\x1b]0;x\\x07\n  | over\\x0dwritten\n"
                                            "  | \x1b[31mred\x1b[0m\n"));
}

}  // namespace
}  // namespace hvd
