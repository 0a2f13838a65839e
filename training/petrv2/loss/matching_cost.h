// What it costs to give a box to a query, and the solving of it beside the running model: the cost
// matrices of a layer leave for the host as soon as its heads have run, and a few threads solve
// them while later layers run.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <future>
#include <vector>

#include "training/petrv2/batch.h"
#include "training/petrv2/config.h"
#include "training/petrv2/loss/assignment.h"
#include "training/torch.h"

namespace hvd::petrv2 {

constexpr double kFocalAlpha = 0.25;  // weight of the positives, in cost and loss

// (..., 10) focal classification cost of each query and class, times 2.
[[nodiscard]] at::Tensor focal_cost(const at::Tensor& class_logits);

// (G, 9) boxes -> (G, 10) codes as the network regresses them: x y log(w) log(l) z log(h) sin cos
// vx vy.
[[nodiscard]] at::Tensor target_code(const at::Tensor& boxes);

struct MatchingTargets {
  at::Tensor labels;           // (B, most boxes) int64, on the device; unused places 0
  at::Tensor codes;            // (B, most boxes, 10), on the device; unused places 0
  std::vector<int> num_boxes;  // per sample
};

[[nodiscard]] MatchingTargets make_matching_targets(const std::vector<Targets>& targets,
                                                    const at::TensorOptions& options);

// (B, Q, most boxes), finite. Logits (B, Q, 10), boxes (B, Q, 10), code_weights (10).
[[nodiscard]] at::Tensor matching_cost(const at::Tensor& class_logits, const at::Tensor& boxes,
                                       const MatchingTargets& targets, MatcherKind matcher,
                                       const at::Tensor& code_weights);

using PendingAssignment = std::future<Assignment>;

// One per sample. The copy is queued behind what computes the cost; a thread of the pool waits for
// it and solves in fp64. Never blocks the caller.
[[nodiscard]] std::vector<PendingAssignment> solve_in(boost::asio::thread_pool& pool,
                                                      const at::Tensor& cost,
                                                      const std::vector<int>& num_boxes);

}  // namespace hvd::petrv2
