#include "launcher/hvdctl/authority.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/disk_file.h"
#include "base/read_file.h"

namespace hvd {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "ca.key";
constexpr const char* kCertificate = "ca.crt";
constexpr const char* kList = "crl.pem";
constexpr const char* kIssued = "issued";

Result<UniqueFd> lock(const std::string& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_valid()) return make_error("{}: {}", folder, strerror(errno));
  if (::flock(fd.get(), LOCK_EX) != 0) return make_error("{}: {}", folder, strerror(errno));
  return fd;
}

Result<std::string> read_text(const std::string& path) {
  std::string text = read_small_file(path);
  if (text.empty()) return make_error("{} cannot be read, or is empty", path);
  return text;
}

}  // namespace

Result<void> write_whole(const std::string& path, const std::string& text, bool is_secret) {
  const int error = replace_file(path, text, is_secret ? 0600 : 0644);
  if (error == 0) return {};
  return make_error("{} cannot be written: {}", path, strerror(error));
}

Result<Authority> Authority::create(const std::string& folder, const std::string& name,
                                    const Validity& validity) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return make_error("{} cannot be made: {}", folder, error.message());
  ::chmod(folder.c_str(), 0700);
  auto held = lock(folder);
  if (!held) return tl::unexpected(held.error());
  if (fs::exists(folder + "/" + kKey, error)) {
    return make_error(ExitCode::kUsage,
                      "{} holds an authority already; name another folder with --dir, or use it",
                      folder);
  }
  auto own = make_authority(name, validity);
  if (!own) return tl::unexpected(own.error());
  const auto list = make_revocation_list(*own, {}, validity);
  if (!list) return tl::unexpected(list.error());
  Authority made(folder, std::move(*held), std::move(*own), validity);
  fs::create_directory(made.path(kIssued), error);
  // The key last: with it the authority is there.
  for (const auto& [file, text, is_secret] :
       {std::tuple(kCertificate, made.own_.certificate, false),
        {kList, *list, false},
        {kKey, made.own_.key, true}}) {
    if (auto done = write_whole(made.path(file), text, is_secret); !done) {
      return tl::unexpected(done.error());
    }
  }
  return made;
}

Result<Authority> Authority::open(const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(folder + "/" + kKey, ignored)) {
    return make_error(
        ExitCode::kUsage,
        "{} holds no authority; make one with hvdctl ca init, or name its folder with "
        "--dir",
        folder);
  }
  auto held = lock(folder);
  if (!held) return tl::unexpected(held.error());
  auto key = read_text(folder + "/" + kKey);
  auto certificate = read_text(folder + "/" + kCertificate);
  if (!key) return tl::unexpected(key.error());
  if (!certificate) return tl::unexpected(certificate.error());
  const auto validity = read_authority(*certificate);
  if (!validity) return tl::unexpected(validity.error().within(folder));
  return Authority(folder, std::move(*held), {std::move(*key), std::move(*certificate)}, *validity);
}

Result<KeyAndCertificate> Authority::issue(const CertificateRequest& request) {
  auto issued = issue_certificate(own_, request);
  if (!issued) return issued;
  const auto facts = read_certificate(issued->certificate);
  if (!facts) return tl::unexpected(facts.error());
  const std::string copy = fmt::format("{}/{}.crt", path(kIssued), facts->serial);
  if (auto done = write_whole(copy, issued->certificate, false); !done) {
    return tl::unexpected(done.error());
  }
  return issued;
}

Result<std::string> Authority::revocation_list() const { return read_text(path(kList)); }

Result<std::vector<IssuedCertificate>> Authority::list() const {
  const auto text = revocation_list();
  if (!text) return tl::unexpected(text.error());
  const auto revoked = read_revocation_list(*text);
  if (!revoked) return tl::unexpected(revoked.error().within(path(kList)));
  std::map<std::string, std::int64_t> times;
  for (const Revocation& one : *revoked) times[one.serial] = one.time;
  std::vector<IssuedCertificate> issued;
  std::error_code error;
  for (fs::directory_iterator entry(path(kIssued), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".crt") continue;
    const auto certificate = read_text(entry->path());
    if (!certificate) return tl::unexpected(certificate.error());
    auto facts = read_certificate(*certificate);
    if (!facts) return tl::unexpected(facts.error().within(entry->path().string()));
    const auto found = times.find(facts->serial);
    issued.push_back({std::move(*facts), std::nullopt});
    if (found != times.end()) issued.back().revoked = found->second;
  }
  if (error) return make_error("{}: {}", path(kIssued), error.message());
  std::sort(issued.begin(), issued.end(), [](const auto& a, const auto& b) {
    return std::pair(a.facts.validity.from, a.facts.serial) <
           std::pair(b.facts.validity.from, b.facts.serial);
  });
  return issued;
}

Result<void> Authority::revoke(const std::vector<std::string>& serials, std::int64_t now) {
  const auto text = revocation_list();
  if (!text) return tl::unexpected(text.error());
  auto revoked = read_revocation_list(*text);
  if (!revoked) return tl::unexpected(revoked.error().within(path(kList)));
  for (const std::string& serial : serials) {
    const bool is_there = std::any_of(revoked->begin(), revoked->end(),
                                      [&](const auto& one) { return one.serial == serial; });
    if (!is_there) revoked->push_back({serial, now});
  }
  const auto list = make_revocation_list(own_, *revoked, {now, validity_.until});
  if (!list) return tl::unexpected(list.error());
  return write_whole(path(kList), *list, false);
}

}  // namespace hvd
