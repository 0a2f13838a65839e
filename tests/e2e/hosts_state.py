"""Everything a job could leave on the hosts of a testbed, seen from the machine: processes, ports,
unix sockets and files. Two snapshots are compared.
"""

import dataclasses
import os
import re

import lab

FOLDERS = ("tmp", "var/tmp", "dev/shm", "run", "root")
# The testbed's own: what is under /root is the real home, of which only the private layer counts.
NOT_LISTED = {"run/sshd", "run/lock", "run/keep", "run/over"}
# Of systemd, its bus and log-ins; a host with systemd has them come and go.
SYSTEMS_OWN = re.compile(
    r"^/(run/(systemd|log|host|dbus|udev|credentials|utmp|motd.dynamic|user/\d+/(systemd|bus|gnupg))|"
    r"(tmp|var/tmp)/systemd-private-)")
SYSTEM_PROGRAM = re.compile(r"^/usr/lib/(systemd|polkit-1)/|^/usr/bin/dbus-daemon$")
CACHED_AGENT = re.compile(r"^hvd-agent-[0-9a-f]{16}$")
# Private folders that may stay when they are empty.
PARENT_FOLDER = re.compile(r"^(hvdrun.*|jobs|user|\d+|\.cache)$")
LISTEN = "0A"


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    host: str
    words: str
    rank: object  # int, or None for what is no worker
    program: str

    @property
    def is_shim(self):
        return self.program.startswith("hvd-agent") and self.words.split()[1:2] == ["shim"] \
            or self.words.startswith("hvd-shim")

    @property
    def is_agent(self):
        return self.program.startswith("hvd-agent") and not self.is_shim \
            and self.words.split()[1:2] not in (["guard"], ["stacks"])

    def __str__(self):
        rank = "" if self.rank is None else f" (rank {self.rank})"
        return f"{self.host}: process {self.pid}{rank}: {self.words or self.program}"


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _listening(init):
    found = set()
    for table in ("tcp", "tcp6"):
        for line in lab.read_text(f"/proc/{init}/net/{table}").splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN:
                found.add(f"port {int(fields[1].rpartition(':')[2], 16)} ({table})")
    for line in lab.read_text(f"/proc/{init}/net/unix").splitlines()[1:]:
        if "hvd" in line:
            found.add(f"unix socket {line.split()[-1]}")
    return found


def _files(root, private_root, skip):
    """Files and folders of the host; private parent folders that are empty do not count."""
    found = set()
    for top in FOLDERS:
        base = private_root if top == "root" else os.path.join(root, top)
        for folder, folders, files in os.walk(base):
            inside = os.path.normpath(os.path.join(top, os.path.relpath(folder, base)))
            folders[:] = [f for f in folders if f"{inside}/{f}" not in NOT_LISTED
                          and f"/{inside}/{f}" not in skip]
            found.update(f"/{inside}/{f}" for f in files)
            if not folders and not files and not PARENT_FOLDER.match(os.path.basename(folder)):
                found.add(f"/{inside}/")
    return {f for f in found if not _is_cached_agent(f)}


def _is_cached_agent(path):
    return CACHED_AGENT.match(os.path.basename(path)) is not None


@dataclasses.dataclass
class Snapshot:
    processes: dict
    things: dict  # {host: set of sentences}

    def more_than(self, before):
        """What stands here and did not stand before, one line each."""
        lines = [str(p) for pid, p in self.processes.items() if pid not in before.processes]
        for host, things in self.things.items():
            lines += [f"{host}: {thing}" for thing in sorted(things - before.things[host])]
        return lines


class HostsState:
    def __init__(self, bed):
        self.bed = bed
        self.not_theirs = {bed.folder, lab.CHECKOUT}  # where another build may be under way
        self.host_of = {_link(f"/proc/{pid}/ns/pid"): name for name, pid in bed.inits.items()}

    def processes(self, host=None, mark=None):
        """Processes of the hosts; with a mark only those whose environment carries it."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            own = self.host_of.get(_link(f"/proc/{entry}/ns/pid"))
            if own is None or host not in (None, own):
                continue
            environment = lab.environment_of(entry)
            if own in self.bed.stems and SYSTEM_PROGRAM.match(_link(f"/proc/{entry}/exe")):
                continue
            if mark is None or f"HVT={mark}".encode() in environment:
                found.append(self._process(int(entry), own, environment))
        return found

    @staticmethod
    def _process(pid, host, environment):
        ranks = [e[5:] for e in environment if e.startswith(b"RANK=")]
        words = lab.read_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
        program = os.path.basename(_link(f"/proc/{pid}/exe")) \
            or lab.read_text(f"/proc/{pid}/comm").strip()
        return Process(pid, host, words, int(ranks[0]) if ranks and ranks[0].isdigit() else None,
                       program)

    def take(self):
        things = {}
        for name, init in self.bed.inits.items():
            if not os.path.exists(f"/proc/{init}/root/"):  # the test has ended this host
                continue
            things[name] = _listening(init) | {
                f"file {path}" for path in self._files_of(name)}
        return Snapshot({p.pid: p for p in self.processes()}, things)

    def _files_of(self, host):
        files = _files(self.bed.root_of(host), self.bed.private_root_of(host), self.not_theirs)
        return {f for f in files if host not in self.bed.stems or not SYSTEMS_OWN.match(f)}

    def cached_agents(self, host):
        """Paths of the agent programs that were placed on the host, seen from the machine."""
        folder = f"{self.bed.root_of(host)}/root/.cache/hvdrun"
        return sorted(os.path.join(folder, f) for f in os.listdir(folder)) \
            if os.path.isdir(folder) else []
