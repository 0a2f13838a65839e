// Placeholders in words: "{host}" and the like.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hvd {

// Every `name` in the word becomes the value, which is not looked through again.
inline void replace_all(std::string& word, std::string_view name, std::string_view value) {
  for (std::size_t at = 0; (at = word.find(name, at)) != std::string::npos; at += value.size()) {
    word.replace(at, name.size(), value);
  }
}

}  // namespace hvd
