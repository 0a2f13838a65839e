#include "training/petrv2/synth/scene_split.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_set>

#include "base/blanks.h"
#include "base/lines.h"
#include "training/formats/mapped_file.h"

namespace hvd::petrv2 {
namespace {

constexpr std::array<std::string_view, 4> kOfficialSplits = {"train", "val", "mini_train",
                                                             "mini_val"};

// "lists/night.txt" -> "night"; what a shard's name cannot hold becomes '_'.
std::string split_name(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '\n' || c == '\t'; }, '_');
  return name;
}

Result<SceneSplit> read_list(const std::string& path, std::string name) {
  const auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(file.error());
  auto names = parse_scene_names(file->bytes(), path);
  if (!names) return tl::unexpected(names.error());
  return SceneSplit{std::move(name), std::move(*names)};
}

}  // namespace

Result<SceneSplit> read_scene_split(const std::string& dataroot, const std::string& split) {
  if (split == "all") return SceneSplit{split, std::nullopt};
  const bool is_official =
      std::find(kOfficialSplits.begin(), kOfficialSplits.end(), split) != kOfficialSplits.end();
  const std::string path = is_official ? fmt::format("{}/splits/{}.txt", dataroot, split) : split;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    return read_list(path, is_official ? split : split_name(split));
  }
  if (is_official) {
    return make_error(
        "the scenes of --split {} are not part of this program and {} is missing; "
        "write the scene names of the official list there, one a line, or use "
        "--split all",
        split, path);
  }
  return make_error(
      "--split {} is neither all, train, val, mini_train or mini_val nor a file of "
      "scene names; write the names to a file, one a line, and give its path",
      split);
}

Result<std::vector<std::string>> parse_scene_names(std::string_view text, std::string_view path) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  std::size_t number = 0;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    ++number;
    line = strip_blanks(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (!seen.emplace(line).second) {
      return make_error("{}, line {}: the scene {} is listed twice; remove one", path, number,
                        line);
    }
    names.emplace_back(line);
  }
  if (names.empty()) {
    return make_error("{} names no scene; write scene names, one a line, as in scene-0061", path);
  }
  return names;
}

}  // namespace hvd::petrv2
