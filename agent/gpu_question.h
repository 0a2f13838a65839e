// One question at a time to the node's nvidia-smi. A machine without it, or on which it is slow or
// fails, answers with nothing.
//
// Thread: the loop's. Nobody waits longer than kPatience.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/outside_program.h"
#include "base/limit_timer.h"
#include "base/loop.h"
#include "proto/worker_env.h"

namespace hvd {

class GpuQuestion {
 public:
  static constexpr std::chrono::milliseconds kPatience{1500};
  using Took = std::function<void(const std::string& output)>;

  explicit GpuQuestion(Loop& loop) : loop_(loop), limit_(loop) {}

  // Whether PATH of `env` has the program; it gets this environment.
  [[nodiscard]] bool find_program(const EnvList& env);

  // `query` is nvidia-smi's option. `took` is called once, later. Not before the last one was
  // answered, and only after find_program().
  void ask(const std::string& query, Took took);

 private:
  void end();

  Loop& loop_;
  LimitTimer limit_;
  std::string path_;
  EnvList env_;
  std::string output_;
  Took took_;  // of the question that is open
  std::unique_ptr<OutsideProgram> program_;
};

}  // namespace hvd
