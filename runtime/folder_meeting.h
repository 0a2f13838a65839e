// How ranks that share a folder and nothing else agree on one run, whatever files an earlier run or
// a dead process has left there:
//
//   each rank      writes hello.<job>.<rank> with a random token of its own;
//   rank 0         writes run.<job> with a random name of the run and the tokens that it has read,
//                  and writes it again whenever a token changes;
//   each rank      that finds its own token there writes joined.<rank> into the run's own folder,
//                  hvdrun-run-<name>, and goes on when all ranks have joined.
//
// So what is stale is ignored: a run's folder is new each time, and nobody joins a run that does
// not know the token he has just made. <job> is a number of the job's identity (job_identity.h):
// jobs that differ in it do not see each other. Two runs of equal identity in one folder at the
// same time disturb each other until both give up; such a job has its own folder.
//
// Blocks its caller for at most `timeout`. All ranks are one user's: files are his alone.
#pragma once

#include <chrono>
#include <string>

#include "base/status.h"

namespace hvd {

// The folder of this run, for a FolderRendezvous; the folder itself must be there and take files,
// else the error is the user's (ExitCode::kUsage). At the time limit (ExitCode::kTimeout) the error
// names the ranks that are missing.
[[nodiscard]] Result<std::string> meet_in_folder(const std::string& folder, const std::string& job,
                                                 int rank, int size,
                                                 std::chrono::milliseconds timeout);

// Removes what meet_in_folder and the run left, when all ranks are done with it. By rank 0.
void leave_folder(const std::string& folder, const std::string& job, const std::string& run_folder,
                  int size);

}  // namespace hvd
