// What was collected of the ranks before a job that hangs was stopped, as a person reads it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hvdrun/v1/vitals.pb.h"
#include "proto/v1.h"

namespace hvd {

struct RankEvidence {
  std::string host;  // label of its node
  v1::RankEvidence found;
};

struct EvidenceView {
  std::vector<std::uint32_t> first =
      {};  // ranks to show first: the one to blame, then those that hang
  bool shows_others = false;
  std::string command = {};  // of --on-stall as the user wrote it; empty: the kernel's view
  bool has_report = false;   // --report holds all of it
};

inline constexpr std::size_t kMaxShownRanks = 16;
inline constexpr std::size_t kMaxShownLines = 100;         // of each rank
inline constexpr std::size_t kMaxShownBytes = 64U << 10U;  // of all, about

// Whole lines, each with its end: a header for each rank, what it says, and what was left out.
[[nodiscard]] std::string evidence_text(const std::vector<RankEvidence>& all,
                                        const EvidenceView& view);

}  // namespace hvd
