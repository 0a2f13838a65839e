#include "launcher/signals.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

namespace hvd {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalWatch::SignalWatch(Loop& loop, const std::vector<int>& further,
                         std::function<void(int)> on_signal)
    : on_signal_(std::move(on_signal)), signals_(loop) {
  for (const int signal : {SIGPIPE, SIGTTIN, SIGTTOU}) ::signal(signal, SIG_IGN);
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2}) signals_.add(signal);
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTSTP}) {
    if (!is_ignored(signal)) signals_.add(signal);
  }
  boost::system::error_code known;  // adding one twice is no error, what cannot be had was refused
  for (const int signal : further) signals_.add(signal, known);
  arm();
}

void SignalWatch::arm() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    on_signal_(signal);
    arm();
  });
}

void die_of_signal(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::kill(::getpid(), signal);
  _exit(128 + signal);  // not reached unless the signal is blocked elsewhere
}

}  // namespace hvd
