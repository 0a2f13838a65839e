"""A rank is killed, stopped or late in each phase of a job's life: every other rank goes within its
deadline, hvdrun ends with the code of the first cause and names rank and host, and nothing stays.

Jobs of four ranks under hvdrun on one test host, several at a time: most of the time they sleep. The
times that are asserted have seconds to spare for a busy machine; those that are printed are the ones to
look at. PHASE_WORKER is the program of the ranks.
"""

import concurrent.futures
import dataclasses
import os
import random
import re
import select
import signal
import statistics
import sys
import threading
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "e2e"))

import harness
import lab
from harness import scaled

WORKER = os.environ.get("PHASE_WORKER") or os.path.join(
    os.path.dirname(os.path.dirname(harness.HVDRUN)), "tests", "multiproc", "phase_worker")
RANKS = 4
DEADLINE = 2.0  # s, of the calls of the phase
GRACE = 1.0     # s, from SIGTERM to SIGKILL
SPARE = 6.0     # s, for a busy machine
JOBS_AT_ONCE = 4
REPEATS = scaled(5, 50)
FAULTS = ("kill", "stop", "delay")
KILLED, COLLECTIVE_DEADLINE, START_DEADLINE = 128 + signal.SIGKILL, 72, 124
SMALL, LARGE = 256, 1 << 20  # elements: one message, and a pipeline of 4 MiB


@dataclasses.dataclass
class Job:
    phase: str
    fault: str
    victim: int
    mark: str
    run: harness.Run = None
    pids: dict = None  # {rank: pid}
    fault_time: float = 0  # on the monotonic clock, as all here
    others_gone: float = 0  # s after the fault
    all_gone: float = 0

    @property
    def is_at_start(self):
        return self.phase in ("before_id", "in_init")

    @property
    def limit(self):
        """Of the others: a killed rank is noticed at once, one that is silent at the deadline."""
        return (0 if self.fault == "kill" else DEADLINE) + SPARE


def wait_for_ends(pidfds, limit):
    """When the last of these processes had ended; None where one still lives at the limit."""
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    left, end = set(pidfds), time.monotonic() + limit
    while left:
        ended = poll.poll(max(0, end - time.monotonic()) * 1000)
        if not ended:
            return None
        for pidfd, _ in ended:
            poll.unregister(pidfd)
            left.discard(pidfd)
    return time.monotonic()


class PhaseFaults(harness.EndToEnd):
    NODES = 0

    def test_before_the_id(self):
        self.go_wrong("before_id")

    def test_in_init(self):
        self.go_wrong("in_init")

    def test_in_enqueue(self):
        self.go_wrong("in_enqueue")

    def test_in_a_collective(self):
        self.go_wrong("in_collective")

    def test_in_finalize(self):
        self.go_wrong("in_finalize")

    def test_without_a_fault_these_jobs_end_well(self):
        job = self.ready_job("in_finalize", "none")
        self.let_go(job)
        self.assertEqual(job.run.wait(DEADLINE + SPARE), 0, job.run.report())

    # ---- one phase ---------------------------------------------------------------------------

    def go_wrong(self, phase):
        with concurrent.futures.ThreadPoolExecutor(JOBS_AT_ONCE) as pool:
            jobs = [pool.submit(lambda f=fault: self.see_end(self.ready_job(phase, f)))
                    for _ in range(REPEATS) for fault in FAULTS]
        failed = [job.exception() for job in jobs if job.exception()]
        done = [job.result() for job in jobs if not job.exception()]
        for fault in FAULTS:
            self.tell_times([job for job in done if job.fault == fault])
        if failed:
            self.fail(f"{len(failed)} of {len(jobs)} jobs: " + "\n\n".join(map(str, failed[:5])))

    def tell_times(self, jobs):
        if not jobs:
            return

        def figures(times):
            return f"median {statistics.median(times):.2f} s, worst {max(times):.2f} s"

        print(f"    {jobs[0].phase}, {jobs[0].fault}, {len(jobs)} jobs: the other ranks gone "
              f"{figures([job.others_gone for job in jobs])}; everything "
              f"{figures([job.all_gone for job in jobs])}", flush=True)

    # ---- one job -----------------------------------------------------------------------------

    def gate_of(self, job):
        return os.path.join(self.bed.folder, "shared", job.mark)

    def ready_job(self, phase, fault):
        """All its ranks stand at the gate."""
        job = Job(phase, fault, random.randrange(RANKS), str(uuid.uuid4()))
        count = LARGE if phase == "in_collective" else random.choice((SMALL, LARGE))
        job.run = self.start(
            "-np", RANKS, "-H", f"localhost:{RANKS}", "--grace", f"{GRACE:g}", WORKER, phase, fault,
            job.victim, int(DEADLINE * 1000), count, self.gate_of(job), env={"HVT": job.mark})
        self.assertEqual(len(job.run.out.find(r">:ready$", 30, RANKS)), RANKS, job.run.report())
        job.pids = {p.rank: p.pid for p in self.processes_of(job) if p.rank is not None}
        self.assertEqual(sorted(job.pids), list(range(RANKS)))
        return job

    def let_go(self, job):
        lab.write_text(self.gate_of(job), "")

    def processes_of(self, job):
        return self.state.processes(mark=job.mark)

    def see_end(self, job):
        others = [os.pidfd_open(pid) for rank, pid in job.pids.items() if rank != job.victim]
        try:
            self.let_go(job)
            if job.phase == "in_collective":
                self.strike_from_outside(job)
            else:
                job.fault_time = self.told_fault_time(job)
            ended = wait_for_ends(others, job.limit)
        finally:
            for pidfd in others:
                os.close(pidfd)
        self.assertIsNotNone(ended, f"ranks live {job.limit} s after {job}: {job.run.report()}")
        job.others_gone = ended - job.fault_time
        job.run.wait(GRACE + SPARE)
        self.assertEqual([str(p) for p in self.processes_of(job) if p.rank is not None], [],
                         job.run.report())
        lab.wait_until(lambda: not self.processes_of(job), harness.SETTLE, f"{job}: not all gone")
        job.all_gone = time.monotonic() - job.fault_time
        self.check(job)
        return job

    def told_fault_time(self, job):
        self.assertTrue(job.run.out.find(r">:fault at ", 30), job.run.report())
        return float(re.search(r">:fault at ([\d.]+)", job.run.out.text)[1])

    def strike_from_outside(self, job):
        """At a random moment of the all-reduces. A late rank sleeps until the deadline has passed."""
        self.assertEqual(len(job.run.out.find(r">:running$", 30, RANKS)), RANKS, job.run.report())
        time.sleep(random.uniform(0, 0.3))
        pid = job.pids[job.victim]
        job.fault_time = time.monotonic()
        os.kill(pid, signal.SIGKILL if job.fault == "kill" else signal.SIGSTOP)
        if job.fault == "delay":
            timer = threading.Timer(DEADLINE + GRACE / 2, self.wake, [os.pidfd_open(pid)])
            timer.start()
            self.addCleanup(timer.join)

    @staticmethod
    def wake(pidfd):
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGCONT)
        except ProcessLookupError:
            pass  # it has been ended with the job
        os.close(pidfd)

    def check(self, job):
        run, victim = job.run, job.victim
        if job.fault == "kill":
            self.assert_code(run, KILLED)
            self.assert_last_line(run, rf"rank {victim} \(localhost\b", "SIGKILL")
            return
        self.assert_code(run, START_DEADLINE if job.is_at_start else COLLECTIVE_DEADLINE)
        # What the first rank that gave up wrote, which hvdrun shows at the end, and where it was.
        self.assert_says(run, rf"\n  \| rank \d: .*\brank {victim}\b( on localhost)? .*\n")
        self.assert_last_line(run, r"rank \d \(localhost\b")


if __name__ == "__main__":
    harness.main()
