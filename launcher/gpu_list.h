// Lists of GPUs as users select them: "0,2,4-7", or the ids that nvidia-smi -L prints. What comes
// out are the tokens of CUDA_VISIBLE_DEVICES in the order given. Pure; errors are exit 2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

// "3" or "4-7": what can only be a GPU where hosts and GPUs share one list.
[[nodiscard]] bool is_gpu_number(std::string_view item);

// "GPU-..." or "MIG-...".
[[nodiscard]] bool is_gpu_id(std::string_view item);

// Adds the GPUs of one item. Twice the same one is an error.
[[nodiscard]] Result<void> add_gpus(std::string_view item, std::vector<std::string>& gpus);

// A whole list, ids among it.
[[nodiscard]] Result<std::vector<std::string>> parse_gpus(std::string_view text);

// "0,2,4", as CUDA_VISIBLE_DEVICES wants it.
[[nodiscard]] std::string format_gpus(const std::vector<std::string>& gpus);

}  // namespace hvd
