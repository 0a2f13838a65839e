// One session on the pump: copies both ways, as far as it goes without blocking. Bytes that the
// socket does not take stay in the channel, whose window then closes. The pump's thread.
#pragma once

#include <libssh/callbacks.h>

#include <array>
#include <string>

#include "launcher/transport/pump.h"

namespace hvd {

class PumpLink {
 public:
  PumpLink(int epoll, std::uint64_t id, PumpedSession parts);
  PumpLink(const PumpLink&) = delete;
  PumpLink& operator=(const PumpLink&) = delete;
  ~PumpLink();

  // Does all that can be done now. False when the link has ended.
  [[nodiscard]] bool advance();

  // Once more what the socket holds, then the end of the stream, without waiting.
  void say_goodbye();

 private:
  static int on_data(ssh_session, ssh_channel, void* data, std::uint32_t size, int is_stderr,
                     void* self);
  static void on_exit_status(ssh_session, ssh_channel, int status, void* self);
  static void on_exit_signal(ssh_session, ssh_channel, const char* signal, int, const char*,
                             const char*, void* self);

  std::size_t take_data(std::string_view data);
  bool handle_packets();
  bool flush_held();
  void drain_channel();
  void send_socket_bytes();
  void finish_streams();
  void watch();
  void set_interest(int fd, std::uint32_t* current, std::uint32_t wanted) const;

  const int epoll_;
  const std::uint64_t id_;
  PumpedSession parts_;
  ssh_session session_;
  ssh_channel channel_;
  ssh_event event_;
  ssh_channel_callbacks_struct callbacks_{};
  std::string held_;  // from the channel, not yet taken by the socket; at most one packet
  std::size_t held_offset_ = 0;
  bool has_leftover_ = true;        // the channel may hold bytes that no callback will bring
  bool is_socket_at_end_ = false;   // gRPC closed its end
  bool is_channel_at_end_ = false;  // and its end was passed on
  bool is_broken_ = false;          // one side takes nothing any more
  std::uint32_t session_interest_ = 0;
  std::uint32_t socket_interest_ = 0;
};

}  // namespace hvd
