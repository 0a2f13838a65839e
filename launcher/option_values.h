// Values of options: text -> number, port, choice, list. `name` is the option's, for the message.
// Pure, except for the functions that look at a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace hvd {

[[nodiscard]] Result<std::uint32_t> parse_count(std::string_view text, std::string_view name,
                                                std::uint32_t lowest, std::uint32_t highest);

[[nodiscard]] Result<std::uint16_t> parse_port(std::string_view text, std::string_view name);

// "29500" or "61000-65535".
[[nodiscard]] Result<std::pair<std::uint16_t, std::uint16_t>> parse_port_range(
    std::string_view text, std::string_view name);

// The index of the choice.
[[nodiscard]] Result<std::size_t> parse_choice(std::string_view text, std::string_view name,
                                               const std::vector<std::string_view>& choices);

// "eth0,10.1.0.0/16,fd00::/64".
[[nodiscard]] Result<std::vector<std::string>> parse_interfaces(std::string_view text,
                                                                std::string_view name);

// A host name or a numeric address; brackets round an IPv6 address are taken off.
[[nodiscard]] Result<std::string> parse_address(std::string_view text, std::string_view name);

// NAME or NAME=VALUE; `second` is the value's start, npos without one.
[[nodiscard]] Result<std::pair<std::string, std::size_t>> parse_env_name(std::string_view text);

// The file exists and can be read.
[[nodiscard]] Result<std::string> check_file(std::string_view path, std::string_view name);

// The whole file, at most 16 MiB.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::string_view name);

}  // namespace hvd
