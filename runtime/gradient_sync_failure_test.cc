// What every rank is told when ranks differ or one of them fails.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <atomic>

#include "runtime/worker_exit.h"
#include "tests/support/gradient_ranks.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using test::known_gradient;
using test::LinearModel;
using test::make_synchronizer;
using test::small_buckets;
using test::with_ranks;
using testing::HasSubstr;

LinearModel four_parameters() {
  LinearModel model;
  model.add("stem.weight", {4, 3});
  model.add("body.weight", {9, 4});
  model.add("head.weight", {2, 9});
  model.add("head.bias", {2});
  return model;
}

int code_of(const Error& error) { return static_cast<int>(error.code); }

at::Tensor loss_of(const LinearModel& model, int rank, int step) {
  return model.loss([=](const NamedParameter& p) { return known_gradient(p, rank, step); });
}

// Rank 1 changes its model or options; all must get the same error, which is returned.
std::string refusal(const std::function<void(LinearModel&, SyncOptions&)>& change) {
  std::vector<std::string> messages(3);
  with_ranks(3, [&](Communicator& data, Communicator& control) {
    LinearModel model = four_parameters();
    SyncOptions options = small_buckets();
    if (data.rank() == 1) change(model, options);
    const auto begin = std::chrono::steady_clock::now();
    const auto made = GradientSynchronizer::create(model.parameters(), data, control, options);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    ASSERT_FALSE(made);
    EXPECT_EQ(code_of(made.error()), 73);
    messages[static_cast<std::size_t>(data.rank())] = made.error().message;
  });
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_EQ(messages[2], messages[0]);
  return messages[0];
}

TEST(GradientSyncFailure, AnotherShapeIsTheSameErrorOnEveryRank) {
  EXPECT_EQ(refusal([](LinearModel& model, SyncOptions&) {
              model.parameters()[2].tensor = at::ones({3, 9}, at::kDouble).requires_grad_(true);
            }),
            "gradients of the ranks: the ranks do not have the same tensors: head.weight is "
            "float64 [2, 9] on cpu on ranks 0, 2 and float64 [3, 9] on cpu on rank 1; start all "
            "ranks with the same program and configuration");
}

TEST(GradientSyncFailure, AnotherTypeIsTheSameErrorOnEveryRank) {
  EXPECT_THAT(refusal([](LinearModel& model, SyncOptions&) {
                model.parameters()[0].tensor = at::ones({4, 3}, at::kFloat).requires_grad_(true);
              }),
              HasSubstr("stem.weight is float64 [4, 3] on cpu on ranks 0, 2 and float32 [4, 3] on "
                        "cpu on rank 1;"));
}

TEST(GradientSyncFailure, AMissingParameterIsTheSameErrorOnEveryRank) {
  EXPECT_THAT(refusal([](LinearModel& model, SyncOptions&) { model.parameters().pop_back(); }),
              HasSubstr("head.bias is float64 [2] on cpu on ranks 0, 2 and missing on rank 1;"));
}

TEST(GradientSyncFailure, OtherOptionsAreTheSameErrorOnEveryRank) {
  EXPECT_THAT(refusal([](LinearModel&, SyncOptions& options) { options.bucket_bytes = 512; }),
              HasSubstr("bucket_bytes (HOROVOD_FUSION_THRESHOLD) is 256 on ranks 0, 2 and 512 on "
                        "rank 1;"));
  EXPECT_THAT(refusal([](LinearModel&, SyncOptions& options) {
                options.compression = Compression::kFloat16;
              }),
              HasSubstr("compression is none on ranks 0, 2 and fp16 on rank 1;"));
}

TEST(GradientSyncFailure, AParameterThatCannotBeSynchronisedIsNamed) {
  const auto replace_first = [](const at::Tensor& tensor) {
    return refusal(
        [=](LinearModel& model, SyncOptions&) { model.parameters()[0].tensor = tensor; });
  };
  const std::string front = "gradients of the ranks: rank 1: the tensor stem.weight ";
  EXPECT_EQ(replace_first({}), front + "is undefined");
  EXPECT_EQ(replace_first(at::ones({4, 3}, at::kDouble)),
            front + "is not a leaf that requires a gradient");
  EXPECT_EQ(
      replace_first(at::ones({4, 6}, at::kDouble).slice(1, 0, 3).detach().requires_grad_(true)),
      front + "has gaps between its values");
  EXPECT_EQ(replace_first(at::ones({4, 3}, at::kComplexFloat).requires_grad_(true)),
            front + "has a type whose gradients cannot be reduced");
  EXPECT_EQ(refusal([](LinearModel& model, SyncOptions&) {
              model.parameters().push_back(model.parameters().front());
            }),
            front + "is given twice");
  EXPECT_EQ(refusal([](LinearModel& model, SyncOptions&) { model.parameters().clear(); }),
            "gradients of the ranks: rank 1: there is no parameter to synchronise");
}

TEST(GradientSyncFailure, ASecondBackwardThatCommunicatesIsAnErrorThatNamesAParameter) {
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    LinearModel model = four_parameters();
    const auto synchronizer = make_synchronizer(model, data, control, small_buckets());
    loss_of(model, data.rank(), 0).backward();
    ASSERT_TRUE(synchronizer->finish());
    synchronizer->reset();
    loss_of(model, data.rank(), 1).backward();
    if (data.rank() == 1) loss_of(model, data.rank(), 1).backward();
    const auto done = synchronizer->finish();
    // The other rank is not left waiting.
    EXPECT_EQ(done.has_value(), data.rank() == 0);
    if (data.rank() == 0) return;
    EXPECT_EQ(code_of(done.error()), 70);
    EXPECT_EQ(done.error().message,
              "rank 1: the gradient of head.bias came again after its bucket had been handed over: "
              "run all but the last backward of a step with set_accumulating(true), and use a "
              "parameter equally often in every step");
  });
}

TEST(GradientSyncFailure, CallsInTheWrongOrderAreErrors) {
  const auto alone = single_communicator();
  const auto error_of =
      [&](const std::function<void(LinearModel&, GradientSynchronizer&)>& misuse) {
        LinearModel model = four_parameters();
        const auto synchronizer = make_synchronizer(model, *alone, *alone, small_buckets());
        loss_of(model, 0, 0).backward();
        EXPECT_TRUE(synchronizer->finish());
        misuse(model, *synchronizer);
        const auto done = synchronizer->finish();
        return done ? "" : done.error().message;
      };
  EXPECT_EQ(error_of([](LinearModel&, GradientSynchronizer&) {}),
            "rank 0: finish() was called twice in a step: call reset() in between");
  EXPECT_EQ(error_of([](LinearModel& model, GradientSynchronizer& synchronizer) {
              loss_of(model, 0, 1).backward();
              synchronizer.reset();
            }),
            "rank 0: the gradient of head.bias came between finish() and reset()");
  EXPECT_EQ(error_of([](LinearModel&, GradientSynchronizer& synchronizer) {
              synchronizer.reset();
              synchronizer.set_accumulating(true);
            }),
            "rank 0: finish() was called with set_accumulating(true)");
  EXPECT_EQ(error_of([](LinearModel&, GradientSynchronizer& synchronizer) {
              synchronizer.reset();
              synchronizer.set_riders(std::vector<double>(2));
            }),
            "rank 0: 2 riders were given instead of 0");
}

TEST(GradientSyncFailure, AStepThatIsGivenUpIsFollowedByAGoodOne) {
  with_ranks(2, [&](Communicator& data, Communicator& control) {
    LinearModel model = four_parameters();
    const auto synchronizer = make_synchronizer(model, data, control, small_buckets());
    for (int step = 0; step < 2; ++step) {
      loss_of(model, data.rank(), step).backward();
      ASSERT_TRUE(synchronizer->finish());
      synchronizer->reset();
    }
    loss_of(model, data.rank(), 2).backward();  // all buckets are under way
    synchronizer->reset();
    loss_of(model, data.rank(), 3).backward();
    ASSERT_TRUE(synchronizer->finish());
    for (const NamedParameter& parameter : model.parameters()) {
      EXPECT_TRUE(at::equal(parameter.tensor.grad(), test::known_mean(parameter, 2, 3)));
    }
  });
}

// In the step with the number `fatal_step` rank 1 leaves (its connections end), or only stays away.
void lose_rank_one(int fatal_step, bool is_silent) {
  test::Team data = test::connect_team(3);
  test::Team control = test::connect_team(3);
  std::atomic<int> num_named = 0;
  test::on_threads(3, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    SyncOptions options = small_buckets();
    options.timeout = milliseconds(1000);
    LinearModel model = four_parameters();
    auto synchronizer = make_synchronizer(model, *data[index], *control[index], options);
    for (int step = 0; step < fatal_step; ++step) {
      loss_of(model, rank, step).backward();
      ASSERT_TRUE(synchronizer->finish());
      synchronizer->reset();
    }
    if (rank == 1) {
      if (!is_silent) {
        synchronizer.reset();
        data[1].reset();
        control[1].reset();
      }
      while (is_silent && num_named < 2) std::this_thread::yield();
      return;
    }
    loss_of(model, rank, fatal_step).backward();
    const auto begin = std::chrono::steady_clock::now();
    const auto done = synchronizer->finish();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
    ++num_named;
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("rank 1 on node1"));
    EXPECT_EQ(code_of(done.error()), is_silent ? 72 : 71) << done.error().message;
    // What follows says the same, and at once.
    synchronizer->reset();
    loss_of(model, rank, fatal_step).backward();
    const auto next = synchronizer->finish();
    ASSERT_FALSE(next);
    EXPECT_THAT(next.error().message, HasSubstr("rank 1 on node1"));
  });
  EXPECT_EQ(num_named, 2);
}

TEST(GradientSyncFailure, APeerThatDiesIsNamedByEveryRank) {
  lose_rank_one(0, false);
  lose_rank_one(2, false);
}

TEST(GradientSyncFailure, APeerThatDoesNotComeIsNamedAtTheLimit) {
  lose_rank_one(0, true);
  lose_rank_one(2, true);
}

}  // namespace
}  // namespace hvd
