#include "training/petrv2/synth/keyframe_sweeps.h"

#include <gmock/gmock.h>

namespace hvd::petrv2 {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::SizeIs;

// "K.....K" -> a key frame, five sweeps, a key frame.
CameraTrack track(std::string_view text) {
  CameraTrack result;
  for (const char c : text) result.is_key.push_back(c == 'K');
  return result;
}

std::array<CameraTrack, kNumCameras> same(std::string_view text) {
  std::array<CameraTrack, kNumCameras> tracks;
  tracks.fill(track(text));
  return tracks;
}

TEST(KeyframeSweeps, FirstSampleHasNoCandidates) {
  const SceneSweeps alone = arrange_sweeps(same("K"));
  EXPECT_THAT(alone.steps, SizeIs(1));
  EXPECT_THAT(alone.keyframes, ElementsAre(0));
  EXPECT_THAT(alone.before, ElementsAre(IsEmpty()));
}

TEST(KeyframeSweeps, WalksBackNearestFirstToTheSceneStart) {
  const SceneSweeps scene = arrange_sweeps(same("K.....K.....K"));
  EXPECT_THAT(scene.keyframes, ElementsAre(0, 6, 12));
  EXPECT_THAT(scene.before[0], IsEmpty());
  EXPECT_THAT(scene.before[1], ElementsAre(5, 4, 3, 2, 1, 0));
  EXPECT_THAT(scene.before[2], ElementsAre(11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
}

TEST(KeyframeSweeps, StopsAfterFiveKeyframes) {
  const SceneSweeps scene = arrange_sweeps(same("K.....K.....K.....K.....K.....K.....K.....K"));
  ASSERT_THAT(scene.before, SizeIs(8));
  for (std::size_t sample = 0; sample < 8; ++sample) {
    const std::size_t expected = std::min<std::size_t>(sample, 5) * 6;
    ASSERT_THAT(scene.before[sample], SizeIs(expected)) << sample;
    for (std::size_t i = 0; i < expected; ++i) {
      EXPECT_EQ(scene.before[sample][i], scene.keyframes[sample] - 1 - i);
      EXPECT_EQ(scene.steps[scene.before[sample][i]].is_key, i % 6 == 5);
    }
  }
}

struct Interval {
  const char* name;
  std::string_view text;
  std::vector<std::size_t> expected;  // candidates of the second sample, as positions in time
};
TEST(KeyframeSweeps, PositionKeepsItsTimeInOddIntervals) {
  const Interval intervals[] = {
      {"five", "K.....K", {5, 4, 3, 2, 1, 0}},
      {"six: the farthest is left out", "K......K", {6, 5, 4, 3, 2, 0}},
      {"three: the farthest repeats", "K...K", {3, 2, 1, 1, 1, 0}},
      {"none: the key frame stands in", "KK", {0, 0, 0, 0, 0, 0}},
      {"a sweep before the scene's first key frame", "..K.....K", {7, 6, 5, 4, 3, 2}}};
  for (const Interval& interval : intervals) {
    const SceneSweeps scene = arrange_sweeps(same(interval.text));
    std::vector<std::size_t> images;
    for (const std::size_t step : scene.before[1]) images.push_back(scene.steps[step].images[0]);
    EXPECT_THAT(images, ElementsAreArray(interval.expected)) << interval.name;
  }
}

TEST(KeyframeSweeps, CountsBackInEveryCameraOfItsOwn) {
  auto tracks = same("K.....K");
  tracks[3] = track("K....K");
  tracks[5] = track("K......K");
  const SceneSweeps scene = arrange_sweeps(tracks);
  // Four sweeps in all cameras, counted back from the key frame of each.
  EXPECT_THAT(scene.steps, SizeIs(6));
  EXPECT_THAT(scene.steps[4].images, ElementsAre(5, 5, 5, 4, 5, 6));
  EXPECT_THAT(scene.steps[1].images, ElementsAre(2, 2, 2, 1, 2, 3));
  EXPECT_THAT(scene.before[1], ElementsAre(4, 3, 2, 1, 1, 0));
}

}  // namespace
}  // namespace hvd::petrv2
