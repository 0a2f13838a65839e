"""What every end-to-end test stands on: a testbed for the module, runs of hvdrun on its launching
host under time limits, and after each test a look at all hosts for anything that was left behind.

Needs root (testbeds are namespaces, mounts and networks): without it the whole file is skipped and
says so. The program under test is $HVDRUN_BIN; HVDRUN_LONG=1 asks for the full counts.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import uuid

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
CHECKOUT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(CHECKOUT, "tests", "testbed"))

import lab
import layout
import hosts_state

HostOptions = layout.HostOptions
LAUNCHER = layout.LAUNCHER
HVDRUN = os.environ.get("HVDRUN_BIN") or os.path.join(CHECKOUT, "build", "bin", "hvdrun")
IS_LONG = os.environ.get("HVDRUN_LONG") == "1"
SKIPPED = 77
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
PRINT_ENV = [PYTHON, "-c", "import json,os;print(json.dumps(dict(os.environ)))"]
# Every host of the list is an agent on the launching host.
AGENTS_HERE = ["--transport", "command", "--rsh", "sh -c 'exec \"$@\"' x {command}"]
SETTLE = 3.0  # for sessions of sshd and agents to end after hvdrun has


def scaled(short, long):
    """A count or a time: small in CI, full in the labelled run."""
    return long if IS_LONG else short


def shell_code(returncode):
    """As $? shows it."""
    return 128 - returncode if returncode < 0 else returncode


def with_systemd(num_nodes, hybrid=False):
    """OPTIONS of a class whose nodes have systemd as their first process."""
    return {layout.node_name(k): HostOptions(systemd=True, hybrid=hybrid)
            for k in range(1, num_nodes + 1)}


class Stream:
    """Collects one pipe in a thread, each line with the time it came."""

    def __init__(self, pipe):
        self.data = bytearray()
        self.lines = []  # (seconds on the monotonic clock, text)
        self.pipe = pipe
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        partial = b""
        while block := os.read(self.pipe.fileno(), 1 << 20):
            now = time.monotonic()
            *whole, partial = (partial + block).split(b"\n")
            with self.changed:
                self.data += block
                self.lines += [(now, line.decode(errors="replace")) for line in whole]
                self.changed.notify_all()

    @property
    def text(self):
        return self.data.decode(errors="replace")

    def find(self, pattern, limit, count=1):
        """Waits until `count` lines match; returns their times, fewer at the limit."""
        end = time.monotonic() + limit
        with self.changed:
            while True:
                times = [at for at, line in self.lines if re.search(pattern, line)]
                left = end - time.monotonic()
                if len(times) >= count or left <= 0:
                    return times
                self.changed.wait(left)


class Run:
    """One running hvdrun (or another program on a host)."""

    def __init__(self, bed, argv, env, cwd=None, stdin=subprocess.DEVNULL, host=LAUNCHER,
                 read_stdout=True):
        self.words = argv
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            bed.command(host, argv, cwd), env=bed.environment(env), stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.out = Stream(self.process.stdout) if read_stdout else None
        self.err = Stream(self.process.stderr)

    @property
    def pid(self):
        """Of the program itself: the only child of nsenter, which has executed it by now."""
        def find():
            child = lab.first_child_of(self.process.pid)
            name = lab.read_text(f"/proc/{child}/comm").strip() if child else ""
            return child if name not in ("", "env", "nsenter") else None

        return lab.wait_until(find, 5, f"{self.words[0]} did not start")

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, limit):
        """The code as a shell shows it; over the limit the program is killed and the test fails."""
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            said = self.report()
            self.end()
            raise AssertionError(f"still running after {limit} s: {said}") from None
        self.seconds = time.monotonic() - self.started
        for stream in filter(None, (self.out, self.err)):
            stream.thread.join(5)
        return shell_code(self.process.returncode)

    @property
    def code(self):
        return shell_code(self.process.returncode)

    def end(self):
        """For clean-up: whatever still runs is killed."""
        if self.process.poll() is None:
            child = lab.first_child_of(self.process.pid)
            for pid in filter(None, (child, self.process.pid)):
                os.kill(pid, signal.SIGKILL)
            self.process.wait()
        for stream in filter(None, (self.out, self.err)):
            stream.thread.join(2)
        self.process.stdout.close()
        self.process.stderr.close()

    @property
    def last_line(self):
        lines = [line for line in self.err.text.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def rank_lines(self, stream="stdout"):
        """{rank: [line]} of the prefixed output."""
        found = {}
        source = self.out if stream == "stdout" else self.err
        for line in source.text.split("\n"):
            match = re.match(rf"\[(\d+)\]<{stream}>:(.*)", line, re.DOTALL)
            if match:
                found.setdefault(int(match[1]), []).append(match[2])
        return found

    def report(self):
        out = self.out.text[-3000:] if self.out else "(not read)"
        return (f"{' '.join(self.words[1:])}\ncode {self.process.returncode}\n"
                f"--- stdout\n{out}\n--- stderr\n{self.err.text[-5000:]}\n---")


class EndToEnd(unittest.TestCase):
    """A test with hosts. NODES and OPTIONS of the class say which."""

    NODES = 4
    OPTIONS = {}

    @classmethod
    def setUpClass(cls):
        cls.bed = lab.Testbed(lab.new_folder())
        cls.addClassCleanup(cls.bed.down)
        cls.bed.up(cls.NODES, cls.OPTIONS, keep=[os.path.dirname(HVDRUN)], dies_with_caller=True)

    def setUp(self):
        self.settle = SETTLE
        self.mark = str(uuid.uuid4())
        self.state = hosts_state.HostsState(self.bed)
        self.before = self.state.take()
        self.addCleanup(self.check_clean)

    def check_clean(self):
        """On no host a process, port or file more than before the test."""
        end = time.monotonic() + self.settle
        while left := (now := self.state.take()).more_than(self.before):
            if time.monotonic() > end:
                self._end_processes(now)
                self.fail("left on the hosts:\n  " + "\n  ".join(left))
            time.sleep(0.02)

    def _end_processes(self, now):
        """So that the next test starts from clean hosts."""
        for pid in now.processes.keys() - self.before.processes.keys():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # ---- runs -------------------------------------------------------------------------------

    def environment(self, extra=None):
        # No configuration file of whoever runs the tests.
        return {"PATH": PATH, "HVT": self.mark, "LANG": "C.UTF-8", "XDG_CONFIG_HOME": "/nowhere",
                **(extra or {})}

    def start(self, *arguments, env=None, **kwargs):
        """Starts hvdrun on the launching host."""
        run = Run(self.bed, [HVDRUN, *map(str, arguments)], self.environment(env), **kwargs)
        self.addCleanup(run.end)
        return run

    def hvdrun(self, *arguments, limit=30, **kwargs):
        """Runs hvdrun to its end. No worker may be left at that moment, on any host."""
        run = self.start(*arguments, **kwargs)
        run.wait(limit)
        self.assert_no_workers(run)
        return run

    def print_environments(self, *arguments, env=None):
        """A job whose ranks print what environments_of() takes from it."""
        run = self.hvdrun(*arguments, *PRINT_ENV, env=env)
        self.assert_code(run, 0)
        return run

    def environments_of(self, run):
        return [json.loads(lines[0]) for _, lines in sorted(run.rank_lines().items())]

    def environments(self, *arguments, env=None):
        """The environment of each rank, rank by rank."""
        return self.environments_of(self.print_environments(*arguments, env=env))

    def values(self, environments, name):
        return [env.get(name) for env in environments]

    def on_host(self, host, *argv, env=None, **kwargs):
        """Starts another program on a host; ended with the test."""
        run = Run(self.bed, list(argv), {"PATH": PATH, **(env or {})}, host=host, **kwargs)
        self.addCleanup(run.end)
        return run

    def script(self, text, name="script.sh"):
        """A file that all hosts see."""
        path = os.path.join(self.bed.folder, "shared", name)
        lab.write_text(path, text)
        return path

    def tell(self, what, seconds):
        print(f"    {what}: {seconds:.2f} s", flush=True)

    # ---- processes --------------------------------------------------------------------------

    def workers(self, host=None):
        """{pid: rank} of this test's processes that have a rank."""
        return {p.pid: p.rank for p in self.state.processes(mark=self.mark)
                if p.rank is not None and host in (None, p.host)}

    def wait_workers(self, count, run, limit=15):
        """Until so many ranks live. Returns their pids by rank."""
        def ready():
            ranks = {rank: pid for pid, rank in sorted(self.workers().items(), reverse=True)}
            if run.process.poll() is not None:
                raise AssertionError("ended before its workers stood: " + run.report())
            return ranks if len(ranks) >= count else None

        return lab.wait_until(ready, limit, f"not {count} workers: {run.report()}")

    def seconds_until_gone(self, since, limit, is_counted=lambda process: True):
        """How long after `since` the last process of this test had gone."""
        while True:
            left = [p for p in self.state.processes(mark=self.mark) if is_counted(p)]
            now = time.monotonic() - since
            if not left:
                return now
            if now > limit:
                self.fail(f"alive after {now:.1f} s: " + "; ".join(map(str, left)))
            time.sleep(0.01)

    def agents(self, host):
        return [p.pid for p in self.state.processes(host=host) if p.is_agent]

    def shims(self, host):
        return [p.pid for p in self.state.processes(host=host) if p.is_shim]

    # ---- assertions -------------------------------------------------------------------------

    def assert_no_workers(self, run):
        left = [p for p in self.state.processes(mark=self.mark) if p.rank is not None]
        self.assertEqual([str(p) for p in left], [], "workers left when hvdrun ended: "
                         + run.report())

    def assert_no_agents(self, host, run):
        """The process that has just told that the host is clean may need a moment to end itself."""
        deadline = time.monotonic() + 1
        while True:
            left = [str(p) for p in self.state.processes(host=host) if p.is_agent or p.is_shim]
            if not left or time.monotonic() > deadline:
                return self.assertEqual(left, [], run.report())
            time.sleep(0.02)

    def assert_code(self, run, code):
        self.assertEqual(run.code, code, run.report())

    def assert_says(self, run, *parts):
        for part in parts:
            self.assertRegex(run.err.text, part, run.report())

    def assert_last_line(self, run, *parts):
        for part in parts:
            self.assertRegex(run.last_line, part, run.report())

    def assert_within(self, seconds, limit, what):
        self.tell(f"{what} (limit {limit:g})", seconds)
        self.assertLessEqual(seconds, limit, what)


class Result(unittest.TextTestResult):
    """Prints the time of each test."""

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        self.stream.write(f"({time.monotonic() - self.began:.1f} s) ")
        super().addSuccess(test)


def main():
    if os.geteuid() != 0:
        print("SKIPPED: the test hosts are namespaces, mounts and networks, which needs root")
        sys.exit(SKIPPED)
    if not os.access(HVDRUN, os.X_OK):
        sys.exit(f"no program {HVDRUN}: build hvdrun, or name it in HVDRUN_BIN")
    # A script's background jobs have these ignored, and so would every hvdrun.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    unittest.main(module="__main__", testRunner=unittest.TextTestRunner(
        stream=sys.stdout, verbosity=2, resultclass=Result))
