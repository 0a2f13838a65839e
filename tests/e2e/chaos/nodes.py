"""How hvdrun comes to the nodes of a set of hosts: what is its agent there, and what must be running
and be left. One class for each transport.
"""

import json
import os
import signal
import socket
import subprocess

import harness
import lab
import on_tls

SERVED = 10.0  # seconds that an agent may take to serve
ANSWERED = 5.0
# Of jobs that have ended, kept for their reap a minute long; and the name by which a front began.
NOT_OF_JOBS = (f"file {on_tls.FOLDER}/records/", f"unix socket {on_tls.FOLDER}/agent.sock.")


class BySsh:
    """Each job brings its agents along."""

    SETTLE = 30.0  # for sessions of sshd that were cut off

    def __init__(self, bed):
        self.bed = bed

    def hvdrun_words(self):
        return []

    def victims(self, target, processes):
        """Those that are its agent or shim on a host."""
        return [p for p in processes if (p.is_shim if target == "shim" else p.is_agent)]

    def is_connecting(self, process):
        """Whether the process is there as soon as a node is being connected."""
        return process.program.startswith("sshd")

    def restore(self):
        """Whatever of this belongs to the hosts runs again."""

    def is_own(self, _process):
        """Whether it belongs to the hosts, not to a job."""
        return False

    def is_left(self, _thing):
        return True

    def jobs_left(self):
        return []

    def report(self):
        return ""


class ByTls:
    """On each host an agent serves, the `front`; a job's own agent is a process that it starts."""

    # An agent whose launcher has died before its hello waits half a minute for it.
    SETTLE = 35.0

    def __init__(self, bed):
        self.bed = bed
        self.place = on_tls.Place(bed, ["alice"], "clients: {alice: {run_as: root}}\n")
        self.fronts = {}  # host: process that has it as its only child
        for host in bed.names:
            if host != harness.LAUNCHER:
                self.place.add_node(host)
                self._start(host)
        for host in self.fronts:
            lab.wait_until(lambda h=host: self._ask(h) is not None, SERVED,
                           f"the agent of {host} does not serve: {self.report()}")

    def hvdrun_words(self):
        return self.place.hvdrun_words("alice")

    def victims(self, target, processes):
        if target == "shim":
            return [p for p in processes if p.is_shim]
        verb = {"agent": "job", "front": "serve"}[target]
        return [p for p in processes if p.is_agent and p.words.split()[1:2] == [verb]]

    def is_connecting(self, process):
        return process.is_agent and process.words.split()[1:2] == ["job"]

    def restore(self):
        """Each front that has ended, on a host that lives, is started again."""
        for host, front in self.fronts.items():
            front.send_signal(signal.SIGCONT)  # nsenter stops itself when its child is stopped
            if self._has_ended(front):
                front.wait()
                if self._lives(host):
                    self._start(host)

    def is_own(self, process):
        return process.is_agent and process.words.split()[1:2] == ["serve"]

    def is_left(self, thing):
        return not any(text in thing for text in NOT_OF_JOBS)

    def jobs_left(self):
        """What the fronts still take for running; asked, they look and clear what dead agents have left."""
        left = []
        for host in self.fronts:
            if not self._lives(host):
                continue
            status = self._ask(host)
            if status is None:
                left.append(f"{host}: its agent that serves does not answer")
            else:
                left += [f"{host}: job {job['job']} counts as {job['state']}" for job in status["jobs"]]
        return left

    def report(self):
        """What the fronts and the jobs' agents have said lately."""
        return "".join(f"\n--- hvd-agent of {host}\n{lab.read_text(self._log(host))[-3000:]}" for host in self.fronts)

    @staticmethod
    def _has_ended(front):
        if front.poll() is not None:
            return True
        child = lab.first_child_of(front.pid)
        return not child or not os.path.exists(f"/proc/{child}/exe")

    def _lives(self, host):
        return os.path.exists(f"/proc/{self.bed.inits[host]}/root/")

    def _log(self, host):
        return os.path.join(self.bed.folder, host, "front.log")

    def _start(self, host):
        with open(self._log(host), "ab") as log:
            self.fronts[host] = subprocess.Popen(
                self.bed.command(host, self.place.agent_words(host)),
                env=self.bed.environment({"PATH": harness.PATH}), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)

    def _ask(self, host):
        """What `hvdctl status` asks; None without an answer."""
        path = self.bed.root_of(host) + on_tls.FOLDER + "/agent.sock"
        try:
            with socket.socket(socket.AF_UNIX) as front:
                front.settimeout(ANSWERED)
                front.connect(path)
                front.sendall(b"chaos ctl status\n")
                answer = b""
                while block := front.recv(1 << 16):
                    answer += block
        except OSError:
            return None
        return json.loads(answer[len("chaos ok "):]) if answer.startswith(b"chaos ok ") else None


TRANSPORTS = {"ssh": BySsh, "tls": ByTls}
