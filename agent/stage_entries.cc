#include "agent/stage_entries.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

constexpr std::size_t kSumBytes = 32;

bool is_plain_path(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    const auto part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

bool is_whole(const v1::StageEntry& entry) {
  switch (entry.kind()) {
    case v1::StageEntry::KIND_FILE:
      return entry.sha256().size() == kSumBytes;
    case v1::StageEntry::KIND_FOLDER:
      return true;
    case v1::StageEntry::KIND_LINK:
      return !entry.target().empty() && entry.target().find('\0') == std::string::npos;
    default:
      return false;
  }
}

}  // namespace

std::optional<std::string> check_stage_entries(const std::vector<v1::StageEntry>& entries) {
  std::set<std::string_view> seen;
  std::set<std::string_view> folders;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string_view path = entries[i].path();
    if (!is_plain_path(path)) return fmt::format("entry {} has no plain path", i);
    if (!is_whole(entries[i])) return fmt::format("entry {} is not whole", i);
    const auto slash = path.rfind('/');
    if (slash != std::string_view::npos && folders.count(path.substr(0, slash)) == 0) {
      return fmt::format("entry {} stands in no folder that was named before it", i);
    }
    if (!seen.insert(path).second) return fmt::format("entry {} stands twice", i);
    if (entries[i].kind() == v1::StageEntry::KIND_FOLDER) folders.insert(path);
  }
  return std::nullopt;
}

}  // namespace hvd
