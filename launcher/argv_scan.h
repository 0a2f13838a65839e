// argv -> the options that stand in it, in order, and the command behind them. The grammar is that
// of glibc's getopt_long_only over options_table(): "-np 32", "-np=2", "--hosts=a", "-p2222",
// "-vv", unique prefixes, one dash or two for long names; scanning stops at the first word that is
// no option. Hidden options must be spelled out, so that they make no prefix ambiguous. Values are
// not judged. Thread: one, getopt keeps global state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "launcher/options_table.h"

namespace hvd {

struct Occurrence {
  const OptionSpec* spec = nullptr;  // of the static table
  bool is_opposite = false;
  std::string value;
  std::string source;  // "HVDRUN_GRACE", "FILE:LINE"; empty: the command line
};

struct ArgvScan {
  std::vector<Occurrence> options;
  std::optional<Error> error;        // the first one; scanning went on behind it
  std::vector<std::string> command;  // byte for byte, without the "--" before it
  bool is_separated = false;         // there was a "--" before it
};

[[nodiscard]] ArgvScan scan_argv(const std::vector<std::string>& argv);

}  // namespace hvd
