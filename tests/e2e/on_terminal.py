"""Runs a program on a terminal of its own and types to it, as a user would.

    on_terminal.py PATTERN COUNT KEYS COMMAND...

Once PATTERN has come COUNT times, KEYS (escapes as in Python) are typed, with half a second after
each key; KEYS `hangup` closes the terminal instead. Copies the output; ends with the code of
COMMAND as a shell shows it.
"""

import os
import pty
import select
import signal
import sys
import time


def main():
    pattern, count, keys, *command = sys.argv[1:]
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    seen = b""
    waiting = list(keys.encode().decode("unicode_escape")) if keys != "hangup" else []
    due = None
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.05)
        if ready:
            try:
                block = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            seen += block
            os.write(1, block)
        if due is None and seen.count(pattern.encode()) >= int(count):
            if keys == "hangup":
                os.close(terminal)
                break
            due = time.monotonic()
        if due is not None and waiting and time.monotonic() >= due:
            os.write(terminal, waiting.pop(0).encode())
            due += 0.5
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.exit(128 - code if code < 0 else code)


if __name__ == "__main__":
    main()
