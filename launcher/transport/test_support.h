// What the tests of this folder share: a scratch folder, a stand-in for the agent, running a task.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/loop.h"
#include "launcher/transport/transport.h"

namespace hvd {

class ScratchFolder {
 public:
  ScratchFolder() {
    char name[] = "/tmp/hvdrun-transport-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& text, mode_t mode = 0644) {
  std::ofstream(path, std::ios::binary) << text;
  ::chmod(path.c_str(), mode);
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::size_t count_files(const std::string& folder) {
  if (!std::filesystem::exists(folder)) return 0;
  const std::filesystem::directory_iterator files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// Says that it is ready and echoes, or does what `body` says.
inline AgentImage write_fake_agent(const std::string& path, const std::string& sum,
                                   const std::string& body = "exec cat") {
  write_file(path,
             "#!/bin/sh\n[ \"$1\" = --version ] && { echo fake; exit 0; }\n"
             "echo \"$3 ready fake 1\"\n" +
                 body + "\n",
             0755);
  return {path, sum, std::filesystem::file_size(path), ""};
}

template <typename T>
T run_task(Loop& loop, Task<T> task) {
  std::optional<T> result;
  boost::asio::co_spawn(loop, std::move(task),
                        [&](const std::exception_ptr&, T value) { result = std::move(value); });
  loop.restart();
  while (!result && loop.run_one() > 0) {
  }
  return std::move(*result);
}

inline SteadyTime in_ms(int milliseconds) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

// Reads until `size` bytes, the end, or five seconds without any.
inline std::string read_stream(int stream, std::size_t size) {
  std::string text;
  std::string buffer(std::size_t{256} * 1024, '\0');
  while (text.size() < size) {
    pollfd entry{stream, POLLIN, 0};
    if (::poll(&entry, 1, 5000) <= 0) break;
    const ssize_t got =
        ::recv(stream, buffer.data(), std::min(buffer.size(), size - text.size()), 0);
    if (got <= 0) break;
    text.append(buffer, 0, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace hvd
