// Files that were staged on this node before, by the sum of their content: what is here need not be
// sent again. Several agents of one user may share it; each file is put there whole, by renaming.
// Thread: the loop's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace hvd {

class StageCache {
 public:
  // `folder` is ours alone, and is made if missing; empty: nothing is kept.
  explicit StageCache(std::string folder);

  // For reading, marked as used; invalid if it is not here. What is in it must still be summed.
  [[nodiscard]] UniqueFd find(std::string_view sum) const;

  // A file without a name that becomes that of `sum` by keep(); invalid if it cannot be made, or
  // need not be kept.
  [[nodiscard]] UniqueFd make(std::uint64_t size) const;
  void keep(int file, std::string_view sum) const;
  void forget(std::string_view sum) const;

  // Removes what was not used for longest until the rest is below the cap.
  void trim(std::uint64_t cap_bytes) const;

 private:
  [[nodiscard]] std::string path_of(std::string_view sum) const;

  const std::string folder_;
};

}  // namespace hvd
