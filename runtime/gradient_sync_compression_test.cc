// Gradients that travel as 16 bits.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/gradient_ranks.h"

namespace hvd {
namespace {

using test::LinearModel;
using test::make_synchronizer;

// The first bucket is "first" alone; "values", with the numbers of the test, and "count" follow.
LinearModel model_of(std::int64_t num_values) {
  LinearModel model;
  model.add("count", {2}, at::kDouble);
  model.add("values", {num_values}, at::kFloat);
  model.add("first", {1}, at::kFloat);
  return model;
}

SyncOptions options_with(Compression compression) {
  SyncOptions options;
  options.first_bucket_bytes = 4;
  options.compression = compression;
  options.timeout = test::kLongTimeout;
  return options;
}

struct Outcome {
  at::Tensor values;  // after the second step
  double first = 0;
  double count = 0;
  std::uint64_t num_bytes = 0;
};

// Two steps with own(rank) as the gradient of "values", 4097 of the others.
std::vector<Outcome> run(int size, Compression compression,
                         const std::function<std::vector<float>(int rank)>& own) {
  test::Team team = test::connect_team(size);
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  test::with_team(team, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    const at::Tensor values = at::tensor(own(rank));
    LinearModel model = model_of(values.numel());
    const auto synchronizer =
        make_synchronizer(model, communicator, communicator, options_with(compression));
    for (int step = 0; step < 2; ++step) {
      synchronizer->reset();
      model
          .loss([&](const NamedParameter& p) {
            return p.name == "values" ? values : at::full_like(p.tensor.detach(), 4097);
          })
          .backward();
      const auto done = synchronizer->finish();
      ASSERT_TRUE(done) << done.error().message;
    }
    outcomes[static_cast<std::size_t>(rank)] = {
        model["values"].grad().clone(), model["first"].grad().item<double>(),
        model["count"].grad()[1].item<double>(), synchronizer->bytes_on_wire()};
  });
  return outcomes;
}

bool has_equal_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

TEST(GradientCompression, LargeAndSmallMeansOf32RanksSurvive) {
  const auto own = [](int rank) {
    const float other = rank % 2 == 0 ? 8192.0F : 0.0F;
    return std::vector<float>{4096, 1e-6F, -4096, other, 1};
  };
  for (const Compression compression : {Compression::kFloat16, Compression::kBfloat16}) {
    const auto outcomes = run(compression == Compression::kFloat16 ? 32 : 8, compression, own);
    const auto* mean = outcomes[0].values.const_data_ptr<float>();
    EXPECT_NEAR(mean[0], 4096, 4096 * .005);
    EXPECT_NEAR(mean[1], 1e-6, 1e-6 * .05);
    EXPECT_NEAR(mean[2], -4096, 4096 * .005);
    EXPECT_NEAR(mean[3], 4096, 4096 * .005);
    EXPECT_NEAR(mean[4], 1, .005);
    for (const Outcome& outcome : outcomes) {
      EXPECT_TRUE(has_equal_bits(outcome.values, outcomes[0].values));
      // Neither the first bucket nor float64 is ever compressed: no 16-bit type holds 4097.
      EXPECT_EQ(outcome.first, 4097);
      EXPECT_EQ(outcome.count, 4097);
    }
  }
}

TEST(GradientCompression, WhatIsNotFiniteOnOneRankIsSoOnAll) {
  const auto own = [](int rank) {
    const bool is_bad = rank == 2;
    return std::vector<float>{is_bad ? std::nanf("") : 1,
                              is_bad ? std::numeric_limits<float>::infinity() : 1,
                              is_bad ? 3e38F : 1, 1};
  };
  for (const Compression compression :
       {Compression::kNone, Compression::kFloat16, Compression::kBfloat16}) {
    const auto outcomes = run(4, compression, own);
    for (const Outcome& outcome : outcomes) {
      const auto* mean = outcome.values.const_data_ptr<float>();
      EXPECT_TRUE(std::isnan(mean[0]));
      EXPECT_TRUE(std::isinf(mean[1]));
      if (compression == Compression::kFloat16) {
        EXPECT_TRUE(std::isinf(mean[2]));
      }
      EXPECT_EQ(mean[3], 1);
      EXPECT_TRUE(has_equal_bits(outcome.values, outcomes[0].values));
    }
  }
}

TEST(GradientCompression, HalfTheBytesTravel) {
  const auto own = [](int /*rank*/) { return std::vector<float>(4000, 2); };
  const auto num_bytes = [&](Compression compression) {
    return run(2, compression, own).front().num_bytes;
  };
  constexpr std::uint64_t kOthers = 2 * (16 + 16);  // two steps; slots of 16 bytes
  EXPECT_EQ(num_bytes(Compression::kNone), kOthers + 2 * 16000);
  EXPECT_EQ(num_bytes(Compression::kFloat16), kOthers + 2 * 8000);
  EXPECT_EQ(num_bytes(Compression::kBfloat16), kOthers + 2 * 8000);
}

}  // namespace
}  // namespace hvd
