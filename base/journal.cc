#include "base/journal.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/plural.h"
#include "base/unique_fd.h"
#include "base/unix_address.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxFieldName = 64;
constexpr std::array<std::string_view, 3> kOwnFields = {"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER"};

// As in syslog(3).
int priority_of(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return 3;
    case LogLevel::kWarning:
      return 4;
    case LogLevel::kInfo:
      return 6;
    case LogLevel::kDebug:
      return 7;
  }
  return 6;
}

bool is_field_name(std::string_view name) {
  const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_other = [](char c) { return (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= kMaxFieldName && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_letter(c) || is_other(c); }) &&
         std::find(kOwnFields.begin(), kOwnFields.end(), name) == kOwnFields.end();
}

// At most so many bytes, and no half of a UTF-8 character.
std::string_view cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

void append_field(std::string& entry, std::string_view name, std::string_view value) {
  entry += name;
  if (value.find('\n') == std::string_view::npos) {
    entry += '=';
  } else {
    entry += '\n';
    // 64 bits, little endian.
    for (unsigned shift = 0; shift < 64; shift += 8) {
      entry += static_cast<char>((std::uint64_t{value.size()} >> shift) & 0xffU);
    }
  }
  entry += value;
  entry += '\n';
}

class Journal {
 public:
  explicit Journal(std::string_view path)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
        to_(unix_address(path)) {}

  void write(LogLevel level, std::string_view text, const LogFields& fields) {
    if (!send_entry(level, text, fields)) return write_line(level, text);
    if (const unsigned lost = num_lost_.exchange(0); lost > 0) {
      const auto said = fmt::format("{} could not be written here", counted(lost, "line"));
      if (!send_entry(LogLevel::kWarning, said, {})) num_lost_ += lost;
    }
  }

 private:
  [[nodiscard]] bool send_entry(LogLevel level, std::string_view text,
                                const LogFields& fields) const {
    const std::string entry = journal_entry(level, log_name(), text, fields);
    return sendto(fd_.get(), entry.data(), entry.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                  reinterpret_cast<const sockaddr*>(&to_), sizeof to_) >= 0;
  }

  // stderr is a socket to the same journal, which may be what does not answer.
  void write_line(LogLevel level, std::string_view text) {
    const std::string line = log_line(level, text) + '\n';
    const ssize_t n = send(STDERR_FILENO, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) ++num_lost_;
  }

  UniqueFd fd_;
  const sockaddr_un to_;
  std::atomic<unsigned> num_lost_{0};
};

}  // namespace

bool is_journal(int fd) {
  const char* stream = getenv("JOURNAL_STREAM");
  struct stat info {};
  return stream != nullptr && fstat(fd, &info) == 0 &&
         fmt::format("{}:{}", info.st_dev, info.st_ino) == stream;
}

bool join_journal(const std::string& identifier, std::string_view stream) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un to = unix_address(stream);
  if (!fd.is_valid() || connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return false;
  }
  // Unit: whose it is; priority of a line without one; "<N>" before a line is its priority; to no
  // syslog, kernel log or console.
  const std::string head = identifier + "\n\n6\n1\n0\n0\n0\n";
  struct stat info {};
  if (send(fd.get(), head.data(), head.size(), MSG_NOSIGNAL) < 0 || fstat(fd.get(), &info) != 0) {
    return false;
  }
  dup2(fd.get(), STDOUT_FILENO);
  dup2(fd.get(), STDERR_FILENO);
  setenv("JOURNAL_STREAM", fmt::format("{}:{}", info.st_dev, info.st_ino).c_str(), 1);
  return true;
}

std::string journal_entry(LogLevel level, std::string_view identifier, std::string_view text,
                          const LogFields& fields) {
  std::string entry;
  append_field(entry, "MESSAGE", cut(text, kMaxJournalText));
  append_field(entry, "PRIORITY", std::to_string(priority_of(level)));
  append_field(entry, "SYSLOG_IDENTIFIER", cut(identifier, kMaxJournalValue));
  std::size_t num_fields = 0;
  for (const LogField& field : fields) {
    if (!is_field_name(field.name)) continue;
    if (++num_fields > kMaxJournalFields) break;
    append_field(entry, field.name, cut(field.value, kMaxJournalValue));
  }
  return entry;
}

bool log_to_journal(std::string_view socket) {
  if (!is_journal(STDERR_FILENO)) return false;
  set_log_entry_writer([journal = std::make_shared<Journal>(socket)](
                           LogLevel level, std::string_view text, const LogFields& fields) {
    journal->write(level, text, fields);
  });
  return true;
}

}  // namespace hvd
