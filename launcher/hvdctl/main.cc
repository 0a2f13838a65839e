// hvdctl: what administrators do about hvdrun's agents. Exit codes as hvdrun's: 2 for usage, 125
// for what could not be done.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "launcher/hvdctl/ca_command.h"

namespace hvd {
namespace {

constexpr const char* kHelp =
    "usage: hvdctl ca ACTION [options]\n"
    "       hvdctl --version | --help\n"
    "\n"
    "The private authority of a cluster; hvdctl ca --help shows its actions.\n";

int print(std::FILE* to, const std::string& text, int code) {
  std::fwrite(text.data(), 1, text.size(), to);
  return std::fflush(to) == 0 ? code : static_cast<int>(ExitCode::kInfrastructure);
}

// Empty: nobody says where home is.
std::string default_folder() {
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && *config == '/') {
    return std::string(config) + "/hvdrun/ca";
  }
  const char* const home = std::getenv("HOME");
  return home == nullptr ? "hvdrun-ca" : std::string(home) + "/.config/hvdrun/ca";
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) return print(stderr, kHelp, static_cast<int>(ExitCode::kUsage));
  if (words.front() == "--help" || words.front() == "-h") return print(stdout, kHelp, 0);
  if (words.front() == "--version") return print(stdout, "hvdctl " HVDRUN_VERSION "\n", 0);
  if (words.front() != "ca") {
    return print(stderr,
                 fmt::format("hvdctl: error: {} is no command; see hvdctl --help\n", words.front()),
                 static_cast<int>(ExitCode::kUsage));
  }
  const auto done =
      run_ca({words.begin() + 1, words.end()}, {default_folder(), std::time(nullptr)});
  if (done) return print(stdout, *done, 0);
  return print(stderr, "hvdctl: error: " + done.error().message + "\n",
               static_cast<int>(done.error().code));
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) { return hvd::run({argv + (argc > 0 ? 1 : 0), argv + argc}); }
