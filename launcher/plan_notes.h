// What the user is told of a plan: in any case that counted slots stay empty, the rest with -v.
#pragma once

#include "base/log.h"
#include "launcher/plan.h"

namespace hvd {

inline void tell_notes(const Plan& plan) {
  if (!plan.leaves_slots && !is_logged(LogLevel::kInfo)) return;
  for (const std::string& note : plan.notes) write_log(LogLevel::kInfo, note);
}

}  // namespace hvd
