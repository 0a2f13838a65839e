// The wall time before lines of output, as horovodrun writes it: "Mon Nov 30 12:11:53 2026".
#pragma once

#include <ctime>
#include <functional>
#include <string>

namespace hvd {

// In local time. Without a separator behind it where a mark follows.
[[nodiscard]] std::string line_stamp(std::time_t now, bool is_before_mark);

// The time of each call; made anew once a second, because a job may print millions of lines.
[[nodiscard]] std::function<std::string()> running_line_stamp(
    bool is_before_mark, std::function<std::time_t()> clock = [] { return std::time(nullptr); });

}  // namespace hvd
