"""An unmodified torch.distributed program trains over several hosts."""

import os
import re
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


if __name__ == "__main__":
    harness.main()
