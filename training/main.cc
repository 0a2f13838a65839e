// petrv2: trains PETRv2, makes its data, looks into both. One program, a subcommand each.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "runtime/worker_exit.h"
#include "training/petrv2/synth/commands.h"
#include "training/petrv2/trainer/train_command.h"
#include "training/petrv2/verify/inspect.h"
#include "training/petrv2/verify/verify.h"

namespace {

constexpr int kUsage = 2;

struct Subcommand {
  std::string_view name;
  int (*run)(const std::vector<std::string>& words);
  const char* help;
};

constexpr Subcommand kSubcommands[] = {
    {"train", hvd::petrv2::run_train, "train, alone or as the ranks of hvdrun"},
    {"verify", hvd::petrv2::run_verify, "is this build right on this device and precision?"},
    {"inspect", hvd::petrv2::run_inspect, "the parameters of a configuration, what records hold"},
    {"synth", hvd::petrv2::run_synth, "write a small made-up data set"},
    {"convert", hvd::petrv2::run_convert, "nuScenes tables and images to records"}};

// Records and checkpoints are mapped: a file that is cut short under us is a bus error, in any
// thread.
[[noreturn]] void report_bus_error(int) {
  constexpr std::string_view kText =
      "petrv2: error: a file of the data set or a checkpoint was cut short while it was read "
      "(SIGBUS)\n";
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(static_cast<int>(hvd::WorkerExit::kData));
}

void set_signals() {
  // A full quota or a reader that has gone is an error of the write, told in a sentence.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGUSR1, SIG_IGN);  // until there is something to save
  signal(SIGBUS, report_bus_error);
}

// No file of ours may become one of the three standard descriptors.
void fill_standard_descriptors() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) close(fd);
}

void print_help(std::FILE* to) {
  std::fputs("Usage: petrv2 SUBCOMMAND [options]; petrv2 SUBCOMMAND --help tells them.\n", to);
  for (const Subcommand& command : kSubcommands) {
    std::fprintf(to, "  %-8.*s %s\n", static_cast<int>(command.name.size()), command.name.data(),
                 command.help);
  }
}

}  // namespace

int main(int argc, char** argv) {
  hvd::set_log_name("petrv2");
  fill_standard_descriptors();
  set_signals();
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") {
    print_help(stdout);
    return 0;
  }
  if (name == "--version" || name == "-V") {
    std::puts("petrv2 " HVDRUN_VERSION);
    return 0;
  }
  for (const Subcommand& command : kSubcommands) {
    if (command.name == name) return command.run({argv + 2, argv + argc});
  }
  if (argc > 1) {
    hvd::log(hvd::LogLevel::kError, "{} is no subcommand", name);
  }
  print_help(stderr);
  return kUsage;
}
