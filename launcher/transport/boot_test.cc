// The boot script in real shells, the dialogue with it, and the command transport that carries
// both.
#include <gmock/gmock.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <thread>

#include "base/sha256.h"
#include "launcher/transport/agent_image.h"
#include "launcher/transport/boot_scanner.h"
#include "launcher/transport/boot_script.h"
#include "launcher/transport/rsh_words.h"
#include "launcher/transport/ssh_config_scan.h"
#include "launcher/transport/test_support.h"

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSum = "0123456789abcdef";

TEST(BootScript, SurvivesAnyLoginShellInSingleQuotes) {
  const std::string marker = make_marker();
  const std::string script = boot_script({"/x", kSum, 7, "x86_64"}, marker);
  EXPECT_EQ(script.find_first_of("'\\!\n"), std::string::npos);
  EXPECT_THAT(script, Not(HasSubstr(marker)));
  EXPECT_EQ(marker.size(), 24U);
  EXPECT_NE(marker, make_marker());
}

TEST(BootScanner, FindsTheLineBehindNoiseAndTakesNotOneByteMore) {
  BootScanner scanner("HVDRUN1-00");
  BootLine line;
  const std::string first = "Welcome\n$ HVDR";
  EXPECT_EQ(scanner.take(first, &line), first.size());
  EXPECT_EQ(line.kind, BootLine::Kind::kNone);
  const std::string second = "UN1-00 ready 1.0\nPRI";
  EXPECT_EQ(scanner.take(second, &line), second.size() - 3);
  EXPECT_EQ(line.kind, BootLine::Kind::kReady);
  EXPECT_EQ(line.text, "1.0");
  EXPECT_EQ(scanner.noise(), "Welcome\n$ ");
}

TEST(BootScanner, WhatCouldHaveBecomeTheMarkerIsNoiseAtTheEnd) {
  BootScanner scanner("HVDRUN1-00");
  BootLine line;
  (void)scanner.take("short", &line);
  EXPECT_EQ(scanner.noise(), "short");
  (void)scanner.take(" and more, HVDRUN1-", &line);
  EXPECT_EQ(scanner.noise(), "short and more, HVDRUN1-");
  (void)scanner.take("00 rea", &line);
  EXPECT_EQ(scanner.noise(), "short and more, ") << "a line of ours that was cut off";
}

TEST(BootScanner, TakesOneByteAtATime) {
  BootScanner scanner("M-1");
  BootLine line;
  for (const char c : std::string("xM-1 error no room\n")) {
    EXPECT_EQ(line.kind, BootLine::Kind::kNone);
    EXPECT_EQ(scanner.take({&c, 1}, &line), 1U);
  }
  EXPECT_EQ(line.kind, BootLine::Kind::kError);
  EXPECT_EQ(line.text, "no room");
}

TEST(BootScanner, GivesUpAfter64KiBOfNoiseAndKeepsTwo) {
  BootScanner scanner("M-1");
  BootLine line;
  const std::string noise(4096, 'x');
  for (int i = 0; i < 16; ++i) (void)scanner.take(noise, &line);
  EXPECT_FALSE(scanner.is_too_noisy());
  (void)scanner.take(noise, &line);
  EXPECT_TRUE(scanner.is_too_noisy());
  EXPECT_EQ(scanner.noise().size(), BootScanner::kKeptNoise);
}

TEST(AgentGreeting, IsOneLineOfMarkerAndWords) {
  EXPECT_EQ(agent_greeting("M-1", {"--stdio", "--job", "ab"}), "M-1 --stdio --job ab\n");
}

TEST(RshWords, ReplacesInsideWordsAndPlacesTheCommand) {
  const Target target{0, "node1", "ann", 2222};
  EXPECT_THAT(*expand_rsh({"ssh", "-p{port}", "{user}@{host}"}, target, {"sh"}),
              ElementsAre("ssh", "-p2222", "ann@node1", "sh"));
  EXPECT_THAT(
      *expand_rsh({"kubectl", "exec", "-i", "{host}", "--", "{command}", "-x"}, target, {"sh"}),
      ElementsAre("kubectl", "exec", "-i", "node1", "--", "sh", "-x"));
  EXPECT_FALSE(expand_rsh({"ssh", "{host}"}, {0, "-oProxyCommand=x", "", 0}, {"sh"}));
  EXPECT_THAT(*expand_rsh({"socat", "-", "UNIX-CONNECT:/run/{host}"}, target, {}),
              ElementsAre("socat", "-", "UNIX-CONNECT:/run/node1"));
}

TEST(SshConfigScan, FindsEveryIdentityFileOfTheHost) {
  const ScratchFolder scratch;
  write_file(scratch.at("more"), "IdentityFile /from/include\n");
  write_file(scratch.at("config"),
             "# a comment\nInclude more\nHost other\n  IdentityFile /not/ours\n"
             "Host node* !node9\n  identityfile = \"/a b\"\n  IdentityAgent /agent\n"
             "Match user x\n  IdentityFile /passed/over\nMatch all\n\tIdentityFile ~/last\n");
  const auto extras = scan_ssh_config({scratch.at("config")}, "node1");
  EXPECT_THAT(extras.identity_files, ElementsAre("/from/include", "/a b", "~/last"));
  EXPECT_EQ(extras.identity_agent, "/agent");
  EXPECT_FALSE(matches_host_patterns("node* !node9", "node9"));
}

TEST(AgentImage, IsNamedByTheBuildIdOfTheProgram) {
  const auto image = read_agent_image("/proc/self/exe");
  ASSERT_TRUE(image) << image.error().message;
  utsname names{};
  ::uname(&names);
  EXPECT_EQ(image->machine, names.machine);
  EXPECT_EQ(image->sum.size(), 16U);
  EXPECT_EQ(image->size, std::filesystem::file_size("/proc/self/exe"));
  const ScratchFolder scratch;
  write_file(scratch.at("x"), "abc");
  EXPECT_EQ(to_hex(*sha256_of_file(scratch.at("x"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_THAT(read_agent_image(scratch.at("x")).error().message, HasSubstr("not a 64-bit program"));
}

// Each shell as the program that carries the stream; a home folder of our own.
class CommandTest : public testing::TestWithParam<const char*> {
 protected:
  CommandTest() {
    ::setenv("HOME", scratch_.path().c_str(), 1);
    ::setenv("XDG_RUNTIME_DIR", scratch_.at("run").c_str(), 1);
    agent_ = write_fake_agent(scratch_.at("agent"), kSum);
  }
  [[nodiscard]] std::string cache() const { return scratch_.at(".cache/hvdrun"); }
  [[nodiscard]] std::string placed() const { return cache() + "/hvd-agent-" + kSum; }

  // A program that executes its arguments; `before` runs first.
  Result<std::unique_ptr<Connection>> open(const std::string& before = "", int limit_ms = 10000) {
    const std::string shell = GetParam();
    // {command} is the word sh: the function of that name decides which shell it is.
    transport_ = make_command_transport(
        loop_, {{"sh", "-c", before + "exec " + shell, "x", "{command}"}, agent_});
    OpenRequest request;
    request.target.host = "node1";
    request.deadline = in_ms(limit_ms);
    request.on_phase = [this](Phase phase) { phases_.emplace_back(phase_name(phase)); };
    return run_task(loop_, transport_->open(std::move(request)));
  }

  const ScratchFolder scratch_;
  Loop loop_;
  AgentImage agent_;
  std::unique_ptr<Transport> transport_;
  std::vector<std::string> phases_;
};

std::string echo_through(Connection& connection, const std::string& text) {
  const UniqueFd stream = connection.take_stream();
  (void)!::send(stream.get(), text.data(), text.size(), 0);
  return read_stream(stream.get(), text.size());
}

TEST_P(CommandTest, PlacesTheAgentOnceAndFindsItThen) {
  auto first = open();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_THAT(phases_, ElementsAre("connect", "place agent", "start agent"));
  EXPECT_EQ((*first)->agent_path(), cache());
  EXPECT_EQ(read_file(placed()), read_file(agent_.path));
  struct stat status {};
  ::stat(cache().c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  EXPECT_EQ(echo_through(**first, "hello\n"), "hello\n");
  phases_.clear();
  auto second = open();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_THAT(phases_, ElementsAre("connect"));
  EXPECT_EQ((*second)->agent_path(), cache());
  EXPECT_EQ(echo_through(**second, "again\n"), "again\n");
  EXPECT_EQ(count_files(cache()), 1U);
  first->reset();
  second->reset();
  loop_.run();  // runs dry: helpers have gone
}

TEST_P(CommandTest, RefusesACacheThatOthersCouldWrite) {
  ASSERT_TRUE(open());
  ::chmod(cache().c_str(), 0777);
  phases_.clear();
  auto again = open();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT(phases_, testing::Contains("place agent"));
  struct stat status {};
  ::stat(cache().c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_P(CommandTest, ReplacesAnAgentOfAnotherSize) {
  ASSERT_TRUE(open());
  write_file(placed(), "#!/bin/sh\n", 0700);
  phases_.clear();
  auto again = open();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(read_file(placed()), read_file(agent_.path));
}

TEST_P(CommandTest, TakesTheNextFolderWhenOneIsALinkOrCannotBeMade) {
  std::filesystem::create_directories(scratch_.at("elsewhere"));
  std::filesystem::create_directories(scratch_.at(".cache"));
  std::filesystem::create_directory_symlink(scratch_.at("elsewhere"), cache());
  std::filesystem::create_directories(scratch_.at("run"));
  auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->agent_path(), scratch_.at("run/hvdrun"));
  EXPECT_EQ(count_files(scratch_.at("elsewhere")), 0U);
}

TEST_P(CommandTest, StartsAnotherUploadWhenTheFirstFolderIsFull) {
  // A limit on file sizes stands for a full disk; it binds the shell and the programs it starts.
  write_file(scratch_.at("big"), "");
  agent_ = write_fake_agent(scratch_.at("agent"), kSum, "exec cat\n" + std::string(300000, '#'));
  auto opened = open("ulimit -f 100; trap '' XFSZ; ", 10000);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("no folder of this node can hold hvd-agent"));
  EXPECT_THAT(opened.error().message, HasSubstr("disk or quota full"));
  EXPECT_THAT(opened.error().message, HasSubstr(scratch_.at("run/hvdrun")));
  EXPECT_EQ(count_files(cache()), 0U);
}

TEST_P(CommandTest, NamesTheAgentThatCannotRunThere) {
  write_file(agent_.path, "#!/bin/sh\necho version GLIBC_9.99 not found >&2\nexit 1\n", 0755);
  agent_.size = std::filesystem::file_size(agent_.path);
  auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("GLIBC_9.99 not found"));
  EXPECT_EQ(count_files(cache()), 0U);
}

TEST_P(CommandTest, SaysOneSentenceAboutAWrongMachineTypeBeforeAnyUpload) {
  agent_.machine = "sparc64";
  auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("node1: the machine type of this node is"));
  EXPECT_THAT(opened.error().message, HasSubstr("built for sparc64"));
  EXPECT_EQ(count_files(cache()), 0U);
}

TEST_P(CommandTest, RefusesAKernelBefore54) {
  std::filesystem::create_directories(scratch_.at("bin"));
  utsname names{};
  ::uname(&names);
  write_file(scratch_.at("bin/uname"),
             std::string("#!/bin/sh\necho n 5.3.18-lp $(/bin/uname -m)\n"), 0755);
  auto opened = open("PATH=" + scratch_.at("bin") + ":$PATH; export PATH; ");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("the kernel of this node is 5.3.18-lp"));
}

TEST_P(CommandTest, PassesOverNoiseBeforeTheAgent) {
  auto opened = open("echo Welcome to the node; echo beware >&2; ");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT((*opened)->diagnostics(), HasSubstr("Welcome to the node"));
  EXPECT_EQ(echo_through(**opened, "x"), "x");
}

TEST_P(CommandTest, NamesExitCodeAndStandardErrorOfAProgramThatFails) {
  auto opened = open("echo Permission denied >&2; exit 255; ");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("exit 255 of sh"));
  EXPECT_THAT(opened.error().message, HasSubstr("Permission denied"));
  EXPECT_EQ(opened.error().code, ExitCode::kInfrastructure);
}

TEST_P(CommandTest, EndsAtTheDeadlineWhenTheProgramIsSilent) {
  auto opened = open("exec sleep 60; ", 300);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ExitCode::kTimeout);
  EXPECT_THAT(opened.error().message, HasSubstr("no answer in"));
  loop_.run();  // runs dry: the silent program was ended
}

TEST_P(CommandTest, GivesUpOnALoginThatNeverStopsTalking) {
  auto opened = open("yes noise | head -c 1000000; ");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("more than 64 KiB"));
}

INSTANTIATE_TEST_SUITE_P(Shells, CommandTest, testing::Values("dash", "bash"));

TEST(CommandTransport, SaysThatTheProgramIsMissing) {
  Loop loop;
  auto transport = make_command_transport(loop, {{"no-such-program-hvd", "{host}"}, {}});
  OpenRequest request;
  request.target.host = "node1";
  request.deadline = in_ms(1000);
  const auto opened = run_task(loop, transport->open(std::move(request)));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message,
            "node1: cannot run no-such-program-hvd: No such file or directory");
}

TEST(CommandTransport, LeavesNoFileWhenTheUploadIsCutOff) {
  const ScratchFolder scratch;
  const std::string script = boot_script({"", kSum, 100000, ""}, make_marker());
  write_file(scratch.at("half"), std::string(64, '0') + "\n" + std::string(50000, 'x'));
  const std::string command = "HOME=" + scratch.path() + " XDG_RUNTIME_DIR=" + scratch.at("run") +
                              " dash -c '" + script + "' <" + scratch.at("half") + " >" +
                              scratch.at("out") + " 2>&1";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_THAT(read_file(scratch.at("out")), HasSubstr("50000 of 100000 bytes"));
  EXPECT_EQ(count_files(scratch.at(".cache/hvdrun")), 0U);
}

TEST(CommandTransport, TwoUploadsAtOnceBothSucceed) {
  const ScratchFolder scratch;
  ::setenv("HOME", scratch.path().c_str(), 1);
  const auto agent =
      write_fake_agent(scratch.at("agent"), kSum, "exec cat\n" + std::string(2000000, '#'));
  Loop loop;
  auto transport = make_command_transport(loop, {{"sh", "-c", "exec sh"}, agent});
  int num_ready = 0;
  for (int i = 0; i < 2; ++i) {
    OpenRequest request;
    request.target.host = "node";
    request.deadline = in_ms(10000);
    boost::asio::co_spawn(
        loop, transport->open(std::move(request)),
        [&](const std::exception_ptr&, Result<std::unique_ptr<Connection>> opened) {
          num_ready += opened.has_value();
        });
  }
  loop.run();
  EXPECT_EQ(num_ready, 2);
  EXPECT_EQ(count_files(scratch.at(".cache/hvdrun")), 1U);
}

// A stand-in that answers the line as an agent does that runs already.
TEST(CommandTransport, GreetsAnAgentThatRunsAlready) {
  Loop loop;
  const ScratchFolder scratch;
  write_file(
      scratch.at("agent"),
      "#!/bin/sh\nread -r mark words\necho \"$mark ready 1\"\necho \"$#:$words\"\nexec cat\n",
      0755);
  CommandTransportConfig config;
  config.rsh = {scratch.at("agent")};
  config.is_agent_running = true;
  auto transport = make_command_transport(loop, std::move(config));
  OpenRequest request;
  request.target.host = "node1";
  request.deadline = in_ms(5000);
  request.agent_words = {"--stdio", "--job", "ab"};
  auto opened = run_task(loop, transport->open(std::move(request)));
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const UniqueFd stream = (*opened)->take_stream();
  const std::string answer = "0:--stdio --job ab\n";
  EXPECT_EQ(read_stream(stream.get(), answer.size()), answer);
}

TEST(LocalTransport, StartsTheAgentItself) {
  const ScratchFolder scratch;
  const auto agent = write_fake_agent(scratch.at("agent"), kSum);
  Loop loop;
  auto transport = make_local_transport(loop, agent, std::chrono::seconds(10));
  OpenRequest request;
  request.target.host = "localhost";
  request.deadline = in_ms(1000);
  auto opened = run_task(loop, transport->open(std::move(request)));
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->agent_path(), agent.path);
  const UniqueFd stream = (*opened)->take_stream();
  const std::string text = "the agent's own bytes follow its ready line";
  ASSERT_EQ(::send(stream.get(), text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
  EXPECT_EQ(read_stream(stream.get(), text.size()), text);
}

TEST(LocalTransport, TellsOfAnAgentThatEndsAtOnce) {
  const ScratchFolder scratch;
  write_file(scratch.at("agent"), "#!/bin/sh\necho broken library >&2\nexit 3\n", 0755);
  Loop loop;
  auto transport =
      make_local_transport(loop, {scratch.at("agent"), kSum, 1, ""}, std::chrono::seconds(10));
  OpenRequest request;
  request.target.host = "localhost";
  request.deadline = in_ms(5000);
  auto opened = run_task(loop, transport->open(std::move(request)));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("localhost"), HasSubstr("exit 3"), HasSubstr("broken library")));
}

}  // namespace
}  // namespace hvd
