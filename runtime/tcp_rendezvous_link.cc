#include "runtime/tcp_rendezvous_link.h"

namespace hvd {

Result<void> TcpRendezvousLink::put(const std::string& key, const std::string& value,
                                    Timeout timeout) {
  return link_.put(key, value, generation_, timeout);
}

Result<std::string> TcpRendezvousLink::get(const std::string& key, Timeout timeout) {
  return link_.get(key, generation_, timeout);
}

}  // namespace hvd
