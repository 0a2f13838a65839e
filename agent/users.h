// The users of this node, as its name services know them (files, LDAP, SSSD): asked of getent,
// because a static program has no name services of its own, and with a deadline, because a
// directory that does not answer holds up who asks it. And who of them a job may run as.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/loop.h"
#include "base/status.h"
#include "proto/worker_env.h"

namespace hvd {

struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;   // absolute
  std::string shell;  // empty in the directory: /bin/sh
};

// Whether this can be a user's name here: printable, without blanks, ':', '/' and ',', no '-' in
// front, not a number, at most 256 bytes. Pure.
[[nodiscard]] bool is_user_name(std::string_view name);

// The user of this name in what `getent passwd NAME` prints. Other lines (a warning) do not matter;
// a user of another name is an error: getent takes a number, and some directories take other
// spellings. Pure.
[[nodiscard]] Result<User> parse_passwd(std::string_view output, std::string_view name);

inline constexpr Nanos kUserQuestionLimit = std::chrono::seconds(5);

// Errors: no user of this name, a directory that does not answer, getent's own.
[[nodiscard]] Task<Result<User>> find_user(Loop& loop, EnvList env, std::string name);

// The user in the machine's own file, without asking anybody; an error if it has none of this name,
// which says nothing of the other directories.
[[nodiscard]] Result<User> user_in_files(std::string_view name);

// The first uid of people (login.defs(5), UID_MIN).
inline constexpr uid_t kFirstUid = 1000;

// Whether jobs may run as this user. Only where the configuration names the user itself
// (`is_named_explicitly`), not merely the client of the same name: root and users of the system
// (uid below kFirstUid), and users who cannot log in (shell nologin or false). Pure.
[[nodiscard]] Result<void> check_run_as(const User& user, bool is_named_explicitly);

}  // namespace hvd
