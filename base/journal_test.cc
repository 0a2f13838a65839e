#include "base/journal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/unique_fd.h"
#include "base/unix_address.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using Fields = std::vector<std::pair<std::string, std::string>>;

// An entry as journald reads it.
Fields fields_of(std::string_view entry) {
  Fields fields;
  while (!entry.empty()) {
    const std::size_t end = entry.find_first_of("=\n");
    if (end == std::string_view::npos) return {{"broken", std::string(entry)}};
    const bool has_length = entry[end] == '\n';
    std::string name(entry.substr(0, end));
    entry.remove_prefix(end + 1);
    std::size_t length = entry.find('\n');
    if (has_length) {
      length = 0;
      for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(entry[i]);
      entry.remove_prefix(8);
    }
    if (length >= entry.size() || entry[length] != '\n') return {{"broken", std::string(entry)}};
    fields.emplace_back(std::move(name), entry.substr(0, length));
    entry.remove_prefix(length + 1);
  }
  return fields;
}

TEST(JournalEntry, HasTheLineAndTheCallersFields) {
  EXPECT_EQ(
      journal_entry(LogLevel::kWarning, "hvd-agent", "refused", {{"HVDRUN_PEER", "10.0.0.9"}}),
      "MESSAGE=refused\nPRIORITY=4\nSYSLOG_IDENTIFIER=hvd-agent\nHVDRUN_PEER=10.0.0.9\n");
  for (const auto& [level, priority] :
       {std::pair(LogLevel::kError, "3"), {LogLevel::kInfo, "6"}, {LogLevel::kDebug, "7"}}) {
    EXPECT_THAT(fields_of(journal_entry(level, "a", "b", {}))[1], Pair("PRIORITY", priority));
  }
}

TEST(JournalEntry, NothingInAValueBecomesAField) {
  const std::string forged = "x\nPRIORITY=0\n_UID=0\n";
  EXPECT_THAT(fields_of(journal_entry(LogLevel::kInfo, "a", forged, {{"HVDRUN_CLIENT", forged}})),
              ElementsAre(Pair("MESSAGE", forged), Pair("PRIORITY", "6"),
                          Pair("SYSLOG_IDENTIFIER", "a"), Pair("HVDRUN_CLIENT", forged)));
}

TEST(JournalEntry, NamesThatAreNoneAndItsOwnAreLeftOut) {
  LogFields fields;
  const std::string too_long(65, 'A');
  for (const std::string_view name : std::initializer_list<std::string_view>{
           "", "_UID", "1ST", "a", "A B", "A=B", "A\nB", too_long, "MESSAGE", "PRIORITY",
           "SYSLOG_IDENTIFIER"}) {
    fields.push_back({name, "x"});
  }
  fields.push_back({"A_1", "y"});
  const auto read = fields_of(journal_entry(LogLevel::kInfo, "a", "b", fields));
  ASSERT_EQ(read.size(), 4U);
  EXPECT_THAT(read[3], Pair("A_1", "y"));
}

TEST(JournalEntry, IsCutWhereADatagramWouldNotTakeIt) {
  LogFields fields;
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back(fmt::format("{}{}", std::string(60, 'F'), i));
  for (const std::string& name : names) fields.push_back({name, std::string(1 << 20, '\n')});
  const std::string text = std::string(kMaxJournalText - 1, 'm') + "\u2713 and more";
  const std::string entry = journal_entry(LogLevel::kInfo, std::string(9999, 'i'), text, fields);
  const auto read = fields_of(entry);
  ASSERT_EQ(read.size(), 3 + kMaxJournalFields);
  EXPECT_EQ(read[0].second, std::string(kMaxJournalText - 1, 'm')) << "no half character";
  EXPECT_EQ(read[2].second.size(), kMaxJournalValue);
  EXPECT_EQ(read[3].second.size(), kMaxJournalValue);
  EXPECT_LT(entry.size(), std::size_t{184} << 10);
}

// The journal's two sockets, as a service has them: stderr, and the native one at a path.
class LogToJournal : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair_), 0);
    old_stderr_.reset(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10));
    dup2(pair_[0], STDERR_FILENO);
    struct stat info {};
    fstat(STDERR_FILENO, &info);
    setenv("JOURNAL_STREAM", fmt::format("{}:{}", info.st_dev, info.st_ino).c_str(), 1);
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    native_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_un at = unix_address(path());
    ASSERT_EQ(bind(native_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    set_log_name("hvd-agent");
    set_log_level(LogLevel::kInfo);
  }
  void TearDown() override {
    set_log_entry_writer({});
    set_log_name("hvdrun");
    unsetenv("JOURNAL_STREAM");
    dup2(old_stderr_.get(), STDERR_FILENO);
    close(pair_[0]);
    close(pair_[1]);
    unlink(path().c_str());
    rmdir(folder_.c_str());
  }

  std::string path() const { return folder_ + "/socket"; }
  static std::string take(int fd) {
    std::string bytes(1 << 20, '\0');
    const ssize_t n = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return n < 0 ? "nothing" : bytes.substr(0, n);
  }
  std::string entry() { return take(native_.get()); }
  std::string line() { return take(pair_[1]); }

  int pair_[2] = {};
  UniqueFd old_stderr_;
  UniqueFd native_;
  std::string folder_ = "/tmp/hvd-journal-XXXXXX";
};

TEST_F(LogToJournal, EveryLineIsAnEntry) {
  ASSERT_TRUE(log_to_journal(path()));
  log(LogLevel::kError, "rank {}", 3);
  EXPECT_EQ(entry(), "MESSAGE=rank 3\nPRIORITY=3\nSYSLOG_IDENTIFIER=hvd-agent\n");
  log_with(LogLevel::kInfo, {{"HVDRUN_JOB", "j1"}, {"HVDRUN_PEER", "p"}}, "from {}", "p\nq");
  EXPECT_EQ(entry(),
            "MESSAGE=from p\\x0aq\nPRIORITY=6\nSYSLOG_IDENTIFIER=hvd-agent\nHVDRUN_JOB=j1\n"
            "HVDRUN_PEER=p\n");
  log_with(LogLevel::kDebug, {}, "hidden");
  EXPECT_EQ(entry(), "nothing");
  EXPECT_EQ(line(), "nothing");
}

TEST_F(LogToJournal, AnEntryAtAllItsLimitsIsTaken) {
  ASSERT_TRUE(log_to_journal(path()));
  LogFields fields;
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back(fmt::format("{}{}", std::string(60, 'F'), i));
  for (const std::string& name : names) fields.push_back({name, std::string(1 << 20, '\n')});
  log_with(LogLevel::kInfo, fields, "{}", std::string(1 << 20, 'm'));
  EXPECT_EQ(fields_of(entry()).size(), 3 + kMaxJournalFields);
}

TEST_F(LogToJournal, WhatItDoesNotTakeGoesToStderrAndNobodyWaits) {
  ASSERT_TRUE(log_to_journal(path()));
  int num_entries = 0;
  while (num_entries < 100'000 && line() == "nothing") {
    log(LogLevel::kWarning, "line {}", num_entries++);
  }
  ASSERT_LT(num_entries, 100'000) << "its queue is full";
  log(LogLevel::kWarning, "one more");
  EXPECT_EQ(line(), "hvd-agent: warning: one more\n");
  const std::string block(1 << 16, '.');
  while (send(STDERR_FILENO, block.data(), block.size(), MSG_DONTWAIT) > 0) continue;
  while (send(STDERR_FILENO, ".", 1, MSG_DONTWAIT) > 0) continue;
  log(LogLevel::kWarning, "lost");
  log(LogLevel::kWarning, "lost, too");
  while (entry() != "nothing") continue;
  log(LogLevel::kWarning, "found");
  EXPECT_THAT(entry(), HasSubstr("MESSAGE=found\n"));
  EXPECT_THAT(entry(), HasSubstr("MESSAGE=2 lines could not be written here\n"));
  log(LogLevel::kWarning, "on");
  EXPECT_THAT(entry(), HasSubstr("MESSAGE=on\n"));
  EXPECT_EQ(entry(), "nothing");
}

TEST_F(LogToJournal, AStderrThatIsElsewhereStays) {
  const UniqueFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_FALSE(is_journal(null.get()));
  EXPECT_FALSE(is_journal(-1));
  setenv("JOURNAL_STREAM", "8:1", 1);
  EXPECT_FALSE(log_to_journal(path()));
  unsetenv("JOURNAL_STREAM");
  EXPECT_FALSE(log_to_journal(path()));
  log_with(LogLevel::kWarning, {{"HVDRUN_PEER", "p"}}, "refused {}", "p\nhvd-agent: error: forged");
  EXPECT_EQ(line(), "hvd-agent: warning: refused p\\x0ahvd-agent: error: forged\n");
  EXPECT_EQ(entry(), "nothing");
}

}  // namespace
}  // namespace hvd
