// CPFPN: two levels of the backbone -> P4. The second level has no output convolution.
#pragma once

#include <string_view>

#include "training/petrv2/model/backbone.h"
#include "training/petrv2/model/layers.h"

namespace hvd::petrv2 {

class Neck {
 public:
  Neck(ParameterSet& set, int c4_channels, int c5_channels, int out)
      : lateral_c4_(set, "img_neck.lateral_convs.0.conv", c4_channels, out, 1),
        lateral_c5_(set, "img_neck.lateral_convs.1.conv", c5_channels, out, 1),
        output_(set, "img_neck.fpn_convs.0.conv", out, out, 3) {}

  // P4 (V, out, H/16, W/16). The observer, if any, sees P4 and P5.
  [[nodiscard]] at::Tensor forward(const BackboneFeatures& levels,
                                   const BackboneObserver& observer) const {
    const at::Tensor p5 = lateral_c5_(levels.c5);
    const at::Tensor fine = lateral_c4_(levels.c4);
    const at::Tensor sum = fine + at::upsample_nearest2d(p5, fine.sizes().slice(2));
    at::Tensor p4 = output_(sum);
    if (observer) observer("P4", p4);
    if (observer) observer("P5", p5);
    return p4;
  }

 private:
  const Conv lateral_c4_, lateral_c5_, output_;
};

}  // namespace hvd::petrv2
