#include "agent/program_answer.h"

#include <string.h>

#include <algorithm>
#include <string_view>

#include "agent/executable.h"
#include "agent/outside_program.h"

namespace hvd {

Task<ProgramAnswer> ask_program(Loop& loop, ProgramQuestion question) {
  ProgramAnswer answer;
  const auto found = find_executable(question.words[0], question.env, "/");
  if (found.errno_value != 0) {
    answer.problem = fmt::format("cannot be executed: {}", strerror(found.errno_value));
    co_return answer;
  }
  Event has_ended(loop);
  OutsideProgram::Request request{found.path, question.words, question.env, "/"};
  OutsideProgram::Handlers handlers;
  handlers.on_bytes = [&answer](std::string_view bytes) {
    answer.output += bytes.substr(0, kMaxAnswer - answer.output.size());
  };
  handlers.on_end = [&answer, &has_ended](const std::string& how) {
    if (how != kEndedWell) answer.problem = how;
    has_ended.set();
  };
  const auto program = OutsideProgram::start(loop, request, std::move(handlers));
  if (!program) {
    answer.problem = program.error().message;
    co_return answer;
  }
  answer.is_late = !co_await has_ended.wait_until(SteadyTime::clock::now() + question.limit);
  if (answer.is_late) {
    answer.problem = fmt::format("did not end within {}", format_duration(question.limit));
  }
  co_return answer;
}

}  // namespace hvd
