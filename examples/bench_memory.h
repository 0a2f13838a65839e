// Where the numbers of all_reduce_bench lie: in this process's memory, or on its GPU.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"

class BenchMemory {
 public:
  virtual ~BenchMemory() = default;
  [[nodiscard]] virtual void* data() = 0;
  // Behind what `stream` (cudaStream_t; null: the CPU) has to do already.
  [[nodiscard]] virtual hvd::Result<void> copy_from(BenchMemory& other, std::size_t bytes,
                                                    void* stream) = 0;
  // From and to this process's memory; complete on return.
  [[nodiscard]] virtual hvd::Result<void> write(const void* bytes, std::size_t size) = 0;
  [[nodiscard]] virtual hvd::Result<void> read(void* bytes, std::size_t size) = 0;
};

[[nodiscard]] hvd::Result<std::unique_ptr<BenchMemory>> make_bench_memory(std::size_t size,
                                                                          bool is_cuda);

// Chooses this rank's GPU for all that follows in this thread: the one of its local rank, or one of
// those that there are where ranks may share them.
[[nodiscard]] hvd::Result<int> use_cuda_device(int local_rank);
