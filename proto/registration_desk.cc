#include "proto/registration_desk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/plural.h"
#include "proto/registration_table.h"
#include "proto/waiting.h"

namespace hvd {
namespace {

v1::StoreReply reply_of(v1::StoreStatus status, std::string text) {
  v1::StoreReply reply;
  reply.set_status(status);
  reply.set_text(std::move(text));
  return reply;
}

StoreAnswer answer_to(std::pair<std::uint32_t, std::uint64_t> id, v1::StoreReply reply) {
  reply.set_id(id.second);
  return {id.first, std::move(reply)};
}

}  // namespace

StoreAnswers RegistrationDesk::take(std::uint32_t node, std::uint64_t id,
                                    const v1::StoreRegister& request, SteadyTime now) {
  const v1::Registration& registration = request.registration();
  if (end_reason_) {
    return {answer_to({node, id}, reply_of(v1::STORE_STATUS_CANCELLED, *end_reason_))};
  }
  if (!begin(registration)) {
    return {answer_to({node, id}, reply_of(v1::STORE_STATUS_CONFLICT,
                                           fmt::format("generation {} has passed; the job is at {}",
                                                       registration.generation(), generation_)))};
  }
  if (phase_ != Phase::kOpen) return answer_late(node, id, registration);
  StoreAnswers out;
  const auto wrong = check(registration);
  const auto old = places_.find(registration.rank());
  if (!wrong && old != places_.end()) {
    out.push_back(answer_to(
        old->second.id, reply_of(v1::STORE_STATUS_CONFLICT, "the same process registered again")));
  }
  const SteadyTime deadline = answer_deadline(request.timeout_ms(), now);
  if (!start_deadline_) start_deadline_ = deadline;
  if (wrong) {
    refuse(*wrong, false, out);
    out.push_back(answer_to({node, id}, verdict_));
    return out;
  }
  places_.insert_or_assign(
      registration.rank(),
      Place{registration, {node, id}, deadline, std::chrono::milliseconds(request.timeout_ms())});
  if (places_.size() == size_) {
    conclude(out);
  } else if (waits_in_vain()) {
    refuse(ended_refusal(), true, out);
  }
  return out;
}

// A rank that has gone does not come any more.
bool RegistrationDesk::waits_in_vain() const {
  return !places_.empty() && std::any_of(ended_.begin(), ended_.end(), [this](const auto& end) {
    return end.first < size_ && !places_.contains(end.first);
  });
}

// False: of a generation that has passed.
bool RegistrationDesk::begin(const v1::Registration& registration) {
  if (size_ > 0 && registration.generation() < generation_) return false;
  if (size_ > 0 && registration.generation() == generation_) return true;
  generation_ = registration.generation();
  size_ = std::min(registration.size(), kMaxRanks);
  phase_ = Phase::kOpen;
  places_.clear();
  start_deadline_.reset();
  return true;
}

std::optional<RegistrationRefusal> RegistrationDesk::check(
    const v1::Registration& registration) const {
  if (auto wrong = check_alone(registration)) return wrong;
  if (places_.empty()) return std::nullopt;
  if (auto wrong = check_pair(places_.begin()->second.registration, registration)) return wrong;
  const auto found = places_.find(registration.rank());
  return found == places_.end() ? std::nullopt
                                : check_pair(found->second.registration, registration);
}

// The ranks are inside already, or refused: one more process is told so and disturbs nobody.
StoreAnswers RegistrationDesk::answer_late(std::uint32_t node, std::uint64_t id,
                                           const v1::Registration& registration) const {
  if (phase_ == Phase::kDone) {
    if (const auto wrong = check(registration)) {
      return {answer_to({node, id}, reply_of(v1::STORE_STATUS_MISMATCH, wrong->headline))};
    }
  }
  return {answer_to({node, id}, verdict_)};
}

void RegistrationDesk::conclude(StoreAnswers& out) {
  std::vector<v1::Registration> ranks;
  for (const auto& [rank, place] : places_) ranks.push_back(place.registration);
  RegistrationVerdict verdict = check_registrations(ranks);
  if (verdict.refusal) return refuse(std::move(*verdict.refusal), false, out);
  phase_ = Phase::kDone;
  verdict_ = reply_of(v1::STORE_STATUS_OK, "");
  for (const std::string& warning : verdict.warnings) verdict_.add_warnings(warning);
  answer_all(verdict_, out);
  outcome_ = Outcome{std::nullopt, false, std::move(verdict.warnings)};
}

void RegistrationDesk::refuse(RegistrationRefusal refusal, bool is_timeout, StoreAnswers& out) {
  phase_ = Phase::kRefused;
  verdict_ =
      reply_of(is_timeout ? v1::STORE_STATUS_TIMEOUT : v1::STORE_STATUS_MISMATCH, refusal.headline);
  answer_all(verdict_, out);
  outcome_ = Outcome{std::move(refusal), is_timeout, {}};
}

void RegistrationDesk::answer_all(const v1::StoreReply& reply, StoreAnswers& out) const {
  for (const auto& [rank, place] : places_) out.push_back(answer_to(place.id, reply));
}

std::string RegistrationDesk::name_of(std::uint32_t rank) const {
  std::vector<std::string> known;
  if (rank < hosts_.size()) known.push_back(hosts_[rank]);
  std::string process = process_text_ ? process_text_(rank) : "";
  if (!process.empty()) known.push_back(std::move(process));
  std::string name = fmt::format("rank {}", rank);
  if (!known.empty()) name += fmt::format(" ({})", fmt::join(known, ", "));
  const auto end = ended_.find(rank);
  return end == ended_.end() ? name : fmt::format("{} {}", name, end->second);
}

std::string RegistrationDesk::missing_text(bool only_ended) const {
  std::vector<std::string> names;
  std::size_t num_missing = 0;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (places_.contains(rank) || (only_ended && !ended_.contains(rank))) continue;
    if (++num_missing <= kMaxMissingNamed) names.push_back(name_of(rank));
  }
  if (num_missing > kMaxMissingNamed) {
    names.push_back(fmt::format("and {} more", num_missing - kMaxMissingNamed));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// The limit is the ranks' own, so it is named as they know it.
RegistrationRefusal RegistrationDesk::late_refusal(std::chrono::milliseconds limit) const {
  return {fmt::format("only {} of {} registered within {}, the program's limit for its start "
                      "(InitOptions::start_timeout, start_timeout_ms in C); missing: {}",
                      places_.size(), counted(size_, "rank"), format_duration(limit),
                      missing_text(/*only_ended=*/false)),
          {}};
}

RegistrationRefusal RegistrationDesk::ended_refusal() const {
  return {fmt::format("{} before it registered; the other ranks of {} wait for it in vain",
                      missing_text(/*only_ended=*/true), size_),
          {}};
}

StoreAnswers RegistrationDesk::expire(SteadyTime now) {
  StoreAnswers out;
  const auto deadline = next_deadline();
  if (!deadline || *deadline > now) return out;
  const auto first = std::min_element(
      places_.begin(), places_.end(),
      [](const auto& a, const auto& b) { return a.second.deadline < b.second.deadline; });
  refuse(late_refusal(first->second.limit), true, out);
  return out;
}

std::optional<SteadyTime> RegistrationDesk::next_deadline() const {
  if (phase_ != Phase::kOpen || end_reason_) return std::nullopt;
  std::optional<SteadyTime> earliest;
  for (const auto& [rank, place] : places_) {
    if (!earliest || place.deadline < *earliest) earliest = place.deadline;
  }
  return earliest;
}

StoreAnswers RegistrationDesk::rank_ended(std::uint32_t rank, const std::string& how) {
  StoreAnswers out;
  ended_.emplace(rank, how);
  if (phase_ != Phase::kOpen || end_reason_) return out;
  places_.erase(rank);  // its call has gone with it
  if (waits_in_vain()) refuse(ended_refusal(), true, out);
  return out;
}

void RegistrationDesk::cancel(std::uint32_t node, std::uint64_t id) {
  if (phase_ != Phase::kOpen) return;
  std::erase_if(places_, [&](const auto& entry) { return entry.second.id == std::pair(node, id); });
}

void RegistrationDesk::forget_node(std::uint32_t node) {
  if (phase_ != Phase::kOpen) return;
  std::erase_if(places_, [&](const auto& entry) { return entry.second.id.first == node; });
}

StoreAnswers RegistrationDesk::cancel_all(std::string reason) {
  StoreAnswers out;
  if (phase_ == Phase::kOpen) answer_all(reply_of(v1::STORE_STATUS_CANCELLED, reason), out);
  end_reason_ = std::move(reason);
  return out;
}

}  // namespace hvd
