// One bidirectional call as the loop sees it. gRPC's reactions, on gRPC's threads, only post to the
// loop; all operations are started by the loop: one read and one write in flight, finish after the
// last write.
//
// Owners: gRPC until OnDone, the loop until it has called finish(). OnDone comes only after
// finish(), so the event that OnDone posts is the last one and releases the call.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/loop.h"

namespace hvd {

template <typename Request, typename Reply>
class StreamCall final : public grpc::ServerBidiReactor<Request, Reply> {
 public:
  struct Handlers {  // called on the loop
    std::function<void(StreamCall*)> on_open;
    std::function<void(StreamCall*, Request&&)> on_request;
    std::function<void(StreamCall*)> on_written;  // nothing is left to be written
    std::function<void(StreamCall*)> on_end;      // the peer has gone or will say no more; once
  };

  // On gRPC's thread. `handlers` is not owned and outlives the server; `peer` is gRPC's name of the
  // connection, where somebody asks.
  StreamCall(Loop& loop, const Handlers& handlers, std::string peer = {})
      : loop_(loop), handlers_(handlers), peer_(std::move(peer)) {
    post([](StreamCall* self) { self->handlers_.on_open(self); });
  }

  // On the loop.
  void read() {
    if (!is_finishing_) this->StartRead(&request_);
  }

  void write(Reply reply) {
    if (is_finishing_) return;
    queue_.push_back(std::move(reply));
    if (queue_.size() == 1) this->StartWrite(&queue_.front());
  }

  [[nodiscard]] const std::string& peer() const { return peer_; }
  [[nodiscard]] bool is_writing() const { return !queue_.empty(); }
  [[nodiscard]] std::size_t num_queued() const { return queue_.size(); }

  // What is queued is still written.
  void finish(const grpc::Status& status) {
    if (is_finishing_) return;
    is_finishing_ = true;
    if (queue_.empty()) return this->Finish(status);
    status_ = status;
  }

 private:
  void OnReadDone(bool ok) override {
    if (ok) {
      post([](StreamCall* self) { self->handlers_.on_request(self, std::move(self->request_)); });
    } else {
      post([](StreamCall* self) { self->end(); });
    }
  }
  void OnWriteDone(bool ok) override {
    post([ok](StreamCall* self) { self->take_written(ok); });
  }
  void OnCancel() override {
    post([](StreamCall* self) { self->end(); });
  }
  void OnDone() override {
    post([](StreamCall* self) { delete self; });
  }

  template <typename Function>
  void post(Function function) {
    boost::asio::post(loop_, [this, function] { function(this); });
  }

  void take_written(bool ok) {
    queue_.pop_front();
    if (!ok) queue_.clear();
    if (!queue_.empty()) return this->StartWrite(&queue_.front());
    if (status_) return this->Finish(*status_);
    if (!is_finishing_) handlers_.on_written(this);
  }

  void end() {
    if (std::exchange(is_ended_, true)) return;
    handlers_.on_end(this);
  }

  Loop& loop_;  // not owned, outlives the server
  const Handlers& handlers_;
  const std::string peer_;
  Request request_;
  std::deque<Reply> queue_;  // the first one is being written
  std::optional<grpc::Status> status_;
  bool is_ended_ = false;
  bool is_finishing_ = false;
};

}  // namespace hvd
