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
  return fmt::format("hvdrun v{}:\n", build.version) +
         format_list("Available Frameworks", {{"any program (torch env://, Horovod ranks)", true},
                                              {"PETRv2 trainer (libtorch)", build.has_trainer}}) +
         format_list("Available Transports",
                     {{"local", true}, {"command", true}, {"ssh", build.has_ssh}}) +
         format_list("Available Tensor Operations",
                     {{"NCCL", build.has_nccl}, {"TCP", build.has_tcp}});
}

}  // namespace hvd
