#include "agent/front_line.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <utility>

#include "base/parse_number.h"
#include "proto/peer_identity.h"

namespace hvd {
namespace {

using Kind = FrontLine::Kind;

constexpr std::size_t kKeyDigits = 64;
constexpr std::size_t kMostMarker = 64;

const std::map<std::string_view, Kind> kKinds = {
    {"job", Kind::kJob}, {"resume", Kind::kResume}, {"reap", Kind::kReap}, {"ctl", Kind::kControl}};

bool is_key(std::string_view text) {
  return text.size() == kKeyDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Those of an option of ours; true if it was one.
Result<bool> take_option(FrontLine& line, const std::string& name, const std::string& value) {
  if (name == "--job") {
    line.job_id = value;
    if (!is_job_id(value)) return make_error("the job is named by 32 hexadecimal digits");
  } else if (name == "--node") {
    const auto node = parse_number<std::uint32_t>(value);
    if (!node) return make_error("--node is a number");
    line.node = *node;
  } else if (name == "--key") {
    line.key = value;
    if (!is_key(value)) return make_error("the key has 64 hexadecimal digits");
  } else if (name == "--gpus") {
    const auto claim = parse_gpu_claim(value);
    if (!claim) return make_error("--gpus is all, none or a list of numbers");
    line.gpus = *claim;
  } else if (name == "--user") {
    line.user = value;
    if (!is_identity_name(value)) return make_error("--user is a name of a user");
  } else {
    return false;
  }
  return true;
}

// What else a launcher says to an agent, and goes on to the job's agent or to the reap, which have
// the rights of the job's user.
enum class Extra { kUnknown, kPassed, kDropped };
Extra extra_of(Kind kind, std::string_view name) {
  if (kind == Kind::kJob && name == "--cgroup-root") return Extra::kPassed;
  if (kind == Kind::kReap && (name == "--grace-ms" || name == "--job-dir")) return Extra::kPassed;
  return kind == Kind::kReap && name == "--cgroup-root" ? Extra::kDropped : Extra::kUnknown;
}

Result<void> take_word(FrontLine& line, const std::string& name, std::istringstream& rest) {
  if (name == "--user-scope") return {};  // a job has a cgroup of its own here
  std::string value;
  if (!(rest >> value)) return make_error("{}: its value is missing", name);
  const auto taken = take_option(line, name, value);
  if (!taken) return tl::unexpected(taken.error());
  if (*taken) return {};
  const Extra extra = extra_of(line.kind, name);
  if (extra == Extra::kUnknown) return make_error("{} is not known here", name);
  if (extra == Extra::kPassed) line.words.insert(line.words.end(), {name, value});
  return {};
}

}  // namespace

std::string marker_of(std::string_view line) {
  const std::string_view word = line.substr(0, line.find(' '));
  const bool is_plain = !word.empty() && word.size() <= kMostMarker &&
                        std::all_of(word.begin(), word.end(), [](unsigned char c) {
                          return std::isalnum(c) != 0 || c == '-';
                        });
  return is_plain ? std::string(word) : std::string();
}

bool is_control_line(std::string_view line) {
  const std::size_t blank = line.find(' ');
  const std::string_view rest = blank == std::string_view::npos ? "" : line.substr(blank + 1);
  return rest == "ctl" || rest.starts_with("ctl ");
}

Result<FrontLine> parse_front_line(std::string_view text) {
  FrontLine line;
  line.marker = marker_of(text);
  std::istringstream words{std::string(text)};
  std::string word;
  words >> word >> word;
  const auto kind = kKinds.find(word);
  if (line.marker.empty() || kind == kKinds.end()) {
    return make_error("this agent is of version " HVDRUN_VERSION
                      " and does not know the greeting; use an hvdrun of that version");
  }
  line.kind = kind->second;
  while (words >> word) {
    if (line.kind == Kind::kControl) {
      line.words.push_back(word);
    } else if (auto taken = take_word(line, word, words); !taken) {
      return tl::unexpected(taken.error());
    }
  }
  const bool has_key = line.kind == Kind::kJob || line.kind == Kind::kResume;
  if (line.kind != Kind::kControl && line.job_id.empty()) return make_error("no job is named");
  if (has_key && line.key.empty()) return make_error("the job's key is missing");
  if (line.kind == Kind::kControl && line.words.empty()) return make_error("ctl what?");
  return line;
}

}  // namespace hvd
