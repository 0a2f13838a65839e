"""Several NCCL ranks on one GPU, under hvdrun with agents of the command transport: sums are exact, a
training is the single process's, and a rank that is killed, stopped or late ends the job in time.

Where there are several GPUs, the same with one rank on each, also as hosts that see one GPU each.

NCCL refuses two ranks on a GPU; HVDRUN_ALLOW_SHARED_GPU=1 is the runtime's switch for such tests. Without
a GPU the file is skipped (exit code 77). Programs: $BIN_FOLDER/{hvdrun,petrv2}, $EXAMPLES_FOLDER,
$PHASE_WORKER, $OTHER_NCCL (a folder with a libnccl.so.2 of another version).
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BIN_FOLDER", ROOT / "build" / "bin"))
EXAMPLES = pathlib.Path(os.environ.get("EXAMPLES_FOLDER", ROOT / "build" / "examples"))
PHASE_WORKER = os.environ.get("PHASE_WORKER", str(ROOT / "build/tests/gpu/nccl_phase_worker"))
OTHER_NCCL = os.environ.get("OTHER_NCCL", str(ROOT / "build/tests/programs/other_nccl"))
COMMAND_TRANSPORT = ["--transport", "command", "--rsh", "sh -c 'exec \"$@\"' x {command}"]
SHARED = {"HVDRUN_ALLOW_SHARED_GPU": "1"}
DEADLINE = 2.0  # s
GRACE = 1.0     # s
SPARE = 8.0     # s, for a process to take its GPU down


def has_gpu():
    return os.path.exists("/dev/nvidiactl") and shutil.which("nvidia-smi") is not None


def memory_in_use():
    """MiB of each GPU."""
    if not has_gpu():
        return []
    words = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return [int(line) for line in subprocess.run(words, capture_output=True, text=True).stdout.split()]


NUM_GPUS = len(memory_in_use())


def four_hosts(ranks):
    """Four agents, or one a rank."""
    hosts = min(4, ranks)
    return ",".join(f"{name}:{ranks // hosts}" for name in "abcd"[:hosts])


def hvdrun(ranks, *command, limit=120, env=None, hosts=None):
    words = [str(BIN / "hvdrun"), "-np", str(ranks), "-H", hosts or four_hosts(ranks),
             *COMMAND_TRANSPORT, "--grace", f"{GRACE:g}", *map(str, command)]
    began = time.monotonic()
    done = subprocess.run(words, env={**os.environ, **SHARED, **(env or {})}, capture_output=True,
                          text=True, timeout=limit)
    done.seconds = time.monotonic() - began
    done.report = f"{' '.join(words)}\ncode {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@unittest.skipUnless(has_gpu(), "no GPU here")
class Sums(unittest.TestCase):
    """The id travels over gRPC; each all-reduce is compared element by element."""

    def check(self, ranks, *options):
        done = hvdrun(ranks, EXAMPLES / "all_reduce_bench", "--device", "cuda", *options)
        self.assertEqual(done.returncode, 0, done.report)
        rows = re.findall(r"^(?:\[.*?\])?[^#\n]*?\s(\d+)\s+(\d+)\s+(\w+)\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+(\d+)"
                          r"\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+(\d+)\s*$", done.stdout, re.M)
        self.assertTrue(rows, done.report)
        for row in rows:
            self.assertEqual((row[4], row[6]), ("0", "0"), done.report)
            print(f"    {ranks} ranks, {row[0]} bytes of {row[2]}: {row[5]} us in place, 0 wrong")
        print(f"    {ranks} ranks: {done.seconds:.1f} s in all", flush=True)

    def test_two_ranks(self):
        self.check(2, "-b", "4K", "-e", "16M", "-f", "64", "-n", "5", "-w", "1")

    def test_four_ranks_in_bfloat16(self):
        self.check(4, "-b", "4K", "-e", "1M", "-f", "256", "-n", "5", "-w", "1", "-d", "bfloat16")

    def test_eight_ranks(self):
        self.check(8, "-b", "4K", "-e", "1M", "-f", "256", "-n", "3", "-w", "1")

    def test_thirty_two_ranks(self):
        self.check(32, "-b", "4K", "-e", "256K", "-f", "64", "-n", "2", "-w", "1")


@unittest.skipUnless(has_gpu(), "no GPU here")
class Training(unittest.TestCase):
    RANKS = 8

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="hvdrun-nccl-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        subprocess.run([BIN / "petrv2", "synth", "--out", cls.folder / "data", "--records"], check=True,
                       stdout=subprocess.DEVNULL)

    def train(self, ranks, name, *options, env=None):
        log = self.folder / f"{name}.json"
        command = [BIN / "petrv2", "train", "--config", "tiny", "--data", self.folder / "data/records",
                   "--split", "all", "--device", "cuda", "--steps", "10", "--batch", "1", "--no-dropout",
                   "--no-augmentation", "--seed", "3", "--json", log, *options]
        done = hvdrun(ranks, *command, env=env)
        self.assertEqual(done.returncode, 0, done.report)
        steps = [json.loads(line) for line in log.read_text().splitlines()]
        return steps, re.findall(r"weights ([0-9a-f]{8})", done.stdout), done

    def test_eight_ranks_are_one_process_that_accumulates(self):
        steps, sums, done = self.train(self.RANKS, "ranks")
        alone, _, _ = self.train(1, "alone", "--accumulate", str(self.RANKS))
        self.assertEqual((len(sums), len(set(sums))), (self.RANKS, 1), done.report)
        self.assertEqual(len(steps), len(alone))
        worst = max(abs(a["loss"]["total"] - b["loss"]["total"]) / b["loss"]["total"]
                    for a, b in zip(steps, alone))
        first = abs(steps[0]["loss"]["total"] / alone[0]["loss"]["total"] - 1)
        print(f"    8 ranks, weights {sums[0]} on all; total loss beside accumulation 8: first step "
              f"{first:.1e}, worst of 10 {worst:.1e}; {done.seconds:.1f} s", flush=True)
        self.assertLess(first, 1e-5)
        self.assertLess(worst, 1e-2)

    def test_compressed_ranks_stay_equal(self):
        for kind in ("fp16", "bf16"):
            _, sums, done = self.train(4, kind, "--compression", kind)
            self.assertEqual((len(sums), len(set(sums))), (4, 1), done.report)


@unittest.skipUnless(has_gpu(), "no GPU here")
class Faults(unittest.TestCase):
    """One of each phase and fault with two ranks."""

    PHASES = ("before_id", "in_init", "in_enqueue", "in_collective", "in_finalize")
    FAULTS = ("kill", "stop", "delay")
    AT_ONCE = 5

    def test_every_phase_and_fault(self):
        with concurrent.futures.ThreadPoolExecutor(self.AT_ONCE) as pool:
            ends = {(phase, fault): pool.submit(self.go_wrong, phase, fault)
                    for phase in self.PHASES for fault in self.FAULTS}
        failed = []
        for (phase, fault), end in ends.items():
            error = end.exception()
            print(f"    {phase}, {fault}: {error or end.result()}", flush=True)
            failed += [f"{phase}, {fault}: {error}"] if error else []
        self.assertEqual(failed, [])

    def test_without_a_fault(self):
        done = hvdrun(2, PHASE_WORKER, "in_finalize", "none", 0, 20000)
        self.assertEqual(done.returncode, 0, done.report)

    def go_wrong(self, phase, fault):
        mark = str(uuid.uuid4())
        words = [str(BIN / "hvdrun"), "-np", "2", "-H", "a:1,b:1", *COMMAND_TRANSPORT, "--grace",
                 f"{GRACE:g}", "-x", f"HVT={mark}", PHASE_WORKER, phase, fault, "1",
                 str(int(DEADLINE * 1000))]
        run = subprocess.Popen(words, env={**os.environ, **SHARED}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        try:
            text = self.read_until_fault(run, phase, fault, mark)
            began = time.monotonic()
            rest, _ = run.communicate(timeout=DEADLINE + GRACE + SPARE)
        except subprocess.TimeoutExpired:
            run.kill()
            text = run.communicate()[0]
            raise AssertionError(f"still running {DEADLINE + GRACE + SPARE:g} s after the fault: {text}")
        seconds = time.monotonic() - began
        text += rest
        self.assertNotEqual(run.returncode, 0, text)
        if fault == "kill":
            self.assertEqual(run.returncode, 128 + signal.SIGKILL, text)
            self.assertRegex(text, r"rank 1 \(b\b")
        else:
            self.assertIn(run.returncode, (71, 72, 124), text)
        self.assertEqual(processes_of(mark), [], text)
        last = [line for line in text.splitlines() if line.strip()][-1]
        return f"code {run.returncode}, all gone after {seconds:.2f} s: {last}"

    def read_until_fault(self, run, phase, fault, mark):
        wanted = "running" if phase == "in_collective" else "fault"
        text = ""
        for line in run.stdout:
            text += line
            if line.rstrip().endswith(wanted):
                break
        if phase == "in_collective":
            time.sleep(0.2)
            self.strike(fault, mark)
        return text

    @staticmethod
    def strike(fault, mark):
        (pid,) = [pid for pid, rank in processes_of(mark) if rank == "1"]
        os.kill(pid, signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
        if fault == "delay":
            time.sleep(DEADLINE + GRACE / 2)
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass  # ended with its job


# Takes 1 GiB of the GPU as a program does that loads its data in children, and dies without them.
HOLDS_THE_GPU = """
import ctypes, os, time
cuda = ctypes.CDLL("libcuda.so.1")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 30)) == 0
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
print("holding", flush=True)
time.sleep(2)
os._exit(1)
"""


@unittest.skipUnless(has_gpu(), "no GPU here")
class Refusals(unittest.TestCase):
    """Before NCCL starts."""

    ALONE = {"HVDRUN_ALLOW_SHARED_GPU": "0"}

    def test_more_ranks_than_gpus_are_told_with_both_numbers(self):
        ranks = NUM_GPUS + 1
        done = hvdrun(ranks, BIN / "petrv2", "train", "--config", "tiny", "--data", "/none", "--device", "cuda",
                      env=self.ALONE, hosts=f"a:{ranks}")
        self.assertEqual(done.returncode, 2, done.report)
        self.assertIn(f"local rank {NUM_GPUS} has no GPU of its own: {NUM_GPUS} visible here", done.stderr,
                      done.report)
        self.assertRegex(done.stderr.splitlines()[-1], rf"rank {NUM_GPUS} \(a, pid \d+\) exited with code 2")

    def test_two_ranks_on_a_gpu_are_named_with_the_node(self):
        """A script gives each rank the first GPU for its own."""
        done = hvdrun(2, "bash", "-c", "export LOCAL_RANK=0 CUDA_VISIBLE_DEVICES=0; exec \"$0\" \"$@\"",
                      EXAMPLES / "all_reduce_bench", "--device", "cuda", "-e", "8", env=self.ALONE, hosts="a:2")
        self.assertEqual(done.returncode, 73, done.report)
        self.assertRegex(done.stderr.splitlines()[-1],
                         r"a: ranks 0, 1 share GPU GPU-\S+ .*2 ranks of this job on 1 GPU")

    def test_another_nccl_of_one_node_is_a_table(self):
        """Its LD_LIBRARY_PATH finds another library."""
        rsh = (f"sh -c '[ $0 = b ] && export LD_LIBRARY_PATH={OTHER_NCCL}:$LD_LIBRARY_PATH; exec \"$@\"' "
               "{host} {command}")
        done = subprocess.run([BIN / "hvdrun", "-np", "2", "-H", "a:1,b:1", "--transport", "command", "--rsh", rsh,
                               "--env-deny", "LD_LIBRARY_PATH", EXAMPLES / "all_reduce_bench", "--device", "cuda",
                               "-e", "8"],
                              env={**os.environ, **SHARED}, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 73, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"nodes +NCCL version\n.*a \(1 rank\) +\d+\.\d+\.\d+\n"
                                      r".*b \(1 rank\) +2\.27\.3\n")
        self.assertRegex(done.stderr.splitlines()[-1], r"NCCL version differs .*2\.27\.3 on b")


@unittest.skipUnless(has_gpu(), "no GPU here")
class Orphans(unittest.TestCase):
    def test_memory_that_a_child_of_a_dead_rank_holds_is_given_back(self):
        before = memory_in_use()[0]
        run = subprocess.Popen([BIN / "hvdrun", "-np", "1", "--grace", f"{GRACE:g}", sys.executable, "-c",
                                HOLDS_THE_GPU],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            self.assertIn("holding", run.stdout.readline())
            during = memory_in_use()[0]
            text, _ = run.communicate(timeout=30)
        finally:
            run.kill()
        ended = time.monotonic()
        self.assertEqual(run.returncode, 1, text)
        while (after := memory_in_use()[0]) > before + 50 and time.monotonic() < ended + 10:
            time.sleep(0.1)
        print(f"    memory {before}, {during}, {after} MiB, {time.monotonic() - ended:.1f} s after the end", flush=True)
        self.assertGreater(during, before + 1000)
        self.assertLessEqual(after, before + 50)


@unittest.skipUnless(NUM_GPUS > 1, "no several GPUs here")
class SeveralGpus(unittest.TestCase):
    """One rank on each GPU."""

    def test_sums(self):
        done = subprocess.run([BIN / "hvdrun", "-np", str(NUM_GPUS), "-H", f"localhost:{NUM_GPUS}",
                               EXAMPLES / "all_reduce_bench", "--device", "cuda", "-b", "64K", "-e", "1G",
                               "-f", "8", "-n", "20", "-w", "5"],
                              capture_output=True, text=True, timeout=120)
        self.check(done)

    def test_sums_of_hosts_with_a_gpu_each(self):
        """Hosts that NCCL takes for two: it goes over the network."""
        hosts = [f"host{gpu}" for gpu in range(NUM_GPUS)]
        see = " ".join(f"{name}) export CUDA_VISIBLE_DEVICES={gpu};;" for gpu, name in enumerate(hosts))
        rsh = f"sh -c 'case $0 in {see} esac; export NCCL_HOSTID=$0; exec \"$@\"' {{host}} {{command}}"
        done = subprocess.run([BIN / "hvdrun", "-np", str(NUM_GPUS), "-H", ",".join(f"{h}:1" for h in hosts),
                               "--transport", "command", "--rsh", rsh,
                               EXAMPLES / "all_reduce_bench", "--device", "cuda", "-b", "64K", "-e", "64M",
                               "-f", "8", "-n", "10", "-w", "3"],
                              capture_output=True, text=True, timeout=120)
        self.check(done)

    def check(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = re.findall(r"(\d+) +\d+ +float32 +([\d.]+) +[\d.]+ +([\d.]+) +(\d+) +([\d.]+) +[\d.]+ +"
                          r"([\d.]+) +(\d+)", done.stdout)
        self.assertTrue(rows, done.stdout)
        for size, time_out, rate_out, wrong_out, time_in, rate_in, wrong_in in rows:
            print(f"    {NUM_GPUS} GPUs, {size} bytes: {time_out} us, {rate_out} GB/s; in place {time_in} us, "
                  f"{rate_in} GB/s", flush=True)
            self.assertEqual((wrong_out, wrong_in), ("0", "0"), done.stdout)

    def test_a_rank_is_lost_in_a_collective(self):
        for fault, codes in (("kill", (128 + signal.SIGKILL,)), ("stop", (71, 72))):
            before = memory_in_use()
            mark = str(uuid.uuid4())
            run = subprocess.Popen([str(BIN / "hvdrun"), "-np", str(NUM_GPUS), "-H", f"localhost:{NUM_GPUS}",
                                    "--grace", f"{GRACE:g}", "-x", f"HVT={mark}", PHASE_WORKER,
                                    "in_collective", fault, "1", str(int(DEADLINE * 1000))],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for line in run.stdout:
                if line.rstrip().endswith("running"):
                    break
            time.sleep(0.5)
            during = memory_in_use()
            Faults.strike(fault, mark)
            began = time.monotonic()
            try:
                text, _ = run.communicate(timeout=DEADLINE + GRACE + SPARE)
            finally:
                run.kill()
            seconds = time.monotonic() - began
            after = memory_in_use()
            last = [line for line in text.splitlines() if line.strip()][-1]
            print(f"    {fault}: code {run.returncode} after {seconds:.2f} s, memory {before} {during} {after} "
                  f"MiB: {last}", flush=True)
            self.assertIn(run.returncode, codes, text)
            self.assertRegex(text, r"rank 1 \(localhost, pid \d+\) (was killed|stood still)")
            self.assertEqual(processes_of(mark), [], text)
            self.assertTrue(all(d > b for b, d in zip(before, during)), (before, during))
            self.assertTrue(all(a - b < 50 for b, a in zip(before, after)), (before, after))


def processes_of(mark):
    """(pid, rank) of the workers that carry the mark."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
        except OSError:
            continue
        ranks = [v[5:].decode() for v in variables if v.startswith(b"RANK=")]
        if b"HVT=" + mark.encode() in variables and ranks:
            found.append((int(path.parent.name), ranks[0]))
    return found


if __name__ == "__main__":
    if not has_gpu():
        print("skipped: no GPU here")
        sys.exit(77)
    unittest.main(verbosity=2)
