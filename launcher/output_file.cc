#include "launcher/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/disk_file.h"
#include "launcher/shell_words.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

// Whether hvdrun's own output goes into that file: it would be lost when the file is replaced.
bool is_own_output(const fs::path& path) {
  struct stat named {};
  if (::stat(path.c_str(), &named) != 0) return false;
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat own {};
    if (::fstat(fd, &own) != 0 || !S_ISREG(own.st_mode)) continue;
    if (own.st_dev == named.st_dev && own.st_ino == named.st_ino) return true;
  }
  return false;
}

// A pipe, a device, a socket. Before links are followed: those in /proc lead to what has no name.
bool is_no_file(const fs::path& path) {
  std::error_code missing;
  const fs::file_status status = fs::status(path, missing);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

// Why it cannot be written and what to do, or nothing.
std::string objection(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status) || !path.has_filename()) return "it is a folder; name a file in it";
  if (is_own_output(path)) return "hvdrun's own output goes there; name another file";
  if (fs::exists(status) && ::access(path.c_str(), W_OK) != 0) {
    return fmt::format("{}; name another file", std::strerror(errno));
  }
  if (fs::is_symlink(fs::symlink_status(path, ignored))) {
    return "it is a link to what does not exist; name the file itself";
  }
  const fs::path folder = path.parent_path();
  if (!fs::is_directory(folder, ignored)) {
    return fmt::format("there is no folder {}; make it or name another", show(folder.string()));
  }
  if (!open_unnamed(folder.string()).is_valid()) {
    return fmt::format("no file can be made in {}: {}; name another folder", show(folder.string()),
                       std::strerror(errno));
  }
  return "";
}

}  // namespace

Result<std::string> check_output_file(std::string_view text, std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return make_error(ExitCode::kUsage, "{} {}: {}", name, show(text), why);
  };
  if (text.empty()) return refuse("no file is named");
  std::error_code error;
  fs::path path = fs::absolute(fs::path(text), error);
  if (error) return refuse(error.message());
  if (is_no_file(path)) return refuse("it is no file; name another");
  // What is renamed to the path later must replace the file, not a link to it.
  std::error_code missing;  // what does not exist yet is no error
  if (fs::is_symlink(fs::symlink_status(path, missing))) path = fs::weakly_canonical(path, error);
  if (error) return refuse(error.message());
  if (const std::string why = objection(path); !why.empty()) return refuse(why);
  return path.string();
}

}  // namespace hvd
