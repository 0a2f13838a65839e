// Names and shapes of a model's parameters, without making their values. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/petrv2/config.h"

namespace hvd::petrv2 {

struct TableRow {
  std::string name;
  std::vector<std::int64_t> shape;
  bool is_trainable = true;
};

// In the order of Petrv2::parameters().
[[nodiscard]] std::vector<TableRow> list_tensors(const ModelConfig& config);

}  // namespace hvd::petrv2
