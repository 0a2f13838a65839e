#include "agent/users.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "agent/program_answer.h"
#include "base/lines.h"
#include "base/parse_number.h"
#include "base/read_file.h"
#include "base/shown.h"

namespace hvd {
namespace {

constexpr std::size_t kMaxUserName = 256;
constexpr std::string_view kNoSuchKey = "ended with code 2";  // getent(1)

// name:password:uid:gid:gecos:home:shell
constexpr std::size_t kPasswdName = 0;
constexpr std::size_t kPasswdUid = 2;
constexpr std::size_t kPasswdGid = 3;
constexpr std::size_t kPasswdHome = 5;
constexpr std::size_t kPasswdShell = 6;
using PasswdFields = std::array<std::string_view, 7>;

std::optional<PasswdFields> split_passwd(std::string_view line) {
  PasswdFields fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t end = line.find(':');
    const bool is_last = i + 1 == fields.size();
    if ((end == std::string_view::npos) != is_last) return std::nullopt;
    fields.at(i) = line.substr(0, end);
    line.remove_prefix(is_last ? line.size() : end + 1);
  }
  return fields;
}

// An id that chown and setuid would take for "leave it" is none.
std::optional<uid_t> parse_id(std::string_view text) {
  const auto id = parse_number<uid_t>(text);
  return id && *id != static_cast<uid_t>(-1) ? id : std::nullopt;
}

Result<User> user_from(const PasswdFields& fields) {
  const auto uid = parse_id(fields[kPasswdUid]);
  const auto gid = parse_id(fields[kPasswdGid]);
  if (!uid || !gid) {
    return make_error("user {} has uid '{}' and gid '{}', which are no ids", fields[kPasswdName],
                      shown(fields[kPasswdUid]), shown(fields[kPasswdGid]));
  }
  if (!fields[kPasswdHome].starts_with('/')) {
    return make_error("user {} has no home folder: '{}' is no absolute path", fields[kPasswdName],
                      shown(fields[kPasswdHome]));
  }
  const std::string_view shell = fields[kPasswdShell].empty() ? "/bin/sh" : fields[kPasswdShell];
  return User{std::string(fields[kPasswdName]), *uid, *gid, std::string(fields[kPasswdHome]),
              std::string(shell)};
}

std::string_view first_line_of(std::string_view text) {
  return text.empty() ? "nothing" : take_line(text);
}

ProgramQuestion passwd_question(const std::string& name, EnvList env) {
  return {{"getent", "passwd", name}, std::move(env), kUserQuestionLimit};
}

}  // namespace

bool is_user_name(std::string_view name) {
  constexpr std::string_view kOther = ":/, ";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && name.size() <= kMaxUserName && name[0] != '-' && shown(name) == name &&
         name.find_first_of(kOther) == std::string_view::npos &&
         !std::all_of(name.begin(), name.end(), is_digit);
}

Result<User> parse_passwd(std::string_view output, std::string_view name) {
  std::string other;
  std::string_view rest = output;
  while (!rest.empty()) {
    const auto fields = split_passwd(take_line(rest));
    if (!fields) continue;
    if ((*fields)[kPasswdName] == name) return user_from(*fields);
    other = (*fields)[kPasswdName];
  }
  if (!other.empty()) {
    return make_error("this node has no user {}, but {}: use that name", name, shown(other));
  }
  return make_error("user {}: getent passwd told no user but: {}", name,
                    shown(first_line_of(output)));
}

Task<Result<User>> find_user(Loop& loop, EnvList env, std::string name) {
  if (!is_user_name(name)) co_return make_error("'{}' is no name of a user", shown(name));
  const ProgramAnswer said = co_await ask_program(loop, passwd_question(name, std::move(env)));
  if (said.problem.empty()) co_return parse_passwd(said.output, name);
  if (said.problem == kNoSuchKey) {
    co_return make_error("this node has no user {} (getent passwd {})", name, name);
  }
  if (said.is_late) {
    co_return make_error(
        "user {}: getent passwd {}: the node's directory service (LDAP, SSSD) does not answer",
        name, said.problem);
  }
  co_return make_error("user {}: getent passwd {}: {}", name, said.problem,
                       shown(first_line_of(said.output)));
}

Result<void> check_run_as(const User& user, bool is_named_explicitly) {
  if (is_named_explicitly) return {};
  if (user.uid < kFirstUid) {
    return make_error("no job runs as {} (uid {}): users below uid {} must be named in run_as",
                      user.name, user.uid, kFirstUid);
  }
  const std::string_view shell = user.shell;
  const std::string_view program = shell.substr(shell.rfind('/') + 1);
  if (program == "nologin" || program == "false") {
    return make_error(
        "no job runs as {}: a user who cannot log in (shell {}) must be named in run_as", user.name,
        shown(shell));
  }
  return {};
}

Result<User> user_in_files(std::string_view name) {
  const std::string users = read_small_file("/etc/passwd");
  const std::string start = std::string(name) + ":";
  for (std::string_view rest = users; !rest.empty();) {
    const std::string_view line = take_line(rest);
    if (line.starts_with(start)) return parse_passwd(line, name);
  }
  return make_error("{} is not in /etc/passwd", name);
}

}  // namespace hvd
