// The other side of interchange_test.py: writes files for Python packages to read, and prints what
// it reads from theirs.
//
//   formats_interchange write FOLDER    m.safetensors and an event file, of fixed values
//   formats_interchange print FILE      a safetensors file as JSON
#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/random_bytes.h"
#include "training/formats/event_writer.h"
#include "training/formats/safetensors.h"

namespace hvd {
namespace {

template <typename T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Result<void> write_tensors(const std::string& folder) {
  std::vector<float> weight(24);
  std::iota(weight.begin(), weight.end(), -3.5F);
  const std::vector<double> moment = {1e-300, -0.0, 0.1};
  const std::vector<std::int64_t> step = {-1234567890123};
  const std::vector<std::uint8_t> rng = {0, 1, 255};
  const auto written = write_safetensors(folder + "/m.safetensors",
                                         {{{"rng", "U8", {3}}, bytes_of(rng)},
                                          {{"head.weight", "F32", {2, 3, 4}}, bytes_of(weight)},
                                          {{"moment", "F64", {3}}, bytes_of(moment)},
                                          {{"step", "I64", {}}, bytes_of(step)},
                                          {{"empty", "F32", {0, 4}}, ""}},
                                         {{"epoch", "7"}, {"text", "a \"b\" é"}});
  if (!written) return tl::unexpected(written.error());
  return {};
}

Result<void> write_events(const std::string& folder) {
  auto writer = EventWriter::create(folder, 1700000000, "node7");
  if (!writer) return tl::unexpected(writer.error());
  for (int step = 0; step < 1000; ++step) {
    const double infinity = std::numeric_limits<double>::infinity();
    const auto added = writer->add_scalars(
        1700000000 + 0.1 * step, step,
        {{"loss/total", 10.0 / (step + 1)}, {"zero", 0}, {"norm", step == 3 ? infinity : 1}});
    if (!added) return added;
  }
  return writer->close();
}

Result<void> print_tensors(const std::string& path) {
  const auto file = SafetensorsFile::open(path);
  if (!file) return tl::unexpected(file.error());
  nlohmann::json json = {{"metadata", file->metadata()}, {"tensors", nlohmann::json::object()}};
  for (const auto& [name, place] : file->tensors()) {
    json["tensors"][name] = {{"dtype", place.dtype},
                             {"shape", place.shape},
                             {"bytes", hex_of(file->bytes(name).value())}};
  }
  std::cout << json.dump() << "\n";
  return {};
}

Result<void> run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2) return make_error("usage: formats_interchange write|print PATH");
  if (arguments[0] == "print") return print_tensors(arguments[1]);
  if (auto written = write_tensors(arguments[1]); !written) return written;
  return write_events(arguments[1]);
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) {
  const auto done = hvd::run({argv + 1, argv + argc});
  if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
