#include "launcher/stage_source.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "base/sha256.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 1U << 20U;
constexpr mode_t kPermissions = 0777;
constexpr std::uint32_t kParentMode = 0755;

Error refusal(std::string_view path, std::string_view why) {
  return {fmt::format("--stage {}: {}", show(path), why), ExitCode::kUsage};
}

class StageReader {
 public:
  Result<void> add_named(const std::string& path, const std::string& cwd) {
    std::error_code error;
    const fs::path real = fs::canonical(fs::path(cwd) / path, error);
    if (error) return tl::unexpected(refusal(path, error.message()));
    const std::string place = staged_place(path, cwd);
    if (place.empty()) return add_content(real.string(), "");
    if (auto parents = add_parents(place); !parents) return parents;
    return add(real.string(), place);
  }

  StageSource finish() {
    if (num_left_out_ > 0) {
      source_.notes.push_back(fmt::format(
          "--stage leaves out what is neither file, folder nor link: {} of them, the first is {}",
          num_left_out_, show(left_out_)));
    }
    return std::move(source_);
  }

 private:
  Result<void> add_parents(const std::string& place) {
    for (auto at = place.find('/'); at != std::string::npos; at = place.find('/', at + 1)) {
      v1::StageEntry entry;
      entry.set_kind(v1::StageEntry::KIND_FOLDER);
      entry.set_mode(kParentMode);
      if (auto put = this->put(std::move(entry), place.substr(0, at), ""); !put) return put;
    }
    return {};
  }

  Result<void> add(const std::string& from, const std::string& place) {
    struct stat info {};
    if (::lstat(from.c_str(), &info) != 0) return unreadable(from, errno);
    v1::StageEntry entry;
    entry.set_mode(info.st_mode & kPermissions);
    if (S_ISDIR(info.st_mode)) return add_folder(from, place, std::move(entry));
    if (S_ISLNK(info.st_mode)) return add_link(from, place, std::move(entry));
    if (S_ISREG(info.st_mode)) return add_file(from, place, std::move(entry));
    if (num_left_out_++ == 0) left_out_ = from;
    return {};
  }

  Result<void> add_folder(const std::string& from, const std::string& place, v1::StageEntry entry) {
    entry.set_kind(v1::StageEntry::KIND_FOLDER);
    if (auto put = this->put(std::move(entry), place, from); !put) return put;
    return add_content(from, place + '/');
  }

  // In the order of the names, which does not depend on the file system.
  Result<void> add_content(const std::string& folder, const std::string& prefix) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) return tl::unexpected(refusal(folder, error.message()));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (auto added = add(folder + '/' + name, prefix + name); !added) return added;
    }
    return {};
  }

  Result<void> add_link(const std::string& from, const std::string& place, v1::StageEntry entry) {
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink(from.c_str(), target.data(), target.size());
    if (size < 0) return unreadable(from, errno);
    entry.set_kind(v1::StageEntry::KIND_LINK);
    entry.set_target(target.data(), static_cast<std::size_t>(size));
    return put(std::move(entry), place, from);
  }

  // One that changes between or after the two looks has another sum for the node: told there.
  Result<void> add_file(const std::string& from, const std::string& place, v1::StageEntry entry) {
    if (index_.count(place) > 0) return put(std::move(entry), place, from);
    auto sum = sha256_of_file(from);
    if (!sum) return tl::unexpected(Error{"--stage: " + sum.error().message, ExitCode::kUsage});
    struct stat info {};
    if (::stat(from.c_str(), &info) != 0) return unreadable(from, errno);
    entry.set_kind(v1::StageEntry::KIND_FILE);
    entry.set_size(static_cast<std::uint64_t>(info.st_size));
    entry.set_sha256(std::move(*sum));
    source_.num_bytes += entry.size();
    ++source_.num_files;
    return put(std::move(entry), place, from);
  }

  // The same twice is one; a folder that was only on the way to another entry becomes itself.
  Result<void> put(v1::StageEntry entry, const std::string& place, const std::string& from) {
    const auto [known, is_new] = index_.try_emplace(place, source_.entries.size());
    if (is_new) return append(std::move(entry), place, from);
    v1::StageEntry& first = source_.entries[known->second];
    std::string& first_from = source_.sources[known->second];
    const bool are_folders =
        first.kind() == v1::StageEntry::KIND_FOLDER && entry.kind() == v1::StageEntry::KIND_FOLDER;
    if (first_from == from || (are_folders && from.empty())) return {};
    if (are_folders && first_from.empty()) {
      first.set_mode(entry.mode());
      first_from = from;
      return {};
    }
    return tl::unexpected(
        refusal(from.empty() ? place : from,
                fmt::format("{} stands in the same place, {}; rename one of them",
                            show(first_from.empty() ? place : first_from), show(place))));
  }

  Result<void> append(v1::StageEntry entry, const std::string& place, const std::string& from) {
    if (source_.entries.size() == kMostEntries) {
      return tl::unexpected(refusal(
          from, fmt::format("more than {} files and folders; stage an archive, or only what the "
                            "ranks need",
                            kMostEntries)));
    }
    entry.set_path(place);
    source_.entries.push_back(std::move(entry));
    source_.sources.push_back(from);
    return {};
  }

  static Result<void> unreadable(const std::string& path, int error) {
    return tl::unexpected(refusal(path, std::strerror(error)));
  }

  StageSource source_;
  std::map<std::string, std::size_t> index_;  // place -> entry
  std::size_t num_left_out_ = 0;
  std::string left_out_;
};

}  // namespace

std::string staged_place(std::string_view path, std::string_view cwd) {
  const fs::path base = fs::path(cwd).lexically_normal();
  fs::path whole = (base / fs::path(path)).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "src/"
  const fs::path relative = whole.lexically_relative(base);
  if (relative == ".") return "";
  if (relative.empty() || *relative.begin() == "..") return whole.filename().string();
  return relative.string();
}

Result<StageSource> read_stage(const std::vector<std::string>& paths, const std::string& cwd) {
  StageReader reader;
  for (const std::string& path : paths) {
    if (path.empty()) return tl::unexpected(refusal(path, "no file or folder is named"));
    if (auto added = reader.add_named(path, cwd); !added) return tl::unexpected(added.error());
  }
  return reader.finish();
}

}  // namespace hvd
