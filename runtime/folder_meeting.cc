#include "runtime/folder_meeting.h"

#include <filesystem>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random_bytes.h"
#include "base/stable_hash.h"
#include "runtime/tcp_rendezvous.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook{20};  // between two looks at files that others write
constexpr const char* kRunPrefix = "hvdrun-run-";
constexpr std::size_t kMaxMissingNamed = 16;

std::string hello_key(const std::string& job, int rank) {
  return fmt::format("hello.{:016x}.{}", stable_hash(job), rank);
}
std::string run_key(const std::string& job) { return fmt::format("run.{:016x}", stable_hash(job)); }

Result<std::string> random_token() { return random_bytes(16).map(hex_of); }

class FolderMeeting {
 public:
  FolderMeeting(const std::string& folder, const std::string& job, int rank, int size,
                std::string token)
      : folder_(folder),
        job_(job),
        store_(folder),
        rank_(rank),
        size_(size),
        token_(std::move(token)) {}

  Result<std::string> run(milliseconds timeout) {
    const SteadyTime deadline = steady_clock::now() + timeout;
    auto written = store_.put(hello_key(job_, rank_), token_, timeout);
    if (!written) return no_files(written.error());
    while (written) {
      if (rank_ == 0) written = invite();
      if (written) written = join();
      if (!written) break;
      if (have_all_joined()) return run_folder();
      if (steady_clock::now() >= deadline) return missing(timeout);
      std::this_thread::sleep_for(kLook);
    }
    return tl::unexpected(written.error());
  }

 private:
  [[nodiscard]] std::string run_folder() const { return folder_ + "/" + kRunPrefix + run_; }

  // Rank 0: the run with all tokens that are there, if one of them is new.
  Result<void> invite() {
    std::map<int, std::string> tokens;
    for (int rank = 0; rank < size_; ++rank) {
      const auto token = store_.get(hello_key(job_, rank), milliseconds(0));
      if (token) tokens[rank] = *token;
    }
    if (tokens == invited_) return {};
    if (run_.empty()) {
      auto name = random_token();
      if (!name) return tl::unexpected(name.error());
      run_ = std::move(*name);
      std::error_code failed;
      fs::create_directory(run_folder(), failed);
      if (failed) return make_error("rendezvous: {}: {}", run_folder(), failed.message());
      fs::permissions(run_folder(), fs::perms::owner_all, failed);
    }
    invited_ = std::move(tokens);
    std::string text = run_;
    for (const auto& [rank, token] : invited_) text += fmt::format("\n{} {}", rank, token);
    return store_.put(run_key(job_), text, milliseconds(0));
  }

  // Into the run that knows this process.
  Result<void> join() {
    if (has_joined_) return {};
    const auto text = store_.get(run_key(job_), milliseconds(0));
    if (!text) return {};
    std::istringstream words(*text);
    std::string run;
    words >> run;
    int rank = 0;
    for (std::string token; words >> rank >> token;) {
      if (rank != rank_ || token != token_) continue;
      run_ = run;
      has_joined_ = true;
      return FolderRendezvous(run_folder()).put(fmt::format("joined.{}", rank_), "", {});
    }
    return {};
  }

  [[nodiscard]] bool has_joined(int rank) const {
    std::error_code ignored;
    return fs::exists(fmt::format("{}/joined.{}", run_folder(), rank), ignored);
  }
  [[nodiscard]] bool have_all_joined() {
    if (!has_joined_) return false;
    while (num_joined_ < size_ && has_joined(num_joined_)) ++num_joined_;
    return num_joined_ == size_;
  }

  [[nodiscard]] tl::unexpected<Error> no_files(const Error& why) const {
    return make_error(ExitCode::kUsage,
                      "HVDRUN_INIT=file://{}: rank {} cannot make a file there: {}; give a folder "
                      "that all ranks see and may write to",
                      folder_, rank_, why.message);
  }

  [[nodiscard]] tl::unexpected<Error> missing(milliseconds timeout) const {
    if (!has_joined_) {
      return make_error(ExitCode::kTimeout,
                        "rendezvous in {}: rank 0 of {} ranks did not come within {} ms", folder_,
                        size_, timeout.count());
    }
    std::vector<int> ranks;
    for (int rank = 0; rank < size_; ++rank) {
      if (!has_joined(rank)) ranks.push_back(rank);
    }
    const std::size_t num_missing = ranks.size();
    if (num_missing > kMaxMissingNamed) ranks.resize(kMaxMissingNamed);
    return make_error(
        ExitCode::kTimeout, "rendezvous in {}: {} of {} ranks came within {} ms, missing: {}{}",
        folder_, size_ - static_cast<int>(num_missing), size_, timeout.count(),
        fmt::join(ranks, ", "),
        num_missing > ranks.size() ? fmt::format(" and {} more", num_missing - ranks.size()) : "");
  }

  const std::string& folder_;
  const std::string& job_;
  FolderRendezvous store_;
  const int rank_;
  const int size_;
  const std::string token_;
  std::string run_;
  std::map<int, std::string> invited_;
  bool has_joined_ = false;
  int num_joined_ = 0;  // ranks below it have joined
};

}  // namespace

Result<std::string> meet_in_folder(const std::string& folder, const std::string& job, int rank,
                                   int size, milliseconds timeout) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return make_error(ExitCode::kUsage,
                      "HVDRUN_INIT=file://{}: there is no such folder on this machine: make it "
                      "where all ranks see it",
                      folder);
  }
  auto token = random_token();
  if (!token) return tl::unexpected(token.error());
  return FolderMeeting(folder, job, rank, size, std::move(*token)).run(timeout);
}

void leave_folder(const std::string& folder, const std::string& job, const std::string& run_folder,
                  int size) {
  std::error_code ignored;
  fs::remove_all(run_folder, ignored);
  fs::remove(fs::path(folder) / run_key(job), ignored);
  for (int rank = 0; rank < size; ++rank) {
    fs::remove(fs::path(folder) / hello_key(job, rank), ignored);
  }
}

}  // namespace hvd
