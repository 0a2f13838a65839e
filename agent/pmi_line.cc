#include "agent/pmi_line.h"

#include <algorithm>

namespace hvd {

std::optional<std::string_view> PmiCommand::find(std::string_view key) const {
  const auto found = std::find_if(words.begin(), words.end(),
                                  [key](const auto& word) { return word.first == key; });
  if (found == words.end()) return std::nullopt;
  return found->second;
}

PmiCommand parse_pmi_line(std::string_view line) {
  PmiCommand command;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    const auto equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    const bool is_command = key == "cmd" || key == "mcmd";
    if (is_command && command.name.empty()) {
      command.name = value;
    } else {
      command.words.emplace_back(key, value);
    }
  }
  return command;
}

void PmiLines::append(std::string_view bytes) {
  if (!is_broken_) buffer_ += bytes;
}

std::optional<std::string> PmiLines::next_line() {
  const auto end = buffer_.find('\n');
  if (end > kMaxLine && buffer_.size() > kMaxLine) {
    is_broken_ = true;
    buffer_.clear();
  }
  if (is_broken_ || end == std::string::npos) return std::nullopt;
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

// True: it was the spawn's last one.
bool PmiLines::take_spawn_line(const std::string& line) {
  if (line == "endcmd") return true;
  for (auto& word : parse_pmi_line(line).words) spawn_->words.push_back(std::move(word));
  is_broken_ = spawn_->words.size() > kMaxSpawnWords;
  return false;
}

std::optional<PmiCommand> PmiLines::next() {
  while (const auto line = next_line()) {
    if (spawn_) {
      if (take_spawn_line(*line)) return std::exchange(spawn_, std::nullopt);
      continue;
    }
    PmiCommand command = parse_pmi_line(*line);
    if (!line->starts_with("mcmd=")) return command;
    spawn_ = std::move(command);
  }
  return std::nullopt;
}

}  // namespace hvd
