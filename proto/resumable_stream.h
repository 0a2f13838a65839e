// One end of a stream that outlives its connections (resume_engine.h): the inner socket is whole
// while connections come and go. Whoever dials attaches a new one; whoever was dialled, too.
//
// Lifecycle: start() once; it is over when both ends have said that they are and know it of each
// other (the end of one side ends the other: it is no half-closed stream), after fail(), or after
// close(). It keeps itself while it has work. Thread: the loop's;
// handlers may call back into it.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "proto/resume_engine.h"

namespace hvd {

class ResumableStream : public std::enable_shared_from_this<ResumableStream> {
 public:
  struct Handlers {
    std::function<void(const std::string& why)> on_broken;  // the connection; not by attach()
    std::function<void(const std::string& why)> on_over;    // once; empty: as it should be
  };

  // `inner`: our end of a pair; `patience`: a connection on which nothing has come for so long is
  // broken (zero: never).
  static std::shared_ptr<ResumableStream> start(Loop& loop, UniqueFd inner, Nanos patience,
                                                Handlers handlers);
  ResumableStream(Loop& loop, UniqueFd inner, Nanos patience, Handlers handlers);

  // A connected, non-blocking stream socket, in place of the one before.
  void attach(UniqueFd connection);

  // Over, whatever was still on its way; the inner socket ends.
  void fail(const std::string& why);
  void close();  // the same, without on_over

  [[nodiscard]] bool is_over() const { return is_over_; }
  [[nodiscard]] bool is_attached() const { return wire_ != nullptr; }
  // When something came last, on whichever connection; at first, when it was started.
  [[nodiscard]] SteadyTime last_heard() const { return heard_; }

 private:
  using Socket = boost::asio::local::stream_protocol::socket;
  struct Wire {
    explicit Wire(Loop& loop) : socket(loop), patience(loop) {}
    Socket socket;
    boost::asio::steady_timer patience;
    SteadyTime heard;
    bool is_writing = false;
  };

  [[nodiscard]] Task<void> carry_from_inner();
  [[nodiscard]] Task<void> carry_to_inner();
  [[nodiscard]] Task<void> read_wire(std::shared_ptr<Wire> wire);
  [[nodiscard]] Task<void> write_wire(std::shared_ptr<Wire> wire);
  [[nodiscard]] Task<void> watch_wire(std::shared_ptr<Wire> wire);
  [[nodiscard]] Task<void> acknowledge_later();
  void run(Task<void> task);
  void let_go_of_wire();
  void drop(const std::shared_ptr<Wire>& wire, const std::string& why);
  void wake();
  void look_whether_over();

  Loop& loop_;
  Socket inner_;
  const Nanos patience_;
  const Handlers handlers_;
  ResumeEngine engine_;
  std::shared_ptr<Wire> wire_;
  Event has_changed_;  // set to wake whoever waits for the engine
  boost::asio::steady_timer ack_timer_;
  bool is_ack_timer_set_ = false;
  SteadyTime heard_ = std::chrono::steady_clock::now();
  bool is_inner_ended_ = false;  // the other's end was told to it
  bool is_over_ = false;
};

}  // namespace hvd
