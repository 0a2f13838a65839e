"""Hosts with systemd on which the Debian package of this build is installed and its agent serves TLS.

The package is $HVDRUN_DEB or the newest one in the build folder (target hvdrun_deb).
"""

import functools
import glob
import json
import os
import re
import shutil
import subprocess
import time

import harness
from harness import LAUNCHER, lab
from hosts_state import HostsState

BIN = os.path.dirname(harness.HVDRUN)
HVDCTL = os.path.join(BIN, "hvdctl")
PORT = 50451
SOCKET = "/run/hvdrun/agent.sock"
USERS = {"alice": 1201, "bob": 1202}
CONFIG = f"""listen: ["tls:[::]:{PORT}", "unix:{SOCKET}"]
tls: /etc/hvdrun/tls
clients: [alice]
"""
UNIT = "hvd-agent"
# Of a client of the agent's unix socket: says one line of words, prints what comes back.
ASK = f"""import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(5)
s.connect("{SOCKET}")
s.sendall(" ".join(sys.argv[1:]).encode() + b"\\n")
print(b"".join(iter(lambda: s.recv(65536), b"")).decode())
"""
CAP_SYS_RESOURCE = 24
# What the agent keeps of a job for a while after its end, for a launcher that comes back late.
ITS_OWN = re.compile(rf"unix socket {SOCKET}|file /run/hvdrun/records/([0-9a-f]{{32}}-\d+\.json)?$")


@functools.cache
def package():
    """Path of the .deb; at the start of the tests it must not be older than the programs."""
    found = os.environ.get("HVDRUN_DEB") or max(
        glob.glob(os.path.join(os.path.dirname(BIN), "hvdrun_*.deb")), key=os.path.getmtime, default="")
    if not found:
        raise SystemExit("no package hvdrun_*.deb in the build folder: build the target hvdrun_deb")
    if os.path.getmtime(found) < os.path.getmtime(os.path.join(BIN, "hvd-agent")):
        raise SystemExit(f"{found} is older than hvd-agent: build the target hvdrun_deb")
    return found


def with_other_version(deb, folder):
    """The same files as another version, which is newer."""
    tree = os.path.join(folder, "tree")
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True, timeout=60)
    control = os.path.join(tree, "DEBIAN", "control")
    lab.write_text(control, re.sub(r"(?m)^Version: (.*)$", r"Version: \1+other", lab.read_text(control)))
    made = os.path.join(folder, "hvdrun-other.deb")
    subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "-b", tree, made], check=True, timeout=60,
                   stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return made


class OnSystemd(harness.EndToEnd):
    NODES = 2
    OPTIONS = harness.with_systemd(NODES)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.nodes = [name for name in cls.bed.names if name != LAUNCHER]
        cls.shared = os.path.join(cls.bed.folder, "shared")
        cls.deb = shutil.copy(package(), cls.shared)
        cls.on_all("DEBIAN_FRONTEND=noninteractive dpkg -i " + cls.deb)
        cls.make_certificates()
        for name in cls.nodes:
            for user, uid in USERS.items():
                cls.bed.add_user(name, user, uid)
            lab.write_text(f"{cls.bed.root_of(name)}/etc/hvdrun/agent.yaml", CONFIG)
            cls.bed.run(name, ["cp", "-rT", f"{cls.shared}/{name}", "/etc/hvdrun/tls"])
        cls.on_all(f"groupadd gpu && usermod -aG gpu alice && systemctl enable --now {UNIT}")

    @classmethod
    def on_all(cls, text):
        """A shell command on all nodes at once; a failure is an error with what it printed."""
        running = {name: subprocess.Popen(cls.bed.command(name, ["sh", "-c", text]), text=True,
                                          env=cls.bed.environment({"PATH": harness.PATH}), stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for name in cls.nodes}
        for name, process in running.items():
            said = process.communicate(timeout=90)[0]
            if process.returncode != 0:
                raise AssertionError(f"{name}: {text}: {said}\n{cls.journal(name)}")

    @classmethod
    def make_certificates(cls):
        def ca(*words):
            cls.bed.run(LAUNCHER, [HVDCTL, "ca", *words, "--dir", f"{cls.shared}/ca"])

        ca("init")
        ca("issue", "--user", "alice", "--out", f"{cls.shared}/alice")
        for name in cls.nodes:
            ca("issue", "--node", name, "--out", f"{cls.shared}/{name}")

    @classmethod
    def journal(cls, host, unit=UNIT):
        done = subprocess.run(cls.bed.command(host, ["journalctl", "--no-pager", "-o", "cat", "-n", "40", "-u", unit]),
                              env=cls.bed.environment(), text=True, capture_output=True, timeout=30, check=False)
        return f"--- journal of {unit} on {host}\n{done.stdout}"

    def setUp(self):
        super().setUp()
        self.settle = 5

    def check_clean(self):
        """An agent that serves has a new process and a new socket after each start; they may be there."""
        now = self.state.take()
        self.before.processes.update({p.pid: p for p in now.processes.values() if self.is_service(p)})
        for name in self.nodes:
            self.before.things[name] |= set(filter(ITS_OWN.match, now.things[name]))
        super().check_clean()
        for name in self.nodes:
            self.wait_no_job_unit(name)
            self.assertEqual(self.ask(name, "status")["jobs"], [])

    @staticmethod
    def is_service(process):
        return process.words.startswith("/usr/bin/hvd-agent serve ")

    def look_anew(self):
        """After a reboot: what runs on the hosts now is what ran before, but nothing of a job may."""
        self.state = HostsState(self.bed)
        now = self.state.take()
        self.assertEqual([str(p) for p in now.processes.values()
                          if p.program.startswith("hvd") and not self.is_service(p)], [])
        self.before = now

    # ---- the service ------------------------------------------------------------------------

    def sh(self, host, text, limit=60):
        """What a shell command prints, whatever its code is."""
        run = self.on_host(host, "sh", "-c", text)
        run.wait(limit)
        return run.out.text + run.err.text

    def systemctl(self, host, *words, code=0):
        run = self.on_host(host, "systemctl", *words)
        self.assertEqual(run.wait(90), code, run.report() + self.journal(host))

    def property(self, host, name, unit=UNIT):
        return self.bed.run(host, ["systemctl", "show", "--value", "-p", name, unit]).strip()

    def wait_property(self, host, name, expected, limit):
        """Until it is one of the values (or fits, if a function); the value."""
        fits = expected if callable(expected) else lambda value: value == expected
        seen = []

        def look():
            seen.append(self.property(host, name))
            return seen[-1] if fits(seen[-1]) else None

        try:
            return lab.wait_until(look, limit, name)
        except lab.TestbedError:
            return self.fail(f"{host}: {name} is {seen[-1]} after {limit} s\n{self.journal(host)}")

    def main_pid(self, host, unit=UNIT):
        """As the host numbers it."""
        return int(self.property(host, "MainPID", unit))

    def job_units(self, host):
        shown = self.bed.run(host, ["systemctl", "list-units", "--all", "--plain", "--no-legend", "hvdrun-job-*"])
        return [line.split()[0] for line in shown.splitlines()]

    def wait_no_job_unit(self, host):
        """systemd takes a unit off its list a moment after its last process has gone."""
        try:
            lab.wait_until(lambda: not self.job_units(host), 5, "job units")
        except lab.TestbedError:
            self.fail(f"{host}: {self.job_units(host)}\n{self.journal(host)}")

    def restart_by_itself(self, host, old):
        """Until a main process other than `old` is up."""
        self.wait_property(host, "MainPID", lambda pid: pid not in ("0", str(old)), 15)
        self.wait_property(host, "ActiveState", "active", 15)

    def ask(self, host, *words):
        """The JSON of a control line's answer."""
        mark = "HVDCTL1-0123456789abcdef"
        answer = self.bed.run(host, [harness.PYTHON, "-c", ASK, mark, "ctl", *words]).strip()
        self.assertTrue(answer.startswith(mark + " ok "), answer)
        return json.loads(answer.removeprefix(mark + " ok "))

    # ---- jobs -------------------------------------------------------------------------------

    def tls_words(self, num_ranks, nodes=None):
        nodes = nodes or self.nodes
        slots = -(-num_ranks // len(nodes))
        return ["--transport", "tls", "--tls-dir", f"{self.shared}/alice", "-np", num_ranks,
                "-H", ",".join(f"{name}:{slots}" for name in nodes)]

    def start_job(self, num_ranks, *program, nodes=None, words=()):
        return self.start(*self.tls_words(num_ranks, nodes), *words, *program, cwd="/")

    def wait_told(self, run, pattern, num_lines, limit=20):
        """Until so many lines have come; fails at once when the job ends."""
        end = time.monotonic() + limit
        while len(run.out.find(pattern, 0.1, count=num_lines)) < num_lines:
            if time.monotonic() > end or run.process.poll() is not None:
                self.fail(f"not {num_lines} lines {pattern}: {run.report()}" + "".join(map(self.journal, self.nodes)))

    def run_job(self, num_ranks, *program, nodes=None, code=0):
        run = self.start_job(num_ranks, *program, nodes=nodes)
        run.wait(60)
        self.assert_code(run, code)
        self.assert_no_workers(run)
        return run

    def can_raise_limits(self, host):
        shown = self.bed.run(host, ["grep", "CapBnd", "/proc/1/status"]).split()[1]
        return bool(int(shown, 16) >> CAP_SYS_RESOURCE & 1)
