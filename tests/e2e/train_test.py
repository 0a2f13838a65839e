"""An unmodified torch.distributed program trains over several hosts; torchrun below hvdrun."""

import os
import re
import signal
import unittest

import harness

PYTHON = os.path.join(harness.CHECKOUT, ".venv", "bin", "python")
PROGRAM = os.path.join(harness.CHECKOUT, "tests", "programs", "ddp_train.py")
RANKS = harness.scaled(8, 32)
HOSTS = ",".join(f"node{k}:{RANKS // 4}" for k in range(1, 5))


def has_torch():
    return bool(harness.lab.glob.glob(
        os.path.join(harness.CHECKOUT, ".venv", "lib", "python3*", "site-packages", "torch")))


@unittest.skipUnless(has_torch(), "no torch in .venv (made by make demo)")
class Train(harness.EndToEnd):
    def test_every_rank_ends_with_the_same_parameters(self):
        run = self.hvdrun("-np", RANKS, "-H", HOSTS, PYTHON, PROGRAM, limit=280,
                          env={"TORCHINDUCTOR_CACHE_DIR": f"{self.bed.folder}/shared/inductor"})
        self.assert_code(run, 0)
        hashes = {}
        for rank, lines in run.rank_lines().items():
            found = re.findall(r"hash ([0-9a-f]{16})$", "\n".join(lines))
            self.assertTrue(found, f"rank {rank}: {lines}")
            hashes[rank] = found[-1]
        self.assertEqual(len(hashes), RANKS)
        self.assertEqual(len(set(hashes.values())), 1, hashes)
        self.tell(f"{RANKS} ranks on four hosts", run.seconds)


# A script made for torch.distributed.launch.
LAUNCHED = """
import argparse
import torch, torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--local-rank", type=int, default=-1)
arguments = parser.parse_args()
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print(int(total), arguments.local_rank, dist.is_torchelastic_launched(), flush=True)
dist.destroy_process_group()
"""


@unittest.skipUnless(has_torch(), "no torch in .venv (made by make demo)")
class Contract(harness.EndToEnd):
    NODES = 2

    def test_scripts_of_torch_see_what_torchrun_gives_on_request(self):
        script = self.script(LAUNCHED, "launched.py")
        for words, local, mark in (["--local-rank-arg"], "{}", False), (["--torchelastic"], "-1", True):
            run = self.hvdrun("-np", 4, "-H", "node1:2,node2:2", *words, PYTHON, script, limit=90)
            self.assert_code(run, 0)
            self.assertEqual(run.rank_lines(),
                             {r: [f"10 {local.format(r % 2)} {mark}"] for r in range(4)})


# What torchrun starts: waits, or fails every time in one process.
NESTED = """
import os, sys, time
fails = sys.argv[1] == "fail" and os.environ["RANK"] == "1"
os.write(1, "nested {RANK} attempt {TORCHELASTIC_RESTART_COUNT}\\n".format(**os.environ).encode())
if not fails: time.sleep(600)
sys.exit(3)
"""


@unittest.skipUnless(has_torch(), "no torch in .venv (made by make demo)")
class Nested(harness.EndToEnd):
    """A launcher that starts its own workers again when they end, as what hvdrun starts."""

    NODES = 2

    def test_torchrun_and_its_workers_end_with_a_signal_and_with_a_failure(self):
        torchrun = [os.path.join(os.path.dirname(PYTHON), "torchrun"), "--standalone", "--nproc_per_node=2",
                    "--max-restarts=3", self.script(NESTED, "nested.py")]
        waits = self.start("-np", 2, "-H", "node1:1,node2:1", "--grace", 2, *torchrun, "wait")
        fails = self.start("-np", 1, "-H", "node2:1", "--grace", 2, *torchrun, "fail")
        self.assertEqual(len(waits.out.find("nested", 60, 4)), 4, waits.report())
        waits.signal(signal.SIGINT)
        waits.wait(20)
        self.assert_code(waits, 130)
        self.assertEqual(self.workers("node1"), {})
        fails.wait(60)
        self.assert_code(fails, 1)
        self.assert_last_line(fails, r"rank 0 \(node2, pid \d+\) exited with code 1")
        self.assertIn("attempt 3", fails.out.text)
        self.assert_no_workers(fails)


if __name__ == "__main__":
    harness.main()
