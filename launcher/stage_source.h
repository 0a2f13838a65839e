// What --stage sends: the files and folders that are named, with their sums, as every node gets
// them. Read before anything is started; the content is read again when it is sent.
//
// A path in hvdrun's working directory keeps its place relative to it, so that a command that works
// here works there; any other stands under its last name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hvdrun/v1/stage.pb.h"
#include "proto/v1.h"

namespace hvd {

struct StageSource {
  std::vector<v1::StageEntry> entries;  // a folder before what is in it
  std::vector<std::string> sources;     // where an entry was read, position by position
  std::uint64_t num_bytes = 0;          // of all files
  std::size_t num_files = 0;
  std::vector<std::string> notes;  // what is left out
};

// Where `path` stands below the ranks' folder; empty: it is that folder. Both absolute or relative
// to `cwd`. Pure.
[[nodiscard]] std::string staged_place(std::string_view path, std::string_view cwd);

// An error (exit 2) names what cannot be read, or stands in one place with something else. Follows
// the links that are named, but none that is found in a folder: those are sent as links. Sockets,
// pipes and devices are left out with a note.
[[nodiscard]] Result<StageSource> read_stage(const std::vector<std::string>& paths,
                                             const std::string& cwd);

}  // namespace hvd
