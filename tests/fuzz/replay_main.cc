// The main of a fuzz target without libFuzzer: gives it every file of the folders that are named,
// and every prefix of each. A folder without files is an error, so that no corpus gets lost.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (std::size_t size = 0; size <= text.size(); ++size) {
    // A copy of just this size: a sanitizer sees a read behind its end.
    const std::string prefix = text.substr(0, size);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(prefix.data()), prefix.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int num_files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      replay(entry.path());
      ++num_files;
    }
  }
  std::printf("%d files\n", num_files);
  return num_files > 0 ? 0 : 1;
}
