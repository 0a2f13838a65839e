// The files of --output-filename: DIR/rank.N/stdout and DIR/rank.N/stderr, each byte that the rank
// wrote. A thread of its own writes them, so that no disk holds up the loop; what it cannot write
// is told once, and the job goes on.
//
// Memory: what was submitted and is not written yet; the caller returns credits only from
// `on_written`, so a slow disk slows the ranks' output down like a slow terminal.
//
// Thread: construction, submit(), flush() and destruction on the loop's; callbacks run there.
// Destruction waits for no write: a thread that is stuck in one is left behind and touches the loop
// no more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/status.h"

namespace hvd {

// "rank.03": as many digits as the largest rank of the job has.
[[nodiscard]] std::string rank_folder(std::uint32_t rank, std::uint32_t num_ranks);

// Folders of ranks in DIR that are none of this job's, sorted: an earlier job had more ranks.
[[nodiscard]] std::vector<std::string> other_rank_folders(const std::string& dir,
                                                          std::uint32_t num_ranks);

// Makes DIR, the folders and the files of all ranks. `is_new`: what stood in the files is gone.
// Errors are of usage.
[[nodiscard]] Result<void> make_rank_files(const std::string& dir, std::uint32_t num_ranks,
                                           bool is_new);

struct RankBytes {
  std::uint32_t rank = 0;
  bool is_stderr = false;
  std::string bytes;
};

class RankFiles {
 public:
  // Called once, with a sentence: some file cannot be written any more. From then on its bytes are
  // thrown away and count as written; other files go on.
  using OnBroken = std::function<void(const std::string& sentence)>;

  // Appends to the files of make_rank_files().
  RankFiles(Loop& loop, std::string dir, std::uint32_t num_ranks, OnBroken on_broken);
  ~RankFiles();
  RankFiles(const RankFiles&) = delete;
  RankFiles& operator=(const RankFiles&) = delete;

  // Queues bytes. `on_written` runs when these and all before them are written.
  void submit(std::vector<RankBytes> pieces, std::function<void()> on_written);

  // Waits until all that was submitted is written; false if the deadline came first.
  [[nodiscard]] Task<bool> flush(SteadyTime deadline);

 private:
  class Writer;
  struct Batch {
    std::vector<RankBytes> pieces;
    std::function<void()> on_written;  // the loop's
  };
  void batch_done(const std::function<void()>& on_written, const std::string& problem);

  const OnBroken on_broken_;
  bool has_told_ = false;
  std::size_t num_open_ = 0;  // batches
  Event idle_;                // set while none is open
  // What a posted completion finds this by; gone with it.
  const std::shared_ptr<RankFiles*> self_;
  const std::shared_ptr<Writer> writer_;  // shared with its thread, which may outlive this
};

}  // namespace hvd
