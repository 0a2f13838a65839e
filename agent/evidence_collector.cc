#include "agent/evidence_collector.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "agent/executable.h"
#include "agent/rank_family.h"
#include "base/clock.h"
#include "base/replace_all.h"

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr const char* kOwnProgram = "/proc/self/exe";

SteadyTime::duration steady(std::int64_t milliseconds) {
  return std::chrono::milliseconds(std::max<std::int64_t>(milliseconds, 0));
}

// Of all ranks in one look at the process table.
std::map<pid_t, char> read_states(const std::vector<pid_t>& leaders) {
  std::map<pid_t, char> states;
  const auto table = read_process_table();
  for (const auto& [leader, family] : find_families(table, leaders)) {
    states[leader] = family_state(family);
  }
  return states;
}

}  // namespace

struct EvidenceCollector::Item {
  explicit Item(Loop& loop) : limit(loop) {}

  v1::RankEvidence evidence;
  std::vector<std::string> words;  // empty: our own look
  std::unique_ptr<OutsideProgram> program;
  LimitTimer limit;
};

std::vector<std::string> words_for_pid(const v1::CollectEvidence::Target& it, pid_t pid) {
  const std::string number = fmt::format_int(pid).str();
  std::vector<std::string> words;
  for (std::string word : it.words()) {
    replace_all(word, "{pid}", number);
    words.push_back(std::move(word));
  }
  return words;
}

EvidenceCollector::EvidenceCollector(Loop& loop, v1::CollectEvidence request, Place place)
    : loop_(loop), request_(std::move(request)), place_(std::move(place)), limit_(loop) {}

EvidenceCollector::~EvidenceCollector() = default;

void EvidenceCollector::start(const PidOf& pid_of, OnRank on_rank, OnDone on_done) {
  on_rank_ = std::move(on_rank);
  on_done_ = std::move(on_done);
  std::vector<pid_t> leaders;
  for (const auto& target : request_.targets()) leaders.push_back(pid_of(target.rank()));
  const auto states = read_states(leaders);
  for (const auto& target : request_.targets()) {
    const pid_t pid = pid_of(target.rank());
    if (pid <= 0) continue;  // it has ended in the meantime
    auto item = std::make_unique<Item>(loop_);
    item->evidence.set_rank(target.rank());
    item->evidence.set_pid(pid);
    const auto state = states.find(pid);
    if (state != states.end()) item->evidence.set_state(std::string(1, state->second));
    item->words = words_for_pid(target, pid);
    waiting_.push_back(item.get());
    items_[target.rank()] = std::move(item);
  }
  limit_.start(steady(request_.total_ms()), [this] {
    end(fmt::format("had no time within {} for all ranks",
                    format_duration(steady(request_.total_ms()))));
  });
  fill();
}

// A program that cannot be started finishes at once, within this.
void EvidenceCollector::fill() {
  if (std::exchange(is_filling_, true)) return;
  while (num_running_ < kMaxAtOnce && !waiting_.empty()) {
    Item& item = *waiting_.front();
    waiting_.pop_front();
    ++num_running_;
    begin(item);
  }
  is_filling_ = false;
  if (!items_.empty() || !on_done_) return;
  limit_.cancel();
  std::exchange(on_done_, nullptr)();
}

void EvidenceCollector::begin(Item& item) {
  OutsideProgram::Request request{
      kOwnProgram,
      {"hvd-agent", "stacks", fmt::format_int(item.evidence.pid()).str()},
      place_.env,
      place_.cwd,
      place_.cgroup};
  if (!item.words.empty()) {
    const auto found = find_executable(item.words.front(), place_.env, place_.cwd);
    if (found.errno_value != 0) {
      return finish(item, fmt::format("could not be executed: {}", strerror(found.errno_value)));
    }
    request.executable = found.path;
    request.words = item.words;
  }
  auto program = OutsideProgram::start(
      loop_, request,
      {[this, &item](std::string_view bytes) { take(item, bytes); },
       [this, &item](const std::string& how) { finish(item, how == kEndedWell ? "" : how); }});
  if (!program) return finish(item, program.error().message);
  item.program = std::move(*program);
  item.limit.start(steady(request_.limit_ms()), [this, &item] {
    finish(item,
           fmt::format("did not end within {}", format_duration(steady(request_.limit_ms()))));
  });
}

void EvidenceCollector::take(Item& item, std::string_view bytes) {
  std::string* text = item.evidence.mutable_text();
  const std::size_t room = kMaxBytes - text->size();
  text->append(bytes.substr(0, room));
  item.evidence.set_num_left_out(item.evidence.num_left_out() + bytes.size() -
                                 std::min(bytes.size(), room));
}

void EvidenceCollector::finish(Item& item, std::string problem) {
  const std::uint32_t rank = item.evidence.rank();
  item.evidence.set_problem(std::move(problem));
  on_rank_(std::move(item.evidence));
  --num_running_;
  items_.erase(rank);
  fill();
}

void EvidenceCollector::end(const std::string& why) {
  if (!on_done_) return;
  for (const auto& [rank, item] : items_) {
    item->evidence.set_problem(why);
    on_rank_(std::move(item->evidence));
  }
  waiting_.clear();
  items_.clear();
  limit_.cancel();
  std::exchange(on_done_, nullptr)();
}

}  // namespace hvd
