"""What is done to a host, a cable or a process, and how it is undone."""

import os
import signal

import lab
from cases import SECOND, VICTIM
from harness import LAUNCHER

# Milliseconds and per cent of frames lost, in each direction.
SLOW = (200, 5)
NO_DELAY = (0.1, 0)  # the relay is there already


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def _hosts_of(case):
    """The hosts whose cables or processes are hit."""
    parts = case.target.split("+")
    hosts = [host for part, host in zip(parts, (VICTIM, SECOND)) if part == "host"]
    if "launcher" in parts and "host" in parts:
        return [VICTIM]
    return [LAUNCHER] if case.target == "launcher" else hosts


class Victims:
    """Finds the processes that a case is about, at the moment when they are hit."""

    def __init__(self, state, nodes, mark):
        self.state = state
        self.nodes = nodes
        self.mark = mark
        self.run = None  # of hvdrun, once it is started

    def of(self, target, phase="running", host=VICTIM):
        if target == "launcher":
            return self._launcher()
        if target == "host":
            return [p.pid for p in self.state.processes(host=host)]
        if target == "worker":
            # In the end only the deaf one of a host is left.
            rank = {VICTIM: 2, SECOND: 4}[host] + (phase == "stopping")
            return [p.pid for p in self.state.processes(host=host, mark=self.mark)
                    if p.rank == rank and p.program in ("metronome", "bash")]
        # For an instant a shim is a copy of its agent, with a higher number.
        found = [p.pid for p in self.nodes.victims(target, self.state.processes(host=host))]
        return [min(found)] if found else []

    def of_case(self, case):
        """All that a kill or a stop hits; empty as long as one of the parts does not live."""
        parts = case.target.split("+")
        hosts = (VICTIM, SECOND) if len(set(parts)) == 1 else (VICTIM, VICTIM)
        found = [self.of(part, case.phase, host) for part, host in zip(parts, hosts)]
        return sum(found, []) if all(found) else []

    def _launcher(self):
        """With its nsenter, which stops itself when hvdrun is stopped and must go on with it."""
        return [self.run.pid, self.run.process.pid]


class Fault:
    """One fault of one case: strike() once, undo() once, whatever happened in between."""

    def __init__(self, case, bed, victims):
        self.case = case
        self.bed = bed
        self.victims = victims
        self.pids = []
        self.has_struck = False

    def prepare(self):
        """Puts in place what takes time; changes nothing for the job."""
        if self.case.fault == "slow":
            self._delay(NO_DELAY)

    def is_possible(self):
        """Whether all that is hit lives now."""
        if self.case.hits_network:
            return True
        self.pids = self.victims.of_case(self.case)
        return bool(self.pids)

    def strike(self):
        self.has_struck = True
        if self.case.fault == "slow":
            self._delay(SLOW)
        elif self.case.hits_network:
            self._cut(True)
        elif self.case.fault in ("kill", "restart"):
            self._kill()
        else:
            self._stop()

    def clear_away(self):
        """The plain cables again."""
        self.undo()
        if self.case.fault == "slow":
            self._delay((0,))

    def undo(self):
        if not self.has_struck:
            return
        self.has_struck = False
        if self.case.fault in ("short-cut", "long-cut"):
            self._cut(False)
        elif self.case.fault in ("stop", "pause"):
            send(self.pids, signal.SIGCONT)
        self.victims.nodes.restore()

    def _kill(self):
        if "launcher" in self.case.target:  # nsenter must tell its end
            self.pids = [pid for pid in self.pids if pid != self.victims.run.process.pid]
        if "host" in self.case.target:  # its first process ends all others with it
            self.pids = [pid for pid in self.pids if self.victims.run.pid == pid]
            self.pids.append(self.bed.inits[VICTIM])
        send(self.pids, signal.SIGKILL)
        lab.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in self.pids), 5,
                       f"{self.pids} do not end")

    def _stop(self):
        if self.case.target == "launcher":
            self.pids = self.pids[:1]
        send(self.pids, signal.SIGSTOP)
        if self.case.target == "host":  # what was started meanwhile
            more = [pid for pid in self.victims.of("host") if pid not in self.pids]
            send(more, signal.SIGSTOP)
            self.pids += more
        if self.case.target == "launcher":
            self.pids.append(self.victims.run.process.pid)

    def _cut(self, is_on):
        for host in _hosts_of(self.case):
            self.bed.set_black_hole(host, is_on)

    def _delay(self, how):
        hosts = _hosts_of(self.case)
        if hosts == [LAUNCHER]:  # it has no cable of its own, but all others end at it
            hosts = [name for name in self.bed.names if name != LAUNCHER]
        for host in hosts:
            self.bed.set_delay(host, *how)
