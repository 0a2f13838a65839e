#include "agent/watch_edge.h"

#include <set>
#include <utility>

namespace hvd {
namespace {

namespace v1 = hvdrun::v1;

// A worker that lets this many notices pile up does not read.
constexpr std::size_t kMaxQueued = 64;

}  // namespace

// Shared with the handler of its limit, which may still be queued when the edge goes.
struct WatchEdge::Pending {
  explicit Pending(Loop& loop, std::function<void()> the_done)
      : limit(loop), done(std::move(the_done)) {}
  void finish() {
    limit.cancel();
    if (auto call_back = std::exchange(done, nullptr)) call_back();
  }

  std::set<Call*> waiting;
  boost::asio::steady_timer limit;
  std::function<void()> done;
};

WatchEdge::WatchEdge(Loop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {
  call_handlers_.on_open = [this](Call* call) { take_open(call); };
  call_handlers_.on_request = [this](Call* call, v1::WorkerBeat&& beat) { take_beat(call, beat); };
  call_handlers_.on_written = [this](Call* call) { take_written(call); };
  call_handlers_.on_end = [this](Call* call) { take_end(call); };
}

grpc::ServerBidiReactor<v1::WorkerBeat, v1::WorkerNotice>* WatchEdge::open(
    const std::string& peer) {
  return new Call(loop_, call_handlers_, peer);
}

void WatchEdge::take_open(Call* call) {
  if (is_closed_) return call->finish({grpc::StatusCode::UNAVAILABLE, "the agent is leaving"});
  calls_.emplace(call, std::nullopt);
  call->read();
}

void WatchEdge::take_beat(Call* call, const v1::WorkerBeat& beat) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  found->second = beat.rank();
  handlers_.on_beat(call->peer(), beat);
  call->read();
}

void WatchEdge::take_written(Call* call) {
  for (const auto& pending : std::exchange(pending_, {})) {
    pending->waiting.erase(call);
    if (pending->waiting.empty()) {
      pending->finish();
    } else {
      pending_.push_back(pending);
    }
  }
}

void WatchEdge::take_end(Call* call) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  const auto rank = found->second;
  calls_.erase(found);
  call->finish(grpc::Status::OK);
  take_written(call);  // nothing more of it will be
  if (rank) handlers_.on_end(*rank);
}

void WatchEdge::notify(const v1::WorkerNotice& notice, std::chrono::milliseconds limit,
                       std::function<void()> done) {
  auto pending = std::make_shared<Pending>(loop_, std::move(done));
  for (const auto& [call, rank] : calls_) {
    if (call->num_queued() >= kMaxQueued) continue;
    call->write(notice);
    pending->waiting.insert(call);
  }
  if (pending->waiting.empty()) return pending->finish();
  pending->limit.expires_after(limit);
  pending->limit.async_wait([pending](const boost::system::error_code& error) {
    if (!error) pending->finish();
  });
  pending_.push_back(std::move(pending));
}

void WatchEdge::close() {
  is_closed_ = true;
  for (const auto& [call, rank] : std::exchange(calls_, {})) call->finish(grpc::Status::OK);
  for (const auto& pending : std::exchange(pending_, {})) pending->finish();
}

}  // namespace hvd
