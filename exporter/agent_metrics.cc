#include "exporter/agent_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace hvd {
namespace {

using Json = nlohmann::json;
using Label = prometheus::ClientMetric::Label;
using Labels = std::vector<Label>;
using prometheus::MetricType;

constexpr double kBytesOfMib = 1024.0 * 1024.0;

Json parse_object(const std::optional<std::string>& text) {
  Json object = text ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
  return object.is_object() ? object : Json();
}

// Null where `object` has no such member.
const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

std::optional<double> number(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_number()) return std::nullopt;
  const auto as_double = value.get<double>();
  return std::isfinite(as_double) ? std::optional(as_double) : std::nullopt;
}

std::string text(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// 1 for a text with something in it, 0 for an empty one.
std::optional<double> is_told(const Json& object, const char* name) {
  if (!member(object, name).is_string()) return std::nullopt;
  return text(object, name).empty() ? 0 : 1;
}

// Nothing where it is no list.
const Json& list(const Json& object, const char* name) {
  static const Json kEmpty = Json::array();
  const Json& value = member(object, name);
  return value.is_array() ? value : kEmpty;
}

class Families {
 public:
  void add(const std::string& name, const char* help, MetricType type, std::optional<double> value,
           const Labels& labels = {}) {
    if (!value) return;
    auto family = std::find_if(families_.begin(), families_.end(),
                               [&](const auto& one) { return one.name == name; });
    if (family == families_.end()) {
      family = families_.insert(families_.end(), {name, help, type, {}});
    }
    const auto has_labels = [&](const auto& metric) { return metric.label == labels; };
    if (std::any_of(family->metric.begin(), family->metric.end(), has_labels)) return;
    prometheus::ClientMetric metric;
    metric.label = labels;
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = *value;
    family->metric.push_back(std::move(metric));
  }

  std::vector<prometheus::MetricFamily> take() && { return std::move(families_); }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

// One number of an answer.
struct Field {
  const char* member;
  const char* metric;
  const char* help;
  MetricType type = MetricType::Gauge;
  double factor = 1;
};

void add_fields(Families& families, const Json& object, std::initializer_list<Field> fields,
                const Labels& labels = {}) {
  for (const Field& field : fields) {
    auto value = number(object, field.member);
    if (value) *value *= field.factor;
    families.add(field.metric, field.help, field.type, value, labels);
  }
}

double num_jobs(const Json& status, std::string_view state) {
  const Json& jobs = list(status, "jobs");
  return static_cast<double>(std::count_if(
      jobs.begin(), jobs.end(), [&](const Json& job) { return text(job, "state") == state; }));
}

void add_status(Families& families, const Json& status) {
  families.add("hvdrun_agent_up", "Whether the agent answers", MetricType::Gauge,
               status.is_object() ? 1 : 0);
  if (!status.is_object()) return;
  families.add("hvdrun_agent_info", "Name of the node and version of the agent", MetricType::Gauge,
               1, {{"node", text(status, "node")}, {"version", text(status, "version")}});
  families.add("hvdrun_agent_drained", "Whether new jobs are refused (hvdctl drain)",
               MetricType::Gauge, is_told(status, "draining"));
  add_fields(families, status,
             {{"started", "hvdrun_agent_start_time_seconds", "When the agent started, Unix time"},
              {"max_jobs", "hvdrun_jobs_max", "Jobs that may run at a time"},
              {"num_gpus", "hvdrun_gpus", "GPUs that the agent gives to jobs"}});
  if (!member(status, "jobs").is_array()) return;
  for (const char* state : {"starting", "running", "waiting"}) {
    families.add("hvdrun_jobs", "Jobs by state", MetricType::Gauge, num_jobs(status, state),
                 {{"state", state}});
  }
}

void add_counters(Families& families, const Json& counters) {
  add_fields(families, counters,
             {{"jobs_started", "hvdrun_jobs_started_total", "Jobs started", MetricType::Counter},
              {"jobs_refused", "hvdrun_jobs_refused_total", "Jobs refused", MetricType::Counter},
              {"connections", "hvdrun_connections_total", "Connections taken", MetricType::Counter},
              {"connections_refused", "hvdrun_connections_refused_total",
               "Connections refused before anything of them was read", MetricType::Counter},
              {"resumed", "hvdrun_connections_resumed_total",
               "Connections by which a launcher came back to its job", MetricType::Counter},
              {"rss_bytes", "hvdrun_agent_resident_memory_bytes", "Resident memory of the agent"},
              {"certificate_until", "hvdrun_agent_certificate_end_time_seconds",
               "When the certificate of the agent ends, Unix time"},
              {"descriptors", "hvdrun_agent_open_descriptors", "Open descriptors of the agent"}});
}

// The index as a label, without a decimal point.
std::string index_of(const Json& gpu) {
  const Json& index = member(gpu, "index");
  return index.is_number_integer() ? index.dump() : std::string();
}

void add_gpu(Families& families, const Json& gpu) {
  const std::string index = index_of(gpu);
  if (index.empty()) return;
  const Labels labels = {{"gpu", index}, {"uuid", text(gpu, "uuid")}};
  Labels with_name = labels;
  with_name.push_back({"name", text(gpu, "name")});
  families.add("hvdrun_gpu_info", "Index, UUID and name of a GPU", MetricType::Gauge, 1, with_name);
  add_fields(families, gpu,
             {{"utilization", "hvdrun_gpu_utilization_ratio",
               "Part of the time with a kernel running", MetricType::Gauge, 0.01},
              {"memory_used", "hvdrun_gpu_memory_used_bytes", "Memory in use", MetricType::Gauge,
               kBytesOfMib},
              {"memory_total", "hvdrun_gpu_memory_total_bytes", "Memory of the GPU",
               MetricType::Gauge, kBytesOfMib},
              {"temperature", "hvdrun_gpu_temperature_celsius", "Temperature"},
              {"power", "hvdrun_gpu_power_watts", "Power drawn"},
              {"ecc_corrected", "hvdrun_gpu_ecc_corrected_total", "Memory errors corrected",
               MetricType::Counter},
              {"ecc_uncorrected", "hvdrun_gpu_ecc_uncorrected_total", "Memory errors not corrected",
               MetricType::Counter},
              {"processes", "hvdrun_gpu_processes", "Processes on the GPU"}},
             labels);
}

void add_xid(Families& families, const Json& entry) {
  const Json& xid = member(entry, "xid");
  if (!xid.is_number_integer()) return;
  families.add("hvdrun_gpu_xid_total", "Xid errors in the kernel's log, by PCI address and number",
               MetricType::Counter, number(entry, "count"),
               {{"pci", text(entry, "pci")}, {"xid", xid.dump()}});
}

void add_gpus(Families& families, const Json& answer) {
  auto is_readable = is_told(answer, "problem");
  if (is_readable) *is_readable = 1 - *is_readable;
  families.add("hvdrun_gpus_readable", "Whether nvidia-smi tells the state of the GPUs",
               MetricType::Gauge, is_readable);
  for (const Json& gpu : list(answer, "gpus")) add_gpu(families, gpu);
  for (const Json& entry : list(answer, "xid")) add_xid(families, entry);
}

}  // namespace

std::vector<prometheus::MetricFamily> metrics_of(const AgentAnswers& answers) {
  Families families;
  add_status(families, parse_object(answers.status));
  add_counters(families, parse_object(answers.counters));
  add_gpus(families, parse_object(answers.gpus));
  return std::move(families).take();
}

}  // namespace hvd
