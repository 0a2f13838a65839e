// What must be the same on all ranks of a training job, as names and values, and the one sentence
// about what is not. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hvd::petrv2 {

struct JobFact {
  std::string name;   // as the user writes it: "--batch"
  std::string value;  // the same text for the same value
};
using JobFacts = std::vector<JobFact>;

// As text for the way to the other ranks, and back; an unreadable text gives none.
[[nodiscard]] std::string to_text(const JobFacts& facts);
[[nodiscard]] JobFacts facts_from(const std::string& text);

// by_rank: of every rank, in the order of the ranks. nullopt: all are equal, else "--batch is 2 on
// rank 3 and 1 on ranks 0-2; give all ranks the same".
[[nodiscard]] std::optional<std::string> differences(const std::vector<JobFacts>& by_rank);

}  // namespace hvd::petrv2
