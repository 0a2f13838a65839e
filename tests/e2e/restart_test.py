"""--max-restarts: the whole job again, elsewhere where a host is bad, and never beside what it left."""

import json
import os
import signal

import harness

TWO = "node1:2,node2:2"


class Restarts(harness.EndToEnd):
    NODES = 3

    def test_a_job_that_fails_twice_ends_well_the_third_time(self):
        run = self.hvdrun("-np", 4, "-H", TWO, "--max-restarts", 3, "bash", "-c",
                          "echo attempt $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; "
                          "[ $RANK = 3 ] && [ $TORCHELASTIC_RESTART_COUNT -lt 2 ] && exit 5; "
                          "[ $TORCHELASTIC_RESTART_COUNT -lt 2 ] && exec sleep 600; exit 0")
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

    def test_a_wish_is_no_failure(self):
        run = self.start("-np", 2, "-H", "node1:2", "--max-restarts", 3, "bash", "-c",
                         "echo up $RANK; exec sleep 600")
        run.out.find(r"up 1", 15)
        run.signal(signal.SIGINT)
        run.wait(20)
        self.assertEqual(run.out.text.count("up 0"), 1, run.report())
        self.assertNotIn("restart", run.err.text)


if __name__ == "__main__":
    harness.main()
