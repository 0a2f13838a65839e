#include "launcher/watch_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace hvd {
namespace {

using nlohmann::ordered_json;

template <typename Number>
ordered_json number_or_null(const std::optional<Number>& number) {
  return number ? ordered_json(*number) : ordered_json(nullptr);
}

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json rank_json(const RankEvidence& rank, const std::vector<std::uint32_t>& hung) {
  const bool is_hung = std::find(hung.begin(), hung.end(), rank.found.rank()) != hung.end();
  return {{"rank", rank.found.rank()},
          {"host", rank.host},
          {"pid", rank.found.pid()},
          {"state", text_or_null(rank.found.state())},
          {"hangs", is_hung},
          {"text", rank.found.text()},
          {"num_left_out", rank.found.num_left_out()},
          {"problem", text_or_null(rank.found.problem())}};
}

ordered_json place_json(const GpuHistory& gpu) { return {{"host", gpu.host}, {"gpu", gpu.index}}; }

}  // namespace

ordered_json stall_json(const Cause& cause, const std::vector<std::uint32_t>& hung) {
  const bool has_rank = cause.kind == CauseKind::kStalled;
  return {{"rank", has_rank ? ordered_json(cause.rank) : ordered_json(nullptr)},
          {"hung", hung},
          {"reason", cause.text.empty() ? "--timeout has passed" : cause.text}};
}

ordered_json stall_json(const Cause& cause, const std::vector<std::uint32_t>& hung,
                        const std::string& command, const std::vector<RankEvidence>& evidence) {
  ordered_json json = stall_json(cause, hung);
  json["command"] = text_or_null(command);
  json["ranks"] = ordered_json::array();
  for (const RankEvidence& rank : evidence) json["ranks"].push_back(rank_json(rank, hung));
  return json;
}

ordered_json gpu_now_json(const GpuStats& stats) {
  ordered_json gpus = ordered_json::array();
  for (const GpuHistory& gpu : stats.all()) {
    ordered_json json = place_json(gpu);
    json["utilization"] = number_or_null(gpu.utilization_now);
    json["memory_mib"] = number_or_null(gpu.memory_now);
    gpus.push_back(std::move(json));
  }
  return {{"gpus", std::move(gpus)}};
}

ordered_json gpu_run_json(const GpuStats& stats) {
  ordered_json gpus = ordered_json::array();
  for (const GpuHistory& gpu : stats.all()) {
    ordered_json json = place_json(gpu);
    json["num_samples"] = gpu.num_samples;
    json["utilization"] = {{"lowest", number_or_null(gpu.utilization_lowest)},
                           {"mean", number_or_null(gpu.utilization_mean)}};
    json["memory_mib"] = {
        {"lowest", number_or_null(gpu.memory_lowest)},
        {"mean", number_or_null(gpu.memory_mean)},
        {"total", gpu.memory_total > 0 ? ordered_json(gpu.memory_total) : ordered_json(nullptr)}};
    gpus.push_back(std::move(json));
  }
  return {{"summary", text_or_null(stats.text_over_run())}, {"gpus", std::move(gpus)}};
}

std::string json_text(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace hvd
