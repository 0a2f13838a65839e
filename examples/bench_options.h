// The options of all_reduce_bench, with the letters of nccl-tests. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "hvdrun/communicator.h"

struct BenchOptions {
  std::size_t min_bytes = 32UL << 20;
  std::size_t max_bytes = 32UL << 20;
  double factor = 2;
  int iterations = 20;
  int warm_up = 1;
  bool checks = true;
  hvd::DataType type = hvd::DataType::kFloat32;
  bool is_cuda = false;
};

[[nodiscard]] std::string bench_usage();

// An error is what is wrong with the command line.
[[nodiscard]] hvd::Result<BenchOptions> parse_bench_options(int argc, char** argv);
