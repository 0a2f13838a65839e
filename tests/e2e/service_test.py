"""`hvd-agent serve`: many jobs through one agent that stays, and none of them leaves a trace in it."""

import os
import signal
import time
import unittest

import freezer
import harness
import lab
from footprint_test import MB, counts_of, memory_of
from harness import LAUNCHER, scaled
from rendezvous_test import program

AGENT = os.path.join(os.path.dirname(harness.HVDRUN), "hvd-agent")
SOCKET = "/run/agent.sock"
AT_SERVICE = ["--transport", "command", "--agent-running", "--rsh", f"socat - UNIX-CONNECT:{SOCKET}"]
AT_ONCE = 4
LINES = 20000
ENDED = r"session \d+ of pid"


class Service(harness.EndToEnd):
    NODES = 1

    def setUp(self):
        super().setUp()
        self.num_sessions = 0
        self.start_service()

    def start_service(self):
        self.service = self.on_host(LAUNCHER, AGENT, "serve", "--listen", f"unix:{SOCKET}")
        self.addCleanup(self.stop_service)
        self.assertTrue(self.service.err.find("serving at", 10), self.service.err.text)

    def stop_service(self):
        if self.service.process.poll() is None:
            self.service.signal(signal.SIGTERM)
            self.assertEqual(self.service.wait(15), 0, self.service.report())

    def job(self, *words, num_sessions=1):
        self.num_sessions += num_sessions
        return self.start(*AT_SERVICE, *words)

    def wait_sessions(self):
        """Until the agent has told the end of each session so far."""
        ended = self.service.err.find(ENDED, 20, count=self.num_sessions)
        self.assertEqual(len(ended), self.num_sessions, self.service.err.text[-3000:])

    def wait_gone(self, limit):
        return self.seconds_until_gone(time.monotonic(), limit, lambda p: p.rank is not None)


class OneJob(Service):
    def test_job_runs_and_its_code_comes_back(self):
        run = self.job("-np", 2, "-v", "bash", "-c", "echo $RANK $PPID; sleep $RANK; exit $((RANK * 3))")
        run.wait(20)
        self.assert_code(run, 3)
        self.assertEqual(sorted(run.rank_lines()), [0, 1])
        self.wait_sessions()
        self.assertRegex(self.service.err.text, r"session 1 of pid \d+ \(uid 0\), job [0-9a-f]{32} "
                         "node 0: bye after ")

    def test_socket_without_an_agent_is_told_with_the_programs_words(self):
        self.stop_service()
        run = self.start(*AT_SERVICE, "-np", 1, "true")
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_last_line(run, "localhost: the connection ended before hvd-agent was ready",
                              "exit 1 of socat", "No such file")

    def test_program_that_does_not_end_with_its_connection_is_ended(self):
        run = self.start("-np", 1, "--transport", "command", "--agent-running", "--rsh",
                         f"sh -c 'socat - UNIX-CONNECT:{SOCKET}; sleep 600'", "true")
        run.wait(20)
        self.assert_code(run, 0)
        self.assert_within(run.seconds, 3, "end of a job whose program stays")

    @unittest.skipUnless(freezer.can_freeze(), "no cgroup v1 freezer on this machine that can be written")
    def test_agent_goes_on_and_tells_when_a_process_that_outlived_its_job_has_gone(self):
        run = self.job("-np", 1, "--grace", 0.2, "sleep", 600)
        pid = next(iter(lab.wait_until(self.workers, 10, "no rank")))
        thaw = freezer.freeze(self, pid)
        run.signal(signal.SIGINT)
        run.wait(20)
        self.assert_code(run, 130)
        self.assert_says(run, r"process \d+ \(uid 0, state D.*\) outlived SIGKILL: sleep\n")
        self.wait_sessions()
        self.assertNotIn("has gone", self.service.err.text)
        thaw()
        told = self.service.err.find(r"job [0-9a-f]{32} node 0: process \d+ \(sleep\), which outlived SIGKILL, has gone "
                                     r"after [\d.]+ s", 10)
        self.assertTrue(told, self.service.err.text)

    def test_service_that_is_told_to_stop_ends_its_jobs(self):
        run = self.job("-np", 2, "sleep", 600)
        self.wait_workers(2, run)
        self.service.signal(signal.SIGTERM)
        self.assert_within(self.wait_gone(5), 1, "workers of a stopped service")
        self.assertEqual(self.service.wait(15), 0, self.service.report())
        run.wait(20)
        self.assertNotEqual(run.code, 0, run.report())

    def test_service_that_is_killed_loses_its_jobs_and_leaves_none(self):
        run = self.job("-np", 2, "sleep", 600)
        self.wait_workers(2, run)
        self.service.signal(signal.SIGKILL)
        self.assert_within(self.wait_gone(5), 1, "workers of a killed service")
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_says(run, "localhost: unverified")
        self.start_service()  # takes the dead socket's name
        again = self.start(*AT_SERVICE, "-np", 1, "true")
        again.wait(20)
        self.assert_code(again, 0)

    def test_connection_that_is_lost_is_looked_at_again_through_the_same_agent(self):
        run = self.job("-np", 2, "--grace", 1, "bash", "-c", "trap '' TERM; sleep 600; sleep 600",
                       num_sessions=2)
        self.wait_workers(2, run)
        for process in self.state.processes(host=LAUNCHER):
            if process.program.startswith("socat"):
                os.kill(process.pid, signal.SIGKILL)
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_says(run, "localhost: verified clean")
        self.wait_sessions()
        self.assertRegex(self.service.err.text, "node 0: reaped after ")


class ManyJobs(Service):
    """CI runs 48 jobs, the labelled test 2,000 and one that prints 1 GB."""

    COUNTS = scaled((8, 24, 48), (8, 200, 1000, 2000))
    BYTES = scaled(40 * MB, 1000 * 1000 * 1000)

    def test_agent_stays_as_it_was(self):
        pid = self.service.pid
        self.tell_agent("at its start", pid)
        began = time.monotonic()
        figures = {}
        done = 0
        for count in self.COUNTS:
            while done < count:
                self.run_some(done)
                done += AT_ONCE
            self.wait_sessions()
            figures[count] = self.tell_agent(f"after {count} jobs, {self.num_sessions} sessions, "
                                             f"{time.monotonic() - began:.0f} s", pid)
        self.run_flood()
        after = self.tell_agent(f"after a job that printed {self.BYTES / 1e6:.0f} MB", pid)
        first, last = figures[self.COUNTS[1]], figures[self.COUNTS[-1]]  # all that is kept is there
        self.assert_flat(first, last, 2)
        self.assert_flat(last, after, 2)

    def run_some(self, first):
        jobs = [self.begin(first + i) for i in range(AT_ONCE)]
        for run, end in jobs:
            end(run)
            run.end()

    def begin(self, number):
        """A job, and what is asked of its end: some fail, some are killed, some take two sessions."""
        kind = number % 16
        if kind == 1:
            return self.job("-np", 2, program("rendezvous")), self.expect(0, 2)
        if kind == 3:
            return self.job("-np", 2, "bash", "-c", "exit 3"), self.expect(3)
        if kind == 6:
            return self.job("-np", 2, "-H", "a:1,b:1", "true", num_sessions=2), self.expect(0)
        if kind == 9:
            return self.job("-np", 2, "bash", "-c", "echo up; exec sleep 600"), self.kill_it
        if kind == 12:
            return self.job("-np", 2, "seq", LINES), self.expect(0, 2 * LINES)
        if kind == 15:
            return self.job("-np", 2, "no-such-program"), self.expect(127)
        return self.job("-np", 2, "true"), self.expect(0)

    def expect(self, code, num_lines=0):
        def check(run):
            run.wait(60)
            self.assert_code(run, code)
            self.assertEqual(run.out.data.count(b"\n"), num_lines, run.report())

        return check

    def kill_it(self, run):
        self.assertEqual(len(run.out.find("up", 30, count=2)), 2, run.report())
        run.signal(signal.SIGKILL)
        run.wait(10)
        self.assert_code(run, 137)

    def run_flood(self):
        """The output goes to wc: it is counted, not kept."""
        self.num_sessions += 1
        size = self.BYTES // 2
        words = " ".join(f"'{word}'" for word in AT_SERVICE)
        run = self.on_host(LAUNCHER, "bash", "-c", f"{harness.HVDRUN} {words} -np 2 bash -c "
                           f"\"head -c {size} /dev/zero | tr '\\\\0' x | fold -w 79\" | wc -l",
                           env=self.environment())
        self.assertEqual(run.wait(300), 0, run.report())
        # The last line of each rank has no end of its own; hvdrun gives it one.
        self.assertEqual(int(run.out.text), 2 * -(-size // 79), run.report())
        self.wait_sessions()

    def tell_agent(self, when, pid):
        figures = {"RSS": memory_of(pid) / MB, **counts_of(pid)}
        print(f"    {when}: " + ", ".join(f"{name} {value:.4g}" for name, value in figures.items()),
              flush=True)
        return figures

    def assert_flat(self, before, now, megabytes):
        """gRPC keeps a small pool of threads that breathes by a few."""
        self.assertEqual(now["descriptors"], before["descriptors"])
        self.assertLessEqual(now["threads"], before["threads"] + 3)
        self.assertLessEqual(now["RSS"], before["RSS"] + megabytes)


if __name__ == "__main__":
    harness.main()
