// This node's GPUs as its one nvidia-smi tells of them while the job runs. A program that is
// missing, dies or says nothing is told of once; the job never waits for it.
//
// Lifecycle: from start() to the end of the ranks; the destructor kills the program. Thread: the
// loop's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/gpu_lines.h"
#include "agent/outside_program.h"
#include "base/limit_timer.h"
#include "base/loop.h"
#include "proto/worker_env.h"

namespace hvd {

class GpuWatch {
 public:
  // `period`: between two looks. `tell`: one warning, once.
  GpuWatch(Loop& loop, std::chrono::milliseconds period,
           std::function<void(const std::string&)> tell);

  // PATH of `env` finds the program. `cgroup`: the job's; empty: none.
  void start(const EnvList& env, const std::string& cgroup);

  // What has come since the last call.
  [[nodiscard]] hvdrun::v1::GpuSummary take() { return lines_.take(); }

 private:
  void take_end(const std::string& how);
  void expect_word();
  void tell_once(const std::string& text);

  Loop& loop_;
  const std::chrono::milliseconds period_;
  const std::function<void(const std::string&)> tell_;
  GpuLines lines_;
  LimitTimer patience_;
  bool is_told_ = false;
  std::unique_ptr<OutsideProgram> program_;
};

}  // namespace hvd
