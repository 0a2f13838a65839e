#include "agent/pmi_desk.h"

#include <csignal>
#include <utility>

#include "base/log.h"

namespace hvd {
namespace {

std::vector<std::uint32_t> ranks_of(const v1::Spawn& spawn) {
  std::vector<std::uint32_t> ranks;
  for (const v1::Spawn::Worker& worker : spawn.workers()) ranks.push_back(worker.rank());
  return ranks;
}

}  // namespace

PmiDesk::PmiDesk(const v1::Spawn& spawn, const std::string& job_id, StoreRelay& store, Send send)
    : store_(store),
      send_(std::move(send)),
      is_alone_(spawn.pmi().num_nodes() <= 1),
      server_(spawn.pmi(), job_id, ranks_of(spawn)) {}

void PmiDesk::take(const v1::ShimPmi& piece) { act(server_.take(piece.rank(), piece.data())); }

void PmiDesk::act(PmiStep step) {
  for (const std::string& problem : step.problems) log(LogLevel::kWarning, "{}", problem);
  for (PmiReply& reply : step.replies) {
    v1::ToShim message;
    message.mutable_pmi()->set_rank(reply.rank);
    message.mutable_pmi()->set_data(std::move(reply.data));
    message.mutable_pmi()->set_close(reply.close);
    message.mutable_pmi()->set_kill(reply.kill);
    send_(message);
  }
  if (step.fence) meet(*step.fence);
}

void PmiDesk::meet(const v1::PmiPuts& puts) {
  if (is_alone_) return act(server_.take_fence({}));
  v1::StoreRequest request;
  request.mutable_fence()->set_sequence(++num_fences_);
  request.mutable_fence()->set_puts(puts.SerializeAsString());
  store_.start(std::move(request), this);
}

void PmiDesk::answer(const v1::StoreReply& reply) {
  if (reply.status() == v1::STORE_STATUS_CANCELLED) return;  // the job is ending anyway
  v1::PmiPuts others;
  if (reply.status() != v1::STORE_STATUS_OK) return act(server_.fail_fence(reply.text()));
  if (!others.ParseFromString(reply.value())) {
    return act(server_.fail_fence("hvdrun's answer cannot be read"));
  }
  act(server_.take_fence(others));
}

// One that ended with a code or a signal of its own has failed by itself; MPI adds nothing to that.
void PmiDesk::note_end(v1::ExitReport& report) const {
  if (report.stopped()) return;
  const auto abort_code = server_.abort_code(report.rank());
  const bool was_killed = report.what_case() == v1::ExitReport::kSignalled &&
                          report.signalled() == SIGKILL && abort_code.has_value();
  const bool is_exit = report.what_case() == v1::ExitReport::kExited;
  if (!was_killed && !(is_exit && (report.exited() == 0 || abort_code))) return;
  std::string how = server_.ending(report.rank());
  if (how.empty()) return;
  report.set_mpi_end(std::move(how));
  report.clear_oom();  // of a SIGKILL: it was ours
  report.set_exited(abort_code.value_or(1));
}

}  // namespace hvd
