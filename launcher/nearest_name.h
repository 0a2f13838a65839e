// What a user may have meant by a name that does not exist. Pure.
#pragma once

#include <string_view>
#include <vector>

namespace hvd {

// The known name that is at most a third of `word`'s letters away, and by fewer letters than it
// has itself; empty if none is. Of several the first one.
[[nodiscard]] std::string_view nearest_name(std::string_view word,
                                            const std::vector<std::string_view>& known);

}  // namespace hvd
