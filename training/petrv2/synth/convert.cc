#include "training/petrv2/synth/convert.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "training/formats/disk_write.h"
#include "training/petrv2/data/record_set.h"
#include "training/petrv2/synth/nuscenes_tables.h"
#include "training/petrv2/synth/scene_records.h"
#include "training/petrv2/synth/scene_split.h"

namespace hvd::petrv2 {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kScenesPerShard = 7;

std::size_t choose_num_shards(const ConvertRequest& request, std::size_t num_scenes) {
  return request.num_shards.value_or((num_scenes + kScenesPerShard - 1) / kScenesPerShard);
}

// The folder in which the shards become complete, emptied of what an interrupted run has left.
Result<fs::path> prepare_folder(const ConvertRequest& request, const std::string& split) {
  std::error_code error;
  fs::create_directories(request.out, error);
  if (error) return make_error("{}: cannot make the folder: {}", request.out, error.message());
  const auto splits = list_splits(request.out);
  if (!splits) return tl::unexpected(splits.error());
  if (std::find(splits->begin(), splits->end(), split) != splits->end()) {
    return make_error("{} already holds shards of the split {}; remove them or name another --out",
                      request.out, split);
  }
  const fs::path partial = fs::path(request.out) / fmt::format(".{}.partial", split);
  fs::remove_all(partial, error);
  if (error) return make_error("{}: cannot empty it: {}", partial.string(), error.message());
  return partial;
}

Result<void> move_up(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  fs::rename(file, folder / file.filename(), error);
  if (!error) return {};
  return make_error("{}: cannot move it to {}: {}", file.string(), folder.string(),
                    error.message());
}

Result<void> publish(const fs::path& partial, const fs::path& folder) {
  for (const bool is_index_turn : {false, true}) {
    std::error_code error;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(partial, error)) {
      if ((entry.path().extension() == ".index") == is_index_turn) files.push_back(entry.path());
    }
    if (error) return make_error("{}: cannot list it: {}", partial.string(), error.message());
    for (const fs::path& file : files) {
      if (auto done = move_up(file, folder); !done) return done;
    }
    if (const int failure = sync_folder_of(partial.string()); failure != 0) {
      return tl::unexpected(write_error(folder.string(), failure, 0));
    }
  }
  std::error_code ignored;  // what is left is an empty hidden folder
  fs::remove(partial, ignored);
  return {};
}

Result<ConvertReport> write_records(const NuscenesTables& tables, const ConvertRequest& request,
                                    const SceneSplit& split, const fs::path& folder,
                                    const ConvertProgress& progress) {
  ConvertReport report;
  report.split = split.name;
  report.num_shards = choose_num_shards(request, tables.scenes.size());
  auto writer = RecordSetWriter::create(folder.string(), split.name, report.num_shards);
  if (!writer) return tl::unexpected(writer.error());
  for (const NuscenesScene& scene : tables.scenes) {
    auto done = write_scene_records(tables, scene, request.dataroot, *writer, report);
    if (!done) return tl::unexpected(done.error());
    if (progress) progress(report.num_scenes, tables.scenes.size());
  }
  if (auto done = writer->close(); !done) return tl::unexpected(done.error());
  return report;
}

}  // namespace

Result<ConvertReport> convert(const ConvertRequest& request, const ConvertProgress& progress) {
  const auto split = read_scene_split(request.dataroot, request.split);
  if (!split) return tl::unexpected(split.error());
  const auto partial = prepare_folder(request, split->name);
  if (!partial) return tl::unexpected(partial.error());
  const auto tables = read_nuscenes_tables({request.dataroot, request.version, split->scene_names});
  if (!tables) return tl::unexpected(tables.error());
  if (request.num_shards && *request.num_shards > tables->scenes.size()) {
    return make_error(ExitCode::kUsage,
                      "--shards {} is more than the {} scenes, which are never split; lower it",
                      *request.num_shards, tables->scenes.size());
  }
  auto report = write_records(*tables, request, *split, *partial, progress);
  if (!report) return report;
  if (auto done = publish(*partial, request.out); !done) {
    return tl::unexpected(done.error());
  }
  return report;
}

}  // namespace hvd::petrv2
