"""--max-restarts: the whole job again, elsewhere where a host is bad, and never beside what it left."""

import json
import os
import signal
import time

import harness
import lab

TWO = "node1:2,node2:2"


class Restarts(harness.EndToEnd):
    NODES = 3

    def test_a_job_that_fails_twice_ends_well_the_third_time(self):
        mark = os.path.join(self.bed.folder, "shared", "attempt")
        run = self.hvdrun("-np", 4, "-H", TWO, "--max-restarts", 3, "bash", "-c",
                          "n=$TORCHELASTIC_RESTART_COUNT; echo attempt $n of $TORCHELASTIC_MAX_RESTARTS; "
                          f"touch {mark}.$n.$RANK; [ $n -lt 2 ] || exit 0; [ $RANK = 3 ] || exec sleep 600; "
                          f"until [ $(ls {mark}.$n.* | wc -l) = 4 ]; do sleep .02; done; exit 5")
        self.assert_code(run, 0)
        for attempt in range(3):
            self.assertEqual(run.out.text.count(f"attempt {attempt} of 3"), 4, run.report())
        self.assertRegex(run.err.text, r"restart 1 of 3\n.*rank 3 \(node2, pid \d+\) exited with code 5")
        self.assertIn("restart 2 of 3", run.err.text)

    def test_the_last_failure_is_the_last_line_and_the_code(self):
        report = os.path.join(self.bed.folder, "shared", "restarts.json")
        run = self.hvdrun("-np", 2, "-H", "node1:2", "--max-restarts", 1, "--report", report, "bash", "-c",
                          "[ $RANK = 1 ] && exit $((6 + TORCHELASTIC_RESTART_COUNT)); exec sleep 600")
        self.assert_code(run, 7)
        self.assert_last_line(run, r"rank 1\b", "code 7")
        with open(report) as file:
            told = json.load(file)["restarts"]
        self.assertEqual((told["restart_count"], told["max_restarts"]), (1, 1))
        self.assertRegex(told["earlier_attempts"][0], r"rank 1 \(node1, pid \d+\) exited with code 6")

    def test_a_host_that_failed_twice_gives_its_place_to_a_spare(self):
        run = self.hvdrun("-np", 4, "-H", TWO, "--max-restarts", 3, "--spare", "node3", "bash", "-c",
                          "echo rank $RANK on $HOROVOD_HOSTNAME; [ $HOROVOD_HOSTNAME = node1 ] && "
                          "[ $LOCAL_RANK = 1 ] && exit 5; [ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0; "
                          "exec sleep 600")
        self.assert_code(run, 0)
        self.assertIn("restart 2 of 3 without node1", run.err.text)
        self.assertIn("rank 1 on node3", run.out.text)

    def test_a_lost_host_that_cannot_be_verified_is_not_used_again(self):
        run = self.start("-np", 4, "-H", TWO, "--max-restarts", 1, "--lease", 2, "--heartbeat-ms", 100, "--grace", 1,
                         "bash", "-c",
                         "echo up $RANK; exec sleep 600")
        run.out.find(r"up 3", 15)
        self.settle = 30
        self.bed.set_link("node2", False)
        self.addCleanup(self.bed.set_link, "node2", True)
        run.wait(30)
        self.assert_code(run, 125)
        self.assertRegex(run.err.text, r"no restart: node2 may still run ranks .*--spare")

    def test_what_ends_a_job_ends_it_in_the_pause_too(self):
        """Between two attempts nothing runs, and still all is told."""
        for what, ends, code, reason, sentence in (
                ("SIGINT", lambda run: run.signal(signal.SIGINT), 130, "user_signal", "SIGINT"),
                ("time limit", lambda run: None, 124, "timeout", "--timeout 3 s")):
            with self.subTest(what):
                report = os.path.join(self.bed.folder, "shared", "pause.json")
                run = self.start("-np", 2, "-H", "node1:2", "--max-restarts", 5, "--timeout", 3, "--report", report,
                                 "bash", "-c", "exit 3")
                run.err.find(r"restart 2 of 5", 15)
                time.sleep(0.5)  # into the pause of 2 s
                ends(run)
                run.wait(15)
                self.assert_code(run, code)
                self.assertRegex(run.last_line, f"because .*{sentence}")
                with open(report) as file:
                    told = json.load(file)
                self.assertEqual((told["exit_code"], told["reason"]), (code, reason))
                self.assertEqual(told["restarts"]["restart_count"], 2)

    def test_a_signal_while_a_failed_attempt_is_being_stopped_means_the_next_one_too(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                run = self.start("-np", 2, "-H", "node1:2", "--grace", 2, "--max-restarts", 2, "bash", "-c",
                                 "trap '' TERM; echo up; [ $RANK = 1 ] && { sleep .2; exit 5; }; sleep 600; sleep 600")
                run.out.find("up", 15, 2)
                lab.wait_until(lambda: 1 not in self.workers().values(), 10, "rank 1 lives")
                time.sleep(0.3)
                run.signal(number)
                run.wait(15)
                self.assert_code(run, 5)
                self.assertNotIn("restart", run.err.text)

    def test_a_fixed_port_is_there_again_for_the_next_attempt(self):
        run = self.hvdrun("-H", "node1:1,node2:1", "--max-restarts", 1, "--master-port", 50030, "bash", "-c",
                          "exit $((4 - 4 * TORCHELASTIC_RESTART_COUNT))")
        self.assert_code(run, 0)

    def test_a_spare_takes_the_place_of_a_host_that_cannot_be_started(self):
        run = self.hvdrun("-H", "node1:1,node2:1:port=2299", "--spare", "node3:1", "--max-restarts", 1, "hostname")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["node1"], 1: ["node3"]})
        self.assert_says(run, "restart 1 of 1 without node2", "port 2299 of node2 refuses connections")

    def test_a_spare_that_is_too_small_is_passed_over(self):
        run = self.hvdrun("-H", TWO, "--spare", "node3:1", "--max-restarts", 2, "bash", "-c",
                          "[ $RANK = 0 ] || exec sleep 60; echo on $HOROVOD_HOSTNAME; exit 5")
        self.assert_code(run, 5)
        self.assert_last_line(run, r"rank 0 \(node1, pid \d+\) exited with code 5")
        self.assertEqual(run.out.text.count("on node1"), 3, run.report())
        self.assertNotIn("node3", run.out.text)

    def test_who_was_told_of_the_time_limit_is_not_started_again(self):
        run = self.hvdrun("-np", 2, "-H", "node1:2", "--max-restarts", 3, "--timeout", 20, "--timeout-signal", "USR1@18",
                          "sleep", 60)
        self.assert_code(run, 138)
        self.assertNotIn("restart 1", run.err.text)

    def test_a_wish_is_no_failure(self):
        run = self.start("-np", 2, "-H", "node1:2", "--max-restarts", 3, "bash", "-c",
                         "echo up $RANK; exec sleep 600")
        run.out.find(r"up \d", 15, 2)
        run.signal(signal.SIGINT)
        run.wait(20)
        self.assertEqual(run.out.text.count("up 0"), 1, run.report())
        self.assertNotIn("restart", run.err.text)


if __name__ == "__main__":
    harness.main()
