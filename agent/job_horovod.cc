// Node 0's part in Horovod's contract: the store listens from the hello on, so that it is there
// before any worker, and answers from the spawn on, when ranks and addresses are settled.
#include <utility>

#include "agent/job.h"

namespace hvd {

namespace v1 = hvdrun::v1;

void Job::open_horovod(const v1::FabricListen& request, v1::FabricListenReply* reply) {
  if (request.horovod_address().empty()) return;
  const auto port = horovod_.listen(request.horovod_address());
  if (port) {
    reply->set_horovod_port(*port);
  } else {
    reply->set_horovod_error(port.error().message);
  }
}

void Job::serve_horovod(const v1::HorovodStore& store) {
  std::vector<HorovodScope> scopes;
  scopes.reserve(static_cast<std::size_t>(store.scopes_size()));
  for (const v1::HorovodStore::Scope& scope : store.scopes()) {
    scopes.push_back({scope.name(), scope.size()});
  }
  horovod_.serve(HorovodStore(scopes), store.only_at());
}

}  // namespace hvd
