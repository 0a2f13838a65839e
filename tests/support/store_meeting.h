// The start of a job as a rank sees it: rank 0 puts 128 random bytes, as long as an NCCL id, every
// rank gets them, all pass a barrier.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/random_bytes.h"
#include "runtime/rendezvous_link.h"

namespace hvd::test {

// The bytes of rank 0. key: of this meeting; each has one of its own.
inline Result<std::string> meet(RendezvousLink& link, const std::string& key, std::uint32_t rank,
                                std::uint32_t size, RendezvousLink::Timeout timeout) {
  constexpr std::size_t kIdBytes = 128;
  if (rank == 0) {
    const auto put = link.put(key, random_bytes(kIdBytes).value(), 0, timeout);
    if (!put) return tl::unexpected(put.error());
  }
  auto id = link.get(key, 0, timeout);
  if (!id) return id;
  if (id->size() != kIdBytes) return make_error("the id has {} bytes, not 128", id->size());
  const auto passed = link.barrier(key, 0, rank, size, timeout);
  if (!passed) return tl::unexpected(passed.error());
  return id;
}

}  // namespace hvd::test
