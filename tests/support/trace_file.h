// A timeline's file, read back.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace hvd {

[[nodiscard]] inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Discarded, if it is no JSON.
[[nodiscard]] inline nlohmann::json read_trace(const std::string& path) {
  return nlohmann::json::parse(read_text(path), nullptr, false);
}

}  // namespace hvd
