// For tests: a head of small sizes on a 4x6 grid, in fp64, with its weights and inputs.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <vector>

#include "training/petrv2/model/head_training.h"
#include "training/petrv2/verify/filler.h"
#include "training/petrv2/verify/scene.h"

namespace hvd::petrv2 {

inline ModelConfig small_config() {
  ModelConfig config;
  config.image.height = 64;
  config.image.width = 96;
  config.embed = 32;
  config.heads = 4;
  config.layers = 2;
  config.ffn = 48;
  config.queries = 8;
  config.depth_bins = 6;
  config.has_decoder_checkpoints = false;
  return config;
}

struct SmallHead {
  explicit SmallHead(const ModelConfig& model)
      : config(model), set(at::kCPU, at::kDouble), head(model, model.embed, set) {
    fill_tensors(set);
    feature = filled(kFeatureNumber, {kNumViews, config.embed, 4, 6}).set_requires_grad(true);
    options.has_dropout = false;
    options.dn_noise = scene_noise(3 * config.denoising.groups);
  }

  TrainResult run() {
    const HeadInput input{feature, cameras, time_delta, nullptr, options.has_dropout};
    return train_head(head, input, targets, normalisers, options, pool);
  }

  // Gradients of all trainable parameters after a backward pass.
  std::vector<at::Tensor> gradients() {
    for (const Parameter& parameter : set.parameters()) parameter.tensor.mutable_grad().reset();
    run().total.backward();
    std::vector<at::Tensor> result;
    for (const Parameter& parameter : set.parameters()) {
      if (parameter.is_trainable) result.push_back(parameter.tensor.grad());
    }
    return result;
  }

  const ModelConfig config;
  ParameterSet set;
  const Head head;
  at::Tensor feature;
  at::Tensor cameras = scene_cameras(1, 64, 96);
  at::Tensor time_delta = at::full({1}, kSceneTimeDelta, at::kDouble);
  std::vector<Targets> targets{scene_targets()};
  Normalisers normalisers{3, 6};
  ForwardOptions options;
  boost::asio::thread_pool pool{1};
};

}  // namespace hvd::petrv2
