// From records to one Sample: reads its labels and two steps, decodes and augments. Everything
// random is keyed by seed, epoch and sample, so a sample looks the same whoever reads it and when.
//
// Thread: a SampleReader is const after its construction and serves any number of threads; each
// brings a SampleWorkspace of its own.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "training/petrv2/data/augmentation.h"
#include "training/petrv2/data/image_resize.h"
#include "training/petrv2/data/jpeg.h"
#include "training/petrv2/data/record_set.h"
#include "training/petrv2/data/sample.h"

namespace hvd::petrv2 {

struct SampleOptions {
  int height = 256;  // px, of the images of a Sample
  int width = 704;
  AugmentationOptions augmentation;
  std::uint64_t seed = 0;
  // Training: the previous frame is drawn at random and a sample without boxes is replaced by
  // another one. Otherwise it is evaluation: the previous frame is 1.245 s back, nothing is
  // replaced, nothing augmented.
  bool is_training = true;
  bool has_augmentation = true;  // of images and bird's-eye view, in training
  bool replace_images_by_noise =
      false;  // uniform bytes instead of images, to prove what they are for
};

// What a thread keeps from sample to sample.
struct SampleWorkspace {
  JpegDecoder decoder;
  ImageResizer resizer;
  RgbImage decoded;

  [[nodiscard]] static Result<SampleWorkspace> create();
};

class SampleReader {
 public:
  // `set`: not owned, outlives this.
  SampleReader(const RecordSet& set, const SampleOptions& options)
      : set_(&set), options_(options) {}

  // The sample that takes the place of sample `index` in this epoch: itself if it has boxes, or in
  // evaluation; otherwise a random one that has. Needs a sample with boxes (see check()).
  [[nodiscard]] std::uint64_t stand_in(std::uint64_t index, std::uint64_t epoch) const;

  // Whether training is possible: some sample has boxes.
  [[nodiscard]] Result<void> check() const;

  // Sample `index` of the set, or its stand-in. Errors name file, record and offset.
  [[nodiscard]] Result<Sample> read(std::uint64_t index, std::uint64_t epoch,
                                    SampleWorkspace& workspace) const;

 private:
  struct Draws;  // the augmentation of one sample
  [[nodiscard]] Draws draw(std::uint64_t index, std::uint64_t epoch, const StepRecord& step) const;
  [[nodiscard]] Result<void> fill_views(const SampleRecord& record, const StepRecord& step,
                                        const Draws& draws, std::size_t first_view,
                                        SampleWorkspace& workspace, Sample& sample) const;
  [[nodiscard]] Result<void> fill_previous(const SampleRecord& record, const StepRecord& current,
                                           const Draws& draws, std::uint64_t epoch,
                                           SampleWorkspace& workspace, Sample& sample) const;
  void fill_with_noise(std::uint64_t epoch, Sample& sample) const;

  const RecordSet* set_;
  SampleOptions options_;
};

}  // namespace hvd::petrv2
