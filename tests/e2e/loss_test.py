"""Something between hvdrun and the workers dies or is cut off: all goes, the node is named."""

import os
import random
import signal
import time

import harness
import lab
from harness import scaled

FOUR = "node1:2,node2:2"
OBEDIENT = ["bash", "-c", "echo up; exec sleep 600"]
DEAF = ["bash", "-c", "trap '' TERM INT HUP; echo up; while :; do sleep 1; done"]
COUNT_LINES = ["bash", "-c", "echo up; for i in $(seq 1 {n}); do echo $i; sleep 0.05; done"]


def counting(seconds):
    return [word.replace("{n}", str(int(seconds / 0.05))) for word in COUNT_LINES]


class Loss(harness.EndToEnd):
    NODES = 2

    def start_up(self, *arguments, worker=OBEDIENT):
        run = self.start("-np", 4, "-H", FOUR, *arguments, *worker)
        self.assertEqual(len(run.out.find("up", 15, count=4)), 4, run.report())
        return run

    def kill(self, pid):
        """Returns the time of the kill."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended by itself in the meantime
        return time.monotonic()

    def only(self, pids, what):
        self.assertEqual(len(pids), 1, f"not one {what}: {pids}")
        return pids[0]

    # ---- a program is killed ----------------------------------------------------------------

    def test_workers_go_within_a_second_of_the_launcher(self):
        run = self.start_up()
        killed = self.kill(run.pid)
        self.assert_within(self.seconds_until_gone(killed, 10), 1, "kill -9 of hvdrun, obedient")

    def test_deaf_workers_go_within_the_grace_after_the_launcher(self):
        run = self.start_up("--grace", "1", worker=DEAF)
        killed = self.kill(run.pid)
        gone = self.seconds_until_gone(killed, 10)
        self.assertGreater(gone, 0.9)
        self.assert_within(gone, 1 + 1, "kill -9 of hvdrun, deaf, grace 1 s")

    def test_killed_agent_is_125_and_names_the_node(self):
        run = self.start_up()
        killed = self.kill(self.only(self.agents("node2"), "agent on node2"))
        gone = self.seconds_until_gone(killed, 10, lambda p: p.rank in (2, 3))
        self.assert_within(gone, 1, "kill -9 of an agent: its obedient workers")
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node2")
        self.assert_no_workers(run)
        self.assert_within(time.monotonic() - killed, 5, "kill -9 of an agent: to the end")

    def test_deaf_workers_of_a_killed_agent_go_too(self):
        run = self.start_up("--grace", "1", worker=DEAF)
        killed = self.kill(self.only(self.agents("node1"), "agent on node1"))
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node1")
        self.assert_within(self.seconds_until_gone(killed, 10), 1 + 5, "deaf, grace 1 s")

    def test_killed_shim_is_125_and_leaves_nothing(self):
        run = self.start_up("--grace", "1", worker=DEAF)
        killed = self.kill(self.only(self.shims("node2"), "shim on node2"))
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node2")
        self.assert_within(self.seconds_until_gone(killed, 10), 1 + 5, "kill -9 of a shim")

    def test_agent_killed_during_the_stop_does_not_hide_the_first_failure(self):
        failing = ["bash", "-c", "trap '' TERM INT HUP; echo up; [ $RANK = 3 ] && sleep 0.3 && exit 3; "
                   "while :; do sleep 1; done"]
        run = self.start_up("--grace", "1.5", worker=failing)
        lab.wait_until(lambda: 3 not in self.workers().values(), 10, "rank 3 lives")
        time.sleep(0.2)
        killed = self.kill(self.only(self.agents("node1"), "agent on node1"))
        run.wait(20)
        self.assert_code(run, 3)
        self.assert_last_line(run, r"rank 3 \(node2, pid \d+\) exited with code 3")
        self.assert_says(run, "node1: verified clean")
        self.assert_within(self.seconds_until_gone(killed, 10), 1.5 + 1 + 5, "deaf, grace 1.5 s")

    def test_new_job_starts_at_once_on_the_hosts_of_a_killed_launcher(self):
        run = self.start_up("--grace", "2", worker=DEAF)
        killed = self.kill(run.pid)
        again = self.start("-np", 4, "-H", FOUR, "hostname")
        self.assertEqual(again.wait(20), 0, again.report())
        self.assertNotIn("warning", again.err.text)
        self.assertEqual(sorted(again.rank_lines()), [0, 1, 2, 3])
        self.assert_within(self.seconds_until_gone(killed, 10), 2 + 1, "the killed one's, deaf, grace 2 s")

    def test_agent_killed_at_any_moment_of_the_start_leaves_no_orphan(self):
        random.seed(7)
        for _ in range(scaled(12, 1000)):
            run = self.start("-np", 4, "-H", "node1:4", "sleep", 600)
            agents = lab.wait_until(lambda: self.agents("node1"), 10, "no agent on node1")
            time.sleep(random.uniform(0, 0.06))
            # For an instant its shim is a copy of it, with a higher number: that one must live.
            killed = self.kill(min(agents))
            run.wait(20)
            self.assert_code(run, 125)
            self.seconds_until_gone(killed, 5)
            self.assert_no_workers(run)

    # ---- the network ------------------------------------------------------------------------

    def test_link_cut_for_longer_than_the_lease_ends_the_job_on_both_sides(self):
        self.settle = 30
        run = self.start_up("--lease", "2", "--heartbeat-ms", "100", "--grace", "1")
        self.bed.set_link("node2", False)
        self.addCleanup(self.bed.set_link, "node2", True)
        cut = time.monotonic()
        run.wait(30)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node2")
        self.assert_within(time.monotonic() - cut, 2 + 1 + 5, "cut to the end, lease 2 s")
        gone = self.seconds_until_gone(cut, 15)
        self.assert_within(gone, 2 + 1 + 5, "cut host has cleaned itself, lease 2 s")

    def test_black_hole_for_longer_than_the_lease_ends_the_job_on_both_sides(self):
        self.settle = 30
        run = self.start_up("--lease", "2", "--heartbeat-ms", "100", "--grace", "1", worker=DEAF)
        self.bed.set_black_hole("node2", True)
        self.addCleanup(self.bed.set_black_hole, "node2", False)
        cut = time.monotonic()
        run.wait(30)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node2")
        self.assert_within(self.seconds_until_gone(cut, 15), 2 + 1 + 5,
                           "deaf, lease 2 s, grace 1 s")

    def test_cut_of_a_third_of_the_lease_loses_nothing(self):
        lease, cut = scaled((6, 2), (15, 5))
        run = self.start_up("--lease", lease, "--heartbeat-ms", "200", worker=counting(cut + 3))
        self.bed.set_black_hole("node2", True)
        time.sleep(cut)
        self.bed.set_black_hole("node2", False)
        self.assertEqual(run.wait(lease + cut + 20), 0, run.report())
        expected = ["up"] + [str(i) for i in range(1, int((cut + 3) / 0.05) + 1)]
        for rank, lines in run.rank_lines().items():
            self.assertEqual(lines, expected, f"rank {rank}")
        self.assertEqual(len(run.rank_lines()), 4)

    def test_rank_fails_while_a_host_is_not_reached(self):
        self.settle = 30
        failing = ["bash", "-c", "echo up; [ $RANK = 0 ] && sleep 1 && exit 3; exec sleep 600"]
        run = self.start_up("--lease", "3", "--heartbeat-ms", "100", "--grace", "1", worker=failing)
        self.bed.set_black_hole("node2", True)
        self.addCleanup(self.bed.set_black_hole, "node2", False)
        cut = time.monotonic()
        run.wait(30)
        self.assert_code(run, 3)
        self.assert_says(run, "node2")
        self.assert_within(time.monotonic() - cut, 1 + 1 + 10, "to the end")
        self.assert_within(self.seconds_until_gone(cut, 15), 3 + 1 + 5, "node2 cleans itself")

    def test_stopped_session_of_sshd_does_not_hold_the_end(self):
        run = self.start_up("--lease", "3", "--heartbeat-ms", "100", "--grace", "1")
        sessions = [p.pid for p in self.state.processes(host="node2")
                    if p.pid not in self.before.processes and p.program == "sshd"]
        self.assertTrue(sessions)
        for pid in sessions:
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(self.resume, pid)
        os.kill(self.wait_workers(4, run)[0], signal.SIGKILL)
        failed = time.monotonic()
        run.wait(30)
        self.assert_code(run, 137)
        self.assert_within(time.monotonic() - failed, 1 + 10, "to the end")
        self.assert_within(self.seconds_until_gone(failed, 15), 3 + 1 + 5, "node2 cleans itself")

    def resume(self, pid):
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def test_slow_and_lossy_link_loses_no_line(self):
        self.bed.set_delay("node2", 20, 2)
        self.addCleanup(self.bed.set_delay, "node2", 0)
        run = self.hvdrun("-np", 4, "-H", FOUR, "seq", "1", "5000", limit=60)
        self.assert_code(run, 0)
        for rank in range(4):
            self.assertEqual(run.rank_lines()[rank], [str(i) for i in range(1, 5001)])
        self.tell("start and 5,000 lines at 20 ms and 2 % loss", run.seconds)

    def test_quiet_connection_outlives_the_keep_alive_of_sshd(self):
        self.bed.set_sshd("node2", ["ClientAliveInterval 1", "ClientAliveCountMax 2"])
        self.addCleanup(self.bed.set_sshd, "node2", [])
        seconds = scaled(5, 30)
        run = self.hvdrun("-np", 4, "-H", FOUR, "sleep", seconds, limit=seconds + 15)
        self.assert_code(run, 0)

    # ---- the launcher stands still ----------------------------------------------------------

    def test_launcher_that_stands_still_for_the_lease_loses_its_job(self):
        run = self.start_up("--lease", "2", "--heartbeat-ms", "100", "--grace", "1")
        pid = run.pid
        os.kill(pid, signal.SIGSTOP)
        stopped = time.monotonic()
        gone = self.seconds_until_gone(stopped, 15, lambda p: p.rank is not None)
        self.assertGreater(gone, 1.0)
        os.kill(pid, signal.SIGCONT)
        self.resume(run.process.pid)
        self.assert_within(gone, 2 + 1 + 5, "workers gone, lease 2 s")
        run.wait(20)
        self.assertNotEqual(run.code, 0, run.report())

    def test_launcher_that_stands_still_for_a_moment_loses_nothing(self):
        run = self.start_up("--lease", "6", "--heartbeat-ms", "100", worker=counting(4))
        pid = run.pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(pid, signal.SIGCONT)
        self.resume(run.process.pid)
        self.assertEqual(run.wait(20), 0, run.report())
        for lines in run.rank_lines().values():
            self.assertEqual(len(lines), 81)


class LostHost(harness.EndToEnd):
    NODES = 3

    def test_host_that_dies_is_named(self):
        run = self.start("-np", 3, "-H", "node1:1,node2:1,node3:1", "--lease", "2",
                         "--heartbeat-ms", "100", *OBEDIENT)
        self.assertEqual(len(run.out.find("up", 15, count=3)), 3, run.report())
        os.kill(self.bed.inits["node3"], signal.SIGKILL)
        run.wait(30)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node3")


if __name__ == "__main__":
    harness.main()
