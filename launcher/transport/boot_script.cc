#include "launcher/transport/boot_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace hvd {
namespace {

constexpr std::size_t kMarkerHalf = 16;  // "HVDRUN1-" and 8 digits

// Names: M marker, N file name, S size, W the agent's words, m machine, r kernel release, n node, w
// why folders failed, T temporary file.
constexpr std::string_view kPrepare =
    "umask 077;set -f;unset TIME_STYLE CDPATH;T=;w=;"
    "e(){ echo \"$M error $*\";exit 1;};"
    "k=$(uname -nrm);n=${k%% *};k=${k#* };r=${k%% *};m=${k##* };"
    "[ \"$m\" = \"$A\" ]||e \"the machine type of this node is $m, but hvd-agent is built for $A\";"
    "a=${r%%.*};b=${r#*.};b=${b%%[._+a-zA-Z-]*};"
    "[ \"$a\" -gt 5 ]||{ [ \"$a\" -eq 5 ]&&[ \"$b\" -ge 4 ];}||"
    "e \"the kernel of this node is $r, but hvd-agent needs 5.4 or later (pidfd)\";";

// c FOLDER: whether it holds our agent. Folder and file have to be ours alone and complete; a
// listing is the one way to see modes and sizes in every POSIX system. t FOLDER: become that agent.
constexpr std::string_view kLookUp =
    "c(){ [ -x \"$1/$N\" ]&&[ -O \"$1\" ]&&[ -O \"$1/$N\" ]||return 1;"
    "[ -L \"$1\" ]&&return 1;[ -L \"$1/$N\" ]&&return 1;"
    "set -- $(cd \"$1\"&&LC_ALL=C ls -ldn . \"$N\" 2>/dev/null);"
    "case $1 in drwx------*);;*)return 1;;esac;"
    "case ${10} in -rwx------*);;*)return 1;;esac;"
    "[ \"${14}\" = $S ];};"
    "t(){ case $1 in /*)c \"$1\"&&{ echo \"$M found $1\";exec \"$1/$N\" $W --marker "
    "$M;};;esac;};"
    "t \"$HOME/.cache/hvdrun\";t \"$XDG_RUNTIME_DIR/hvdrun\";"
    "u=$(id -u);t /var/tmp/hvdrun-$u;t /tmp/hvdrun-$u;";

// p FOLDER: makes it ours and places the agent there. A file without an interpreter line is run by
// the shell itself, unless the folder is mounted noexec: that is the test. The pipe drains what a
// full disk refuses, so that the next `place` starts at a clean point of the stream.
constexpr std::string_view kPlace =
    "z(){ [ -z \"$T\" ]||rm -f \"$T\";};trap z EXIT;trap \"z;exit 1\" HUP INT TERM PIPE;"
    "f(){ w=\"$w$d: $*; \";z;T=;return 1;};"
    "p(){ d=$1;case $d in //*|/hvdrun|/.cache/hvdrun)return 1;;/*);;*)return 1;;esac;"
    "mkdir -p \"$d\" 2>/dev/null;"
    "[ -d \"$d\" ]||{ f cannot be made;return;};"
    "[ -L \"$d\" ]&&{ f is a link;return;};"
    "[ -O \"$d\" ]||{ f belongs to somebody else;return;};"
    "chmod 700 \"$d\"||{ f cannot be made private;return;};"
    "find \"$d\" -type f \"(\" -name \".hvd-agent-*\" -mmin +60 -o -name \"hvd-agent-*\" -mtime "
    "+30 \")\""
    " -exec rm -f {} + 2>/dev/null;"
    "T=$d/.$N.$n.$$;"
    "{ echo : >\"$T\"; } 2>/dev/null||{ f cannot be written;return;};"
    "chmod 700 \"$T\";\"$T\" </dev/null >/dev/null 2>&1||{ f does not allow programs, mounted "
    "noexec;return;};"
    "echo \"$M place $m $r $d\";"
    "read -r H||e the upload was cut off ${w%; };"
    "head -c $S|{ cat >\"$T\" 2>/dev/null;cat >/dev/null;};"
    "g=$(wc -c <\"$T\");[ $g -eq $S ]||{ f took $g of $S bytes, disk or quota full or upload cut "
    "off;return;};"
    "if command -v sha256sum >/dev/null 2>&1;then g=$(sha256sum <\"$T\");"
    "[ \"${g%% *}\" = \"$H\" ]||{ f got a damaged upload;return;};fi;"
    "chmod 700 \"$T\";"
    "g=$(\"$T\" --version </dev/null 2>&1)||{ f cannot run hvd-agent: $g;return;};"
    "mv -f \"$T\" \"$d/$N\"||{ f cannot be written;return;};"
    "T=;exec \"$d/$N\" $W --marker $M;};"
    "p \"$HOME/.cache/hvdrun\";p \"$XDG_RUNTIME_DIR/hvdrun\";p /var/tmp/hvdrun-$u;p /tmp/hvdrun-$u;"
    "e no folder of this node can hold hvd-agent: ${w%; }";

std::string own_machine() {
  utsname names{};
  ::uname(&names);
  return names.machine;
}

}  // namespace

std::string make_marker() {
  std::uint64_t number = 0;
  // Blocks only before the kernel's generator is seeded, at boot; 8 bytes are never cut short.
  (void)::getrandom(&number, sizeof(number), 0);
  return fmt::format("HVDRUN1-{:016x}", number);
}

bool is_plain_word(std::string_view word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/._-=").find(c) != std::string_view::npos;
  };
  return !word.empty() && std::all_of(word.begin(), word.end(), is_plain);
}

std::string boot_script(const AgentImage& agent, std::string_view marker,
                        const std::vector<std::string>& words) {
  return fmt::format("M={};M=${{M}}{};N=hvd-agent-{};S={};A={};W=\"{}\";{}{}{}",
                     marker.substr(0, kMarkerHalf), marker.substr(kMarkerHalf), agent.sum,
                     agent.size, agent.machine.empty() ? own_machine() : agent.machine,
                     fmt::join(words, " "), kPrepare, kLookUp, kPlace);
}

std::string agent_greeting(std::string_view marker, const std::vector<std::string>& words) {
  return fmt::format("{} {}\n", marker, fmt::join(words, " "));
}

std::string login_shell_command(std::string_view script) {
  return fmt::format("exec /bin/sh -c '{}'", script);
}

}  // namespace hvd
