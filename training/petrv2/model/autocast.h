// Mixed precision of one scope on one kind of device; thread-local, like libtorch's own switch.
#pragma once

#include <ATen/autocast_mode.h>

#include <optional>

#include "training/torch.h"

namespace hvd::petrv2 {

class AutocastGuard {
 public:
  // nullopt: off within the scope.
  AutocastGuard(at::DeviceType device, std::optional<at::ScalarType> type)
      : device_(device),
        was_enabled_(at::autocast::is_autocast_enabled(device)),
        old_type_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, type.has_value());
    if (type) at::autocast::set_autocast_dtype(device, *type);
    at::autocast::increment_nesting();
  }

  ~AutocastGuard() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_dtype(device_, old_type_);
  }

  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  const at::DeviceType device_;
  const bool was_enabled_;
  const at::ScalarType old_type_;
};

}  // namespace hvd::petrv2
