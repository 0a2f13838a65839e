#include "training/petrv2/synth/synth.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "training/petrv2/synth/shots.h"
#include "training/petrv2/synth/synth_images.h"
#include "training/petrv2/synth/synth_tables.h"

namespace hvd::petrv2 {
namespace {

namespace fs = std::filesystem;

Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return {};
  return make_error("{}: cannot make the folder: {}", folder.string(), error.message());
}

Result<void> make_folders(const fs::path& root) {
  std::vector<fs::path> folders = {root / "splits"};
  for (const std::string_view camera : kCameraNames) {
    folders.push_back(root / "samples" / camera);
    folders.push_back(root / "sweeps" / camera);
  }
  for (const fs::path& folder : folders) {
    if (auto done = make_folder(folder); !done) return done;
  }
  return {};
}

Result<void> write_splits(const std::vector<WorldScene>& scenes, const fs::path& root) {
  const std::size_t num_val = scenes.size() < 2 ? 0 : std::max<std::size_t>(1, scenes.size() / 4);
  std::string train;
  std::string val;
  for (std::size_t i = 0; i < scenes.size(); ++i) {
    (i + num_val < scenes.size() ? train : val) += scenes[i].name + "\n";
  }
  if (auto done = write_whole_file((root / "splits/mini_train.txt").string(), train); !done)
    return done;
  if (val.empty()) return {};
  return write_whole_file((root / "splits/mini_val.txt").string(), val);
}

Result<void> write_tables(const std::vector<WorldScene>& scenes, const WorldPlan& plan,
                          const std::vector<SceneCoverage>& coverage, const fs::path& root) {
  const fs::path partial = root / fmt::format("{}.partial", kSynthVersion);
  if (auto done = make_folder(partial); !done) return done;
  auto done = write_synth_tables(scenes, plan, coverage, partial.string());
  if (!done) return done;
  std::error_code error;
  fs::rename(partial, root / kSynthVersion, error);
  if (!error) return {};
  return make_error("{}: cannot rename it to {}: {}", partial.string(), kSynthVersion,
                    error.message());
}

SynthReport report_on(const std::vector<WorldScene>& scenes, const WorldPlan& plan) {
  SynthReport report;
  report.num_scenes = scenes.size();
  report.num_samples = scenes.size() * plan.samples_per_scene;
  report.num_images = scenes.size() * num_shots(plan) * kNumCameras;
  for (const WorldScene& scene : scenes) report.num_objects += scene.objects.size();
  return report;
}

}  // namespace

Result<SynthReport> write_synth_dataset(const WorldPlan& plan, const std::string& folder,
                                        unsigned num_threads) {
  const fs::path root = folder;
  std::error_code ignored;
  if (fs::exists(root / kSynthVersion, ignored)) {
    return make_error("{} already holds a data set; remove it or name another --out",
                      (root / kSynthVersion).string());
  }
  if (auto done = make_folders(root); !done) return tl::unexpected(done.error());
  std::vector<WorldScene> scenes;
  for (std::size_t i = 0; i < plan.num_scenes; ++i) scenes.push_back(make_scene(plan, i));
  const auto coverage = write_synth_images(scenes, plan, folder, num_threads);
  if (!coverage) return tl::unexpected(coverage.error());
  if (auto done = write_splits(scenes, root); !done) return tl::unexpected(done.error());
  if (auto done = write_tables(scenes, plan, *coverage, root); !done) {
    return tl::unexpected(done.error());
  }
  return report_on(scenes, plan);
}

}  // namespace hvd::petrv2
