#include "exporter/arguments.h"

#include <arpa/inet.h>

#include <cstdint>
#include <optional>

#include "base/parse_number.h"

namespace hvd {
namespace {

Result<void> take_value(ExporterArguments& arguments, std::string_view name,
                        std::string_view value) {
  if (name == "--listen") {
    const auto place = parse_listen(value);
    if (!place) return tl::unexpected(place.error());
    arguments.listen = value;
    return {};
  }
  if (!value.starts_with('/')) {
    return make_error(ExitCode::kUsage,
                      "--agent {}: the absolute path of the agent's unix socket is wanted, as in "
                      "--agent /run/hvdrun/agent.sock",
                      value);
  }
  arguments.agent_socket = value;
  return {};
}

}  // namespace

Result<sockaddr_in> parse_listen(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
    sockaddr_in place{AF_INET, htons(port.value_or(0)), {}, {}};
    const std::string address(text.substr(0, colon));
    if (port && inet_pton(AF_INET, address.c_str(), &place.sin_addr) == 1) return place;
  }
  return make_error(ExitCode::kUsage,
                    "--listen {}: an IPv4 address and a port are wanted, as in "
                    "--listen 127.0.0.1:9451 or, for every address, --listen 0.0.0.0:9451",
                    text);
}

Result<ExporterArguments> parse_exporter_arguments(const std::vector<std::string_view>& words) {
  ExporterArguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--help" || word == "-h") return ExporterArguments{ExporterArguments::Wish::kHelp};
    if (word == "--version") return ExporterArguments{ExporterArguments::Wish::kVersion};
    const std::string_view name = word.substr(0, word.find('='));
    if (name != "--listen" && name != "--agent") {
      return make_error(ExitCode::kUsage, "{} is no option; see hvd-exporter --help", word);
    }
    std::optional<std::string_view> value;
    if (name.size() < word.size()) value = word.substr(name.size() + 1);
    if (!value && i + 1 < words.size()) value = words[++i];
    if (!value) return make_error(ExitCode::kUsage, "{} wants a value behind it", name);
    if (auto taken = take_value(arguments, name, *value); !taken) {
      return tl::unexpected(taken.error());
    }
  }
  return arguments;
}

}  // namespace hvd
