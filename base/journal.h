// The journal of systemd, by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram
// an entry, with fields that can be looked for (journalctl HVDRUN_JOB=...). Without its library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/log.h"

namespace hvd {

// Whether this descriptor goes to the journal: JOURNAL_STREAM says so, and it is still the same.
[[nodiscard]] bool is_journal(int fd);

// Whatever is longer is cut, so that an entry always fits a datagram: with every part at its limit
// it has less than 184 KiB, of the 208 KiB that Linux lets a socket send at once.
inline constexpr std::size_t kMaxJournalText = 48 << 10;
inline constexpr std::size_t kMaxJournalValue = 4 << 10;
inline constexpr std::size_t kMaxJournalFields = 32;

// The datagram: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER and these fields. A value with a line end goes
// with its length in front, so that nothing in it is taken for a field. Left out: a field whose
// name is none (A-Z, 0-9 and _, from a letter on, at most 64) or one of those three. Pure.
[[nodiscard]] std::string journal_entry(LogLevel level, std::string_view identifier,
                                        std::string_view text, const LogFields& fields);

// For a unit whose standard output is something else: from now on it and stderr go to the journal
// as lines, and is_journal(2) holds. The journal finds out by itself of which unit the process is.
// Before any thread. False where there is no journal; nothing has changed then.
inline constexpr std::string_view kJournalStream = "/run/systemd/journal/stdout";
bool join_journal(const std::string& identifier, std::string_view stream = kJournalStream);

inline constexpr std::string_view kJournalSocket = "/run/systemd/journal/socket";

// Where stderr goes to the journal, from now on every line that went to stderr is an entry; else
// nothing changes, and false. Nobody ever waits for the journal: an entry that it does not take
// goes to stderr as a line, and if that is full too, it is counted and told as soon as one is
// taken. Before any thread, once the log has its name.
bool log_to_journal(std::string_view socket = kJournalSocket);

}  // namespace hvd
