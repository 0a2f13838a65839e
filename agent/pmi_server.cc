#include "agent/pmi_server.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

namespace hvd {
namespace {

constexpr std::string_view kMapping = "PMI_process_mapping";
constexpr std::size_t kMaxName = 256;  // of a key-value space, as clients are told
constexpr std::size_t kPutOverhead = 16;

// Commands that are refused, and the name of the answer that a client waits for.
struct Refusal {
  std::string_view command;
  std::string_view answer;
};
constexpr std::array kRefusals = {
    Refusal{"publish_name", "cmd=publish_result rc=-1 info=not_supported"},
    Refusal{"unpublish_name", "cmd=unpublish_result rc=-1 info=not_supported"},
    Refusal{"lookup_name", "cmd=lookup_result rc=-1 info=not_supported"},
    Refusal{"getbyidx", "cmd=getbyidx_results rc=-1 reason=not_supported"},
};

int number_of(std::optional<std::string_view> text, int fallback) {
  int value = fallback;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

// What of a client's word may stand in an answer or a sentence.
std::string printable(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, kMaxName / 8)) text += c > ' ' && c <= '~' ? c : '?';
  return text;
}

}  // namespace

PmiServer::PmiServer(const v1::PmiWorld& world, std::string_view job_id,
                     const std::vector<std::uint32_t>& ranks)
    : size_(world.size()), kvs_name_(fmt::format("kvs_{}", job_id)) {
  for (const std::uint32_t rank : ranks) ranks_[rank];
  if (!world.process_mapping().empty()) keep(std::string(kMapping), world.process_mapping());
}

void PmiServer::keep(const std::string& key, const std::string& value) {
  if (values_.emplace(key, value).second) num_bytes_ += key.size() + value.size();
}

PmiStep PmiServer::take(std::uint32_t number, std::string_view bytes) {
  PmiStep step;
  const auto found = ranks_.find(number);
  if (found == ranks_.end() || found->second.is_closed) return step;
  Rank& rank = found->second;
  std::string answers;
  rank.lines.append(bytes);
  while (auto command = rank.lines.next()) {
    const Answer line = answer(rank, *command, step, number);
    if (rank.is_closed) return step;
    if (!line.empty()) answers += line + "\n";
  }
  if (rank.lines.is_broken()) {
    close(number, rank, "sent what is no PMI command", step);
  } else {
    step.replies.push_back({number, std::move(answers)});
  }
  return step;
}

PmiServer::Answer PmiServer::answer(Rank& rank, const PmiCommand& command, PmiStep& step,
                                    std::uint32_t number) {
  const std::string& name = command.name;
  if (name == "init") return answer_init(rank, command);
  if (name == "abort") {
    // MPICH waits here to be killed; after an answer MPI_Abort would return.
    rank.abort_code = number_of(command.find("exitcode"), 1);
    rank.is_closed = true;
    step.replies.push_back({number, "", false, true});
    return {};
  }
  if (rank.phase != Phase::kOpen) {
    close(number, rank, fmt::format("sent the PMI command '{}' outside of MPI", printable(name)),
          step);
    return {};
  }
  if (name == "put") return answer_put(command);
  if (name == "get") return answer_get(command);
  if (name == "spawn") return answer_spawn(rank, command);
  if (name == "finalize") {
    rank.phase = Phase::kFinal;
    return "cmd=finalize_ack";
  }
  if (name == "barrier_in") {
    if (!enter_barrier(rank, step)) close(number, rank, "entered a PMI barrier twice", step);
    return {};
  }
  return answer_query(command);
}

PmiServer::Answer PmiServer::answer_init(Rank& rank, const PmiCommand& command) const {
  if (number_of(command.find("pmi_version"), 0) != 1) {
    return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1";
  }
  rank.phase = Phase::kOpen;
  return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
}

PmiServer::Answer PmiServer::answer_query(const PmiCommand& command) const {
  const std::string& name = command.name;
  if (name == "get_maxes") {
    return fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={}", kMaxName, kMaxKey,
                       kMaxValue);
  }
  if (name == "get_appnum") return "cmd=appnum appnum=0";
  if (name == "get_my_kvsname") return fmt::format("cmd=my_kvsname kvsname={}", kvs_name_);
  if (name == "get_universe_size") return fmt::format("cmd=universe_size size={}", size_);
  for (const Refusal& refusal : kRefusals) {
    if (name == refusal.command) return std::string(refusal.answer);
  }
  return fmt::format("cmd={}_result rc=-1 msg=unknown_command", printable(name));
}

bool PmiServer::is_ours(const PmiCommand& command) const {
  return command.find("kvsname").value_or(kvs_name_) == kvs_name_;
}

PmiServer::Answer PmiServer::answer_put(const PmiCommand& command) {
  const auto refuse = [](std::string_view why) {
    return fmt::format("cmd=put_result rc=-1 msg={}", why);
  };
  const std::string key(command.find("key").value_or(""));
  const std::string value(command.find("value").value_or(""));
  if (!is_ours(command)) return refuse("unknown_kvsname");
  if (key.empty() || key.size() > kMaxKey) return refuse("invalid_key_length");
  if (value.size() > kMaxValue) return refuse("invalid_val_length");
  const auto found = values_.find(key);
  if (found != values_.end() && found->second != value) return refuse("duplicate_key");
  if (found != values_.end()) return "cmd=put_result rc=0 msg=success";
  const std::size_t bytes = key.size() + value.size() + kPutOverhead;
  if (num_bytes_ + bytes > kMaxBytes || num_pending_bytes_ + bytes > kMaxFenceBytes) {
    return refuse("kvs_is_full");
  }
  keep(key, value);
  num_pending_bytes_ += bytes;
  v1::PmiPut* put = pending_.add_puts();
  put->set_key(key);
  put->set_value(value);
  return "cmd=put_result rc=0 msg=success";
}

PmiServer::Answer PmiServer::answer_get(const PmiCommand& command) const {
  const std::string key(command.find("key").value_or(""));
  const auto found = is_ours(command) ? values_.find(key) : values_.end();
  if (found == values_.end()) return "cmd=get_result rc=-1 msg=key_not_found value=unknown";
  return fmt::format("cmd=get_result rc=0 msg=success value={}", found->second);
}

// A spawn of several programs is one command for each and one answer to all.
PmiServer::Answer PmiServer::answer_spawn(Rank& rank, const PmiCommand& command) {
  const int num_all = number_of(command.find("totspawns"), 1);
  if (static_cast<int>(++rank.num_spawned) < num_all) return {};
  rank.num_spawned = 0;
  return "cmd=spawn_result rc=-1 msg=not_supported";
}

bool PmiServer::enter_barrier(Rank& rank, PmiStep& step) {
  if (rank.is_in_barrier) return false;
  rank.is_in_barrier = true;
  if (++num_in_barrier_ < ranks_.size()) return true;
  step.fence = std::exchange(pending_, {});
  num_pending_bytes_ = 0;
  return true;
}

void PmiServer::close(std::uint32_t number, Rank& rank, const std::string& why, PmiStep& step) {
  rank.is_closed = true;
  step.replies.push_back({number, "", true});
  step.problems.push_back(fmt::format("rank {} {}; its PMI descriptor was closed", number, why));
}

PmiStep PmiServer::take_fence(const v1::PmiPuts& others) {
  PmiStep step;
  for (const v1::PmiPut& put : others.puts()) {
    if (num_bytes_ + put.key().size() + put.value().size() > kMaxBytes) {
      return fail_fence("the keys of all nodes are more than a node can hold");
    }
    keep(put.key(), put.value());
  }
  num_in_barrier_ = 0;
  for (auto& [number, rank] : ranks_) {
    rank.is_in_barrier = false;
    if (!rank.is_closed) step.replies.push_back({number, "cmd=barrier_out\n"});
  }
  return step;
}

PmiStep PmiServer::fail_fence(const std::string& why) {
  PmiStep step;
  step.problems.push_back(fmt::format("the PMI barrier of this node's ranks failed: {}", why));
  for (auto& [number, rank] : ranks_) {
    if (!std::exchange(rank.is_closed, true)) step.replies.push_back({number, "", true});
  }
  return step;
}

std::optional<int> PmiServer::abort_code(std::uint32_t number) const {
  const auto found = ranks_.find(number);
  if (found == ranks_.end() || !found->second.abort_code) return std::nullopt;
  const int code = static_cast<int>(static_cast<unsigned>(*found->second.abort_code) & 0xffU);
  return code == 0 ? 1 : code;
}

std::string PmiServer::ending(std::uint32_t number) const {
  const auto found = ranks_.find(number);
  if (found == ranks_.end()) return {};
  const Rank& rank = found->second;
  if (rank.abort_code) return fmt::format("called MPI_Abort with code {}", *rank.abort_code);
  if (rank.phase == Phase::kOpen) return "ended between MPI_Init and MPI_Finalize";
  return {};
}

}  // namespace hvd
