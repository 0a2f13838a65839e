// The first line to an agent that serves its own user: whatever the bytes, a job or a reap that is
// named, or nothing; and what was understood is understood again from its words.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/greeting.h"

namespace {

void require(bool is_true) {
  if (!is_true) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto greeting = hvd::parse_greeting(text);
  if (!greeting) return 0;
  const hvd::AgentArguments& arguments = greeting->arguments;
  require(arguments.role == hvd::AgentArguments::Role::kServe ||
          arguments.role == hvd::AgentArguments::Role::kReap);
  require(hvd::is_job_id(arguments.job_id) && arguments.node && !arguments.marker.empty());
  std::string line = arguments.marker;
  for (const std::string& word : greeting->words) {
    require(!word.empty() && word.find_first_of(" \n") == std::string::npos);
    line += ' ' + word;
  }
  const auto again = hvd::parse_greeting(line);
  require(again && again->words == greeting->words && again->arguments.node == arguments.node);
  return 0;
}
