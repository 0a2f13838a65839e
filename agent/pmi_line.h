// The lines of the PMI-1 wire protocol, as MPICH's simple PMI client writes them: words of the form
// key=value with one blank between them, the first one `cmd=NAME`, each line ended by a newline.
// Only a spawn is longer: `mcmd=spawn`, a line for each of its words, `endcmd`. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hvd {

struct PmiCommand {
  std::string name;  // "put"; of a spawn "spawn"; empty: the line has no command
  std::vector<std::pair<std::string, std::string>> words;  // without the command itself

  // The value of the first word with this key.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const;
};

// One line without its newline.
[[nodiscard]] PmiCommand parse_pmi_line(std::string_view line);

// Takes bytes as they come and hands out whole commands.
class PmiLines {
 public:
  // The longest line; the protocol's own limits make about 1,400 bytes.
  static constexpr std::size_t kMaxLine = 4096;
  // Words of one spawn.
  static constexpr std::size_t kMaxSpawnWords = 1024;

  void append(std::string_view bytes);
  [[nodiscard]] std::optional<PmiCommand> next();

  // A line or a spawn beyond the limit: what follows means nothing any more.
  [[nodiscard]] bool is_broken() const { return is_broken_; }

 private:
  [[nodiscard]] std::optional<std::string> next_line();
  bool take_spawn_line(const std::string& line);

  std::string buffer_;
  std::optional<PmiCommand> spawn_;  // until its endcmd
  bool is_broken_ = false;
};

}  // namespace hvd
