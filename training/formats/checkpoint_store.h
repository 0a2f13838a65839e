// A folder of checkpoints, one file a step: "step-00001234.safetensors".
//
// A checkpoint appears under its name complete and durable or not at all, so a writer that is
// killed, or a disk that fills up, leaves the ones before as they were. At any time up to one more
// than `keep_last` of them take room on the disk. Rank 0 writes; every rank may read.
//
// Lifecycle of the writer: open() makes the folder, takes its lock (a second writer is refused; the
// kernel drops the lock with the process) and sweeps the temporary files of killed writers, of the
// checkpoints' own naming only. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "training/formats/safetensors.h"

namespace hvd {

// "step-00001234.safetensors" and back; nothing for any other name. Pure.
[[nodiscard]] std::string checkpoint_name(std::uint64_t step);
[[nodiscard]] std::optional<std::uint64_t> checkpoint_step(std::string_view file_name);
[[nodiscard]] std::string checkpoint_path(const std::string& folder, std::uint64_t step);

// Which steps to delete after `saved` was written, so that `keep_last` remain: never `saved`, else
// the lowest. Pure.
[[nodiscard]] std::vector<std::uint64_t> steps_to_delete(std::vector<std::uint64_t> steps,
                                                         std::uint64_t saved,
                                                         std::size_t keep_last);

struct SavedCheckpoint {
  std::string path;
  std::uint64_t num_bytes = 0;
  std::vector<std::string> notes;  // a line for each old checkpoint that could not be deleted
};

class CheckpointStore {
 public:
  // `keep_last` >= 1.
  [[nodiscard]] static Result<CheckpointStore> open(const std::string& folder,
                                                    std::size_t keep_last);

  // Writes the checkpoint, then deletes old ones. After an error nothing has changed in the folder.
  [[nodiscard]] Result<SavedCheckpoint> save(std::uint64_t step,
                                             const std::vector<TensorBytes>& tensors,
                                             const TensorMetadata& metadata);

  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  CheckpointStore(std::string folder, std::size_t keep_last, UniqueFd lock)
      : folder_(std::move(folder)), keep_last_(keep_last), lock_(std::move(lock)) {}

  std::string folder_;
  std::size_t keep_last_;
  UniqueFd lock_;
};

// Whether metadata and tensors are as they were saved, by the checksum among the metadata; a file
// without one is no checkpoint of a store.
[[nodiscard]] Result<void> check_checkpoint(const SafetensorsFile& file);

struct Checkpoint {
  std::uint64_t step = 0;
  SafetensorsFile file;
};

struct NewestCheckpoint {
  std::optional<Checkpoint> checkpoint;  // none if the folder has none, or is not there
  std::vector<std::string> notes;        // a line for each damaged one that was passed over
};

// The checkpoint of the highest step that opens and whose checksum is right; it stays
// readable while it is held, also when the writer deletes it. If there are some and all are
// damaged, an error: to begin anew is for the user to say.
[[nodiscard]] Result<NewestCheckpoint> newest_checkpoint(const std::string& folder);

}  // namespace hvd
