// The agent's bytes as a node wants them: its SHA-256 as one line, then the content. The program is
// opened and hashed when the first node asks, once for the whole run.
//
// Lifecycle: one per transport. Thread: the loop's.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/status.h"
#include "base/unique_fd.h"
#include "launcher/transport/transport.h"

namespace hvd {

class AgentUpload {
 public:
  explicit AgentUpload(AgentImage image) : image_(std::move(image)) {}

  [[nodiscard]] const AgentImage& image() const { return image_; }

  // Opens and hashes. The program must still be the one that was found at the start.
  [[nodiscard]] Result<void> prepare();

  [[nodiscard]] std::uint64_t size() const { return head_.size() + image_.size; }

  // Writes what a socket takes now from `offset` on; -1 with errno otherwise.
  [[nodiscard]] ssize_t send_some(int socket, std::uint64_t offset) const;

 private:
  const AgentImage image_;
  std::string head_;
  UniqueFd file_;
};

}  // namespace hvd
