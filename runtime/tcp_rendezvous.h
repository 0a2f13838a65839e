// Where ranks leave their addresses for each other before they are connected: a small key-value
// store in which a key is written once. Under hvdrun it is the job's own (worker_rendezvous.h);
// the two here serve the threads of one process, and processes that share a folder.
//
// Threads: any; get() blocks its caller until the key is there or the time is up
// (ExitCode::kTimeout).
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "base/status.h"

namespace hvd {

class TcpRendezvous {
 public:
  using Timeout = std::chrono::milliseconds;

  TcpRendezvous() = default;
  TcpRendezvous(const TcpRendezvous&) = delete;
  TcpRendezvous& operator=(const TcpRendezvous&) = delete;
  virtual ~TcpRendezvous() = default;

  // Keys: letters, digits, '_', '-' and '/'; values: any bytes, at most 64 KiB.
  [[nodiscard]] virtual Result<void> put(const std::string& key, const std::string& value,
                                         Timeout timeout) = 0;
  [[nodiscard]] virtual Result<std::string> get(const std::string& key, Timeout timeout) = 0;
};

class InMemoryRendezvous final : public TcpRendezvous {
 public:
  Result<void> put(const std::string& key, const std::string& value, Timeout timeout) override;
  Result<std::string> get(const std::string& key, Timeout timeout) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// A file for each key in a folder that exists, is empty at first, and belongs to one job.
class FolderRendezvous final : public TcpRendezvous {
 public:
  explicit FolderRendezvous(std::string folder) : folder_(std::move(folder)) {}
  Result<void> put(const std::string& key, const std::string& value, Timeout timeout) override;
  Result<std::string> get(const std::string& key, Timeout timeout) override;

 private:
  [[nodiscard]] std::string path_of(const std::string& key) const;
  const std::string folder_;
};

}  // namespace hvd
