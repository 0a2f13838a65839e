#include "training/petrv2/synth/synth_images.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>

#include "base/unique_fd.h"
#include "training/formats/disk_write.h"
#include "training/petrv2/data/jpeg.h"
#include "training/petrv2/synth/shots.h"

namespace hvd::petrv2 {
namespace {

// One image: what its objects cover.
Result<std::vector<Coverage>> write_image(const WorldScene& scene, std::size_t shot,
                                          std::size_t camera, const std::string& folder,
                                          Canvas& canvas) {
  const Shot taken = shot_of(scene, shot, camera);
  const CameraView view{camera_to_global(scene, camera, taken.time), scene.rig[camera].intrinsic};
  std::vector<Coverage> coverage = paint_scene(scene, taken.time, view, canvas);
  const auto jpeg = encode_jpeg(canvas.image());
  if (!jpeg) return tl::unexpected(jpeg.error().within(taken.filename));
  if (auto done = write_whole_file(folder + "/" + taken.filename, *jpeg); !done) {
    return tl::unexpected(done.error());
  }
  return coverage;
}

// Deals shots out to threads; each shot of each scene is one piece of work, all cameras in it.
class ImageCrew {
 public:
  ImageCrew(const std::vector<WorldScene>& scenes, const WorldPlan& plan, const std::string& folder)
      : scenes_(scenes), plan_(plan), folder_(folder) {
    for (const WorldScene& scene : scenes) {
      coverage_.emplace_back(plan.samples_per_scene, std::vector<Coverage>(scene.objects.size()));
    }
  }

  Result<std::vector<SceneCoverage>> run(unsigned num_threads) {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < num_threads; ++i) threads.emplace_back([this] { work(); });
    work();
    threads.clear();  // joins
    if (error_) return tl::unexpected(*error_);
    return std::move(coverage_);
  }

 private:
  void work() {
    Canvas canvas(plan_.image);
    const std::size_t num_pieces = scenes_.size() * num_shots(plan_);
    for (std::size_t piece = next_++; piece < num_pieces; piece = next_++) {
      auto done = write_shot(piece / num_shots(plan_), piece % num_shots(plan_), canvas);
      if (done) continue;
      next_ = num_pieces;  // nobody begins another
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = done.error();
    }
  }

  // Only this shot's thread touches its sample's coverage.
  Result<void> write_shot(std::size_t scene, std::size_t shot, Canvas& canvas) {
    for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
      const auto seen = write_image(scenes_[scene], shot, camera, folder_, canvas);
      if (!seen) return tl::unexpected(seen.error());
      if (shot % kStepsPerSample != 0) continue;
      std::vector<Coverage>& sums = coverage_[scene][shot / kStepsPerSample];
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].visible += (*seen)[i].visible;
        sums[i].total += (*seen)[i].total;
      }
    }
    return {};
  }

  const std::vector<WorldScene>& scenes_;
  const WorldPlan& plan_;
  const std::string& folder_;
  std::vector<SceneCoverage> coverage_;
  std::atomic<std::size_t> next_{0};
  std::mutex error_mutex_;
  std::optional<Error> error_;  // the first; under error_mutex_ until the threads are joined
};

}  // namespace

Result<std::vector<SceneCoverage>> write_synth_images(const std::vector<WorldScene>& scenes,
                                                      const WorldPlan& plan,
                                                      const std::string& folder,
                                                      unsigned num_threads) {
  return ImageCrew(scenes, plan, folder).run(std::max(1U, num_threads));
}

Result<void> write_whole_file(const std::string& path, std::string_view bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  const int failure = fd.is_valid() ? write_all(fd.get(), bytes) : errno;
  if (failure == 0) return {};
  return tl::unexpected(write_error(path, failure, bytes.size()));
}

}  // namespace hvd::petrv2
