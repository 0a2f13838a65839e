// metronome BEATS MILLISECONDS LINES WIDTH [deaf]: writes LINES numbered lines of WIDTH bytes each
// MILLISECONDS, BEATS times, then exits 0. SIGUSR1: exits 3. deaf: without ears for TERM, INT, HUP.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

namespace {

void fail(int) { _exit(3); }

void wait_a_beat(long millis) {
  const timespec beat{millis / 1000, millis % 1000 * 1000000};
  nanosleep(&beat, nullptr);
}

std::string numbered_lines(unsigned long first, unsigned long count, std::size_t width) {
  std::string text;
  for (unsigned long number = first; number < first + count; ++number) {
    std::string line = std::to_string(number) + " ";
    if (line.size() + 1 < width) line.resize(width - 1, '.');
    text += line + '\n';
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 98;
  const unsigned long beats = std::strtoul(argv[1], nullptr, 10);
  const long millis = std::atol(argv[2]);
  const unsigned long lines = std::strtoul(argv[3], nullptr, 10);
  const std::size_t width = std::strtoul(argv[4], nullptr, 10);
  signal(SIGUSR1, fail);
  if (argc > 5 && std::strcmp(argv[5], "deaf") == 0) {
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) signal(number, SIG_IGN);
  }
  for (unsigned long beat = 0; beat < beats; ++beat) {
    const std::string text = numbered_lines(beat * lines, lines, width);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) return 1;
    if (std::fflush(stdout) != 0) return 1;
    wait_a_beat(millis);
  }
}
