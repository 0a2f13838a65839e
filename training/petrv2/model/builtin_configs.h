// The files of training/configs, put into the program by the build.
#pragma once

#include <span>
#include <string_view>

namespace hvd::petrv2 {

struct BuiltinConfig {
  std::string_view name;
  std::string_view yaml;
};

[[nodiscard]] std::span<const BuiltinConfig> builtin_configs();

}  // namespace hvd::petrv2
