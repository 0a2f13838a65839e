// Makes the workers' folder of what the launcher sends: takes from the cache what is there, asks
// for the rest, and believes no content whose sum is another.
//
// Lifecycle: made for the first request; on_need once when all entries are known, then on_done
// once: at the first error, or when everything stands there. Works in steps that the loop's other
// work comes between. Thread: the loop's; handlers are called on it, and may destroy nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/stage_cache.h"
#include "base/loop.h"
#include "base/sha256.h"
#include "base/unique_fd.h"
#include "hvdrun/v1/stage.pb.h"

namespace hvd {

class StageIntake {
 public:
  struct Handlers {
    std::function<void(hvdrun::v1::StageNeed)> on_need;
    std::function<void(const std::string& error)> on_done;  // empty: all is well
  };

  // `folder` exists, is empty and ours alone.
  StageIntake(Loop& loop, std::string folder, StageCache cache, Handlers handlers);

  void take(hvdrun::v1::StageRequest&& request);

 private:
  // A file of the folder while it is written, and its copy for the cache.
  struct Writing {
    UniqueFd file;
    UniqueFd kept;  // invalid: not to be kept
    UniqueFd from;  // invalid: its content comes from the launcher
    Sha256 sum;
    std::uint64_t num_written = 0;
  };

  void take_entries(hvdrun::v1::StageRequest&& request);
  void take_data(const hvdrun::v1::StageData& data);
  void step_soon();
  void step();
  [[nodiscard]] std::uint64_t place_next();
  void place_file(const hvdrun::v1::StageEntry& entry);
  [[nodiscard]] std::uint64_t copy_some();
  void ask();
  [[nodiscard]] bool open_file(const hvdrun::v1::StageEntry& entry);
  void write(std::string_view data);
  [[nodiscard]] bool is_right(const hvdrun::v1::StageEntry& entry);
  void end(const std::string& error);
  void fail(const hvdrun::v1::StageEntry& entry, int error);
  [[nodiscard]] std::string path_of(const hvdrun::v1::StageEntry& entry) const;

  enum class State { kEntries, kPlacing, kContent, kOver };

  Loop& loop_;
  const std::string folder_;
  const StageCache cache_;
  const Handlers handlers_;
  State state_ = State::kEntries;
  std::vector<hvdrun::v1::StageEntry> entries_;
  std::uint32_t next_ = 0;            // to be placed
  std::deque<std::uint32_t> needed_;  // the first one's content comes next
  std::optional<Writing> writing_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // for a step that is under way
};

}  // namespace hvd
