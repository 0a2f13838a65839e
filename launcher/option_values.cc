#include "launcher/option_values.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/blanks.h"
#include "base/parse_number.h"
#include "base/unique_fd.h"
#include "launcher/hostlist.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{16} << 20U;
constexpr std::size_t kLongestInterface = 15;  // IFNAMSIZ without its null

bool is_subnet(std::string_view text) {
  const auto slash = text.find('/');
  const auto prefix = parse_number<std::uint32_t>(text.substr(slash + 1));
  const std::string address(text.substr(0, slash));
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (!prefix) return false;
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) return *prefix <= 32;
  return inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1 && *prefix <= 128;
}

bool is_interface(std::string_view text) {
  if (text.find('/') != std::string_view::npos) return is_subnet(text);
  return !text.empty() && text.size() <= kLongestInterface &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

auto file_error(std::string_view path, std::string_view name, int code) {
  return make_error(ExitCode::kUsage, "{}: file {} cannot be read: {}; check its name and rights",
                    name, show(path), std::strerror(code));
}

}  // namespace

Result<std::uint32_t> parse_count(std::string_view text, std::string_view name,
                                  std::uint32_t lowest, std::uint32_t highest) {
  const auto number = parse_number<std::uint32_t>(text);
  if (number && *number >= lowest && *number <= highest) return *number;
  return make_error(ExitCode::kUsage, "{} {}: write a number from {} to {}", name, show(text),
                    lowest, highest);
}

Result<std::uint16_t> parse_port(std::string_view text, std::string_view name) {
  const auto port = parse_count(text, name, 1, 65535);
  if (!port) return tl::unexpected(port.error());
  return static_cast<std::uint16_t>(*port);
}

Result<std::pair<std::uint16_t, std::uint16_t>> parse_port_range(std::string_view text,
                                                                 std::string_view name) {
  const auto dash = text.find('-');
  const auto low = parse_number<std::uint32_t>(text.substr(0, dash));
  const auto high =
      dash == std::string_view::npos ? low : parse_number<std::uint32_t>(text.substr(dash + 1));
  if (!low || !high || *low < 1 || *high > 65535 || *low > *high) {
    return make_error(ExitCode::kUsage,
                      "{} {}: write a port or a range of ports within 1-65535, as in 29500 or "
                      "61000-65535",
                      name, show(text));
  }
  return std::pair(static_cast<std::uint16_t>(*low), static_cast<std::uint16_t>(*high));
}

Result<std::size_t> parse_choice(std::string_view text, std::string_view name,
                                 const std::vector<std::string_view>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  return make_error(ExitCode::kUsage, "{} {}: write one of {}", name, show(text),
                    fmt::join(choices, ", "));
}

Result<std::vector<std::string>> parse_interfaces(std::string_view text, std::string_view name) {
  std::vector<std::string> interfaces;
  for (std::size_t at = 0; at <= text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    const auto item = strip_blanks(text.substr(at, comma - at));
    if (!is_interface(item)) {
      return make_error(ExitCode::kUsage,
                        "{} {}: {} is neither an interface nor a subnet; write them with single "
                        "commas between, as in eth0,10.1.0.0/16",
                        name, show(text), show(item));
    }
    interfaces.emplace_back(item);
    at = comma + 1;
  }
  return interfaces;
}

Result<std::string> parse_address(std::string_view text, std::string_view name) {
  std::string_view address = text;
  if (address.size() > 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  }
  if (is_host_name(address)) return std::string(address);
  return make_error(ExitCode::kUsage,
                    "{} {}: write a numeric address or a host name, without a port", name,
                    show(text));
}

Result<std::pair<std::string, std::size_t>> parse_env_name(std::string_view text) {
  const auto equals = text.find('=');
  const auto name = text.substr(0, equals);
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_name_char = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  if (name.empty() || !is_letter(name.front()) ||
      !std::all_of(name.begin(), name.end(), is_name_char)) {
    // Only the name: the value may be a secret.
    return make_error(ExitCode::kUsage,
                      "-x: {} is no name of a variable; write NAME or NAME=VALUE with letters, "
                      "digits and '_' in NAME",
                      show(name));
  }
  return std::pair(std::string(name),
                   equals == std::string_view::npos ? equals : equals + std::size_t{1});
}

Result<std::string> check_file(std::string_view path, std::string_view name) {
  const std::string text(path);
  if (::access(text.c_str(), R_OK) != 0) return file_error(path, name, errno);
  std::error_code ignored;
  if (std::filesystem::is_directory(text, ignored)) return file_error(path, name, EISDIR);
  return text;
}

Result<std::string> read_file(const std::string& path, std::string_view name) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_valid()) return file_error(path, name, errno);
  std::string text;
  std::array<char, 65536> buffer{};
  while (text.size() <= kMostFileBytes) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path, name, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return make_error(ExitCode::kUsage, "{}: file {} is larger than 16 MiB; name the right file",
                    name, show(path));
}

}  // namespace hvd
