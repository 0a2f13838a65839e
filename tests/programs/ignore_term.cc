// ignore_term: deaf to polite signals; says "deaf" on stdout once it is, then waits for SIGKILL.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <initializer_list>

int main() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) std::signal(signal, SIG_IGN);
  std::puts("deaf");
  std::fflush(stdout);
  while (true) pause();
}
