#include "launcher/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/lines.h"
#include "base/plural.h"
#include "base/process_state.h"
#include "launcher/visible.h"

namespace hvd {
namespace {

std::string header(const RankEvidence& rank, const EvidenceView& view) {
  std::string text =
      fmt::format("hvdrun: rank {} ({}, pid {})", rank.found.rank(), rank.host, rank.found.pid());
  const std::string state = process_state_text(rank.found.state());
  if (!state.empty()) text += ", " + state;
  const std::string& problem = rank.found.problem();
  if (rank.found.text().empty()) {
    text +=
        view.command.empty() ? "; the kernel tells nothing of it" : "; --on-stall printed nothing";
    return text + (problem.empty() ? "" : fmt::format(": the command {}", problem)) + "\n";
  }
  text += view.command.empty() ? "; the kernel tells of it" : "; --on-stall says of it";
  return text + (problem.empty() ? "" : fmt::format(" (the command {})", problem)) + ":\n";
}

void append_rank(std::string& out, const RankEvidence& rank, const EvidenceView& view) {
  out += header(rank, view);
  std::string_view text = rank.found.text();
  for (std::size_t i = 0; i < kMaxShownLines && !text.empty(); ++i) {
    if (out.size() > kMaxShownBytes) break;
    append_quoted(out, take_line(text));
  }
  const std::uint64_t num_left = text.size() + rank.found.num_left_out();
  if (num_left > 0) out += fmt::format("  | ({} left out)\n", counted(num_left, "byte"));
}

std::vector<const RankEvidence*> in_order(const std::vector<RankEvidence>& all,
                                          const EvidenceView& view) {
  const auto place = [&view](const RankEvidence* rank) {
    return std::find(view.first.begin(), view.first.end(), rank->found.rank()) - view.first.begin();
  };
  std::vector<const RankEvidence*> order;
  for (const RankEvidence& rank : all) order.push_back(&rank);
  std::sort(order.begin(), order.end(), [&place](const RankEvidence* a, const RankEvidence* b) {
    const auto place_a = place(a);
    const auto place_b = place(b);
    return place_a != place_b ? place_a < place_b : a->found.rank() < b->found.rank();
  });
  return order;
}

}  // namespace

std::string evidence_text(const std::vector<RankEvidence>& all, const EvidenceView& view) {
  std::string out;
  std::size_t num_shown = 0;
  for (const RankEvidence* rank : in_order(all, view)) {
    const bool is_first =
        std::find(view.first.begin(), view.first.end(), rank->found.rank()) != view.first.end();
    const bool has_room = num_shown < kMaxShownRanks && out.size() <= kMaxShownBytes;
    if (!has_room || (!is_first && !view.shows_others)) continue;
    append_rank(out, *rank, view);
    ++num_shown;
  }
  const std::size_t num_others = all.size() - num_shown;
  if (num_others > 0 && (view.has_report || view.shows_others)) {
    out += fmt::format("hvdrun: what was found of {} more {}\n", counted(num_others, "rank"),
                       view.has_report ? "stands in the file of --report"
                                       : "is not shown; --report FILE keeps all of it");
  }
  return out;
}

}  // namespace hvd
