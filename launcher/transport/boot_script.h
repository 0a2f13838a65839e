// The shell program that runs on a node before the agent does: it finds the agent in the node's
// cache folders, or takes it from its own standard input, and becomes the agent. Pure.
//
// What it says on standard output, one line each, MARK being the marker of this start:
//   MARK found FOLDER                  the agent was there and is started
//   MARK place MACHINE KERNEL FOLDER   the agent is missing: send its SHA-256 as one line, then its
//   bytes MARK error TEXT                    it gave up MARK ready VERSION                 from the
//   agent itself; the next byte is its HTTP/2
// `place` can come again: another folder is tried after one that turned out full or unusable.
//
// All of it happens on one channel. Nothing may be sent before a `place` or `ready` line has come:
// several shells read their program from standard input in blocks and would swallow it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/transport/transport.h"

namespace hvd {

// "HVDRUN1-" and 16 random hex digits: tells this start's lines from whatever a login shell prints.
[[nodiscard]] std::string make_marker();

// One line without newline, single quotes, backslashes or exclamation marks, for any POSIX sh. The
// marker stands in it in two halves: an echo of the text is no marker. `words`, plain ones, are
// what the agent is started with.
[[nodiscard]] std::string boot_script(const AgentImage& agent, std::string_view marker,
                                      const std::vector<std::string>& words = {"--stdio"});

// What an agent that runs already is told in place of the script, one line with its end: MARK
// WORD.. It answers with `ready` or `error`.
[[nodiscard]] std::string agent_greeting(std::string_view marker,
                                         const std::vector<std::string>& words);

// Letters, digits, '/', '.', '_', '-' and '=' only, and at least one: means itself in any shell.
[[nodiscard]] bool is_plain_word(std::string_view word);

// The script as a command for any login shell: sh, bash, zsh, dash, csh, tcsh, fish.
[[nodiscard]] std::string login_shell_command(std::string_view script);

}  // namespace hvd
