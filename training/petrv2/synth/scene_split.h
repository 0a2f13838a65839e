// Which scenes `--split` means. nuScenes' own lists of scene names are no part of its archives nor
// of this program: "train", "val", "mini_train" and "mini_val" are read from
// DATAROOT/splits/NAME.txt, where the user has put them; any other word is the path of such a list.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd::petrv2 {

struct SceneSplit {
  std::string name;                                     // what the shards are called after
  std::optional<std::vector<std::string>> scene_names;  // nullopt: all scenes
};

[[nodiscard]] Result<SceneSplit> read_scene_split(const std::string& dataroot,
                                                  const std::string& split);

// One name a line; blank lines and what follows a '#' do not count. `path` is for messages. An
// empty list and a name that comes twice are errors. Pure.
[[nodiscard]] Result<std::vector<std::string>> parse_scene_names(std::string_view text,
                                                                 std::string_view path);

}  // namespace hvd::petrv2
