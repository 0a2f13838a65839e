#include "agent/greeting.h"

#include <sstream>
#include <utility>

namespace hvd {

std::optional<Greeting> parse_greeting(std::string_view line) {
  std::istringstream text{std::string(line)};
  Greeting greeting;
  std::string marker;
  text >> marker;
  for (std::string word; text >> word;) greeting.words.push_back(std::move(word));
  auto arguments = parse_arguments({greeting.words.begin(), greeting.words.end()});
  if (!arguments || !arguments->node) return std::nullopt;
  using Role = AgentArguments::Role;
  if (arguments->role != Role::kServe && arguments->role != Role::kReap) return std::nullopt;
  greeting.arguments = std::move(*arguments);
  greeting.arguments.marker = std::move(marker);
  return greeting;
}

}  // namespace hvd
