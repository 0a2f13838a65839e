#include "training/petrv2/trainer/resume.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "runtime/worker_exit.h"

namespace hvd::petrv2 {

Result<void> Resume::read() {
  NewestCheckpoint newest;
  if (!options_.out.empty()) {
    auto found = newest_checkpoint(options_.out);
    if (!found) return with_exit(found.error(), WorkerExit::kData);
    newest = std::move(*found);
    for (const std::string& note : newest.notes) log(LogLevel::kWarning, "{}", note);
  }
  if (options_.resume == "auto") {
    return newest.checkpoint ? take(newest.checkpoint->file) : Result<void>();
  }
  if (options_.resume != "none") {
    auto file = SafetensorsFile::open(options_.resume);
    if (!file) {
      return make_error(ExitCode::kUsage, "--resume {}: {}; give auto, none or a checkpoint",
                        options_.resume, file.error().message);
    }
    if (auto whole = check_checkpoint(*file); !whole) {
      return with_exit(whole.error(), WorkerExit::kData);
    }
    if (auto done = take(*file); !done) return done;
  }
  return check_not_behind(newest);
}

std::string Resume::text() const {
  return nlohmann::json(to_metadata(position_, "", data_)).dump();
}

Result<void> Resume::take_text(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  auto position = from_metadata(json.get<TensorMetadata>());
  if (!position) return tl::unexpected(position.error());
  position_ = *position;
  return {};
}

// The newest of a folder must be of the training that goes on in it.
Result<void> Resume::check_not_behind(const NewestCheckpoint& newest) const {
  if (!newest.checkpoint || newest.checkpoint->step <= position_.step) return {};
  return make_error(ExitCode::kUsage,
                    "--resume {} would begin at step {} in {}, which holds step {} of another "
                    "training; give another --out, or move its checkpoints away",
                    options_.resume, position_.step, options_.out, newest.checkpoint->step);
}

Result<void> Resume::take(const SafetensorsFile& file) {
  auto position = from_metadata(file.metadata());
  if (!position) {
    return with_exit(position.error().within(file.path()), WorkerExit::kData);
  }
  if (position->seed != options_.seed) {
    return worker_error(WorkerExit::kData, "{}: it was made with --seed {}; give the same seed",
                        file.path(), position->seed);
  }
  const auto data = file.metadata().find(kDataKey);
  if (data == file.metadata().end() || data->second != data_) {
    return worker_error(WorkerExit::kData,
                        "{}: it was made with another data set ({}; this is {}); give its --data "
                        "and --split",
                        file.path(), data == file.metadata().end() ? "none" : data->second, data_);
  }
  if (auto done = state_.load(file); !done) return done;
  position_ = *position;
  source_ = file.path();
  return {};
}

}  // namespace hvd::petrv2
