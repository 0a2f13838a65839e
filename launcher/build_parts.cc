#include "launcher/build_parts.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

namespace hvd {
namespace {

constexpr std::string_view kLibrary = "libhvdrun.so";
constexpr std::string_view kTrainer = "petrv2";

// A table of the file; nullopt if it does not lie within it.
template <typename Entry>
std::optional<std::vector<Entry>> read_table(std::string_view file, std::uint64_t offset,
                                             std::uint64_t num_bytes) {
  if (offset > file.size() || num_bytes > file.size() - offset) return std::nullopt;
  std::vector<Entry> table(num_bytes / sizeof(Entry));
  std::memcpy(table.data(), file.data() + offset, table.size() * sizeof(Entry));
  return table;
}

std::optional<Elf64_Ehdr> read_header(std::string_view file) {
  const auto headers = read_table<Elf64_Ehdr>(file, 0, sizeof(Elf64_Ehdr));
  if (!headers) return std::nullopt;
  const Elf64_Ehdr& header = headers->front();
  const bool is_elf = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64 &&
                      header.e_shentsize == sizeof(Elf64_Shdr);
  return is_elf ? std::optional(header) : std::nullopt;
}

std::string text_at(std::string_view file, const Elf64_Shdr& strings, std::uint64_t offset) {
  if (offset >= strings.sh_size || strings.sh_offset > file.size() ||
      strings.sh_size > file.size() - strings.sh_offset) {
    return "";
  }
  const std::string_view rest = file.substr(strings.sh_offset, strings.sh_size).substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<std::string> find_library(const std::filesystem::path& folder) {
  for (const auto& place : {folder / kLibrary, folder.parent_path() / "lib" / kLibrary}) {
    std::error_code error;
    if (std::filesystem::is_regular_file(place, error)) return place.string();
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> needed_libraries(std::string_view file) {
  std::vector<std::string> names;
  const auto header = read_header(file);
  if (!header) return names;
  const auto sections = read_table<Elf64_Shdr>(file, header->e_shoff,
                                               std::uint64_t{header->e_shnum} * sizeof(Elf64_Shdr));
  if (!sections) return names;
  for (const Elf64_Shdr& section : *sections) {
    if (section.sh_type != SHT_DYNAMIC || section.sh_link >= sections->size()) continue;
    const auto entries = read_table<Elf64_Dyn>(file, section.sh_offset, section.sh_size);
    if (!entries) continue;
    for (const Elf64_Dyn& entry : *entries) {
      if (entry.d_tag != DT_NEEDED) continue;
      names.push_back(text_at(file, (*sections)[section.sh_link], entry.d_un.d_val));
    }
  }
  return names;
}

void find_build_parts(const std::string& folder, BuildInfo& build) {
  build.has_trainer = ::access((folder + "/" + std::string(kTrainer)).c_str(), X_OK) == 0;
  const auto library = find_library(folder);
  if (!library) return;
  build.has_tcp = true;
  const auto needed = needed_libraries(read_whole(*library));
  build.has_nccl = std::any_of(needed.begin(), needed.end(), [](const std::string& name) {
    return name.starts_with("libnccl.so");
  });
}

}  // namespace hvd
