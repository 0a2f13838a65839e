#include "launcher/check_build.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace hvd {
namespace {

struct Item {
  std::string_view name;
  bool is_available;
};

std::string format_list(std::string_view title, const std::vector<Item>& items) {
  std::string result = fmt::format("\n{}:\n", title);
  for (const Item& item : items) {
    result += fmt::format("    [{}] {}\n", item.is_available ? 'X' : ' ', item.name);
  }
  return result;
}

}  // namespace

std::string check_build_text(const BuildInfo& build) {
  // horovodrun's three lists are about the programs that are started: these bring their frameworks
  // and libraries themselves, and hvdrun gives them ranks and a meeting point without MPI.
  return fmt::format("hvdrun v{}:\n", build.version) +
         format_list("Available Frameworks",
                     {{"TensorFlow", true}, {"PyTorch", true}, {"MXNet", true}}) +
         format_list("Available Controllers", {{"MPI", false}, {"Gloo", true}}) +
         format_list(
             "Available Tensor Operations",
             {{"NCCL", true}, {"DDL", false}, {"CCL", false}, {"MPI", false}, {"Gloo", true}}) +
         "\nThe lists above are what programs that hvdrun starts may use; they bring it along.\n"
         "This is hvdrun's own:\n" +
         format_list("Available Transports",
                     {{"local", true}, {"command", true}, {"ssh", build.has_ssh}}) +
         format_list("Available in the Runtime",
                     {{"NCCL", build.has_nccl}, {"TCP", build.has_tcp}}) +
         format_list("Available Programs", {{"PETRv2 trainer (libtorch)", build.has_trainer}});
}

}  // namespace hvd
