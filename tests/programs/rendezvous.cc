// A worker that meets the others: rank 0 puts 128 random bytes under the key nccl_id, every rank
// gets them, all pass a barrier, and each prints "rank R of N id HEX".
//   rendezvous [--timeout SECONDS] [--skip-rank R]
// The skipped rank does not take part: it ends at once with 0, and the others' barrier times out.
// Exit: 0, 1 with a sentence on stderr, 2 for a wrong argument.
#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>

#include <chrono>
#include <string>

#include "tests/support/store_meeting.h"

namespace {

using hvd::RendezvousLink;
using hvd::Result;

struct Arguments {
  RendezvousLink::Timeout timeout = std::chrono::seconds(60);
  long skipped_rank = -1;
  bool is_valid = true;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    char* end = nullptr;
    const double value = i + 1 < argc ? strtod(argv[i + 1], &end) : 0;
    const bool has_value = end != nullptr && end != argv[i + 1] && *end == '\0';
    if (name == "--timeout" && has_value) {
      arguments.timeout = RendezvousLink::Timeout(static_cast<long>(value * 1000));
    } else if (name == "--skip-rank" && has_value) {
      arguments.skipped_rank = static_cast<long>(value);
    } else {
      arguments.is_valid = false;
    }
  }
  return arguments;
}

Result<std::string> meet(std::uint32_t rank, std::uint32_t size, RendezvousLink::Timeout timeout) {
  auto link = RendezvousLink::open_from_environment();
  if (!link) return tl::unexpected(link.error());
  return hvd::test::meet(*link, "nccl_id", rank, size, timeout);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  const char* rank_text = getenv("RANK");
  const char* size_text = getenv("WORLD_SIZE");
  if (!arguments.is_valid || rank_text == nullptr || size_text == nullptr) {
    fmt::print(stderr, "usage: RANK=R WORLD_SIZE=N rendezvous [--timeout S] [--skip-rank R]\n");
    return 2;
  }
  const auto rank = static_cast<std::uint32_t>(atol(rank_text));
  const auto size = static_cast<std::uint32_t>(atol(size_text));
  if (static_cast<long>(rank) == arguments.skipped_rank) return 0;
  const auto id = meet(rank, size, arguments.timeout);
  if (!id) {
    fmt::print(stderr, "rank {} of {}: {}\n", rank, size, id.error().message);
    return 1;
  }
  // The id is this test's own: a real one is a secret.
  fmt::print("rank {} of {} id {}\n", rank, size, hvd::hex_of(std::string_view(*id).substr(0, 16)));
  return 0;
}
