"""A rank fails: the code, the cause on the screen, everything else gone."""

import os
import shutil
import signal
import time

import harness
from harness import scaled

EIGHT = "node1:4,node2:4"
FOUR = "node1:2,node2:2"
DEAF = "trap '' TERM INT HUP; "


class Failure(harness.EndToEnd):
    NODES = 2

    def fail_rank(self, rank, hosts, host):
        run = self.start("-np", 8, "-H", hosts, "bash", "-c",
                         f"[ $RANK = {rank} ] && exit 3; exec sleep 600")
        run.wait(20)
        self.assert_no_workers(run)
        self.assert_code(run, 3)
        self.assert_last_line(run, rf"\b{rank}\b", rf"\b{host}\b", r"\b3\b")
        self.assert_within(run.seconds, 5, f"rank {rank} of 8 fails at once")

    def test_one_failing_rank_ends_all(self):
        self.fail_rank(2, EIGHT, "node1")

    def test_rank_zero_fails(self):
        self.fail_rank(0, EIGHT, "node1")

    def test_rank_on_the_last_host_fails(self):
        self.fail_rank(7, EIGHT, "node2")

    def test_rank_on_the_launching_host_fails(self):
        self.fail_rank(1, "localhost:4,node1:4", "localhost")

    def test_first_cause_stands_at_the_end_with_its_last_lines(self):
        script = self.script(
            "if [ $RANK = 6 ]; then\n"
            "  for i in $(seq 1 40); do echo early $i >&2; done\n"
            "  sleep 1; echo BOOM-CAUSE >&2; exit 1\nfi\n"
            "trap 'for i in $(seq 1 200); do echo noise $i >&2; done; exit 1' TERM\n"
            "while :; do sleep 0.05; done\n")
        run = self.hvdrun("-np", 8, "-H", EIGHT, "bash", script)
        self.assert_code(run, 1)
        self.assert_last_line(run, r"rank 6 \(node2, pid \d+\) exited with code 1 at \d\d:\d\d:\d\d\.\d+, "
                                   r"[\d.]+ s after the start")
        last = run.err.text.splitlines()[-22:]
        tail = [line for line in last if "early" in line or "BOOM" in line]
        self.assertIn("BOOM-CAUSE", "\n".join(tail), run.report())
        self.assertEqual(len(tail), 20, run.report())
        self.assertFalse([line for line in last if "noise" in line], run.report())

    def test_a_stopped_rank_is_named_where_another_gives_up(self):
        run = self.hvdrun("-np", 8, "-H", EIGHT, "bash", "-c",
                          "[ $RANK = 6 ] && kill -STOP $$; [ $RANK = 1 ] && sleep 1 && exit 72; exec sleep 600")
        self.assert_code(run, 72)
        self.assertRegex(run.err.text, r"rank 6 \(node2, pid \d+\) stood still .*state T")
        self.assert_last_line(run, r"rank 1\b", "node1", r"\b72\b")

    def test_code_of_the_failed_rank_is_ours(self):
        for code in (1, 2, 3, 77, 126, 127, 255):
            for _ in range(scaled(1, 200)):
                run = self.hvdrun("-np", 4, "-H", FOUR, "bash", "-c",
                                  f"[ $RANK = 3 ] && exit {code}; exit 0")
                self.assert_code(run, code)

    def test_signal_that_ended_a_rank_is_128_more(self):
        for number in (6, 9, 11, 15):
            for _ in range(scaled(1, 200)):
                run = self.hvdrun("-np", 4, "-H", FOUR, "bash", "-c",
                                  f"ulimit -c 0; [ $RANK = 3 ] && kill -{number} $$; exit 0")
                self.assert_code(run, 128 + number)
                self.assert_last_line(run, r"\b3\b", "node2", signal.Signals(number).name)

    def test_three_ranks_that_fail_together_give_one_of_their_codes(self):
        for _ in range(scaled(2, 200)):
            run = self.hvdrun("-np", 4, "-H", FOUR, "bash", "-c", "exit $RANK")
            self.assertIn(run.code, (1, 2, 3), run.report())

    def test_rank_killed_from_outside_is_noticed(self):
        """While all ranks are in a read that never ends."""
        reading = "ulimit -c 0; exec \"$0\" -c 'import os; print(\"up\", flush=True); os.read(os.pipe()[0], 1)'"
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
            run = self.start("-np", 4, "-H", FOUR, "bash", "-c", reading, harness.PYTHON)
            self.assertEqual(len(run.out.find("up", 15, count=4)), 4, run.report())
            ranks = self.wait_workers(4, run)
            killed = time.monotonic()
            os.kill(ranks[2], number)
            run.wait(15)
            self.assert_no_workers(run)
            self.assert_code(run, 128 + number)
            self.assert_last_line(run, rf"rank 2 \(node2, pid \d+\) was killed by {number.name} \(signal {number:d}\b")
            self.assert_within(time.monotonic() - killed, 5, f"from {number.name} for a rank to the end")

    def test_process_in_another_session_does_not_escape(self):
        for ending in ("exit 3", "kill -9 $$"):
            with self.subTest(ending=ending):
                run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", "bash", "-c",
                                  "setsid -f sleep 600 </dev/null >/dev/null 2>&1; "
                                  f"[ $RANK = 1 ] && sleep 0.3 && {ending}; sleep 600")
                self.assertIn(run.code, (3, 137))
                self.assert_within(self.seconds_until_gone(run.started + run.seconds, 2), 1,
                                   "all gone after the end")

    def test_orphan_that_outlives_its_successful_rank_is_ended(self):
        run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", "--grace", "1", "bash", "-c",
                          "(setsid sleep 600 &) ; echo done")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["done"], 1: ["done"]})
        self.assert_within(run.seconds, 7, "job whose ranks left children behind")

    def test_background_child_that_holds_the_pipe_does_not_hold_the_job(self):
        run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", "--grace", "1", "bash", "-c",
                          "(sleep 600 &) ; echo done; [ $RANK = 0 ] || exit 4")
        self.assert_code(run, 4)
        self.assert_within(run.seconds, 7, "held pipe")

    def test_deaf_workers_go_after_the_grace(self):
        run = self.hvdrun("-np", 4, "-H", FOUR, "--grace", "1", "bash", "-c",
                          f"[ $RANK = 1 ] && sleep 0.5 && exit 5; {DEAF} while :; do sleep 1; done")
        self.assert_code(run, 5)
        self.assertGreater(run.seconds, 1.0, "deaf workers had no grace")
        self.assert_within(run.seconds - 0.5, 1 + 5, "failure to the end, grace 1 s")

    def test_rank_that_leaves_with_success_does_not_end_the_others(self):
        run = self.hvdrun("-np", 4, "-H", FOUR, "bash", "-c",
                          f"[ $RANK = 1 ] && exit 0; sleep {scaled(1.5, 40)}; echo fin $RANK", limit=60)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["fin 0"], 2: ["fin 2"], 3: ["fin 3"]})

    def test_time_limit_of_the_job_is_124(self):
        run = self.hvdrun("-np", 4, "-H", FOUR, "--timeout", "1", "sleep", 600)
        self.assert_code(run, 124)
        self.assert_within(run.seconds, 1 + 5, "--timeout 1")

    def test_time_limit_after_the_first_clean_exit_is_125(self):
        run = self.hvdrun("-np", 4, "-H", FOUR, "--exit-timeout", "1", "bash", "-c",
                          "[ $RANK = 1 ] && exit 0; exec sleep 600")
        self.assert_code(run, 125)
        self.assert_last_line(run, "--exit-timeout 1 s had passed after the first rank's end")

    def test_other_jobs_and_bystanders_are_left_alone(self):
        namesake = os.path.join(self.bed.folder, "shared", "hvd-agent")
        shutil.copy("/bin/sleep", namesake)
        self.addCleanup(os.unlink, namesake)
        bystanders = [self.on_host("node1", program, "600") for program in ("sleep", namesake)]
        pids = [bystander.pid for bystander in bystanders]
        runs = [self.start("-np", 4, "-H", FOUR, "bash", "-c", "echo up; exec sleep 600")
                for _ in range(2)]
        for run in runs:
            self.assertEqual(len(run.out.find("up", 15, count=4)), 4, run.report())
        before = self.workers()
        self.assertEqual(len(before), 8)
        runs[0].signal(signal.SIGINT)
        self.assertEqual(runs[0].wait(15), 130, runs[0].report())
        left = self.workers()
        self.assertEqual(sorted(left.values()), [0, 1, 2, 3])
        self.assertLessEqual(left.items(), before.items())
        for pid in pids:
            self.assertTrue(os.path.exists(f"/proc/{pid}"))
        runs[1].signal(signal.SIGTERM)
        self.assertEqual(runs[1].wait(15), 143, runs[1].report())
        for bystander in bystanders:
            bystander.end()

    def test_many_jobs_in_a_row_leave_nothing(self):
        count = scaled(10, 200)
        started = time.monotonic()
        for _ in range(count):
            self.assert_code(self.hvdrun("-np", 4, "-H", FOUR, "true"), 0)
        self.tell(f"mean of {count} jobs in a row", (time.monotonic() - started) / count)


if __name__ == "__main__":
    harness.main()
