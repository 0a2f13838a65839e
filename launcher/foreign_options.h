// Options of other launchers that people write out of habit: what they are here. Pure.
#pragma once

#include <string_view>

namespace hvd {

// "torchrun's: the ranks of a host are its slots, as in -H node1:8"; empty: no launcher's that we
// know. `name` with its dashes, without a value.
[[nodiscard]] std::string_view foreign_option_hint(std::string_view name);

}  // namespace hvd
