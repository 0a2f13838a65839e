#include "launcher/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <type_traits>

namespace hvd {
namespace {

// Of the one SignalPipe: a handler is given nothing of its owner.
std::atomic<int> handler_end{-1};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::is_trivially_copyable_v<ReceivedSignal>);

// In a handler: async-signal-safe calls only. A pipe takes so little whole, or, full of signals
// that nobody has read, not at all.
void note_signal(int number, siginfo_t* info, void* /*context*/) {
  const int before = errno;
  const bool is_of_kernel = info->si_code > 0;
  const ReceivedSignal received{number, is_of_kernel, is_of_kernel ? 0 : info->si_pid,
                                monotonic_now()};
  [[maybe_unused]] const ssize_t n = ::write(handler_end, &received, sizeof received);
  errno = before;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalPipe::SignalPipe(const std::vector<int>& further) {
  for (const int signal : {SIGPIPE, SIGTTIN, SIGTTOU}) ::signal(signal, SIG_IGN);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  read_end_.reset(ends[0]);
  write_end_.reset(ends[1]);
  handler_end = write_end_.get();
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2}) watch(signal);
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTSTP}) {
    if (!is_ignored(signal)) watch(signal);
  }
  for (const int signal : further) watch(signal);  // what cannot be had was refused
}

SignalPipe::~SignalPipe() {
  for (const auto& [signal, action] : before_) sigaction(signal, &action, nullptr);
  handler_end = -1;
}

void SignalPipe::watch(int signal) {
  struct sigaction action {};
  action.sa_sigaction = note_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  struct sigaction before {};
  if (sigaction(signal, &action, &before) != 0) return;
  const bool is_ours = (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == note_signal;
  if (!is_ours) before_.emplace_back(signal, before);
}

SignalWatch::SignalWatch(Loop& loop, const SignalPipe& pipe, OnSignal on_signal)
    : on_signal_(std::move(on_signal)), received_(loop) {
  const int own = ::fcntl(pipe.read_end(), F_DUPFD_CLOEXEC, 0);
  if (own < 0) return;
  boost::system::error_code ignored;
  received_.assign(own, ignored);
  arm();
}

void SignalWatch::arm() {
  received_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                       [this](const boost::system::error_code& error) {
                         if (error) return;
                         read_all();
                         arm();
                       });
}

void SignalWatch::read_all() {
  ReceivedSignal signal;
  // Stopped meanwhile: what is left is for the next one.
  while (received_.is_open() &&
         ::read(received_.native_handle(), &signal, sizeof signal) == sizeof signal) {
    on_signal_(signal);
  }
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
