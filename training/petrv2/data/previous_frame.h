// Which earlier step a sample is paired with. Pure, any thread.
#pragma once

#include <cstddef>
#include <optional>

#include "training/petrv2/data/counter_rng.h"

namespace hvd::petrv2 {

enum class FrameChoice { kRandom, kFixed };

// Time between the frames, s, where the first sample of a scene is paired with itself: the cameras
// take 12 images a second, the pair stands for 15 of them.
inline constexpr double kDuplicateTimeDelta = 15 * 0.083;

// Position in a list of `count` earlier steps, nearest first; none: take the current step again.
// kRandom: 3 to 26 steps back as far as there are any. kFixed: 15 steps back (1.245 s).
[[nodiscard]] std::optional<std::size_t> choose_previous(std::size_t count, FrameChoice choice,
                                                         CounterRng& rng);

}  // namespace hvd::petrv2
