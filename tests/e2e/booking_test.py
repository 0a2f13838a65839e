"""GPUs that two jobs of agents that serve want: who gets them, who is refused, who waits. The GPUs are folders where
the driver has its own: nobody computes on them here."""

import json
import os
import signal

import harness
import on_tls
from harness import lab

NUM_GPUS = 4


class Booking(on_tls.OnTls):
    BUSY = "refuse"
    USERS = ("alice", "bob")

    @property
    def CONFIG(self):
        return ("clients: {alice: {run_as: root}, bob: {run_as: root, max_jobs: 2}}\n"
                f"busy_gpus: {self.BUSY}\n")

    def setUp(self):
        super().setUp()
        for host in self.hosts:
            self.must(host, "mount", "-t", "tmpfs", "none", "/proc/driver")
            self.addCleanup(self.must, host, "umount", "/proc/driver")
            self.must(host, "mkdir", "-p", *(f"/proc/driver/nvidia/gpus/0000:0{i}:00.0" for i in range(NUM_GPUS)))

    def until(self, name):
        """A command that runs until a file is there."""
        return ["sh", "-c", f"while [ ! -e {self.at(name)} ]; do sleep 0.02; done"]

    def holding(self, place, who="alice"):
        run = self.start_by_tls("-H", place, *self.until("free"), who=who)
        self.wait_workers(int(place.split(":")[1]), run)
        return run

    def beside(self, *words, who="alice"):
        """A whole run while another job holds GPUs."""
        run = self.start_by_tls(*words, who=who)
        run.wait(15)
        return run

    def free(self, *runs):
        lab.write_text(self.at("free"), "")
        for run in runs:
            run.wait(20)
            self.assert_code(run, 0)


class Refused(Booking):
    def test_a_second_job_on_the_same_gpus_is_refused_and_told_whose_they_are(self):
        first = self.holding("node1:2")
        second = self.beside("-H", "node1:1", "touch", self.at("started"), who="bob")
        self.assert_code(second, 125)
        self.assert_says(second, r"node1: its GPUs \(0\) are those of job [0-9a-f]{8} of alice \(0,1\)")
        self.assert_code(self.beside("-H", "node1:gpus=2-3", "true", who="bob"), 0)
        self.assert_code(self.beside("-H", "node2:4", "true", who="bob"), 0)
        self.free(first)

    def test_gpus_are_free_as_soon_as_hvdrun_has_ended(self):
        for _ in range(20):
            self.assert_code(self.by_tls("-H", "node1:4,node2:4", "true"), 0)

    def test_a_client_has_no_more_jobs_than_he_may(self):
        runs = [self.start_by_tls("-H", f"node1:gpus={i}", *self.until("free"), who="bob") for i in range(2)]
        lab.wait_until(lambda: len(self.workers()) >= 4, 10, "not both jobs run")  # each with its sleep
        third = self.beside("-H", "node1:gpus=2", "true", who="bob")
        self.assert_code(third, 125)
        self.assert_says(third, "node1: 2 jobs of bob, the most allowed, run here")
        self.assert_code(self.beside("-H", "node1:gpus=2", "true"), 0)
        self.free(*runs)

    def test_as_whom_a_job_runs_is_the_policys_to_say(self):
        run = self.by_tls("-H", "daemon@node1:1", "true")
        self.assert_code(run, 125)
        self.assert_says(run, "node1: alice may not run jobs as user daemon")


class Waiting(Booking):
    BUSY = "wait"

    def test_jobs_wait_for_their_gpus_and_come_in_turn(self):
        first = self.holding("node1:4")
        waiting = []
        for i in range(3):
            run = self.start_by_tls("-H", "node1:4", "sh", "-c", f"[ $RANK != 0 ] || echo {i} >> {self.at('order')}",
                                    who="bob" if i == 1 else "alice")
            self.assertTrue(run.err.find(r"node1: waits: its GPUs \(0,1,2,3\) are those of job", 10), run.report())
            waiting.append(run)
        self.assertFalse(os.path.exists(self.at("order")))
        self.free(first, *waiting)
        self.assertEqual(lab.read_text(self.at("order")).split(), ["0", "1", "2"])

    def waiting(self, place, *words, who="bob", why="waits: "):
        run = self.start_by_tls("-H", place, *words, who=who)
        self.assertTrue(run.err.find(why, 10), run.report())
        return run

    def jobs(self):
        asked = self.on_host("node1", on_tls.HVDCTL, "jobs", "--json")
        self.assertEqual(asked.wait(10), 0, asked.report())
        return json.loads(asked.out.text)["jobs"]

    def test_a_job_that_waits_can_be_killed(self):
        first = self.holding("node1:4")
        second = self.waiting("node1:4", "touch", self.at("started"))
        [job] = [job for job in self.jobs() if job["client"] == "bob"]
        killed = self.on_host("node1", on_tls.HVDCTL, "kill", job["job"])
        self.assertEqual(killed.wait(10), 0, killed.report())
        self.assertIn("stopped", killed.out.text)
        second.wait(10)
        self.assert_code(second, 125)
        self.assert_says(second, r"node1: the job was killed by .* \(hvdctl kill\)")
        self.free(first)
        self.assertFalse(os.path.exists(self.at("started")))

    def test_who_is_no_client_any_more_waits_no_longer(self):
        first = self.holding("node1:4")
        second = self.waiting("node1:4", "touch", self.at("started"))
        config = lab.read_text(self.at("node1.yaml"))
        lab.write_text(self.at("node1.yaml"), config.replace("bob: {run_as: root, max_jobs: 2}", "carol: {}"))
        self.agents["node1"].signal(signal.SIGHUP)
        self.assertTrue(self.agents["node1"].err.find("read .*node1.yaml again", 5))
        self.free(first)
        second.wait(10)
        self.assert_code(second, 125)
        self.assert_says(second, "node1: user bob is none of the clients")
        self.assertFalse(os.path.exists(self.at("started")))

    def test_one_who_waits_for_his_own_jobs_keeps_nobody_from_free_gpus(self):
        his = [self.start_by_tls("-H", f"node1:gpus={i}", *self.until("free"), who="bob") for i in (2, 3)]
        lab.wait_until(lambda: len(self.workers()) >= 4, 10, "not both jobs run")  # the most he may have
        third = self.waiting("node1:gpus=0", "true", why="2 jobs of bob, the most allowed")
        self.assert_code(self.beside("-H", "node1:gpus=0", "true"), 0)
        self.free(*his, third)

    def test_a_waiter_and_a_holder_who_leave_at_once_leave_nothing(self):
        for _ in range(harness.scaled(3, 20)):
            first = self.holding("node1:4")
            second = self.waiting("node1:4", "true")
            for run in second, first:
                run.signal(signal.SIGINT)
            for run in second, first:
                run.wait(10)
                self.assert_code(run, 130)
            lab.wait_until(lambda: not self.jobs(), 2, "a job of one who has gone")

    def test_who_gives_up_waiting_leaves_nothing(self):
        first = self.holding("node1:4")
        second = self.beside("--start-timeout", 1, "-H", "node1:1,node2:1", "true", who="bob")
        self.assert_code(second, 124)
        self.assert_says(second, "node1: waits: its GPUs")
        self.assert_last_line(second, "node1: still waiting: its GPUs|node1: still waiting for its turn after 1 s")
        self.assert_code(self.beside("-H", "node2:4", "true"), 0)
        self.free(first)

    def test_two_jobs_over_the_same_nodes_never_wait_for_each_other(self):
        for _ in range(harness.scaled(3, 20)):
            runs = [self.start_by_tls("-H", places, "sleep", 0.1, who=who)
                    for who, places in (("alice", "node1:4,node2:4"), ("bob", "node2:4,node1:4"))]
            for run in runs:
                run.wait(20)
                self.assert_code(run, 0)


if __name__ == "__main__":
    harness.main()
