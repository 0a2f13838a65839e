#include "training/petrv2/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "training/petrv2/data/geometry.h"
#include "training/petrv2/data/previous_frame.h"
#include "training/petrv2/data/record_set_fixture.h"

namespace hvd::petrv2 {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Micro = std::vector<Sample>;

LoaderOptions small_options() {
  LoaderOptions options;
  options.sample.height = 16;
  options.sample.width = 32;
  options.sample.augmentation.resize_range = {0.018, 0.024};  // 64 px wide: 0.45 to 0.6
  options.sample.seed = 11;
  options.sampler.seed = 11;
  options.num_epochs = 1;
  return options;
}

// Four scenes with three samples each.
class LoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    write_fixture_set(folder_.path(), 4, 3, 2);
    reopen();
  }
  void reopen() {
    auto set = RecordSet::open(folder_.path(), "train");
    ASSERT_TRUE(set) << set.error().message;
    set_ = std::make_unique<RecordSet>(std::move(*set));
  }
  std::unique_ptr<Loader> start(const LoaderOptions& options) {
    auto loader = Loader::start(*set_, options);
    EXPECT_TRUE(loader) << loader.error().message;
    return std::move(*loader);
  }
  // All samples up to the end.
  Micro all(const LoaderOptions& options) {
    const auto loader = start(options);
    Micro samples;
    while (true) {
      auto micro = loader->next();
      EXPECT_TRUE(micro) << micro.error().message;
      if (!micro || micro->empty()) return samples;
      for (Sample& sample : *micro) samples.push_back(std::move(sample));
    }
  }

  TemporaryFolder folder_;
  std::unique_ptr<RecordSet> set_;
};

std::vector<std::string> tokens_of(const Micro& samples) {
  std::vector<std::string> tokens;
  for (const Sample& sample : samples) tokens.push_back(sample.token);
  return tokens;
}

void expect_equal(const Sample& a, const Sample& b) {
  EXPECT_EQ(a.token, b.token);
  EXPECT_EQ(a.images, b.images);
  EXPECT_EQ(a.lidar2img, b.lidar2img);
  EXPECT_EQ(a.time_delta, b.time_delta);
  ASSERT_EQ(a.boxes.size(), b.boxes.size());
  for (std::size_t i = 0; i < a.boxes.size(); ++i) EXPECT_EQ(a.boxes[i].center, b.boxes[i].center);
}

TEST_F(LoaderTest, SamplesDoNotDependOnThreads) {
  LoaderOptions options = small_options();
  options.num_threads = 1;
  const Micro one = all(options);
  options.num_threads = 5;
  options.num_ahead = 7;
  const Micro five = all(options);
  ASSERT_EQ(one.size(), 12U);
  ASSERT_EQ(five.size(), 12U);
  for (std::size_t i = 0; i < one.size(); ++i) expect_equal(one[i], five[i]);
}

// What rank r of four with one sample each gets, one rank gets with accumulation 4.
TEST_F(LoaderTest, SamplesDoNotDependOnRanks) {
  LoaderOptions options = small_options();
  options.sampler.num_micro_batches = 4;
  const Micro alone = all(options);
  ASSERT_EQ(alone.size(), 12U);
  options.sampler.num_micro_batches = 1;
  options.sampler.num_ranks = 4;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    options.rank = rank;
    const Micro mine = all(options);
    ASSERT_EQ(mine.size(), 3U);
    for (std::size_t step = 0; step < 3; ++step) expect_equal(mine[step], alone[step * 4 + rank]);
  }
}

TEST_F(LoaderTest, AnEpochHasEverySampleOnceAndTheNextDiffers) {
  LoaderOptions options = small_options();
  options.num_epochs = 2;
  const Micro both = all(options);
  ASSERT_EQ(both.size(), 24U);
  const auto tokens = tokens_of(both);
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.begin() + 12).size(), 12U);
  EXPECT_EQ(std::set<std::string>(tokens.begin() + 12, tokens.end()).size(), 12U);
  EXPECT_NE(std::vector<std::string>(tokens.begin(), tokens.begin() + 12),
            std::vector<std::string>(tokens.begin() + 12, tokens.end()));
  for (const Sample& later : both) {  // the same sample is augmented anew
    if (&later < &both[12] || later.token != both[0].token) continue;
    EXPECT_NE(later.lidar2img, both[0].lidar2img);
  }
}

TEST_F(LoaderTest, ContinuesInMidEpochOnAnotherNumberOfRanks) {
  LoaderOptions options = small_options();
  const Micro whole = all(options);
  options.start = {0, 4};
  options.sampler.num_ranks = 2;
  std::vector<std::string> seen = tokens_of(Micro(whole.begin(), whole.begin() + 4));
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    for (const std::string& token : tokens_of(all(options))) seen.push_back(token);
  }
  EXPECT_EQ(seen.size(), 12U);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 12U);
}

TEST_F(LoaderTest, TellsTheBoxesOfAllRanksBeforeTheStep) {
  LoaderOptions options = small_options();
  options.sampler = {.num_ranks = 2, .batch_size = 1, .num_micro_batches = 3, .seed = 11};
  std::vector<std::vector<std::uint32_t>> told;
  std::vector<std::vector<std::uint32_t>> found(2, std::vector<std::uint32_t>(6));
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    const auto loader = start(options);
    for (std::size_t step = 0; step < 2; ++step) {
      const auto plan = loader->step();
      ASSERT_NE(plan, nullptr);
      EXPECT_EQ(plan->position, (SamplerPosition{0, step * 6}));
      told.push_back(plan->num_boxes);
      for (std::size_t m = 0; m < 3; ++m) {
        EXPECT_EQ(loader->step(), plan);
        const auto micro = loader->next();
        ASSERT_TRUE(micro);
        ASSERT_EQ(micro->size(), 1U);
        const std::size_t place = std::size_t{options.rank} * 3 + m;
        EXPECT_EQ(micro->front().index, plan->samples[place]);
        found[step][place] = static_cast<std::uint32_t>(micro->front().boxes.size());
      }
      EXPECT_EQ(plan->after, step == 0 ? (SamplerPosition{0, 6}) : (SamplerPosition{1, 0}));
    }
    EXPECT_EQ(loader->step(), nullptr);
    EXPECT_TRUE(loader->next()->empty());
    EXPECT_TRUE(loader->next()->empty());
  }
  EXPECT_THAT(told, ElementsAre(found[0], found[1], found[0], found[1]));
}

TEST_F(LoaderTest, EvaluationIsPlain) {
  LoaderOptions options = small_options();
  options.sample.is_training = false;
  options.sampler.has_shuffle = false;
  const Micro samples = all(options);
  ASSERT_EQ(samples.size(), 12U);
  EXPECT_THAT(tokens_of(Micro(samples.begin(), samples.begin() + 3)),
              ElementsAre("a-0", "a-2", "a-4"));
  const auto record = set_->read_sample(2);
  const auto current = set_->read_step(0, record->cur_step);
  const auto previous = set_->read_step(0, record->prev_steps[3]);  // 14, clipped to the last
  const Matrix3 image = image_matrix(fixed_image_transform(16, 32, kFixtureHeight, kFixtureWidth));
  for (std::size_t camera = 0; camera < kNumCameras; ++camera) {
    EXPECT_EQ(samples[2].lidar2img[camera],
              lidar_to_image(multiply(image, current->intrinsic[camera]),
                             current->cam2global[camera], record->lidar2global));
    EXPECT_EQ(samples[2].lidar2img[6 + camera],
              lidar_to_image(multiply(image, previous->intrinsic[camera]),
                             previous->cam2global[camera], record->lidar2global));
  }
  EXPECT_DOUBLE_EQ(samples[2].time_delta, 4 * 0.083);
  EXPECT_EQ(samples[2].boxes[1].center, (Vector3{6, 10, -1}));
}

// Each view shows its own camera and step: the red level tells them.
TEST_F(LoaderTest, ViewsAreInOrder) {
  LoaderOptions options = small_options();
  options.sample.is_training = false;
  options.sampler.has_shuffle = false;
  const Sample sample = all(options)[1];  // of step 2, paired with step 0
  EXPECT_EQ(sample.token, "a-2");
  ASSERT_EQ(sample.images.size(), 12U * 16 * 32 * 3);
  for (std::size_t view = 0; view < 12; ++view) {
    const int expected = static_cast<int>(view < 6 ? 2 * 4 + view : view - 6);
    EXPECT_NEAR(sample.images[(view * 16 * 32 + 8 * 32 + 16) * 3], expected, 2) << view;
  }
}

TEST_F(LoaderTest, FirstSampleOfASceneIsPairedWithItself) {
  for (const Sample& sample : all(small_options())) {
    const bool is_first = sample.token.ends_with("00") || sample.token == "a-0";
    EXPECT_GT(sample.time_delta, 0);
    EXPECT_EQ(sample.time_delta == kDuplicateTimeDelta, is_first) << sample.token;
    const std::size_t half = sample.images.size() / 2;
    const bool are_same =
        std::equal(sample.images.begin(), sample.images.begin() + static_cast<std::ptrdiff_t>(half),
                   sample.images.begin() + static_cast<std::ptrdiff_t>(half));
    EXPECT_EQ(are_same, is_first) << sample.token;
  }
}

TEST_F(LoaderTest, WithoutAugmentationOnlyThePairIsDrawn) {
  LoaderOptions options = small_options();
  options.sample.has_augmentation = false;
  options.sampler.has_shuffle = false;
  const Micro plain = all(options);
  options.sample.is_training = false;
  const Micro evaluated = all(options);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i].lidar2img[0], evaluated[i].lidar2img[0]);
    EXPECT_EQ(plain[i].boxes[0].center, evaluated[i].boxes[0].center);
  }
}

TEST_F(LoaderTest, NoiseReplacesTheImagesAndNothingElse) {
  LoaderOptions options = small_options();
  const Micro seen = all(options);
  options.sample.replace_images_by_noise = true;
  const Micro noisy = all(options);
  const Micro again = all(options);
  std::set<std::vector<std::uint8_t>> images;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(noisy[i].lidar2img, seen[i].lidar2img);
    EXPECT_EQ(noisy[i].boxes.size(), seen[i].boxes.size());
    EXPECT_EQ(noisy[i].images, again[i].images);
    double sum = 0;
    for (const std::uint8_t byte : noisy[i].images) sum += byte;
    EXPECT_NEAR(sum / static_cast<double>(noisy[i].images.size()), 127.5, 4);
    images.insert(noisy[i].images);
  }
  EXPECT_EQ(images.size(), 12U);
}

TEST_F(LoaderTest, NamesTheRecordThatCannotBeReadAndStaysFailed) {
  const std::string path = set_->shards()[0].reader.path();
  const TfrecordIndexEntry entry = set_->shards()[0].index[2];
  std::string bytes = read_bytes(path);
  bytes[entry.offset + entry.size / 2] =
      static_cast<char>(bytes[entry.offset + entry.size / 2] ^ 1);
  write_bytes(path, bytes);
  reopen();
  LoaderOptions options = small_options();
  const auto loader = start(options);
  Result<Micro> micro;
  do {
    micro = loader->next();
  } while (micro && !micro->empty());
  ASSERT_FALSE(micro);
  EXPECT_THAT(micro.error().message, AllOf(HasSubstr(path), HasSubstr("record 2"),
                                           HasSubstr(std::to_string(entry.offset))));
  EXPECT_EQ(loader->next().error().message, micro.error().message);
}

TEST_F(LoaderTest, StopsAtAnyTime) {
  LoaderOptions options = small_options();
  options.num_epochs.reset();
  options.num_threads = 4;
  options.num_ahead = 12;
  for (int num_taken = 0; num_taken < 20; num_taken += 4) {
    const auto loader = start(options);
    for (int i = 0; i < num_taken; ++i) ASSERT_TRUE(loader->next());
  }
}

TEST_F(LoaderTest, RefusesWhatItCannotDo) {
  LoaderOptions options = small_options();
  options.rank = 1;
  EXPECT_THAT(Loader::start(*set_, options).error().message, HasSubstr("rank 1"));
  options = small_options();
  options.sampler.num_ranks = 13;
  EXPECT_THAT(Loader::start(*set_, options).error().message, HasSubstr("12 samples are less"));
  options = small_options();
  options.num_threads = 0;
  EXPECT_FALSE(Loader::start(*set_, options));
}

// Sets of one scene whose first sample is not as the others.
std::string write_odd_set(const TemporaryFolder& folder, SampleRecord odd, StepRecord odd_step) {
  auto writer = RecordSetWriter::create(folder.path(), "train", 1);
  EXPECT_TRUE(writer->add_step(odd_step));
  EXPECT_TRUE(writer->add_step(fixture_step("a", 1)));
  EXPECT_TRUE(writer->add_sample(odd));
  EXPECT_TRUE(writer->add_sample(fixture_sample("a", 1, 1, 1)));
  EXPECT_TRUE(writer->close());
  return folder.file("train-00000-of-00001.tfrecord");
}

Result<Micro> first_micro_batch(const TemporaryFolder& folder, LoaderOptions options) {
  const auto set = RecordSet::open(folder.path(), "train");
  if (!set) return tl::unexpected(set.error());
  options.sampler.has_shuffle = false;
  auto loader = Loader::start(*set, options);
  if (!loader) return tl::unexpected(loader.error());
  return (*loader)->next();
}

TEST(LoaderOfOddSets, ASampleWithoutBoxesIsReplacedInTraining) {
  const TemporaryFolder folder;
  SampleRecord empty = fixture_sample("a", 0, 0, 0);
  empty.boxes[0].num_lidar_pts = 0;
  write_odd_set(folder, empty, fixture_step("a", 0));
  const auto trained = first_micro_batch(folder, small_options());
  ASSERT_TRUE(trained) << trained.error().message;
  EXPECT_EQ(trained->front().token, "a-1");
  EXPECT_EQ(trained->front().replaces_token, "a-0");
  LoaderOptions options = small_options();
  options.sample.is_training = false;
  const auto evaluated = first_micro_batch(folder, options);
  EXPECT_EQ(evaluated->front().token, "a-0");
  EXPECT_EQ(evaluated->front().replaces_token, "");
  EXPECT_TRUE(evaluated->front().boxes.empty());
}

TEST(LoaderOfOddSets, NoBoxAnywhereIsAnError) {
  const TemporaryFolder folder;
  auto writer = RecordSetWriter::create(folder.path(), "train", 1);
  ASSERT_TRUE(writer->add_step(fixture_step("a", 0)));
  SampleRecord empty = fixture_sample("a", 0, 0, 0);
  empty.boxes.clear();
  ASSERT_TRUE(writer->add_sample(empty));
  ASSERT_TRUE(writer->close());
  EXPECT_THAT(first_micro_batch(folder, small_options()).error().message,
              HasSubstr("nothing to train on"));
}

TEST(LoaderOfOddSets, ADamagedJpegIsNamedByRecordAndCamera) {
  const TemporaryFolder folder;
  StepRecord step = fixture_step("a", 0);
  step.jpeg[2].resize(step.jpeg[2].size() / 2);
  const std::string path = write_odd_set(folder, fixture_sample("a", 0, 0, 0), step);
  EXPECT_THAT(first_micro_batch(folder, small_options()).error().message,
              AllOf(HasSubstr(path + ", record 0 at offset 0"), HasSubstr("CAM_FRONT_LEFT"),
                    HasSubstr("the JPEG cannot be decoded")));
}

TEST(LoaderOfOddSets, AJpegOfAnotherSizeIsAnError) {
  const TemporaryFolder folder;
  StepRecord step = fixture_step("a", 0);
  step.jpeg[4] = *encode_jpeg(ramp_image(20, 30, 1));
  write_odd_set(folder, fixture_sample("a", 0, 0, 0), step);
  EXPECT_THAT(first_micro_batch(folder, small_options()).error().message,
              AllOf(HasSubstr("CAM_BACK_LEFT"), HasSubstr("30 x 20 px, not the 64 x 36")));
}

TEST(LoaderOfOddSets, APreviousStepThatIsNotEarlierIsAnError) {
  const TemporaryFolder folder;
  SampleRecord sample = fixture_sample("a", 0, 0, 0);
  sample.prev_steps = {1};
  write_odd_set(folder, sample, fixture_step("a", 0));
  EXPECT_THAT(first_micro_batch(folder, small_options()).error().message,
              AllOf(HasSubstr("record 1 at offset"), HasSubstr("not earlier")));
}

}  // namespace
}  // namespace hvd::petrv2
