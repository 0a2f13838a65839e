#include "training/petrv2/trainer/stop_signals.h"

#include <signal.h>

#include <atomic>

namespace hvd::petrv2 {
namespace {

std::atomic<bool> g_wants_stop{false};
std::atomic<bool> g_is_interrupted{false};
std::atomic<bool> g_wants_save{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void take_signal(int number) {
  if (number == SIGINT) g_is_interrupted = true;
  (number == SIGUSR1 ? g_wants_save : g_wants_stop) = true;
}

}  // namespace

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = take_signal;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGTERM, SIGUSR1}) sigaction(number, &action, nullptr);
  action.sa_flags |= static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

bool is_stop_wanted() { return g_wants_stop; }
bool is_interrupted() { return g_is_interrupted; }
bool take_save_wish() { return g_wants_save.exchange(false); }

}  // namespace hvd::petrv2
