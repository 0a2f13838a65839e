#include "training/petrv2/trainer/job_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "proto/registration_table.h"

namespace hvd::petrv2 {
namespace {

constexpr std::size_t kMaxValues = 4;  // named of one fact
constexpr const char* kNothing = "nothing";

std::string value_of(const JobFacts& facts, const std::string& name) {
  const auto found = std::find_if(facts.begin(), facts.end(),
                                  [&](const JobFact& fact) { return fact.name == name; });
  return found == facts.end() || found->value.empty() ? kNothing : found->value;
}

// In the order of the first rank that has them.
std::vector<std::string> names_in(const std::vector<JobFacts>& by_rank) {
  std::vector<std::string> names;
  for (const JobFacts& facts : by_rank) {
    for (const JobFact& fact : facts) {
      if (std::find(names.begin(), names.end(), fact.name) == names.end()) {
        names.push_back(fact.name);
      }
    }
  }
  return names;
}

struct Camp {
  std::string value;
  std::vector<std::uint32_t> ranks;
};

// Who has which value; the fewest ranks first, for they are most likely the ones to change.
std::vector<Camp> camps_of(const std::string& name, const std::vector<JobFacts>& by_rank) {
  std::vector<Camp> camps;
  for (std::uint32_t rank = 0; rank < by_rank.size(); ++rank) {
    std::string value = value_of(by_rank[rank], name);
    auto found = std::find_if(camps.begin(), camps.end(),
                              [&](const Camp& camp) { return camp.value == value; });
    if (found == camps.end()) found = camps.insert(camps.end(), {std::move(value), {}});
    found->ranks.push_back(rank);
  }
  std::stable_sort(camps.begin(), camps.end(),
                   [](const Camp& a, const Camp& b) { return a.ranks.size() < b.ranks.size(); });
  return camps;
}

// "--batch is 2 on rank 3 and 1 on ranks 0-2".
std::string clause_of(const std::string& name, const std::vector<Camp>& camps) {
  std::string text = name + " is ";
  const std::size_t num_shown = std::min(camps.size(), kMaxValues);
  for (std::size_t i = 0; i < num_shown; ++i) {
    if (i > 0) text += i + 1 == camps.size() ? " and " : ", ";
    text += fmt::format("{} on {}", camps[i].value, rank_list(camps[i].ranks));
  }
  const std::size_t num_left = camps.size() - num_shown;
  return num_left == 0 ? text : fmt::format("{} and {} more values", text, num_left);
}

}  // namespace

std::string to_text(const JobFacts& facts) {
  auto array = nlohmann::json::array();
  for (const JobFact& fact : facts) array.push_back({fact.name, fact.value});
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

JobFacts facts_from(const std::string& text) {
  const auto array = nlohmann::json::parse(text, nullptr, false);
  JobFacts facts;
  if (!array.is_array()) return facts;
  for (const auto& pair : array) {
    const bool is_fact =
        pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string();
    if (is_fact) facts.push_back({pair[0].get<std::string>(), pair[1].get<std::string>()});
  }
  return facts;
}

std::optional<std::string> differences(const std::vector<JobFacts>& by_rank) {
  std::vector<std::string> clauses;
  for (const std::string& name : names_in(by_rank)) {
    const auto camps = camps_of(name, by_rank);
    if (camps.size() > 1) clauses.push_back(clause_of(name, camps));
  }
  if (clauses.empty()) return std::nullopt;
  return fmt::format("{}; give all ranks the same", fmt::join(clauses, "; "));
}

}  // namespace hvd::petrv2
