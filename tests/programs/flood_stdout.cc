// flood_stdout BYTES [LINE]: writes that many bytes to stdout in numbered lines of LINE bytes (80),
// the last one perhaps shorter; then exits 0. BYTES 0: for ever.
#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  const unsigned long long total = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const std::size_t width = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 80;
  unsigned long long written = 0;
  for (unsigned long long number = 0; total == 0 || written < total; ++number) {
    std::string line = std::to_string(number) + " ";
    line.resize(width - 1, 'x');
    line += '\n';
    if (total != 0 && written + line.size() > total) line.resize(total - written);
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) return 1;
    written += line.size();
  }
}
