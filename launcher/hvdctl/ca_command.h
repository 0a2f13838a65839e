// `hvdctl ca init|issue|renew|list|revoke`: the private authority of a cluster, in a folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace hvd {

struct CaEnvironment {
  std::string default_folder;  // where the authority is without --dir
  std::int64_t now = 0;        // seconds since 1970
};

// `words` stand behind "ca". What is printed: text for standard output, whole lines.
[[nodiscard]] Result<std::string> run_ca(const std::vector<std::string>& words,
                                         const CaEnvironment& environment);

[[nodiscard]] std::string ca_help();

}  // namespace hvd
