// write_error_file TEXT: writes TEXT to the file that TORCHELASTIC_ERROR_FILE names and exits 1.
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr || argc < 2) return 98;
  std::fputs(argv[1], file);
  std::fclose(file);
  return 1;
}
