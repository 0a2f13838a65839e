#include "launcher/transport/agent_image.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "base/own_program.h"
#include "base/sha256.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

constexpr std::size_t kSumDigits = 16;
constexpr std::size_t kMaxNoteBytes = 64 * 1024;

bool read_at(int fd, void* target, std::size_t size, off_t offset) {
  return ::pread(fd, target, size, offset) == static_cast<ssize_t>(size);
}

std::string machine_name(std::uint16_t elf_machine) {
  switch (elf_machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_PPC64:
      return "ppc64le";
    case EM_RISCV:
      return "riscv64";
    default:
      return "";
  }
}

// The notes of one segment: name size, descriptor size, type, then both padded to 4 bytes.
std::optional<std::string> find_build_id(std::string_view notes) {
  const auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof(header));
    const std::size_t descriptor = sizeof(header) + padded(header.n_namesz);
    const std::size_t end = descriptor + padded(header.n_descsz);
    if (end > notes.size()) return std::nullopt;
    const bool is_gnu = notes.substr(sizeof(header), 4) == std::string_view("GNU\0", 4);
    if (is_gnu && header.n_type == NT_GNU_BUILD_ID && header.n_descsz >= kSumDigits / 2) {
      return to_hex(notes.substr(descriptor, header.n_descsz));
    }
    notes.remove_prefix(end);
  }
  return std::nullopt;
}

std::optional<std::string> read_build_id(int fd, const Elf64_Ehdr& header) {
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const auto offset = static_cast<off_t>(header.e_phoff + i * sizeof(segment));
    if (!read_at(fd, &segment, sizeof(segment), offset)) return std::nullopt;
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!read_at(fd, notes.data(), notes.size(), static_cast<off_t>(segment.p_offset))) continue;
    if (auto id = find_build_id(notes)) return id;
  }
  return std::nullopt;
}

}  // namespace

Result<AgentImage> read_agent_image(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_valid()) return make_error("cannot read {}: {}", path, std::strerror(errno));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return make_error("{} is not a regular file", path);
  }
  Elf64_Ehdr header{};
  const bool is_elf = read_at(fd.get(), &header, sizeof(header), 0) &&
                      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64;
  if (!is_elf) return make_error("{} is not a 64-bit program", path);
  AgentImage image;
  image.path = path;
  image.size = static_cast<std::uint64_t>(status.st_size);
  image.machine = machine_name(header.e_machine);
  auto id = read_build_id(fd.get(), header);
  if (!id) {
    auto sum = sha256_of_file(path);
    if (!sum) return tl::unexpected(sum.error());
    id = to_hex(*sum);
  }
  image.sum = id->substr(0, kSumDigits);
  return image;
}

Result<AgentImage> find_agent_image() {
  const std::string folder = own_program_folder();
  const std::string beside = folder + "/hvd-agent";
  const std::string installed = folder + "/../lib/hvdrun/hvd-agent";
  for (const std::string& path : {beside, installed}) {
    if (::access(path.c_str(), X_OK) == 0) return read_agent_image(path);
  }
  return make_error("hvd-agent is missing (looked for {} and {}): install it from the same build",
                    beside, installed);
}

}  // namespace hvd
