#!/usr/bin/env python3
"""The start of large jobs: hvdrun's rendezvous beside torch's TCPStore, with stand-in ranks on this machine.

Rank 0 puts 128 bytes, every rank gets them, all pass a barrier. A process stands for 64 ranks, each with
a connection and a thread of its own. Ours: one hvdrun, an agent for each process, workers that talk to
their agent (tests/programs/rendezvous_crowd). TCPStore: as many Python processes, the first one with the
server; its barrier is the one of torch.distributed (a counter and a key that the last rank sets).

Both sides are alive at once and measured in turn, in changing order; whoever is not measured sleeps. In
each round everything is done twice, each from a moment that all processes were given before: "first"
begins without a connection, "again" finds the connections open. A time goes from that moment until the
last rank has passed the barrier; figures are medians of ROUNDS after one that is not counted. Prints a
table in Markdown and one JSON line.

  rendezvous_scale.py [--ranks 64,256,1024] [--rounds 5]

HVDRUN_BIN: the hvdrun to measure (default build/bin/hvdrun); rendezvous_crowd of the same build. Needs torch
in .venv.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
HVDRUN = pathlib.Path(os.environ.get("HVDRUN_BIN", CHECKOUT / "build/bin/hvdrun"))
CROWD = HVDRUN.parents[1] / "tests/programs/rendezvous_crowd"
PYTHON = str(CHECKOUT / ".venv/bin/python")
CLIENTS = 64  # ranks of a process
NOTICE = 0.3  # s before its moment a pass is told
PASSES = ("first", "again")
# TCPStore looks up the name of every peer, for its log: a slow name server would be what is measured.
NO_DNS = {"RES_OPTIONS": "attempts:0"}

TCPSTORE = """
import datetime, json, os, sys, threading, time
from torch.distributed import TCPStore
processes, clients, rounds, gate = [int(word) for word in sys.argv[1:4]] + [sys.argv[4]]
world = processes * clients
limit = datetime.timedelta(seconds=120)

process = 0  # torch is loaded once, for all of them
while process + 1 < processes and os.fork() == 0:
    process += 1
parent = os.getppid()

def wait_for(path):
    while not os.path.exists(path):
        if os.getppid() != parent:
            os._exit(1)
        time.sleep(0.01)
    with open(path) as file:
        return float(file.read())

def tell(what):  # a line is one write: the processes share a pipe
    os.write(1, (json.dumps(what) + chr(10)).encode())

def connect(port, is_master=False):
    return TCPStore("127.0.0.1", port, is_master=is_master, timeout=limit, wait_for_workers=False)

if process == 0:
    server = connect(0, is_master=True)
    with open(gate + ".new", "w") as file:
        file.write(str(server.port))
    os.rename(gate + ".new", gate)
port = int(wait_for(gate))
tell({})

def meet(i, moment, key, stores, ids, passed):
    time.sleep(max(0, moment - time.monotonic()))
    rank = process * clients + i
    if stores[i] is None:
        stores[i] = connect(port)
    store = stores[i]
    if rank == 0:
        store.set(key, os.urandom(128))
    ids[i] = store.get(key)
    if store.add(key + "/count", 1) == world:
        store.set(key + "/last", "1")
    store.wait([key + "/last"])
    passed[i] = time.monotonic()

for round in range(rounds):
    stores = [None] * clients
    for number in range(2):
        ids, passed = [b""] * clients, [0.0] * clients
        key = f"id.{round}.{number}"
        moment = wait_for(f"{gate}.{round}.{number}")
        threads = [threading.Thread(target=meet, args=(i, moment, key, stores, ids, passed))
                   for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(ids)) == 1 and len(ids[0]) == 128
        tell({"passed": max(passed), "id": ids[0].hex()[:32]})
if process + 1 < processes:
    os.wait()
os._exit(0)  # taking torch down would take seconds for each
"""


class Side:
    """The processes of one side, which print a line of JSON for each pass."""

    def __init__(self, num_processes, gate):
        self.num_processes = num_processes
        self.gate = gate

    def open(self, name, moment):
        """By rename: whoever sees the file sees all of it."""
        with open(f"{self.gate}.new", "w", encoding="ascii") as file:
            file.write(f"{moment:.6f}")
        os.rename(f"{self.gate}.new", f"{self.gate}.{name}")

    def measure(self, round_number, number):
        moment = time.monotonic() + NOTICE
        self.open(f"{round_number}.{number}", moment)
        told = self.lines()
        if len({line["id"] for line in told}) != 1:
            sys.exit(f"rendezvous_scale: not all ranks got the same id: {told}")
        return max(line["passed"] for line in told) - moment

    def start(self, argv):
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR", **NO_DNS})  # fmt: skip

    def lines(self):
        """What each process told of a pass."""
        told = []
        while len(told) < self.num_processes:
            line = self.process.stdout.readline()
            if not line:
                sys.exit(f"rendezvous_scale: {self.process.args[0]} ended with {self.process.wait()}")
            if match := re.search(r"\{.*\}$", line):
                told.append(json.loads(match[0]))
        return told

    def end(self):
        if self.process.wait(60) != 0:
            sys.exit(f"rendezvous_scale: {self.process.args[0]} ended with {self.process.returncode}")
        self.process.stdout.close()


class Ours(Side):
    def __init__(self, num_processes, rounds, gate):
        super().__init__(num_processes, gate)
        hosts = ",".join(f"agent{k}:1" for k in range(num_processes))
        self.start([str(HVDRUN), "-np", str(num_processes), "-H", hosts, "--transport", "command", "--rsh",
                    "sh -c 'exec \"$@\"' x {command}", str(CROWD), "--clients", str(CLIENTS), "--rounds",
                    str(rounds), "--gate", gate])  # fmt: skip


class TcpStore(Side):
    def __init__(self, num_processes, rounds, gate):
        super().__init__(num_processes, gate)
        self.start([PYTHON, "-c", TCPSTORE, *map(str, (num_processes, CLIENTS, rounds)), gate])
        self.lines()  # torch is loaded, the server listens


def compare(num_ranks, rounds, folder):
    """{(side, pass): [seconds]}."""
    num_processes = num_ranks // CLIENTS
    sides = {"TCPStore": TcpStore(num_processes, rounds + 1, f"{folder}/torch{num_ranks}"),
             "ours": Ours(num_processes, rounds + 1, f"{folder}/ours{num_ranks}")}  # fmt: skip
    times = {(side, name): [] for side in sides for name in PASSES}
    for round_number in range(rounds + 1):
        order = sorted(sides, reverse=round_number % 2 == 1)
        for side in order:
            for number, name in enumerate(PASSES):
                seconds = sides[side].measure(round_number, number)
                if round_number > 0:
                    times[side, name].append(seconds)
    for side in sides.values():
        side.end()
    return times


def figures(times):
    return f"{statistics.median(times):.3f} ({min(times):.3f}-{max(times):.3f})"


def print_rows(num_ranks, times):
    for name in PASSES:
        ours, theirs = times["ours", name], times["TCPStore", name]
        print(f"| {num_ranks} | {num_ranks // CLIENTS} | {name} | {figures(ours)} | {figures(theirs)} "
              f"| {statistics.median(theirs) / statistics.median(ours):.2f} |", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="64,256,1024")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    results = []
    print(f"put, get and barrier of stand-in ranks, {CLIENTS} in a process; medians of {options.rounds} "
          f"(least-most); {len(os.sched_getaffinity(0))} cores\n")  # fmt: skip
    print("| ranks | agents | | ours, s | TCPStore, s | TCPStore / ours |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for num_ranks in map(int, options.ranks.split(",")):
            times = compare(num_ranks, options.rounds, folder)
            print_rows(num_ranks, times)
            results += [{"ranks": num_ranks, "side": side, "pass": name, "seconds": seconds}
                        for (side, name), seconds in times.items()]  # fmt: skip
    print("\n" + json.dumps(results))


if __name__ == "__main__":
    main()
