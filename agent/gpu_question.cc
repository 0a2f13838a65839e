#include "agent/gpu_question.h"

#include <algorithm>
#include <utility>

#include "agent/executable.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxOutput = 1 << 16;

}  // namespace

bool GpuQuestion::find_program(const EnvList& env) {
  const auto found = find_executable("nvidia-smi", env, "/");
  if (found.errno_value != 0) return false;
  path_ = found.path;
  env_ = env;
  return true;
}

void GpuQuestion::ask(const std::string& query, Took took) {
  output_.clear();
  took_ = std::move(took);
  limit_.start(kPatience, [this] {
    output_.clear();
    end();
  });
  auto program = OutsideProgram::start(
      loop_, {path_, {"nvidia-smi", query, "--format=csv,noheader,nounits"}, env_, "/"},
      {[this](std::string_view bytes) {
         output_.append(bytes.substr(0, kMaxOutput - std::min(output_.size(), kMaxOutput)));
       },
       [this](const std::string& how) {
         if (how != kEndedWell) output_.clear();
         end();
       }});
  if (program) program_ = std::move(*program);
  // One that cannot be started is told of by the limit, like one that says nothing.
}

void GpuQuestion::end() {
  limit_.cancel();
  const Took took = std::exchange(took_, {});
  const std::string output = std::exchange(output_, {});
  program_.reset();
  if (took) took(output);
}

}  // namespace hvd
