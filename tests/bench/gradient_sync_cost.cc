// What the synchroniser's hooks and buckets cost one rank, beside gathering all gradients with one
// copy after backward. 200 tensors with 40 million float32 numbers, as of a ResNet-50 detector, on
// the CPU; the two ways take turns.
//
// gradient_sync_cost [ROUNDS]: medians in ms, and those of a control pair (twice the plain way).
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "hvdrun/gradient_synchronizer.h"

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

std::vector<hvd::NamedParameter> parameters() {
  std::vector<hvd::NamedParameter> all;
  for (int i = 0; i < 200; ++i) {
    // Every other one is a bias or a scale; the rest grow with the depth.
    const std::int64_t size = i % 2 == 0 ? 256 : 1200LL * (i / 2 + 1) * (i / 2 + 1) / 10;
    const at::Tensor tensor = at::ones({size}, at::kFloat);
    all.push_back({fmt::format("layer{}", i), tensor.requires_grad_(true)});
  }
  return all;
}

void run_backward(const std::vector<hvd::NamedParameter>& all, const at::Tensor& one) {
  at::Tensor loss = at::zeros({}, at::kFloat);
  for (const auto& parameter : all) loss = loss + (parameter.tensor * one).sum();
  loss.backward();
}

// One flat tensor for all, filled by one call.
class PlainBuffer {
 public:
  explicit PlainBuffer(const std::vector<hvd::NamedParameter>& all) {
    std::int64_t total = 0;
    for (const auto& parameter : all) total += parameter.tensor.numel();
    const at::Tensor flat = at::zeros({total}, at::kFloat);
    std::int64_t offset = 0;
    for (const auto& parameter : all) {
      views_.push_back(flat.narrow(0, offset, parameter.tensor.numel()));
      offset += parameter.tensor.numel();
    }
  }
  void gather(std::vector<hvd::NamedParameter>& all) {
    std::vector<at::Tensor> gradients;
    for (auto& parameter : all) {
      gradients.push_back(parameter.tensor.grad());
      parameter.tensor.mutable_grad().reset();
    }
    const at::NoGradGuard no_grad;
    at::_foreach_copy_(views_, gradients);
  }

 private:
  std::vector<at::Tensor> views_;
};

template <typename Body>
double time_of(Body body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return Milliseconds(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

int run(int num_rounds) {
  const auto alone = hvd::single_communicator();
  auto plain = parameters();
  auto hooked = parameters();
  PlainBuffer buffer(plain);
  auto made = hvd::GradientSynchronizer::create(hooked, *alone, *alone, {});
  if (!made) {
    fmt::print(stderr, "{}\n", made.error().message);
    return 1;
  }
  hvd::GradientSynchronizer& synchronizer = **made;
  const at::Tensor one = at::ones({}, at::kFloat);
  std::vector<double> plain_times;
  std::vector<double> hooked_times;
  std::vector<double> control_times;
  const auto run_plain = [&] {
    run_backward(plain, one);
    buffer.gather(plain);
  };
  for (int round = 0; round < num_rounds + 2; ++round) {
    const double first = time_of(run_plain);
    bool is_done = false;
    const double second = time_of([&] {
      run_backward(hooked, one);
      is_done = synchronizer.finish().has_value();
      synchronizer.reset();
    });
    const double third = time_of(run_plain);
    if (!is_done) return 1;
    if (round < 2) continue;  // the buckets are made, memory is touched
    plain_times.push_back(first);
    hooked_times.push_back(second);
    control_times.push_back(third);
  }
  fmt::print("plain {:.2f} ms, hooks and {} buckets {:.2f} ms, plain again {:.2f} ms\n",
             median(plain_times), synchronizer.buckets().size(), median(hooked_times),
             median(control_times));
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run(argc > 1 ? std::atoi(argv[1]) : 30); }
