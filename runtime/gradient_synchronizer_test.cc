// The numbers that come out.
#include "hvdrun/gradient_synchronizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "tests/support/gradient_ranks.h"

namespace hvd {
namespace {

using test::known_gradient;
using test::known_mean;
using test::LinearModel;
using test::make_synchronizer;
using test::small_buckets;
using test::with_ranks;
using testing::ElementsAre;

LinearModel some_model(at::ScalarType type = at::kDouble) {
  LinearModel model;
  model.add("stem.weight", {4, 3}, type);
  model.add("stem.bias", {4}, type);
  model.add("body.0.weight", {5, 4}, type);
  model.add("body.0.scale", {}, type);
  model.add("body.1.weight", {9, 5}, type);
  model.add("head.weight", {2, 9}, type);
  model.add("head.bias", {2}, type);
  return model;
}

// One communicating step with known gradients.
Result<void> run_step(const LinearModel& model, GradientSynchronizer& synchronizer, int rank,
                      int step) {
  model.loss([&](const NamedParameter& p) { return known_gradient(p, rank, step); }).backward();
  return synchronizer.finish();
}

void expect_known_means(LinearModel& model, const GradientSynchronizer& synchronizer, int size,
                        int step) {
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    const NamedParameter& parameter = model.parameters()[i];
    const at::Tensor& gradient = synchronizer.gradients()[i];
    EXPECT_TRUE(at::equal(gradient, known_mean(parameter, size, step)))
        << parameter.name << " of step " << step << ":\n"
        << gradient;
    EXPECT_EQ(gradient.strides(), parameter.tensor.strides()) << parameter.name;
    EXPECT_EQ(parameter.tensor.grad().data_ptr(), gradient.data_ptr()) << parameter.name;
  }
}

TEST(GradientSynchronizer, EveryRankGetsTheExactMeanInEveryStep) {
  for (const int size : {2, 3, 4}) {
    with_ranks(size, [&](Communicator& data, Communicator& control) {
      LinearModel model = some_model();
      const auto synchronizer = make_synchronizer(model, data, control, small_buckets());
      ASSERT_TRUE(synchronizer);
      for (int step = 0; step < 4; ++step) {
        const auto done = run_step(model, *synchronizer, data.rank(), step);
        ASSERT_TRUE(done) << done.error().message;
        expect_known_means(model, *synchronizer, size, step);
        EXPECT_EQ(synchronizer->num_missing(), 0);
        synchronizer->reset();
        EXPECT_FALSE(model["stem.weight"].grad().defined());
      }
      EXPECT_GE(synchronizer->buckets().size(), 4U);
      EXPECT_GT(synchronizer->bytes_on_wire(), 4U * 102 * sizeof(double));
    });
  }
}

TEST(GradientSynchronizer, OneRankAloneFillsItsBucketsAndSendsNothing) {
  const auto alone = single_communicator();
  LinearModel model = some_model();
  SyncOptions options = small_buckets();
  options.num_riders = 1;
  const auto synchronizer = make_synchronizer(model, *alone, *alone, options);
  for (int step = 0; step < 3; ++step) {
    synchronizer->set_riders(std::vector<double>{7.5});
    ASSERT_TRUE(run_step(model, *synchronizer, 0, step));
    expect_known_means(model, *synchronizer, 1, step);
    EXPECT_EQ(synchronizer->riders().item<double>(), 7.5);
    synchronizer->reset();
  }
  EXPECT_EQ(synchronizer->bytes_on_wire(), 0U);
}

TEST(GradientSynchronizer, FlatGradientsAreTheSameMemoryWithoutTheRiders) {
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    LinearModel model = some_model();
    SyncOptions options = small_buckets();
    options.num_riders = 3;
    const auto synchronizer = make_synchronizer(model, data, control, options);
    for (int step = 0; step < 2; ++step) {
      synchronizer->set_riders(std::vector<double>{1000, 2000, 3000});
      ASSERT_TRUE(run_step(model, *synchronizer, data.rank(), step));
      double squares = 0;
      for (const at::Tensor& flat : synchronizer->flat_gradients()) {
        squares += flat.square().sum().item<double>();
        flat.mul_(2);
      }
      double twice = 0;
      for (const auto& p : model.parameters()) {
        twice += p.tensor.grad().square().sum().item<double>();
      }
      EXPECT_NEAR(twice, 4 * squares, 1e-9 * twice);
      EXPECT_EQ(synchronizer->riders()[2].item<double>(), 3000);
      synchronizer->reset();
    }
  });
}

TEST(GradientSynchronizer, GradientsKeepTheStridesOfTheirParameters) {
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    LinearModel model = some_model();
    at::Tensor& conv = model.add("conv.weight", {4, 3, 2, 2});
    conv = at::ones({4, 3, 2, 2}, at::kDouble)
               .contiguous(at::MemoryFormat::ChannelsLast)
               .requires_grad_(true);
    const auto synchronizer = make_synchronizer(model, data, control, small_buckets());
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(run_step(model, *synchronizer, data.rank(), step));
      expect_known_means(model, *synchronizer, 2, step);
      EXPECT_TRUE(conv.grad().is_contiguous(at::MemoryFormat::ChannelsLast));
      synchronizer->reset();
    }
  });
}

TEST(GradientSynchronizer, AnotherOrderOnARankIsAdoptedFromRankZero) {
  std::vector<std::vector<std::vector<std::string>>> buckets(3);
  with_ranks(3, [&](Communicator& data, Communicator& control) {
    const int rank = data.rank();
    LinearModel model = some_model();
    // Registered, and so used and ready, in another order on each rank.
    auto& parameters = model.parameters();
    std::rotate(parameters.begin(), parameters.begin() + 2 * rank, parameters.end());
    const auto synchronizer = make_synchronizer(model, data, control, small_buckets());
    for (int step = 0; step < 4; ++step) {
      const auto done = run_step(model, *synchronizer, rank, step);
      ASSERT_TRUE(done) << done.error().message;
      expect_known_means(model, *synchronizer, 3, step);
      synchronizer->reset();
    }
    buckets[static_cast<std::size_t>(rank)] = synchronizer->buckets();
  });
  EXPECT_EQ(buckets[1], buckets[0]);
  EXPECT_EQ(buckets[2], buckets[0]);
  // The last that rank 0's model uses is the first that is ready.
  EXPECT_EQ(buckets[0].front().front(), "head.bias");
  EXPECT_EQ(buckets[0].back().back(), "stem.weight");
}

TEST(GradientSynchronizer, AParameterWithoutGradientCountsAsZeros) {
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    LinearModel model = some_model();
    const auto synchronizer = make_synchronizer(model, data, control, small_buckets());
    // In the first step, and in one whose buckets are filled in backward.
    for (int step = 0; step < 4; ++step) {
      const bool is_missing = step % 2 == 0 && data.rank() == 1;
      model
          .loss([&](const NamedParameter& p) {
            const bool is_left_out = is_missing && p.name == "body.1.weight";
            return is_left_out ? at::Tensor() : known_gradient(p, data.rank(), step);
          })
          .backward();
      const auto done = synchronizer->finish();
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(synchronizer->num_missing(), is_missing ? 1 : 0);
      const NamedParameter& parameter = model.parameters()[4];
      EXPECT_TRUE(at::equal(parameter.tensor.grad(), step % 2 == 0
                                                         ? known_gradient(parameter, 0, step) / 2
                                                         : known_mean(parameter, 2, step)));
      EXPECT_TRUE(at::equal(model.parameters()[0].tensor.grad(),
                            known_mean(model.parameters()[0], 2, step)));
      synchronizer->reset();
    }
  });
}

TEST(GradientSynchronizer, OnlyTheLastMicroBatchOfAStepCommunicates) {
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    LinearModel model = some_model();
    const auto synchronizer = make_synchronizer(model, data, control, small_buckets());
    for (int step = 0; step < 3; ++step) {
      const std::uint64_t sent_before = synchronizer->bytes_on_wire();
      for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
        EXPECT_EQ(synchronizer->bytes_on_wire(), sent_before);
        synchronizer->set_accumulating(micro_batch < 2);
        model.loss([&](const NamedParameter& p) { return known_gradient(p, data.rank(), step); })
            .backward();
      }
      const auto done = synchronizer->finish();
      ASSERT_TRUE(done) << done.error().message;
      for (const NamedParameter& parameter : model.parameters()) {
        EXPECT_TRUE(at::equal(parameter.tensor.grad(), 3 * known_mean(parameter, 2, step)));
      }
      synchronizer->reset();
    }
  });
}

TEST(GradientSynchronizer, RidersComeAsMeansAndStayTheirReaders) {
  with_ranks(4, [&](Communicator& data, Communicator& control) {
    LinearModel model = some_model(at::kFloat);
    SyncOptions options = small_buckets();
    options.num_riders = 3;
    options.compression = Compression::kFloat16;
    const auto synchronizer = make_synchronizer(model, data, control, options);
    std::vector<at::Tensor> kept;
    for (int step = 0; step < 4; ++step) {
      const double own = data.rank() == 2 ? 1 : 0;
      // Numbers that no 16-bit type holds.
      const std::vector<double> values{100001.0 + 4 * step, own, 4.0 * data.rank()};
      if (step != 2) synchronizer->set_riders(values);
      ASSERT_TRUE(run_step(model, *synchronizer, data.rank(), step));
      kept.push_back(synchronizer->riders());
      synchronizer->reset();
    }
    for (const int step : {0, 1, 3}) {
      const at::Tensor& riders = kept[static_cast<std::size_t>(step)];
      EXPECT_EQ(riders.scalar_type(), at::kFloat);
      EXPECT_EQ(riders[0].item<float>(), 100001.0F + 4 * static_cast<float>(step));
      EXPECT_EQ(riders[1].item<float>(), .25F);
      EXPECT_EQ(riders[2].item<float>(), 6);
    }
    EXPECT_TRUE(at::equal(kept[2], at::zeros({3})));
  });
}

TEST(GradientSynchronizer, RidersBeside16BitGradientsHaveABucketOfTheirOwn) {
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kDouble}) {
      LinearModel model = some_model(type);
      SyncOptions options = small_buckets();
      options.num_riders = 1;
      const auto synchronizer = make_synchronizer(model, data, control, options);
      for (int step = 0; step < 3; ++step) {
        synchronizer->set_riders(std::vector<double>{100001});
        ASSERT_TRUE(run_step(model, *synchronizer, data.rank(), step));
        EXPECT_EQ(synchronizer->riders().item<double>(), 100001);
        for (const NamedParameter& parameter : model.parameters()) {
          EXPECT_TRUE(at::allclose(parameter.tensor.grad(), known_mean(parameter, 2, step), 4e-3))
              << parameter.name << " of step " << step;
        }
        synchronizer->reset();
      }
      EXPECT_EQ(synchronizer->buckets().front().empty(), type != at::kDouble);
    }
  });
}

TEST(GradientSynchronizer, ParametersOfSeveralTypesHaveBucketsOfTheirOwn) {
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    LinearModel model;
    model.add("a", {3}, at::kFloat);
    model.add("b", {5}, at::kDouble);
    model.add("c", {2}, at::kFloat);
    model.add("d", {4}, at::kDouble);
    SyncOptions options = small_buckets();
    options.first_bucket_bytes = 4096;
    options.bucket_bytes = 4096;
    const auto synchronizer = make_synchronizer(model, data, control, options);
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(run_step(model, *synchronizer, data.rank(), step));
      expect_known_means(model, *synchronizer, 2, step);
      synchronizer->reset();
    }
    EXPECT_THAT(synchronizer->buckets(),
                ElementsAre(ElementsAre("d"), ElementsAre("b"), ElementsAre("c", "a")));
  });
}

// In a re-entrant checkpoint the inner backward runs within the outer one, and a parameter that
// both use comes twice.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight) {
    context->save_for_backward({input, weight});
    return input * weight.detach();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::AutoGradMode grad_mode(true);
    const at::Tensor input = saved[0].detach().requires_grad_(true);
    const at::Tensor again = input * saved[1];
    again.backward(gradients[0]);
    return {input.grad(), at::Tensor()};
  }
};

TEST(GradientSynchronizer, AParameterThatComesTwiceInEveryStepIsWaitedFor) {
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    LinearModel model = some_model();
    model.add("shared", {3});
    SyncOptions options = small_buckets();
    options.bucket_bytes = 0;  // each bucket is full with its one tensor
    options.first_bucket_bytes = 0;
    const auto synchronizer = make_synchronizer(model, data, control, options);
    for (int step = 0; step < 4; ++step) {
      const at::Tensor factor = at::full({3}, data.rank() + step + 1.0, at::kDouble);
      const at::Tensor shared = model["shared"];
      at::Tensor loss = model.loss([&](const NamedParameter& p) {
        return p.name == "shared" ? at::Tensor() : known_gradient(p, data.rank(), step);
      });
      const at::Tensor outer = factor * shared;  // 1 * factor
      loss = loss + Checkpoint::apply(outer, shared).sum();
      loss.backward();
      const auto done = synchronizer->finish();
      ASSERT_TRUE(done) << done.error().message;
      // d(f * s * s)/ds = 2 f at s = 1.
      EXPECT_TRUE(at::equal(shared.grad(), at::full({3}, 2 * (step + 1.5), at::kDouble)));
      synchronizer->reset();
    }
  });
}

TEST(GradientSynchronizer, ItsHooksGoWithItAndItsThread) {
  const int threads = test::count_own("task");
  LinearModel model = some_model();
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    LinearModel own = some_model();
    for (int round = 0; round < 3; ++round) {
      const auto synchronizer = make_synchronizer(own, data, control, small_buckets());
      ASSERT_TRUE(run_step(own, *synchronizer, data.rank(), round));
    }
    for (auto& parameter : own.parameters()) parameter.tensor.mutable_grad().reset();
    own.loss([&](const NamedParameter& p) { return known_gradient(p, data.rank(), 1); }).backward();
    EXPECT_TRUE(at::equal(own["head.bias"].grad(),
                          known_gradient(own.parameters().back(), data.rank(), 1)));
  });
  EXPECT_LE(test::count_own("task"), threads);
}

std::vector<NamedParameter> state_of(int rank) {
  const double value = rank + 1;
  std::vector<NamedParameter> tensors{
      {"weight", at::full({300, 7}, value, at::kFloat).requires_grad_(true)},
      {"count", at::full({}, rank + 5, at::kLong)},
      {"mask", at::full({4}, rank == 1, at::kBool)},
      {"moment", at::full({3, 2}, value, at::kDouble)},
      {"empty", at::empty({0, 3}, at::kFloat)},
      {"large", at::full({28, 1 << 20}, rank, at::kByte)},
  };
  at::Tensor conv = at::arange(48, at::kFloat).view({4, 3, 2, 2}) * value;
  if (rank != 1) conv = conv.contiguous(at::MemoryFormat::ChannelsLast);
  tensors.push_back({"conv", conv});
  if (rank == 2) std::swap(tensors[0], tensors[4]);
  return tensors;
}

TEST(BroadcastParameters, AnyTypeAndAnyStridesBecomeThoseOfTheRoot) {
  test::Team team = test::connect_team(3);
  test::with_team(team, [&](Communicator& communicator) {
    auto own = state_of(communicator.rank());
    const Call call{test::kLongTimeout, nullptr};
    const auto done = broadcast_parameters(own, communicator, 1, call);
    ASSERT_TRUE(done) << done.error().message;
    for (const NamedParameter& expected : state_of(1)) {
      for (const NamedParameter& tensor : own) {
        if (tensor.name != expected.name) continue;
        EXPECT_TRUE(at::equal(tensor.tensor, expected.tensor)) << tensor.name;
      }
    }
    EXPECT_TRUE(own.front().tensor.defined());
    const bool is_channels_last = own.back().tensor.is_contiguous(at::MemoryFormat::ChannelsLast);
    EXPECT_EQ(is_channels_last, communicator.rank() != 1);
    EXPECT_TRUE(broadcast_optimizer_state({}, communicator, 0, call));
  });
}

}  // namespace
}  // namespace hvd
