// Command lines of the data subcommands: one table of options each, read by getopt_long. Every
// error is a usage error (exit 2), one sentence with the option and the remedy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "training/petrv2/synth/convert.h"
#include "training/petrv2/synth/world.h"

namespace hvd::petrv2 {

struct SynthOptions {
  std::string out;
  WorldPlan plan;
  bool with_records = false;
  bool as_json = false;
  bool wants_help = false;
};

struct ConvertOptions {
  ConvertRequest request;
  bool as_json = false;
  bool wants_help = false;
};

// `words` are the options, without the subcommand.
[[nodiscard]] Result<SynthOptions> parse_synth_options(const std::vector<std::string>& words);
[[nodiscard]] Result<ConvertOptions> parse_convert_options(const std::vector<std::string>& words);

[[nodiscard]] std::string synth_help();
[[nodiscard]] std::string convert_help();

}  // namespace hvd::petrv2
