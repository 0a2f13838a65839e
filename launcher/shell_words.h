// Words of a command line: splitting the one that --rsh holds, and quoting for display. Nothing
// here is ever given to a shell by hvdrun. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

// Splits at blanks. 'single' and "double" quotes group; a backslash takes the next character as it
// is, within double quotes only before " and a backslash. No variables, no patterns.
[[nodiscard]] Result<std::vector<std::string>> split_words(std::string_view text);

// As one would type it in bash so that exactly these bytes arrive: word, 'a b', $'n\nl'.
[[nodiscard]] std::string quote_word(std::string_view word);
[[nodiscard]] std::string quote_words(const std::vector<std::string>& words);

// A token of the user's for a message: in double quotes, control bytes as \xNN, cut if very long.
[[nodiscard]] std::string show(std::string_view token);

}  // namespace hvd
