"""What the trainer's tests stand on: a small data set of petrv2 synth made once, runs of petrv2 alone
or as the ranks of hvdrun under a time limit, and readers of what it leaves behind.

The programs are $PETRV2_BIN and $HVDRUN_BIN; HVDRUN_LONG=1 asks for the full counts.
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
BIN = CHECKOUT / "build" / "bin"
PETRV2 = os.environ.get("PETRV2_BIN") or str(BIN / "petrv2")
HVDRUN = os.environ.get("HVDRUN_BIN") or str(BIN / "hvdrun")
IS_LONG = os.environ.get("HVDRUN_LONG") == "1"

ITEM_TYPES = {"F64": ("d", 8), "F32": ("f", 4), "I32": ("i", 4)}


def read_safetensors(path):
    """{name: list of numbers} and the metadata."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, place in header.items():
        code, size = ITEM_TYPES[place["dtype"]]
        begin, end = place["data_offsets"]
        tensors[name] = struct.unpack_from(f"<{(end - begin) // size}{code}", data, 8 + length + begin)
    return tensors, metadata


class Run:
    def __init__(self, command, timeout, cwd, env):
        result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout)
        self.command = command
        self.code = result.returncode
        self.out = result.stdout
        self.err = result.stderr

    def report(self):
        return f"{' '.join(map(str, self.command))}\ncode {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Training(unittest.TestCase):
    """One data set for the class: SCENES scenes of SAMPLES samples."""

    SCENES = 2
    SAMPLES = 5
    CONFIG = "tiny"

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="petrv2-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.data = cls.root / "synth" / "records"
        made = subprocess.run(
            [PETRV2, "synth", "--out", cls.root / "synth", "--scenes", str(cls.SCENES),
             "--samples-per-scene", str(cls.SAMPLES), "--image-size", "400x225", "--records"],
            capture_output=True, text=True, timeout=120)
        if made.returncode != 0:
            raise RuntimeError(made.stdout + made.stderr)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.root))

    def words(self, *options, out=None, data=None):
        words = [PETRV2, "train", "--config", self.CONFIG, "--data", data or self.data, "--split", "all",
                 "--device", "cpu", "--log-every", "1"]
        if out:
            words += ["--out", out]
        return [str(word) for word in (*words, *options)]

    def launched(self, ranks, words):
        return words if ranks == 1 else [HVDRUN, "-np", str(ranks), *words]

    def environment(self):
        return {**os.environ, "OMP_NUM_THREADS": "1"}

    def train(self, *options, ranks=1, code=0, timeout=120, out=None, data=None):
        command = self.launched(ranks, self.words(*options, out=out, data=data))
        run = Run(command, timeout, self.folder, self.environment())
        self.assertEqual(run.code, code, run.report())
        return run

    def start(self, *options, ranks=1, out=None):
        """In the background; the caller waits for it."""
        process = subprocess.Popen(self.launched(ranks, self.words(*options, out=out)), cwd=self.folder,
                                   env=self.environment(), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def steps(self, path):
        return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]

    def newest(self, out):
        return sorted(pathlib.Path(out).glob("step-*.safetensors"))[-1]

    def assert_same_state(self, a, b):
        mine, other = read_safetensors(a), read_safetensors(b)
        self.assertEqual(mine[1], other[1])
        self.assertEqual(mine[0].keys(), other[0].keys())
        for name, values in mine[0].items():
            self.assertEqual(values, other[0][name], name)
