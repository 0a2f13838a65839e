"""One case on one set of hosts: a job, the fault in its phase, and what came of it."""

import dataclasses
import glob
import os
import re
import signal
import time
import uuid

import cases
import faults
import harness
import hosts_state
import lab
import layout
import nodes

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(harness.HVDRUN)), "tests", "programs")
HOSTS = "node1:2,node2:2,node3:2,node4:2"
NUM_RANKS = 8
SLOW_STARTER = "node4"  # while a job starts, so that phases can be seen and hit
STARTER_DELAY = 50  # milliseconds
PATIENCE = 30.0  # beyond a bound, until a trial is given up
CUT_SLACK = 0.5  # what a busy machine may take longer to mend a short cut
TRIES = 3  # a phase may be over before the fault comes

# Milliseconds, lines and their bytes: a beat of the ranks' output.
QUIET_BEAT = (50, 1, 20)
BUSY_BEAT = (10, 16, 200)
BUSY_ON_A_SLOW_CABLE = (50, 2, 60)  # 200 ms and 5 % loss carry some 16 KB/s

WORKER = """#!/bin/bash
kind=; [ $((RANK % 2)) = 1 ] && kind=deaf
{programs}/escapee daemon $kind grandchild-$HVT >/dev/null
exec {programs}/metronome "$@" $kind
"""


@dataclasses.dataclass
class Figures:
    """Seconds from the fault; None: nothing to measure."""

    obedient: object = None
    deaf: object = None
    end: object = None


@dataclasses.dataclass
class Verdict:
    name: str
    kind: str
    figures: Figures
    bounds: cases.Bounds
    code: object
    problems: list
    log: str


class PhaseMissed(Exception):
    pass


class Stage:
    """The hosts of one set. A trial that has killed one gets new ones."""

    def __init__(self, transport):
        self.transport = transport
        self.bed = None

    def ready(self):
        if self.bed is None:
            self.bed = lab.Testbed(lab.new_folder())
            self.bed.up(4, {}, keep=[os.path.dirname(harness.HVDRUN), PROGRAMS],
                        dies_with_caller=True)
            self.nodes = nodes.TRANSPORTS[self.transport](self.bed)
            self._run_plain_job()
        self.state = hosts_state.HostsState(self.bed)
        self.before = self.state.take()
        return self

    def discard(self):
        if self.bed is not None:
            self.bed.down()
        self.bed = None

    def _run_plain_job(self):
        """By ssh it leaves the agents' program on the hosts."""
        run = harness.Run(self.bed, [harness.HVDRUN, *self.nodes.hvdrun_words(), "-np", "4", "-H",
                                     HOSTS.replace(":2", ":1"), "true"], {"PATH": harness.PATH})
        code = run.wait(60)
        run.end()
        if code != 0:
            raise AssertionError("a plain job failed: " + run.report())


class Trial:
    def __init__(self, stage, case, timings, seed):
        self.stage = stage
        self.nodes = stage.nodes
        self.case = case
        self.timings = timings
        self.seed = seed
        self.bounds = cases.bounds_of(case, timings)
        self.figures = Figures()
        self.problems = []
        self.mark = str(uuid.uuid4())
        self.beats = 0

    def run(self):
        """The verdict; PhaseMissed where the fault came too late."""
        is_early = self.case.phase in ("connecting", "starting")
        if is_early:
            self.stage.bed.set_delay(SLOW_STARTER, STARTER_DELAY)
        victims = faults.Victims(self.stage.state, self.nodes, self.mark)
        self.fault = faults.Fault(self.case, self.stage.bed, victims)
        self.fault.prepare()
        self.job = victims.run = self._start_job()
        try:
            self._reach_phase()
            self._strike()
            self._watch()
            self._heal()
            self._judge()
        finally:
            self.fault.clear_away()
            if is_early:
                self.stage.bed.set_delay(SLOW_STARTER, 0)
            self.job.end()
            self._check_clean()
        return Verdict(self.case.name, self.case.kind, self.figures, self.bounds, self.job.code,
                       self.problems, self.job.report() + self.nodes.report())

    # ---- the job ----------------------------------------------------------------------------

    def _start_job(self):
        script = os.path.join(self.stage.bed.folder, "shared", "worker.sh")
        lab.write_text(script, WORKER.format(programs=PROGRAMS))
        beat = QUIET_BEAT
        if self.case.phase == "writing":
            beat = BUSY_ON_A_SLOW_CABLE if self.case.fault == "slow" else BUSY_BEAT
        self.beats = round(cases.job_seconds(self.case, self.timings) * 1000 / beat[0])
        self.num_lines = self.beats * beat[1]
        words = [harness.HVDRUN, *self.nodes.hvdrun_words(), "-vv", "-np", NUM_RANKS, "-H", HOSTS,
                 "--lease", f"{self.timings.lease:g}", "--grace", f"{self.timings.grace:g}",
                 "--start-timeout", f"{cases.start_limit(self.case, self.timings):g}"]
        if self.case.known == cases.STALL:
            words += ["--stall-timeout", f"{self.timings.stall:g}"]
        words += ["bash", script, self.beats, *beat]
        environment = {"PATH": harness.PATH, "HVT": self.mark, "LANG": "C.UTF-8"}
        return harness.Run(self.stage.bed, [str(word) for word in words], environment)

    def _reach_phase(self):
        phase = self.case.phase
        if phase == "connecting":
            host = cases.VICTIM if self.case.target in ("host", "front") else "node1"
            self._until(lambda: self._is_connecting(host))
        elif phase == "starting":
            self._until(lambda: self._has_said("fabric -> starting"))
        else:
            line = 20 if phase == "writing" else 0
            self._until(lambda: len(self.job.out.find(rf">:{line} ", 0.05, NUM_RANKS)) >= NUM_RANKS)
            if phase == "stopping":
                self._fail_a_rank()

    def _has_said(self, pattern):
        return bool(self.job.err.find(pattern, 0))

    def _is_connecting(self, host):
        return [p for p in self.stage.state.processes(host=host)
                if self.nodes.is_connecting(p) and p.pid not in self.stage.before.processes]

    def _fail_a_rank(self):
        failing = [p.pid for p in self._processes() if p.rank == cases.FAILING_RANK
                   and p.program == "metronome"]
        faults.send(failing, signal.SIGUSR1)
        self._until(lambda: not [p for p in self._processes() if p.rank == 2
                                 and p.program == "metronome"])

    def _until(self, is_true):
        end = time.monotonic() + 60
        while not is_true():
            if self.job.process.poll() is not None:
                raise PhaseMissed("hvdrun ended before the phase: " + self.job.report())
            if time.monotonic() > end:
                raise PhaseMissed("the phase did not come: " + self.job.report())
            time.sleep(0.002)

    # ---- the fault --------------------------------------------------------------------------

    def _strike(self):
        alive = []
        if self.case.phase in ("stopping", "running", "writing"):
            alive = self._processes()
        self._until(self.fault.is_possible)
        over = {"connecting": "fabric -> starting", "starting": r"\d ranks started"}
        if self._has_said(over.get(self.case.phase, "$^")):
            raise PhaseMissed("it was over: " + self.job.report())
        if self.case.phase in ("running", "writing") and self.job.process.poll() is not None \
                and "launcher" not in self.case.target:
            raise PhaseMissed("the job was over: " + self.job.report())
        if self.case.phase == "stopping" and not alive:
            raise PhaseMissed("all had been stopped: " + self.job.report())
        self.struck = time.monotonic()
        self._note_gone(alive, 0.0)
        self.fault.strike()

    def _watch(self):
        """Until hvdrun and the job's processes have gone; heals what is healed after a time."""
        heal_at = self._heal_time()
        limit = self.bounds.end + PATIENCE
        while True:
            now = time.monotonic() - self.struck
            left = self._processes()
            if self.figures.end is None and self.job.process.poll() is not None:
                self.figures.end = now
            self._note_gone(left, now)
            if heal_at is not None and now >= heal_at:
                self.fault.undo()
                heal_at = None
                self._judge_cut(time.monotonic() - self.struck)
            is_over = self.figures.end is not None and not left
            if is_over and heal_at is None:
                return
            if now > limit:
                self.problems.append(f"not over after {now:.0f} s; " +
                                     ("hvdrun still runs" if self.figures.end is None else
                                      "left: " + "; ".join(map(str, left))))
                return
            time.sleep(0.01)

    def _judge_cut(self, seconds):
        if self.case.fault == "short-cut" and seconds > self.timings.short_cut + CUT_SLACK:
            raise PhaseMissed(f"the cut has lasted {seconds:.2f} s, no third of the lease any more")

    def _note_gone(self, left, now):
        """The last time that they were seen; while a job starts, they may come after the fault."""
        if any(map(self._is_obedient, left)):
            self.figures.obedient = now
        if left:
            self.figures.deaf = now

    def _is_obedient(self, process):
        return process.program == "metronome" and process.rank % 2 == 0

    def _processes(self):
        """Of the job: ranks and grandchildren on all hosts that can act."""
        found = [p for p in self.stage.state.processes(mark=self.mark)
                 if p.host != harness.LAUNCHER]
        if (self.case.target, self.case.fault) == ("host", "stop") and self.fault.has_struck:
            found = [p for p in found if p.host != cases.VICTIM]
        return found

    def _heal_time(self):
        if self.case.fault == "short-cut":
            return self.timings.short_cut
        if self.case.fault in cases.BACK_IN_TIME:
            return cases.seconds_away(self.case, self.timings, self.seed)
        if self.case.fault == "long-cut" or (self.case.target, self.case.fault) == \
                ("launcher", "stop"):
            return self.timings.long_cut
        return None

    def _heal(self):
        """A stopped host goes on: its part of the job has lost its lease and goes."""
        if self.job.process.poll() is None:
            self.job.end()
        was_stopped = (self.case.target, self.case.fault) == ("host", "stop")
        self.fault.undo()
        if not was_stopped:
            return
        resumed = time.monotonic()
        limit = self.timings.grace + 2 * cases.OBEDIENT_TIME
        while left := self._processes():
            if time.monotonic() - resumed > limit:
                self.problems.append(f"{limit:g} s after the host went on there are: "
                                     + "; ".join(map(str, left)))
                return
            time.sleep(0.01)

    # ---- the verdict ------------------------------------------------------------------------

    def _judge(self):
        for stream in (self.job.out, self.job.err):
            stream.thread.join(5)
        self._judge_times()
        self._judge_outcome()
        if self.job.code == 0:
            self._judge_output()

    def _judge_times(self):
        for what in ("obedient", "deaf", "end"):
            bound, seconds = getattr(self.bounds, what), getattr(self.figures, what)
            if None not in (bound, seconds) and seconds > bound:
                self.problems.append(f"{what}: {seconds:.2f} s, bound {bound:g} s")
            if seconds is None and what in cases.figures_of(self.case):
                self.problems.append(f"{what}: nobody was seen")
        if self.case.is_survived:
            self.figures.obedient = self.figures.deaf = None

    def _judge_outcome(self):
        code, last = self.job.code, self.job.last_line
        if not any(code == wanted and re.search(pattern, last)
                   for wanted, pattern in self.case.outcomes):
            wanted = " or ".join(f"{c} with {p!r}" for c, p in self.case.outcomes)
            self.problems.append(f"code {code} with {last!r} instead of {wanted}")
        is_spawned = "fabric -> starting" in self.job.err.text
        if code == 125 and "was lost" in last and is_spawned and \
                not re.search(r"node\d: (verified clean|unverified)", self.job.err.text):
            self.problems.append("nothing is said about whether the lost node is clean")
        if code == 0 and self.case.fault == "restart" and \
                f"{cases.VICTIM}: connected again after" not in self.job.err.text:
            self.problems.append("the restart has broken no connection")

    def _judge_output(self):
        numbers = {}
        for rank, number in re.findall(rb"^\[(\d)\]<stdout>:(\d+) \.*$", bytes(self.job.out.data),
                                       re.MULTILINE):
            numbers.setdefault(int(rank), []).append(int(number))
        for rank in range(NUM_RANKS):
            if numbers.get(rank) != list(range(self.num_lines)):
                got = numbers.get(rank, [])
                self.problems.append(f"rank {rank}: {len(got)} lines, or in another order, "
                                     f"instead of {self.num_lines}")

    # ---- what is left -----------------------------------------------------------------------

    @property
    def killed_hosts(self):
        return {name for name, init in self.stage.bed.inits.items()
                if not os.path.exists(f"/proc/{init}/root/")}

    def _check_clean(self):
        """On no host a process, port, file or cgroup more than before. A host that was killed has
        nothing left but its cgroup, which must be empty."""
        end = time.monotonic() + self.nodes.SETTLE
        while left := self._what_is_left():
            if time.monotonic() > end:
                self.problems.append("left on the hosts: " + "; ".join(left))
                return
            time.sleep(0.05)

    def _what_is_left(self):
        left = self.nodes.jobs_left()
        now = self.stage.state.take()
        now.processes = {pid: p for pid, p in now.processes.items() if not self.nodes.is_own(p)}
        left += filter(self.nodes.is_left, now.more_than(self.stage.before))
        left += [f"{host}: {p}" for host in self.stage.bed.names
                 for p in self.stage.state.processes(host=host)
                 if f"grandchild-{self.mark}" in p.words]
        return left + [folder for folder in self._cgroups() if not self._is_of_the_dead(folder)]

    def _cgroups(self):
        job = re.search(r"job ([0-9a-f]{32})", self.job.err.text)
        return glob.glob(f"/sys/fs/cgroup/**/hvd-{job[1]}-n*", recursive=True) if job else []

    def _is_of_the_dead(self, folder):
        """A killed host's, which all hosts of a testbed see; removed here where it is empty."""
        host = layout.node_name(int(folder.rpartition("-n")[2]) + 1)
        return host in self.killed_hosts and lab.remove_cgroup(folder)


def try_case(stage, case, timings, seed):
    """The verdict of the case; a phase that was missed is tried again, on new hosts."""
    for attempt in range(TRIES):
        trial = Trial(stage.ready(), case, timings, seed)
        try:
            verdict = trial.run()
        except PhaseMissed as error:
            stage.discard()
            missed = str(error)
            continue
        if verdict.problems or trial.killed_hosts:
            stage.discard()
        return verdict
    return Verdict(case.name, case.kind, Figures(), cases.bounds_of(case, timings), None,
                   [f"the phase was missed {TRIES} times"], missed)
