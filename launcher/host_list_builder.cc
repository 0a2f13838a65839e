#include "launcher/host_list_builder.h"

#include <utility>

#include "launcher/gpu_list.h"
#include "launcher/host_range.h"

namespace hvd {
namespace {

// What cannot be summed must be the same, or stand once.
bool is_compatible(const HostSpec& first, const HostSpec& again) {
  return (again.key.empty() || again.key == first.key) &&
         (again.env.empty() || again.env == first.env);
}

}  // namespace

void HostListBuilder::add_note(std::string note) {
  if (notes_ != nullptr) notes_->push_back(std::move(note));
}

Result<void> HostListBuilder::add(HostSpec host) {
  if (!host.slots && !host.gpus.empty()) {
    host.slots = static_cast<std::uint32_t>(host.gpus.size());
  }
  if (host.slots == 0U) {
    add_note(fmt::format("host {} has 0 slots and is left out", host.label()));
    return {};
  }
  num_gpus_ += host.gpus.size();
  if (num_gpus_ > kMostGpus) {
    return make_error(ExitCode::kUsage, "these hosts have more than {} GPUs in all; name fewer",
                      kMostGpus);
  }
  const auto key = std::tuple(host.user, host.name, host.port);
  const auto [found, is_new] = index_.try_emplace(key, hosts_.size());
  if (!is_new) return merge(found->second, host);
  if (hosts_.size() == kMostHosts) {
    return make_error(ExitCode::kUsage, "these are more than {} hosts; name fewer", kMostHosts);
  }
  hosts_.push_back(std::move(host));
  num_mentions_.push_back(1);
  return {};
}

Result<std::vector<HostSpec>> HostListBuilder::finish() {
  if (hosts_.empty()) {
    return make_error(ExitCode::kUsage,
                      "no host with slots is left; name at least one, as in node1:8");
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (num_mentions_[i] == 1) continue;
    add_note(fmt::format("host {} is listed {} times; its slots are summed to {}",
                         hosts_[i].label(), num_mentions_[i], *hosts_[i].slots));
  }
  return std::move(hosts_);
}

Result<void> HostListBuilder::merge(std::size_t index, const HostSpec& host) {
  HostSpec& first = hosts_[index];
  if (!first.slots || !host.slots) {
    return make_error(ExitCode::kUsage,
                      "host {} is listed more than once and not always with slots; list it once, "
                      "as in {}:8",
                      host.label(), host.label());
  }
  if (*first.slots + *host.slots > kMostSlots) {
    return make_error(ExitCode::kUsage, "host {} has more than {} slots in all; lower its slots",
                      host.label(), kMostSlots);
  }
  if (first.gpus.empty() != host.gpus.empty() || !is_compatible(first, host)) {
    return make_error(ExitCode::kUsage,
                      "host {} is listed more than once and not always with the same GPUs, key or "
                      "env; list it once",
                      host.label());
  }
  for (const std::string& gpu : host.gpus) {
    if (auto added = add_gpus(gpu, first.gpus); !added) {
      return tl::unexpected(added.error().within(fmt::format("host {}", host.label())));
    }
  }
  *first.slots += *host.slots;
  ++num_mentions_[index];
  return {};
}

}  // namespace hvd
