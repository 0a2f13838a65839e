#!/usr/bin/env python3
"""All-reduce of the CPU's memory: runtime/tcp_communicator beside torch.distributed's Gloo.

RANKS processes of each on this machine, alive at once and measured in turn, so that other load meets
both alike; the idle ones sleep in the kernel. A time is that of the slowest rank; figures are medians of
ROUNDS. Prints a table in Markdown and one JSON line; ends with 1 where ours is slower than Gloo.

  allreduce.py [--ranks 4] [--rounds 20] [--sizes 1024,65536,1048576,67108864]

ALLREDUCE_BENCH: our program (default build/tests/bench/allreduce_bench). TCP_ONLY=1: ours without the
unix sockets that otherwise carry the data between ranks of one machine. Needs torch in .venv.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
OURS = os.environ.get("ALLREDUCE_BENCH", str(CHECKOUT / "build/tests/bench/allreduce_bench"))
PYTHON = str(CHECKOUT / ".venv/bin/python")
SMALL = 64 * 1024  # up to here a round is many operations, and its time their median
SMALL_REPEATS = 50

GLOO = """
import os, sys, time
import torch
import torch.distributed as dist
rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + folder + "/gloo", rank=rank, world_size=size)
for line in sys.stdin:
    count, repeats = map(int, line.split())
    data, times = torch.empty(count), []
    for _ in range(repeats):
        data.fill_(rank + 1)
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(data)
        times.append(time.perf_counter() - begin)
        assert torch.all(data == size * (size + 1) // 2)
    print(*times, flush=True)
dist.destroy_process_group()
"""


class Team:
    """The ranks of one side."""

    def __init__(self, argv, ranks, folder):
        environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
        self.processes = [
            subprocess.Popen([*argv, str(rank), str(ranks), folder], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, bufsize=1, env=environment)
            for rank in range(ranks)
        ]

    def measure(self, count, repeats):
        """Seconds of each operation: its slowest rank's."""
        for process in self.processes:
            process.stdin.write(f"{count} {repeats}\n")
        lines = [process.stdout.readline().split() for process in self.processes]
        if any(len(line) != repeats for line in lines):
            sys.exit(f"allreduce.py: {self.processes[0].args[0]} failed")
        return [max(map(float, times)) for times in zip(*lines)]

    def end(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait(60)


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def compare(teams, size, rounds):
    """{team: median seconds}, a warm-up before."""
    repeats = SMALL_REPEATS if size <= SMALL else 1
    times = {name: [] for name in teams}
    for round_number in range(rounds + 2):
        for name, team in teams.items():
            seconds = statistics.median(team.measure(size // 4, repeats))
            if round_number >= 2:
                times[name].append(seconds)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--sizes", default="1024,65536,1048576,67108864")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        teams = {"ours": Team([OURS], options.ranks, folder),
                 "gloo": Team([PYTHON, "-c", GLOO], options.ranks, folder)}
        print(f"{options.ranks} ranks, float32, medians of {options.rounds}\n")
        print("| size | ours, ms | Gloo, ms | ours, GB/s | Gloo, GB/s | Gloo / ours |")
        print("|---|---|---|---|---|---|", flush=True)
        for size in map(int, options.sizes.split(",")):
            seconds = compare(teams, size, options.rounds)
            ours, gloo = seconds["ours"], seconds["gloo"]
            print(f"| {size_text(size)} | {ours * 1e3:.3f} | {gloo * 1e3:.3f} "
                  f"| {size / ours / 1e9:.3f} | {size / gloo / 1e9:.3f} | {gloo / ours:.2f} |",
                  flush=True)
            results.append({"bytes": size, "ours_s": ours, "gloo_s": gloo})
        for team in teams.values():
            team.end()
    print("\n" + json.dumps({"ranks": options.ranks, "rounds": options.rounds, "results": results}))
    slower = [size_text(r["bytes"]) for r in results if r["ours_s"] > r["gloo_s"]]
    if slower:
        sys.exit("slower than Gloo: " + ", ".join(slower))


if __name__ == "__main__":
    main()
