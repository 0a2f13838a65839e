// The ways of gradients that lie on a GPU; skipped where there is none. The other rank of a
// communicator of the GPU is made up here: NCCL needs a process for each rank.
#include <ATen/ATen.h>
#include <ATen/cuda/Sleep.h>
#include <c10/core/StreamGuard.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <gmock/gmock.h>

#include <thread>

#include "runtime/activity_board.h"
#include "runtime/flight_recorder.h"
#include "tests/support/gradient_ranks.h"
#include "tests/support/twin_communicator.h"

namespace hvd {
namespace {

using test::known_gradient;
using test::LinearModel;
using test::make_synchronizer;
using test::small_buckets;

class GradientSyncGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (c10::cuda::device_count() == 0) GTEST_SKIP() << "no GPU is visible here";
  }
};

const c10::Device kGpu(c10::kCUDA, 0);

LinearModel model_on_gpu(at::ScalarType type) {
  LinearModel model;
  model.add("stem.weight", {40, 30}, type);
  model.add("stem.bias", {40}, type);
  model.add("body.weight", {50, 40}, type);
  model.add("head.weight", {3, 50}, type);
  for (auto& parameter : model.parameters()) {
    parameter.tensor = parameter.tensor.detach().to(kGpu).requires_grad_(true);
  }
  return model;
}

at::Tensor loss_of(LinearModel& model, int rank, int step) {
  at::Tensor total = at::zeros({}, at::TensorOptions(kGpu).dtype(at::kDouble));
  for (const auto& p : model.parameters()) {
    const NamedParameter on_host{p.name, p.tensor.detach().cpu()};
    total = total + (p.tensor * known_gradient(on_host, rank, step).to(kGpu)).sum().to(at::kDouble);
  }
  return total;
}

// Rank 0 of 2 on a stream of its own; the other rank's gradients are zeros, and it is slow.
class CommunicatorOfGpu final : public test::TwinCommunicator {
 public:
  DeviceKind device_kind() const override { return DeviceKind::kCuda; }
  void* stream() const override { return stream_.stream(); }

  Result<void> all_reduce(void* data, std::size_t count, DataType type, const Reduction& reduction,
                          const Call& call) override {
    EXPECT_EQ(call.stream, stream());
    const at::ScalarType scalar = type == DataType::kFloat64   ? at::kDouble
                                  : type == DataType::kFloat32 ? at::kFloat
                                                               : at::kHalf;
    const c10::StreamGuard guard(stream_.unwrap());
    at::cuda::sleep(20'000'000);  // some ms
    at::Tensor view = at::from_blob(data, {static_cast<std::int64_t>(count)},
                                    at::TensorOptions(kGpu).dtype(scalar));
    if (reduction.op == ReduceOp::kAverage) view.mul_(.5);
    return {};
  }

 private:
  const c10::cuda::CUDAStream stream_ = c10::cuda::getStreamFromPool(true, 0);
};

TEST_F(GradientSyncGpu, TheCurrentStreamWaitsForTheCommunicatorsAndTheHostDoesNot) {
  for (const Compression compression : {Compression::kNone, Compression::kFloat16}) {
    CommunicatorOfGpu communicator;
    ActivityBoard board;
    FlightRecorder recorder;
    LinearModel model = model_on_gpu(at::kFloat);
    SyncOptions options = small_buckets();
    options.compression = compression;
    options.num_riders = 1;
    options.board = &board;
    options.recorder = &recorder;
    const auto synchronizer = make_synchronizer(model, communicator, communicator, options);
    at::Tensor riders;
    for (int step = 0; step < 3; ++step) {
      synchronizer->reset();
      synchronizer->set_riders(std::vector<double>{100002.0 + step});
      loss_of(model, 0, step).backward();
      const auto done = synchronizer->finish();
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_LT(board.read().completed, board.read().scheduled) << "the host has waited";
      riders = synchronizer->riders();
      for (const auto& p : model.parameters()) {
        const NamedParameter on_host{p.name, p.tensor.detach().cpu()};
        EXPECT_TRUE(at::allclose(p.tensor.grad().cpu(), known_gradient(on_host, 0, step) / 2, 1e-3))
            << p.name << " of step " << step;
      }
      EXPECT_EQ(riders.item<float>(), (100002.0F + static_cast<float>(step)) / 2);
    }
    while (board.read().completed < board.read().scheduled) std::this_thread::yield();
    for (const FlightEntry& entry : recorder.entries()) {
      EXPECT_EQ(entry.state, FlightState::kCompleted);
      EXPECT_EQ(entry.operation, "nccl:all_reduce");
    }
  }
}

TEST_F(GradientSyncGpu, OverTcpTheyGoThroughTheHostsMemory) {
  test::with_ranks(2, [](Communicator& data, Communicator& control) {
    for (const Compression compression : {Compression::kNone, Compression::kBfloat16}) {
      LinearModel model = model_on_gpu(at::kFloat);
      SyncOptions options = small_buckets();
      options.compression = compression;
      const auto synchronizer = make_synchronizer(model, data, control, options);
      for (int step = 0; step < 3; ++step) {
        synchronizer->reset();
        loss_of(model, data.rank(), step).backward();
        const auto done = synchronizer->finish();
        ASSERT_TRUE(done) << done.error().message;
        for (const auto& p : model.parameters()) {
          const NamedParameter on_host{p.name, p.tensor.detach().cpu()};
          EXPECT_TRUE(
              at::allclose(p.tensor.grad().cpu(), test::known_mean(on_host, 2, step), 1e-2));
        }
      }
    }
  });
}

}  // namespace
}  // namespace hvd
