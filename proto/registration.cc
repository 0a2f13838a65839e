#include "proto/registration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "base/plural.h"
#include "proto/registration_table.h"

namespace hvd {
namespace {

using Ranks = std::vector<v1::Registration>;

// One thing that is compared among all ranks.
struct Fact {
  using Value = std::function<std::string(const v1::Registration&)>;
  const char* name;       // heads its column
  const char* remedy;     // what a user does about it
  Value value;            // what is shown
  Value key = {};         // what is compared, if that is something else
  bool is_words = false;  // only the words that differ are shown
};

std::string known(const std::string& text) { return text.empty() ? "none" : text; }

std::string major_of(const std::string& version) { return version.substr(0, version.find('.')); }

std::string place_of(const v1::Registration& rank) {
  return fmt::format("rank {} (pid {} on {})", rank.rank(), rank.pid(), known(rank.host()));
}

// The plan is hashed with more than its words: where they say nothing, its number does.
std::string plan_of(const v1::Registration& rank) {
  if (rank.plan_hash() == 0) return "";
  return rank.plan().empty() ? fmt::format("{:016x}", rank.plan_hash()) : rank.plan();
}

const std::vector<Fact>& facts_that_must_agree() {
  static const std::vector<Fact> facts = {
      {"NCCL version",
       "install the same NCCL everywhere; where the files are equal, LD_LIBRARY_PATH finds another "
       "library on the differing nodes",
       [](const v1::Registration& rank) { return rank.nccl_version(); }},
      {"hvdrun version", "build the program against one major version of hvdrun's runtime",
       [](const v1::Registration& rank) { return rank.runtime_version(); },
       [](const v1::Registration& rank) { return major_of(rank.runtime_version()); }},
      {"plan", "start all ranks with the same program, options and configuration files", plan_of,
       [](const v1::Registration& rank) { return fmt::format("{:016x}", rank.plan_hash()); }, true},
  };
  return facts;
}

const std::vector<Fact>& facts_that_may_differ() {
  static const std::vector<Fact> facts = {
      {"driver", "one version of the driver on all nodes",
       [](const v1::Registration& rank) { return rank.driver_version(); }},
      {"CUDA", "one CUDA runtime on all nodes",
       [](const v1::Registration& rank) { return rank.cuda_version(); }},
      {"torch", "one libtorch on all nodes",
       [](const v1::Registration& rank) { return rank.torch_version(); }},
      {"NCCL settings",
       "the same NCCL_* variables, /etc/nccl.conf and ~/.nccl.conf on all nodes (hvdrun -x sets a "
       "variable everywhere)",
       [](const v1::Registration& rank) {
         return fmt::format("{}", fmt::join(rank.nccl_settings(), " "));
       },
       {},
       true},
      {"RDMA devices",
       "a node with fewer of them may hang or fall back to TCP: see ibv_devinfo there",
       [](const v1::Registration& rank) { return fmt::format("{}", rank.num_rdma_devices()); }},
  };
  return facts;
}

bool differs(const Ranks& ranks, const Fact& fact) {
  const Fact::Value& key = fact.key ? fact.key : fact.value;
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](const v1::Registration& rank) { return key(rank) != key(ranks.front()); });
}

std::vector<const Fact*> differing(const Ranks& ranks, const std::vector<Fact>& facts) {
  std::vector<const Fact*> result;
  for (const Fact& fact : facts) {
    if (differs(ranks, fact)) result.push_back(&fact);
  }
  return result;
}

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Words that stand in every plan tell nothing.
std::vector<std::string> differing_words(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::string>> words;
  std::map<std::string, std::size_t> count;
  for (const std::string& text : texts) {
    words.push_back(words_in(text));
    for (const std::string& word : std::set(words.back().begin(), words.back().end())) {
      ++count[word];
    }
  }
  std::vector<std::string> result;
  for (auto& list : words) {
    std::erase_if(list, [&](const std::string& word) { return count[word] == texts.size(); });
    result.push_back(fmt::format("{}", fmt::join(list, " ")));
  }
  return result;
}

std::vector<std::string> column_of(const Ranks& ranks, const Fact& fact) {
  std::vector<std::string> column;
  for (const v1::Registration& rank : ranks) column.push_back(fact.value(rank));
  if (!fact.is_words) return column;
  std::vector<std::string> words = differing_words(column);
  const auto is_empty = [](const std::string& text) { return text.empty(); };
  if (!std::all_of(words.begin(), words.end(), is_empty)) return words;
  // The same words, yet not the same: what is compared must tell them apart.
  std::transform(ranks.begin(), ranks.end(), words.begin(), fact.key ? fact.key : fact.value);
  return words;
}

std::string names_of(const std::vector<const Fact*>& facts) {
  std::string text;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (i > 0) text += i + 1 == facts.size() ? " and " : ", ";
    text += facts[i]->name;
  }
  return text;
}

RankTable table_of(const Ranks& ranks, const std::vector<const Fact*>& facts) {
  RankTable table;
  for (const v1::Registration& rank : ranks) table.ranks.push_back({rank.rank(), rank.host()});
  for (const Fact* fact : facts) {
    RankTable::Column column{fact->name, column_of(ranks, *fact)};
    for (std::string& value : column.values) value = known(value);
    table.columns.push_back(std::move(column));
  }
  return table;
}

std::vector<std::string> lines_with_remedies(const RankTable& table,
                                             const std::vector<const Fact*>& facts) {
  std::vector<std::string> lines = table_lines(table);
  for (const Fact* fact : facts) lines.push_back(fmt::format("{}: {}", fact->name, fact->remedy));
  return lines;
}

// Ranks of one host on one GPU that did not say that they mean to.
std::vector<std::vector<const v1::Registration*>> shared_gpus(const Ranks& ranks) {
  std::map<std::pair<std::string, std::string>, std::vector<const v1::Registration*>> users;
  for (const v1::Registration& rank : ranks) {
    if (!rank.gpu_uuid().empty()) users[{rank.host(), rank.gpu_uuid()}].push_back(&rank);
  }
  std::vector<std::vector<const v1::Registration*>> shared;
  for (auto& [gpu, list] : users) {
    const bool is_meant = std::all_of(list.begin(), list.end(),
                                      [](const auto* rank) { return rank->may_share_gpu(); });
    if (list.size() > 1 && !is_meant) shared.push_back(std::move(list));
  }
  return shared;
}

std::string shared_gpu_line(const Ranks& ranks, const std::vector<const v1::Registration*>& users) {
  const v1::Registration& first = *users.front();
  std::vector<std::uint32_t> numbers;
  for (const auto* user : users) numbers.push_back(user->rank());
  const auto num_slots = static_cast<std::size_t>(
      std::count_if(ranks.begin(), ranks.end(),
                    [&](const v1::Registration& rank) { return rank.host() == first.host(); }));
  std::set<std::string> gpus;
  for (const v1::Registration& rank : ranks) {
    if (rank.host() == first.host()) gpus.insert(rank.gpu_uuid());
  }
  return fmt::format("{}: {} share GPU {} ({}, {}); the node has {} of this job on {}",
                     first.host(), rank_list(numbers), first.gpu_uuid(), known(first.gpu_name()),
                     known(first.gpu_bus_id()), counted(num_slots, "rank"),
                     counted(gpus.size(), "GPU"));
}

std::optional<RegistrationRefusal> refuse_shared_gpus(const Ranks& ranks) {
  const auto shared = shared_gpus(ranks);
  if (shared.empty()) return std::nullopt;
  RegistrationRefusal refusal;
  for (const auto& users : shared) refusal.table.push_back(shared_gpu_line(ranks, users));
  refusal.headline = "several ranks use one GPU: " + refusal.table.front();
  if (shared.size() > 1) refusal.headline += fmt::format(" (and {} more GPUs)", shared.size() - 1);
  refusal.table.push_back(
      "remedy: not more slots on a node than it has GPUs (-H NODE:SLOTS), and the GPU of "
      "LOCAL_RANK "
      "in each rank; CUDA_VISIBLE_DEVICES may hide some of them");
  return refusal;
}

std::optional<RegistrationRefusal> refuse_differences(const Ranks& ranks) {
  const auto wrong = differing(ranks, facts_that_must_agree());
  if (wrong.empty()) return std::nullopt;
  const RankTable table = table_of(ranks, wrong);
  std::string headline = fmt::format("the ranks do not fit together: {} {}", names_of(wrong),
                                     wrong.size() == 1 ? "differs" : "differ");
  if (wrong.size() == 1) headline += fmt::format(" ({})", summary_of(table));
  return RegistrationRefusal{std::move(headline), lines_with_remedies(table, wrong)};
}

std::vector<std::string> warn_of_differences(const Ranks& ranks) {
  const auto odd = differing(ranks, facts_that_may_differ());
  if (odd.empty()) return {};
  const auto lines = lines_with_remedies(table_of(ranks, odd), odd);
  return {fmt::format("not the same on all nodes: {} (this may cost speed or hang)\n{}",
                      names_of(odd), fmt::join(lines, "\n"))};
}

}  // namespace

RegistrationVerdict check_registrations(const Ranks& ranks) {
  RegistrationVerdict verdict;
  if (ranks.empty()) return verdict;
  Ranks sorted = ranks;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
  verdict.refusal = refuse_differences(sorted);
  const auto shared = refuse_shared_gpus(sorted);
  if (shared && !verdict.refusal) {
    verdict.refusal = shared;
  } else if (shared) {
    auto& table = verdict.refusal->table;
    table.insert(table.end(), shared->table.begin(), shared->table.end());
  }
  verdict.warnings = warn_of_differences(sorted);
  return verdict;
}

bool is_same_process(const v1::Registration& a, const v1::Registration& b) {
  return a.pid() == b.pid() && a.host() == b.host();
}

std::optional<RegistrationRefusal> check_pair(const v1::Registration& earlier,
                                              const v1::Registration& later) {
  if (earlier.size() != later.size()) {
    return RegistrationRefusal{
        fmt::format("the ranks do not agree how many they are: {} expects {}, {} expects {}",
                    place_of(earlier), counted(earlier.size(), "rank"), place_of(later),
                    counted(later.size(), "rank")),
        {"remedy: one launcher only, and no WORLD_SIZE of an earlier one in the environment"}};
  }
  if (earlier.rank() != later.rank() || is_same_process(earlier, later)) return std::nullopt;
  return RegistrationRefusal{
      fmt::format("rank {} came twice: pid {} on {} and pid {} on {}", later.rank(), earlier.pid(),
                  known(earlier.host()), later.pid(), known(later.host())),
      {"remedy: each process takes its rank from RANK as hvdrun set it; a program that starts "
       "processes of its own must not give them the same one"}};
}

std::optional<RegistrationRefusal> check_alone(const v1::Registration& registration) {
  if (registration.rank() < registration.size()) return std::nullopt;
  return RegistrationRefusal{
      fmt::format("{} claims a rank that {} do not have", place_of(registration),
                  counted(registration.size(), "rank")),
      {"remedy: RANK and WORLD_SIZE come from one launcher"}};
}

}  // namespace hvd
