// hvdctl: what administrators do about hvdrun's agents. Exit codes: 2 for usage; of ca, as
// hvdrun's, 125 for what could not be done; of the others 1 where a node could not be asked or
// refused.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/process_needs.h"
#include "launcher/hvdctl/ca_command.h"
#include "launcher/hvdctl/control_command.h"
#include "launcher/settings.h"
#include "proto/worker_env.h"

namespace hvd {
namespace {

constexpr int kUsage = static_cast<int>(ExitCode::kUsage);
constexpr int kFailed = static_cast<int>(ExitCode::kInfrastructure);

std::string help() {
  return fmt::format(
      "Usage: hvdctl COMMAND [OPTION]...\n"
      "  or:  hvdctl --version | --help\n"
      "\n"
      "{}  {:<8} {}\n"
      "\n"
      "hvdctl COMMAND --help shows the options of each.\n",
      control_summary(), "ca", "the private authority by which nodes and users know each other");
}

int print(std::FILE* to, const std::string& text, int code) {
  std::fwrite(text.data(), 1, text.size(), to);
  return std::fflush(to) == 0 ? code : kFailed;
}

std::string default_folder(const EnvList& environment) {
  const std::string folder = user_config_folder(environment);
  return folder.empty() ? "hvdrun-ca" : folder + "/ca";
}

int fail(const Error& error) {
  return print(stderr, "hvdctl: error: " + error.message + "\n", static_cast<int>(error.code));
}

int run(Loop& loop, const std::vector<std::string>& words) {
  if (words.empty()) return print(stderr, help(), kUsage);
  if (words.front() == "--help" || words.front() == "-h") return print(stdout, help(), 0);
  if (words.front() == "--version") return print(stdout, "hvdctl " HVDRUN_VERSION "\n", 0);
  const EnvList environment = split_environ(environ);
  if (is_control_verb(words.front())) {
    if (auto fits = check_process_needs(); !fits) return fail(fits.error());
    lift_descriptor_limit();
    const ControlOutcome outcome = run_control(loop, words, environment, std::time(nullptr));
    const int code = print(stdout, outcome.out, outcome.code);
    return print(stderr, outcome.err, code);
  }
  if (words.front() != "ca") {
    return fail(
        {fmt::format("{} is no command; see hvdctl --help", words.front()), ExitCode::kUsage});
  }
  const auto done =
      run_ca({words.begin() + 1, words.end()}, {default_folder(environment), std::time(nullptr)});
  return done ? print(stdout, *done, 0) : fail(done.error());
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) {
  hvd::Loop loop;
  return hvd::run(loop, {argv + (argc > 0 ? 1 : 0), argv + argc});
}
