// How the ranks' output is shown, and where it is written besides.
#pragma once

#include <string>

#include "base/status.h"

namespace hvd {

struct Occurrence;

struct OutputRequest {
  std::string folder;     // of --output-filename, absolute; empty: none
  bool has_time = false;  // the wall time before each line
  bool has_marks = true;  // "[rank]<stdout>:"
};

// Looks at no file: the folder is made when the number of ranks is known (rank_files.h).
[[nodiscard]] Result<void> set_output_option(OutputRequest& request, const Occurrence& it);

}  // namespace hvd
