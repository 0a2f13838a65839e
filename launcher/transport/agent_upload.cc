#include "launcher/transport/agent_upload.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/sha256.h"
#include "launcher/transport/agent_image.h"

namespace hvd {

Result<void> AgentUpload::prepare() {
  if (file_.is_valid()) return {};
  UniqueFd file(::open(image_.path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_valid() || ::fstat(file.get(), &status) != 0) {
    return make_error("cannot read {}: {}", image_.path, std::strerror(errno));
  }
  if (static_cast<std::uint64_t>(status.st_size) != image_.size) {
    return make_error("{} was replaced while hvdrun was starting: run it again", image_.path);
  }
  auto sum = sha256_of_file(image_.path);
  if (!sum) return tl::unexpected(sum.error());
  head_ = to_hex(*sum) + '\n';
  file_ = std::move(file);
  return {};
}

ssize_t AgentUpload::send_some(int socket, std::uint64_t offset) const {
  constexpr std::uint64_t kPiece = 256 * 1024;
  if (offset < head_.size()) {
    return ::send(socket, head_.data() + offset, head_.size() - offset, MSG_NOSIGNAL);
  }
  auto position = static_cast<off_t>(offset - head_.size());
  return ::sendfile(socket, file_.get(), &position, std::min(kPiece, size() - offset));
}

}  // namespace hvd
