// What an agent that serves keeps of each job that it has started: one JSON file, private, in a
// folder of the agent's own. It is all that a new agent needs to go on where another one stopped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/gpu_claim.h"
#include "base/status.h"

namespace hvd {

struct JobRecord {
  std::string job_id;
  std::uint32_t node = 0;
  std::string client;   // as the certificate names him
  std::string address;  // where he came from
  std::string user;     // as whom the job runs
  uid_t uid = 0;
  std::string unit;     // its systemd unit; empty: a plain child
  std::string key_sum;  // SHA-256 of the launcher's key, hexadecimal
  GpuClaim gpus;
  std::int64_t since = 0;  // seconds since the epoch
  bool is_ended = false;   // an agent has seen it gone, and said so

  // "ID-NODE": its file and its socket.
  [[nodiscard]] std::string name() const;
};

// Pure.
[[nodiscard]] std::string to_json(const JobRecord& record);
[[nodiscard]] std::optional<JobRecord> parse_record(const std::string& text);

// Whether `key` is the one whose sum the record has; takes the same time whatever it is.
[[nodiscard]] bool has_key(const JobRecord& record, std::string_view key);
[[nodiscard]] std::string sum_of_key(std::string_view key);

class JobRecords {
 public:
  // Makes the folder, 0700, if it is missing; refuses a link, another's, and one open to others.
  [[nodiscard]] static Result<JobRecords> open(const std::string& folder);

  // Whole or not at all.
  [[nodiscard]] Result<void> write(const JobRecord& record) const;
  void remove(const JobRecord& record) const;

  // All of them; a file that is none is told in the log and left alone.
  [[nodiscard]] std::vector<JobRecord> read() const;

 private:
  explicit JobRecords(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

// Makes a folder of that mode or finds it; an error if what stands there is a link, somebody else's
// or may be written by others.
[[nodiscard]] Result<void> make_own_folder(const std::string& path, mode_t mode);

}  // namespace hvd
