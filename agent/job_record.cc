#include "agent/job_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/disk_file.h"
#include "base/log.h"
#include "base/read_file.h"
#include "base/sha256.h"
#include "base/unique_fd.h"

namespace hvd {
namespace {

using nlohmann::json;

constexpr std::string_view kSuffix = ".json";

}  // namespace

std::string JobRecord::name() const { return fmt::format("{}-{}", job_id, node); }

std::string to_json(const JobRecord& record) {
  return json{
      {"job", record.job_id},      {"node", record.node},       {"client", record.client},
      {"address", record.address}, {"user", record.user},       {"uid", record.uid},
      {"unit", record.unit},       {"key_sum", record.key_sum}, {"gpus", to_text(record.gpus)},
      {"since", record.since},     {"ended", record.is_ended}}
      .dump();
}

std::optional<JobRecord> parse_record(const std::string& text) {
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return std::nullopt;
  try {
    JobRecord record;
    parsed.at("job").get_to(record.job_id);
    parsed.at("node").get_to(record.node);
    parsed.at("client").get_to(record.client);
    parsed.at("address").get_to(record.address);
    parsed.at("user").get_to(record.user);
    parsed.at("uid").get_to(record.uid);
    parsed.at("unit").get_to(record.unit);
    parsed.at("key_sum").get_to(record.key_sum);
    parsed.at("since").get_to(record.since);
    record.is_ended = parsed.value("ended", false);
    const auto gpus = parse_gpu_claim(parsed.at("gpus").get<std::string>());
    if (!gpus) return std::nullopt;
    record.gpus = *gpus;
    return record;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string sum_of_key(std::string_view key) {
  Sha256 sum;
  sum.update(key);
  return to_hex(sum.finish());
}

bool has_key(const JobRecord& record, std::string_view key) {
  const std::string sum = sum_of_key(key);
  return sum.size() == record.key_sum.size() &&
         CRYPTO_memcmp(sum.data(), record.key_sum.data(), sum.size()) == 0;
}

Result<void> make_own_folder(const std::string& path, mode_t mode) {
  // Whatever the umask of a service is, the folder has the mode that others count on.
  const bool is_new = mkdir(path.c_str(), mode) == 0;
  if ((is_new && chmod(path.c_str(), mode) != 0) || (!is_new && errno != EEXIST)) {
    return make_error("cannot make {}: {}", path, strerror(errno));
  }
  const UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!folder.is_valid() || fstat(folder.get(), &info) != 0) {
    return make_error("{} is a link or no folder; remove it", path);
  }
  if (info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return make_error("{} belongs to uid {} with mode {:o}; it must be ours alone to write", path,
                      info.st_uid, info.st_mode & 07777);
  }
  return {};
}

Result<JobRecords> JobRecords::open(const std::string& folder) {
  if (auto made = make_own_folder(folder, 0700); !made) return tl::unexpected(made.error());
  return JobRecords(folder);
}

Result<void> JobRecords::write(const JobRecord& record) const {
  const std::string path = fmt::format("{}/{}{}", folder_, record.name(), kSuffix);
  const int why = replace_file(path, to_json(record), 0600);
  if (why == 0) return {};
  return make_error("cannot write {}: {}", path, strerror(why));
}

void JobRecords::remove(const JobRecord& record) const {
  unlink(fmt::format("{}/{}{}", folder_, record.name(), kSuffix).c_str());
}

std::vector<JobRecord> JobRecords::read() const {
  std::vector<JobRecord> records;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(kSuffix)) continue;
    auto record = parse_record(read_small_file(path));
    if (record && entry.path().stem() == record->name()) {
      records.push_back(std::move(*record));
    } else {
      log(LogLevel::kWarning, "{} is no record of a job", path);
    }
  }
  return records;
}

}  // namespace hvd
