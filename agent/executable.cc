#include "agent/executable.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hvd {
namespace {

std::string join(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (path.empty() || path.back() != '/') path += '/';
  return path.append(name);
}

int check_program(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return errno == ENOTDIR ? ENOENT : errno;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

ExecutableLookup look_at(std::string path) {
  const int error = check_program(path);
  if (error != 0) return {{}, error};
  return {std::move(path), 0};
}

}  // namespace

ExecutableLookup find_executable(std::string_view name, std::string_view path,
                                 std::string_view cwd) {
  if (name.empty()) return {{}, ENOENT};
  if (name.front() == '/') return look_at(std::string(name));
  if (name.find('/') != std::string_view::npos) return look_at(join(cwd, name));
  // As execvp does: go on past what may not be executed, but remember that something was there.
  ExecutableLookup result{{}, ENOENT};
  while (true) {
    const std::size_t colon = path.find(':');
    const std::string_view entry = path.substr(0, colon);
    const std::string folder = entry.empty()          ? std::string(cwd)
                               : entry.front() == '/' ? std::string(entry)
                                                      : join(cwd, entry);
    ExecutableLookup found = look_at(join(folder, name));
    if (found.errno_value == 0) return found;
    if (found.errno_value == EACCES) result.errno_value = EACCES;
    if (colon == std::string_view::npos) return result;
    path.remove_prefix(colon + 1);
  }
}

ExecutableLookup find_executable(std::string_view name, const EnvList& env, std::string_view cwd) {
  return find_executable(name, find_env(env, "PATH").value_or(std::string(kDefaultPath)), cwd);
}

int check_folder(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return errno;
  if (!S_ISDIR(info.st_mode)) return ENOTDIR;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace hvd
