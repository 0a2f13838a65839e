// Do the ranks of a job fit together? What each of them told before any collective library starts
// goes in, a verdict comes out: one table over all nodes for what must be equal and is not, one for
// what may differ and is worth knowing. Pure; for whoever keeps the registrations of a job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hvdrun/v1/types.pb.h"
#include "proto/v1.h"

namespace hvd {

// Why ranks are not let in.
struct RegistrationRefusal {
  std::string headline;            // one line, complete in itself: what is wrong and where
  std::vector<std::string> table;  // lines for a person: who has what, then the remedies
};

struct RegistrationVerdict {
  std::optional<RegistrationRefusal> refusal;
  std::vector<std::string> warnings;  // each a headline with the lines of its table after it
};

// Of all ranks of one generation, each once.
[[nodiscard]] RegistrationVerdict check_registrations(
    const std::vector<hvdrun::v1::Registration>& ranks);

// What is wrong with `later` beside `earlier`, whichever ranks are still missing: the same rank in
// another process, another number of ranks. nullopt: they may stand together.
[[nodiscard]] std::optional<RegistrationRefusal> check_pair(const hvdrun::v1::Registration& earlier,
                                                            const hvdrun::v1::Registration& later);

// What is wrong with one alone: a rank that its number of ranks does not have.
[[nodiscard]] std::optional<RegistrationRefusal> check_alone(
    const hvdrun::v1::Registration& registration);

// Whether both are of one process.
[[nodiscard]] bool is_same_process(const hvdrun::v1::Registration& a,
                                   const hvdrun::v1::Registration& b);

}  // namespace hvd
