#include "agent/shim/shim_main.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "agent/shim/job_dir.h"
#include "agent/shim/shim.h"
#include "agent/shim/spawn.h"
#include "base/process_needs.h"
#include "base/sys.h"

namespace hvd {
namespace {

// Blocked rather than ignored: a child inherits the mask, and what is sent to it before its exec is
// kept. Ignored signals would be lost there, and an ignored SIGCHLD would reap for us.
void block_all_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &action, nullptr);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
}

void set_up_process(int socket_fd) {
  block_all_signals();
  setsid();  // the terminal's signals and its end are none of ours; fails only if already so
  prctl(PR_SET_NAME, "hvd-shim");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sys::close_from(3, socket_fd);
  occupy_standard_descriptors();
  lift_descriptor_limit();  // four for each worker
}

}  // namespace

int run_shim(int socket_fd) {
  set_up_process(socket_fd);
  Shim shim{UniqueFd(socket_fd)};
  if (!shim.open()) return 125;
  shim.run();
  // Before the socket closes: who reads its end of file finds no folder left.
  remove_job_dir(shim.job_dir());
  return 0;
}

}  // namespace hvd
