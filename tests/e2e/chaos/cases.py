"""The table of the chaos suite: which fault hits whom in which phase, and what must come of it.

Pure: names, codes, patterns and bounds; nothing is touched here. The job has two ranks on each of
node1..node4: the even ones are obedient, the odd ones deaf to polite signals.

Over tls a node has an agent that serves, the `front`, beside the job's own; a connection that ends
says nothing there, and the lease decides.
"""

import dataclasses
import random

PHASES = ("connecting", "starting", "running", "stopping", "writing")
SURVIVED = ("short-cut", "slow", "restart", "pause")
BACK_IN_TIME = ("restart", "pause")  # killed and started again, stopped and going on, within half a lease
VICTIM = "node2"  # the host that is hit, and the host of the agent, shim or worker that is
SECOND = "node3"  # the other host of a pair
FAILING_RANK = 4  # on node3; its failure begins the phase "stopping"

# How hvdrun or a node comes to know: an exit or end of stream is known at once, silence by a limit.
AT_ONCE, LEASE, STALL, START, NEVER = "at once", "lease", "stall limit", "start limit", "never"


@dataclasses.dataclass(frozen=True)
class Timings:
    """Seconds."""

    name: str
    lease: float
    grace: float
    short_cut: float  # a third of the lease
    long_cut: float
    stall: float
    start: float  # --start-timeout where somebody falls silent before the start is over

    def in_words(self):
        return (f"`--lease {self.lease:g} --grace {self.grace:g}`, cuts of {self.short_cut:g} s "
                f"and {self.long_cut:g} s")

    def known_after(self, how):
        return {AT_ONCE: 0, LEASE: self.lease, STALL: self.stall, START: self.start}[how]


SCALED = Timings("scaled", lease=6, grace=1, short_cut=2, long_cut=12, stall=4, start=10)
DEFAULT = Timings("default", lease=15, grace=10, short_cut=5, long_cut=30, stall=10, start=25)

OBEDIENT_TIME = 1.0
VERIFY_TIME = 5.0
# Evidence is collected before a job that hangs is stopped; the limit is looked at eight times.
STALL_EXTRA = 1.5
SLOW_ROUNDS = 5.0  # a few round trips of 0.4 s, some of them lost
REDIAL = 1.5  # the longest pause between two attempts of hvdrun's to come to a front, and the attempt
JOB_TIME = 4.0  # what a job that survives works beyond the cut


@dataclasses.dataclass(frozen=True)
class Case:
    target: str
    fault: str
    phase: str
    known: str
    outcomes: tuple  # of (exit code, pattern of the last line; "" for none)

    @property
    def name(self):
        return f"{self.target}/{self.fault}/{self.phase}"

    @property
    def kind(self):
        """What the figures are collected by."""
        return "pairs" if "+" in self.target else f"{self.target}, {self.fault}"

    @property
    def is_survived(self):
        return self.outcomes[0] == (0, "")

    @property
    def hits_network(self):
        return self.fault in ("short-cut", "long-cut", "slow")


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Seconds from the fault; None where nothing has to go."""

    obedient: object
    deaf: object
    end: float


def bounds_of(case, timings):
    if case.is_survived:
        return Bounds(None, None, _end_of_survivor(case, timings))
    known = timings.known_after(case.known) + _extra(case, timings)
    deaf = known + timings.grace + OBEDIENT_TIME
    # A launcher that was stopped can say nothing before it goes on.
    end = max(deaf, timings.long_cut) if (case.target, case.fault) == ("launcher", "stop") else deaf
    return Bounds(known + OBEDIENT_TIME, deaf, end + VERIFY_TIME)


def figures_of(case):
    """Those that there must be: of whoever lives when the fault strikes."""
    if case.is_survived:
        return ("end",)
    return {"running": ("obedient", "deaf", "end"), "writing": ("obedient", "deaf", "end"),
            "stopping": ("deaf", "end")}.get(case.phase, ("end",))


def formula_of(case):
    """The bound of hvdrun's end in words."""
    if case.is_survived:
        return "job's own time + recovery"
    return f"{case.known} + grace + 6 s"


def _extra(case, timings):
    if case.known == STALL:
        return STALL_EXTRA
    if case.fault == "short-cut":
        return 2.5 * timings.short_cut  # retransmission doubles: a cut lasts up to that long
    if case.fault in BACK_IN_TIME:
        return timings.lease / 2 + REDIAL
    return SLOW_ROUNDS if case.fault == "slow" else 0


def job_seconds(case, timings):
    """How long the ranks work; without end where the fault must end them."""
    away = timings.lease / 2 if case.fault in BACK_IN_TIME else timings.short_cut
    return away + JOB_TIME if case.is_survived else 600


def seconds_away(case, timings, seed):
    """Until a front is back, below half of the lease."""
    return random.Random(f"{seed} {case.name}").uniform(0, timings.lease / 2)


def start_limit(case, timings):
    """Tight where silence before the end of the start must be noticed, as users have it else."""
    is_early = case.phase in ("connecting", "starting")
    return timings.start if is_early and not case.hits_network or case.fault == "long-cut" else 120


def _end_of_survivor(case, timings):
    start = 2 * timings.start if case.phase in ("connecting", "starting") else 0
    recovery = 2 * SLOW_ROUNDS if case.fault == "slow" else _extra(case, timings)
    return start + job_seconds(case, timings) + recovery + VERIFY_TIME


# ---- what must come of it ---------------------------------------------------------------------

KILLED = (137, "")  # hvdrun itself was killed: it says nothing any more
ALL_WELL = (0, "")
RANK_FAILED = (3, rf"rank {FAILING_RANK} \({SECOND}, pid \d+\) exited with code 3")


def _lost(host, how=""):
    return (125, rf"node {host} was lost: {how}")


def _fell_silent(host):
    return _lost(host, "no heartbeat for ")


def _not_started(host):
    return (125, rf"could not be started: .*{host}")


def _not_started_in_time(host):
    return (124, rf"could not be started: .*{host}: no answer in|within --start-timeout")


def _outcomes(target, fault, phase):
    if (target, fault) == ("launcher", "kill"):
        return (KILLED,)
    if phase == "stopping":
        return (RANK_FAILED,)
    if fault in SURVIVED:
        # Until a front has said that a job's agent is up, there is no job that could be taken up again.
        return (ALL_WELL, _not_started(VICTIM)) if (target, phase) == ("front", "connecting") else (ALL_WELL,)
    if target == "worker":
        how = r"\(node2, pid \d+\) was killed by SIGKILL" if fault == "kill" else ".*node2"
        return ((137 if fault == "kill" else 124, rf"rank 2 {how}"),)
    host = r"node\d" if target == "launcher" else VICTIM
    is_silent = fault in ("stop", "long-cut") and target != "shim"
    lost = (_fell_silent(host) if is_silent else _lost(host), _not_started(host))
    return lost[:1] if phase in ("running", "writing") else (*lost, _not_started_in_time(host))


def _known(target, fault, phase, transport):
    is_launcher_killed = (target, fault) == ("launcher", "kill")
    if fault in SURVIVED:
        return AT_ONCE if phase == "stopping" else NEVER
    if phase == "connecting" and not is_launcher_killed:
        return START
    if target == "front" or is_launcher_killed and transport == "tls":
        return LEASE
    if fault == "kill":
        # The last packets of a host that dies may not come through.
        return LEASE if target == "host" else AT_ONCE
    if target == "worker":
        return AT_ONCE if phase == "stopping" else STALL
    return LEASE


def _single(target, fault, phase, transport):
    return Case(target, fault, phase, _known(target, fault, phase, transport),
                _outcomes(target, fault, phase))


def _pairs(transport):
    def pair(target, fault, known, *outcomes):
        return Case(target, fault, "running", known, outcomes)

    killed_rank = r"rank [24] \(node[23], pid \d+\) was killed by SIGKILL"
    launcher_killed = LEASE if transport == "tls" else AT_ONCE
    pairs = [
        pair("agent+shim", "kill", AT_ONCE, _lost(VICTIM)),
        pair("host+host", "long-cut", LEASE, _fell_silent("node[23]")),
        pair("launcher+host", "kill", launcher_killed, KILLED),
        pair("worker+shim", "kill", AT_ONCE, _lost(VICTIM), (137, killed_rank)),
        pair("agent+launcher", "kill", launcher_killed, KILLED),
        pair("worker+worker", "kill", AT_ONCE, (137, killed_rank)),
    ]
    if transport == "tls":  # a front that is back within half of the lease, and what was killed with it
        pairs += [
            pair("front+front", "restart", NEVER, ALL_WELL),
            pair("front+agent", "restart", AT_ONCE, _lost(VICTIM)),
            pair("front+worker", "restart", AT_ONCE, (137, killed_rank)),
            pair("front+launcher", "restart", LEASE, KILLED),
        ]
    return pairs


def all_cases(transport="ssh"):
    """74 single faults and six pairs; over tls 20 and four more."""
    groups = [(("launcher", "host"), ("kill", "stop", "short-cut", "long-cut", "slow"), PHASES),
              # These do not live yet while the nodes are being connected.
              (("agent", "shim", "worker"), ("kill", "stop"), PHASES[1:])]
    if transport == "tls":
        groups.append((("front",), ("kill", "stop", *BACK_IN_TIME), PHASES))
    singles = [_single(target, fault, phase, transport) for targets, faults, phases in groups
               for target in targets for fault in faults for phase in phases]
    return singles + _pairs(transport)


def draw(cases, seed, count=None):
    """In random order, the first `count` of them."""
    drawn = sorted(cases, key=lambda case: case.name)
    random.Random(seed).shuffle(drawn)
    return drawn[:count]
