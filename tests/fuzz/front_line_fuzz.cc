// The first line of those who have shown who they are: whatever the bytes, what is asked for is
// named whole and fit to become paths and words of other programs, or one line says why not.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/front_line.h"
#include "proto/peer_identity.h"

namespace {

using Kind = hvd::FrontLine::Kind;

void require(bool is_true) {
  if (!is_true) std::abort();
}

bool is_plain_word(std::string_view word) {
  return !word.empty() && word.find_first_of(std::string_view(" \t\n\v\f\r")) == word.npos;
}

bool is_passed_on(Kind kind, std::string_view name) {
  if (kind == Kind::kReap) return name == "--grace-ms" || name == "--job-dir";
  return kind == Kind::kJob && name == "--cgroup-root";
}

// What goes on to the job's agent or to the reap: pairs of names that are known.
void check_passed_on(const hvd::FrontLine& line) {
  require(line.words.size() % 2 == 0);
  for (std::size_t i = 0; i < line.words.size(); i += 2)
    require(is_passed_on(line.kind, line.words[i]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string marker = hvd::marker_of(text);
  for (const char c : marker) require(c > ' ' && c < 0x7f);
  const auto line = hvd::parse_front_line(text);
  if (!line) {
    require(!line.error().message.empty());
    require(line.error().message.find('\n') == std::string::npos);
    return 0;
  }
  require(!line->marker.empty() && line->marker == marker);
  require(std::all_of(line->words.begin(), line->words.end(), is_plain_word));
  if (line->kind == Kind::kControl) {
    require(!line->words.empty());
    return 0;
  }
  require(hvd::is_job_id(line->job_id));
  require(line->user.empty() || hvd::is_identity_name(line->user));
  require(!(line->gpus.is_all && !line->gpus.indices.empty()));
  require(line->kind == Kind::kReap || line->key.size() == 64);
  check_passed_on(*line);
  return 0;
}
