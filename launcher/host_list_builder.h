// Puts a host list together, entry by entry, under the one rule for repeated hosts: a host is its
// user, name and port as written (no name is resolved, shortened or changed in case), and one that
// is named again adds its slots and GPUs where it first stood, so that rank order is the order of
// first appearance.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "launcher/hostlist.h"

namespace hvd {

inline constexpr std::uint32_t kMostSlots = 65536;

class HostListBuilder {
 public:
  // `notes` is not owned and may be null; else it is told of hosts that were left out or summed.
  explicit HostListBuilder(std::vector<std::string>* notes) : notes_(notes) {}

  // A host with zero slots is left out; one with GPUs and no slots has one for each. Errors are
  // exit 2.
  [[nodiscard]] Result<void> add(HostSpec host);

  // Never empty.
  [[nodiscard]] Result<std::vector<HostSpec>> finish();

 private:
  Result<void> merge(std::size_t index, const HostSpec& host);
  void add_note(std::string note);

  std::vector<std::string>* notes_;
  std::vector<HostSpec> hosts_;
  std::vector<std::size_t> num_mentions_;
  std::size_t num_gpus_ = 0;
  std::map<std::tuple<std::string, std::string, std::uint16_t>, std::size_t> index_;
};

}  // namespace hvd
