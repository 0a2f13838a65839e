// `petrv2 inspect FOLDER`: what the record sets in a folder hold.
#pragma once

#include <string>

namespace hvd::petrv2 {

// Prints, for every split in the folder, its shards, the numbers of samples, steps and boxes by
// class, and the fields of its first sample; as one JSON object if `json`. Returns the exit code:
// 0, or 1 with one sentence on standard error.
int run_inspect_records(const std::string& folder, bool json);

}  // namespace hvd::petrv2
