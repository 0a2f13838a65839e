#include "launcher/hvdctl/control_answer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace hvd {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 8;           // what is nested deeper is left out
constexpr std::size_t kQuoted = 120;  // of a line that makes no sense

tl::unexpected<ControlFailure> faulty(std::string why) {
  return tl::unexpected(ControlFailure{ControlFailure::Kind::kFaulty,
                                       "its answer makes no sense: " + std::move(why)});
}

Json parse_bounded(std::string_view text) {
  return Json::parse(
      text, [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepest; }, false);
}

// Reads the fields of one object; the first that is of another kind than it should be is kept.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {
    if (!object.is_object()) wrong_ = "it is no object";
  }

  void text(const char* key, std::string& value) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    if (!found->is_string()) return blame(key, "no text");
    value = found->get<std::string>();
  }
  void needed_text(const char* key, std::string& value) {
    text(key, value);
    if (value.empty()) blame(key, "missing");
  }
  template <typename Number>
  void number(const char* key, Number& value) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    const bool fits =
        std::is_signed_v<Number> ? found->is_number_integer() : found->is_number_unsigned();
    if (!fits) return blame(key, "no whole number");
    value = found->get<Number>();
  }
  // Never null; empty where there is none.
  const Json& list(const char* key) {
    static const Json kNone = Json::array();
    const Json* const found = find(key);
    if (found != nullptr && found->is_array()) return *found;
    blame(key, "no list");
    return kNone;
  }
  void blame(const char* key, const char* what) {
    if (wrong_.empty()) wrong_ = fmt::format("\"{}\" is {}", key, what);
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  [[nodiscard]] const Json* find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  const Json& object_;  // not owned
  std::string wrong_;
};

bool is_job_id(std::string_view text) {
  constexpr std::size_t kDigits = 32;
  return text.size() == kDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Answer<JobStatus> job_of(const Json& json) {
  JobStatus job;
  Fields fields(json);
  fields.text("job", job.id);
  if (!is_job_id(job.id)) fields.blame("job", "no id of a job");
  fields.number("index", job.index);
  fields.text("client", job.client);
  fields.text("user", job.user);
  fields.text("from", job.from);
  fields.text("state", job.state);
  fields.number("since", job.since);
  fields.text("gpus", job.gpus);
  fields.text("unit", job.unit);
  if (!fields.wrong().empty()) return faulty(fields.wrong());
  return job;
}

}  // namespace

Answer<std::string> take_answer(std::string_view line, std::string_view marker) {
  constexpr std::string_view kRefused = "refused: ";
  constexpr std::string_view kError = " error ";
  constexpr std::string_view kOk = " ok ";
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with(kRefused)) {
    return tl::unexpected(
        ControlFailure{ControlFailure::Kind::kRefused, std::string(line.substr(kRefused.size()))});
  }
  if (line.starts_with(marker)) {
    const std::string_view rest = line.substr(marker.size());
    if (rest.starts_with(kOk)) return std::string(rest.substr(kOk.size()));
    if (rest.starts_with(kError)) {
      return tl::unexpected(
          ControlFailure{ControlFailure::Kind::kRefused, std::string(rest.substr(kError.size()))});
    }
  }
  return faulty(fmt::format("it begins with \"{}\"", line.substr(0, kQuoted)));
}

Answer<NodeStatus> parse_status(std::string_view json) {
  const Json parsed = parse_bounded(json);
  NodeStatus status;
  Fields fields(parsed);
  fields.needed_text("node", status.node);
  fields.text("version", status.version);
  fields.number("started", status.started);
  fields.text("draining", status.draining);
  fields.number("max_jobs", status.max_jobs);
  fields.number("num_gpus", status.num_gpus);
  for (const Json& one : fields.list("jobs")) {
    auto job = job_of(one);
    if (!job) return tl::unexpected(job.error());
    status.jobs.push_back(std::move(*job));
  }
  if (!fields.wrong().empty()) return faulty(fields.wrong());
  return status;
}

Answer<std::uint64_t> parse_stopped(std::string_view json) {
  const Json parsed = parse_bounded(json);
  Fields fields(parsed);
  std::uint64_t stopped = 0;
  fields.number("stopped", stopped);
  if (!fields.wrong().empty()) return faulty(fields.wrong());
  return stopped;
}

Answer<std::string> parse_draining(std::string_view json) {
  const Json parsed = parse_bounded(json);
  Fields fields(parsed);
  std::string draining;
  fields.text("draining", draining);
  if (!fields.wrong().empty()) return faulty(fields.wrong());
  return draining;
}

}  // namespace hvd
