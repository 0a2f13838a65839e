// A communicator for a test that looks at all-reduces alone: rank 0 of 2, whose peer has the same
// data. What else is called succeeds and changes nothing; a reduce_scatter is not expected.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

#include "hvdrun/communicator.h"

namespace hvd::test {

class TwinCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }

  Result<void> broadcast(void* /*data*/, std::size_t /*count*/, DataType /*type*/, int /*root*/,
                         const Call& /*call*/) override {
    return {};
  }
  Result<void> all_gather(const void* input, void* output, std::size_t count, DataType type,
                          const Call& /*call*/) override {
    const std::size_t length = count * size_of(type);
    std::memcpy(output, input, length);
    std::memcpy(static_cast<std::byte*>(output) + length, input, length);
    return {};
  }
  Result<void> reduce_scatter(const void* /*input*/, void* /*output*/, std::size_t /*count*/,
                              DataType /*type*/, const Reduction& /*reduction*/,
                              const Call& /*call*/) override {
    return make_error("not asked for here");
  }
  Result<void> barrier(const Call& /*call*/) override { return {}; }
  void abort(std::string_view /*reason*/) override {}
  Result<void> finalize(const Call& /*call*/) override { return {}; }
  std::optional<CommunicatorFailure> failure() const override { return std::nullopt; }
};

}  // namespace hvd::test
