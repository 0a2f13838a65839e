// A configuration file of hvdrun or horovodrun, YAML: text -> the options that it sets, in its
// order. Keys are long option names without dashes ('_' or '-'), and horovodrun's sections (params,
// autotune, timeline, stall_check, library_options, logging) and its `controller`. Values are
// judged with the options; here only whether a key exists, stands once and has a value of its kind.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launcher/argv_scan.h"

namespace hvd {

inline constexpr std::size_t kMostConfigBytes = std::size_t{1} << 20U;

// Errors are of usage and begin with FILE:LINE; so do the occurrences' sources.
[[nodiscard]] Result<std::vector<Occurrence>> parse_config(std::string_view text,
                                                           const std::string& file);

// "params.fusion_threshold_mb": every key of horovodrun's sections, for the test that freezes them.
[[nodiscard]] std::vector<std::string> section_keys();

}  // namespace hvd
