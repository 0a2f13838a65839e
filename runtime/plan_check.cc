#include "runtime/plan_check.h"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/plural.h"
#include "runtime/worker_exit.h"

namespace hvd {
namespace {

using Json = nlohmann::json;
using Ranks = std::vector<int>;

auto key_of(const PlanLine& line) { return std::tie(line.kind, line.name, line.text); }

// "rank 3", "ranks 0-2, 5".
std::string text_of(const Ranks& ranks) {
  std::string text;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[begin]);
    if (end - begin > 1) text += fmt::format("-{}", ranks[end - 1]);
    begin = end;
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", text);
}

// What each rank has under one name.
struct Comparison {
  std::vector<std::pair<std::string, Ranks>> texts;  // in the order of the ranks
  Ranks present;

  void add(int rank, const std::string& text) {
    present.push_back(rank);
    const auto same =
        std::find_if(texts.begin(), texts.end(), [&](const auto& t) { return t.first == text; });
    if (same != texts.end()) {
      same->second.push_back(rank);
    } else {
      texts.emplace_back(text, Ranks{rank});
    }
  }

  [[nodiscard]] Ranks lacking(std::size_t num_ranks) const {
    Ranks ranks;
    for (int rank = 0; rank < static_cast<int>(num_ranks); ++rank) {
      if (!std::binary_search(present.begin(), present.end(), rank)) ranks.push_back(rank);
    }
    return ranks;
  }

  [[nodiscard]] std::string sentence(std::size_t num_ranks) const {
    std::string text;
    for (const auto& [what, ranks] : texts) {
      text += fmt::format("{}{} on {}", text.empty() ? "is " : " and ", what, text_of(ranks));
    }
    const Ranks missing = lacking(num_ranks);
    return missing.empty() ? text : fmt::format("{} and missing on {}", text, text_of(missing));
  }
};

using Comparisons = std::map<std::pair<PlanLine::Kind, std::string>, Comparison>;

Comparisons differences(const std::vector<Plan>& of_ranks) {
  Comparisons all;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (const PlanLine& line : of_ranks[rank]) {
      all[{line.kind, line.name}].add(static_cast<int>(rank), line.text);
    }
  }
  std::erase_if(all, [&](const auto& entry) {
    const Comparison& comparison = entry.second;
    return comparison.texts.size() == 1 && comparison.present.size() == of_ranks.size();
  });
  return all;
}

// Without a problem of any rank.
Result<void> check_problems(const std::vector<Plan>& of_ranks) {
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (const PlanLine& line : of_ranks[rank]) {
      if (line.kind != PlanLine::Kind::kProblem) continue;
      return worker_error(WorkerExit::kMismatch, "rank {}: {}", rank, line.text);
    }
  }
  return {};
}

std::string encode(const Plan& plan) {
  Json lines = Json::array();
  for (const PlanLine& line : plan) {
    lines.push_back({static_cast<int>(line.kind), line.name, line.text});
  }
  return lines.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Plan decode(const std::string& text) {
  Plan plan;
  for (const Json& line : Json::parse(text)) {
    plan.push_back({static_cast<PlanLine::Kind>(line.at(0).get<int>()), line.at(1), line.at(2)});
  }
  return plan;
}

// Every rank's plan, in the order of the ranks.
Result<std::vector<Plan>> gather_plans(const std::string& own, Communicator& communicator,
                                       const Call& call) {
  const auto num_ranks = static_cast<std::size_t>(communicator.size());
  const auto size = static_cast<std::int64_t>(own.size());
  std::vector<std::int64_t> sizes(num_ranks);
  auto done = communicator.all_gather(&size, sizes.data(), 1, DataType::kInt64, call);
  if (!done) return collective_error(communicator, done.error());

  const auto longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::string padded = own;
  padded.resize(longest);
  std::string all(longest * num_ranks, '\0');
  done = communicator.all_gather(padded.data(), all.data(), longest, DataType::kUint8, call);
  if (!done) return collective_error(communicator, done.error());

  std::vector<Plan> plans;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    plans.push_back(decode(all.substr(rank * longest, static_cast<std::size_t>(sizes[rank]))));
  }
  return plans;
}

}  // namespace

Result<void> compare_plans(const std::vector<Plan>& of_ranks) {
  if (auto checked = check_problems(of_ranks); !checked) return checked;
  const Comparisons different = differences(of_ranks);
  if (different.empty()) return {};
  const auto& [key, first] = *different.begin();
  const bool is_tensor = key.first == PlanLine::Kind::kTensor;
  const std::size_t num_more = different.size() - 1;
  return worker_error(
      WorkerExit::kMismatch,
      "the ranks do not have the same {}: {} {}{}; start all ranks with the {}",
      is_tensor ? "tensors" : "settings", key.second, first.sentence(of_ranks.size()),
      num_more == 0 ? "" : fmt::format(" ({} more)", counted(num_more, "difference")),
      is_tensor ? "same program and configuration" : "same options and environment");
}

Result<void> check_plan(Plan own, Communicator& communicator, const Call& call) {
  std::sort(own.begin(), own.end(),
            [](const PlanLine& a, const PlanLine& b) { return key_of(a) < key_of(b); });
  const std::string text = encode(own);
  // Where hashes of equal plans differed, the comparison of their lines would find nothing.
  const std::uint64_t hash = std::hash<std::string>()(text);
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(communicator.size()));
  const auto done =
      communicator.all_gather(&hash, hashes.data(), sizeof hash, DataType::kUint8, call);
  if (!done) return collective_error(communicator, done.error());
  const bool is_same = std::all_of(hashes.begin(), hashes.end(),
                                   [&](std::uint64_t other) { return other == hashes.front(); });
  if (is_same) return compare_plans({std::move(own)});
  const auto plans = gather_plans(text, communicator, call);
  if (!plans) return tl::unexpected(plans.error());
  return compare_plans(*plans);
}

}  // namespace hvd
