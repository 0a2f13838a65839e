// Image features: ResNet or VoVNetV2. Batch norms keep their stored statistics, always.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "training/petrv2/config.h"
#include "training/petrv2/model/parameters.h"
#include "training/torch.h"

namespace hvd::petrv2 {

struct BackboneFeatures {
  at::Tensor c4;  // (V, C4, H/16, W/16)
  at::Tensor c5;  // (V, C5, H/32, W/32)
};

using BackboneObserver = std::function<void(std::string_view stage, const at::Tensor& value)>;

class Backbone {
 public:
  virtual ~Backbone() = default;
  Backbone() = default;
  Backbone(const Backbone&) = delete;
  Backbone& operator=(const Backbone&) = delete;

  // image (V, 3, H, W). The observer, if any, sees the stem and each stage.
  [[nodiscard]] virtual BackboneFeatures forward(const at::Tensor& image,
                                                 const BackboneObserver& observer) const = 0;
  [[nodiscard]] virtual int c4_channels() const = 0;
  [[nodiscard]] virtual int c5_channels() const = 0;
};

// Adds its tensors to the set as img_backbone.*, in the order of execution.
[[nodiscard]] std::unique_ptr<Backbone> make_resnet(const BackboneConfig& config,
                                                    ParameterSet& set);
[[nodiscard]] std::unique_ptr<Backbone> make_vovnet(const BackboneConfig& config,
                                                    ParameterSet& set);

}  // namespace hvd::petrv2
