"""Ranks of a TCP communicator as processes that are killed, stopped and silent in the middle of their
work: every other rank must name the culprit within its limit. WORKER is the program under test."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

WORKER = os.environ["WORKER"]
RANKS = 4
SMALL, LARGE = 256, 16 << 20  # elements: one message, and a pipeline of 64 MiB
SLACK = 1.0  # s over a limit, for a busy machine to schedule everybody


class Rank:
    def __init__(self, rank, folder, arguments):
        environment = dict(os.environ, RANK=str(rank), SIZE=str(RANKS), FOLDER=folder)
        if arguments[0] == LARGE:
            environment["TCP_ONLY"] = "1"  # as between machines
        self.rank = rank
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen([WORKER, *map(str, arguments)], env=environment,
                                        stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.strip())
                self.changed.notify_all()

    def wait_for_steps(self, count, limit=60):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.lines) >= count, limit):
                raise AssertionError(f"rank {self.rank} said only {self.lines}")

    def failure(self, limit=60):
        """(seconds in the call, text) of a rank that ended with an error."""
        code = self.process.wait(limit)
        self.reader.join(5)
        match = re.fullmatch(r"failed after ([\d.]+) s: (.*)", self.lines[-1] if self.lines else "")
        if code != 3 or not match:
            raise AssertionError(f"rank {self.rank} ended with {code}: {self.lines[-3:]}")
        return float(match[1]), match[2]


class Collectives(unittest.TestCase):
    def start(self, *arguments, of_rank=None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        ranks = [Rank(rank, folder.name, (of_rank or {}).get(rank, arguments))
                 for rank in range(RANKS)]
        for rank in ranks:
            self.addCleanup(self.end, rank)
        return ranks

    def end(self, rank):
        if rank.process.poll() is None:
            rank.process.kill()
            rank.process.wait()
        rank.reader.join(5)
        rank.process.stdout.close()

    def assert_all_name(self, ranks, culprit, limit, saying):
        for rank in ranks:
            if rank.rank == culprit:
                continue
            seconds, text = rank.failure()
            self.assertRegex(text, rf"^all-reduce: rank {culprit} on node{culprit} {saying}")
            self.assertLess(seconds, limit, f"rank {rank.rank}: {text}")

    def test_a_killed_rank_is_named_at_once(self):
        for count in (SMALL, LARGE // 4, LARGE):
            with self.subTest(count=count):
                ranks = self.start(count, 30000)
                ranks[2].wait_for_steps(2)
                ranks[2].process.kill()
                self.assert_all_name(ranks, 2, 10, "is lost: ")

    def test_a_stopped_rank_is_named_at_the_limit(self):
        for count in (SMALL, LARGE // 4, LARGE):
            with self.subTest(count=count):
                ranks = self.start(count, 4000)
                ranks[1].wait_for_steps(2)
                ranks[1].process.send_signal(signal.SIGSTOP)
                self.assert_all_name(ranks, 1, 4 + SLACK, "gave no sign of life within 4 s")
                # Woken up, it learns why it is alone.
                ranks[1].process.send_signal(signal.SIGCONT)
                self.assertIn("rank 1 on node1 gave no sign of life", ranks[1].failure()[1])

    def test_a_rank_that_is_stopped_for_a_moment_does_no_harm(self):
        ranks = self.start(LARGE // 16, 30000, 20)
        ranks[3].wait_for_steps(2)
        ranks[3].process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        ranks[3].process.send_signal(signal.SIGCONT)
        self.assertEqual([rank.process.wait(60) for rank in ranks], [0] * RANKS)

    def test_a_mute_rank_is_named_at_the_limit(self):
        for count in (SMALL, LARGE // 4, LARGE):
            with self.subTest(count=count):
                ranks = self.start(count, 3000, of_rank={0: (count, 3000, 100, 2)})
                self.assert_all_name(ranks, 0, 3 + SLACK, "gave no sign of life within 3 s")

    def test_a_rank_that_ends_early_is_named(self):
        ranks = self.start(SMALL, 20000, of_rank={3: (SMALL, 2000, 1)})
        # The others are in their second all-reduce when rank 3 is in its finalize.
        for rank in ranks:
            seconds, text = rank.failure()
            self.assertIn("is in another operation", text)
            self.assertLess(seconds, 10)

    def test_ranks_of_nobody_are_told_what_is_missing(self):
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("FOLDER", "HVDRUN_RENDEZVOUS", "LOCAL_RANK")}
        run = subprocess.run([WORKER, "1", "1000"], env=dict(environment, RANK="0", WORLD_SIZE="2"),
                             capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(run.returncode, 3, run.stdout)
        self.assertRegex(run.stdout, "LOCAL_RANK, .* are not set")

    def test_one_process_alone_needs_no_launcher(self):
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("FOLDER", "RANK", "WORLD_SIZE", "HVDRUN_RENDEZVOUS")}
        run = subprocess.run([WORKER, "1000", "1000", "2"], env=environment, capture_output=True,
                             text=True, timeout=30, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, "step 0\nstep 1\n"))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main(verbosity=2)
