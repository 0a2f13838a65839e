// A data-parallel training loop: a line through points, each rank with points of its own.
//   hvdrun -np 4 build/examples/train_loop
// Every rank begins with rank 0's weights and adds the ranks' mean gradient, so all stay equal; the
// result is the one that a single process with all points would get.
#include <fmt/format.h>

#include <array>
#include <random>
#include <vector>

#include "hvdrun/runtime.h"
#include "runtime/worker_exit.h"

namespace {

constexpr int kPoints = 1000;  // of each rank
constexpr int kSteps = 200;
constexpr double kLearningRate = 0.3;

struct Point {
  double x, y;
};
using Weights = std::array<double, 2>;  // slope and offset

std::vector<Point> points_of(int rank) {
  std::mt19937 random(static_cast<unsigned>(rank));
  std::uniform_real_distribution<double> x(-1, 1);
  std::normal_distribution<double> noise(0, 0.1);
  std::vector<Point> points(kPoints);
  for (Point& point : points) {
    point.x = x(random);
    point.y = 2 * point.x - 1 + noise(random);
  }
  return points;
}

Weights gradient_of(const Weights& weights, const std::vector<Point>& points) {
  Weights gradient{};
  for (const Point& point : points) {
    const double error = weights[0] * point.x + weights[1] - point.y;
    gradient[0] += 2 * error * point.x / kPoints;
    gradient[1] += 2 * error / kPoints;
  }
  return gradient;
}

hvd::Result<Weights> train(hvd::Communicator& ranks) {
  const std::vector<Point> points = points_of(ranks.rank());
  Weights weights = {ranks.rank() + 1.0, 0};
  auto done = ranks.broadcast(weights.data(), 2, hvd::DataType::kFloat64, 0, {});
  for (int step = 0; done && step < kSteps; ++step) {
    Weights gradient = gradient_of(weights, points);
    done = ranks.all_reduce(gradient.data(), 2, hvd::DataType::kFloat64, {hvd::ReduceOp::kAverage},
                            {});
    for (std::size_t i = 0; i < 2; ++i) weights[i] -= kLearningRate * gradient[i];
  }
  if (!done) return hvd::collective_error(ranks, done.error());
  return weights;
}

}  // namespace

int main() {
  auto job = hvd::Runtime::init({.plan = "a line through points"});
  if (!job) {
    fmt::print(stderr, "train_loop: {}\n", job.error().message);
    return static_cast<int>(job.error().code);
  }
  const auto weights = train((*job)->cpu());
  if (!weights) (*job)->leave(weights.error());
  fmt::print("rank {}: y = {:.6f} x + {:.6f}\n", (*job)->place().rank, (*weights)[0],
             (*weights)[1]);
  const auto ended = (*job)->finalize();
  if (!ended) (*job)->leave(ended.error());
}
