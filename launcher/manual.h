// What the manual says beside the option table, once for --help and the man page. Pure.
#pragma once

#include <string_view>
#include <vector>

namespace hvd {

struct ManualRow {
  std::string_view term;
  std::string_view text;
};

inline constexpr std::string_view kSynopsis = "hvdrun [OPTION]... [--] COMMAND [ARGUMENT]...";
inline constexpr std::string_view kSummary = "start one program on many GPU nodes";

// Paragraphs.
[[nodiscard]] const std::vector<std::string_view>& manual_description();
// Term: an exit code or several; text: when.
[[nodiscard]] const std::vector<ManualRow>& manual_exit_status();
// Term: the command; text: what it does.
[[nodiscard]] const std::vector<ManualRow>& manual_examples();
// Term: a file; text: what stands in it.
[[nodiscard]] const std::vector<ManualRow>& manual_files();
// What the variables of options do.
[[nodiscard]] std::string_view manual_of_variables();
// Variables that the processes are given.
[[nodiscard]] const std::vector<ManualRow>& manual_worker_variables();

}  // namespace hvd
