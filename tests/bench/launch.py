#!/usr/bin/env python3
"""Start time, placing time, output and clean-up time of hvdrun beside parallel ssh, on test hosts.

Makes a testbed (tests/testbed; needs root), measures on its launching host, takes it down, prints
tables in Markdown. Rows are interleaved within a round, each run is under a time limit, and figures are
medians. CPU is that of the launching program with all it started and waited for.

  launch.py [--runs N] [--hosts 1,2,4,8,16] [--only start,growth,placing,output,failure]

With PEERS_STAND=/path/to/run.sh, an outside stand that has other launchers as rows runs afterwards, with
PEERS_HVDRUN naming this hvdrun.
"""
import argparse
import collections
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
HVDRUN = os.environ.get("HVDRUN_BIN", str(CHECKOUT / "build/bin/hvdrun"))
TESTBED = CHECKOUT / "tests/testbed/testbed"
EMITTER = HERE / "rank_output.py"
PYTHON = "/usr/bin/python3"
RANKS_PER_HOST = 8
LINES = 20000
LIMIT = 120.0
PARTS = ("start", "growth", "placing", "output", "failure")

Sample = collections.namedtuple("Sample", "seconds cpu code output ended")


def hosts_of(count):
    return [f"node{k}" for k in range(1, count + 1)]


def hvdrun(hosts, command, per_host=RANKS_PER_HOST):
    places = ",".join(f"{host}:{per_host}" for host in hosts)
    return [HVDRUN, "-np", str(per_host * len(hosts)), "-H", places, *command]


def ssh(hosts, command, per_host=RANKS_PER_HOST):
    """What people write by hand: one ssh for each host, all at once, and a loop there."""
    loop = (
        "k=${HOSTNAME#node}; for i in $(seq 0 %d); do RANK=$(( (k - 1) * %d + i )) %s & done; wait"
        % (per_host - 1, per_host, shlex.join(command))
    )
    there = shlex.quote(f"bash -c {shlex.quote(loop)}")
    return ["sh", "-c", f"printf '%s\\n' {' '.join(hosts)} | xargs -P {len(hosts)} -I {{}} ssh {{}} {there}"]


ROWS = {"hvdrun": hvdrun, "ssh": ssh}


def measure(argv):
    """Runs it to its end; the CPU seconds are those of the whole tree that was waited for."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        killer = threading.Timer(LIMIT, os.killpg, (process.pid, 9))
        killer.start()
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        ended = time.time()
        killer.cancel()
        seconds = time.monotonic() - begin
        process.returncode = code = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    return Sample(seconds, usage.ru_utime + usage.ru_stime, code, output, ended), said


def expect(argv, code=0):
    sample, said = measure(argv)
    if sample.code != code:
        sys.exit(f"launch: {shlex.join(argv)[:300]}\nended with {sample.code} instead of {code}: {said[-800:]}")
    return sample


def interleaved(runs, hosts, command):
    """{row: [Sample]}; one run of each row first, which is not counted and places the agent."""
    samples = {name: [] for name in ROWS}
    for round_number in range(runs + 1):
        for name, make in ROWS.items():
            sample = expect(make(hosts, command))
            if round_number > 0:
                samples[name].append(sample)
    return samples


def median(samples, field="seconds"):
    return statistics.median(getattr(sample, field) for sample in samples)


def table(title, head, rows):
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)


def start_time(args):
    samples = interleaved(args.runs, hosts_of(4), ["true"])
    base = median(samples["ssh"])
    rows = []
    for name, runs in samples.items():
        walls = [sample.seconds for sample in runs]
        rows.append((name, len(runs), f"{median(runs):.3f}", f"{min(walls):.3f}", f"{max(walls):.3f}",
                     f"{median(runs) / base:.2f}", f"{median(runs, 'cpu'):.3f}"))  # fmt: skip
    table("Start to end of 32 ranks of `true` on 4 hosts, agent in place",
          ("launcher", "runs", "median s", "min", "max", "x ssh", "CPU s"), rows)  # fmt: skip


def growth(args):
    rows = []
    for count in args.hosts:
        samples = interleaved(max(3, args.runs // 2), hosts_of(count), ["true"])
        rows.append((count, count * RANKS_PER_HOST, f"{median(samples['hvdrun']):.3f}",
                     f"{median(samples['ssh']):.3f}", f"{median(samples['hvdrun'], 'cpu'):.3f}"))  # fmt: skip
    table("Growth, 8 ranks of `true` a host", ("hosts", "ranks", "hvdrun s", "ssh s", "hvdrun CPU s"), rows)


def placing(args):
    """Each run finds hosts without the agent."""
    hosts, samples = hosts_of(4), []
    for _ in range(max(3, args.runs // 3)):
        for host in hosts:
            expect(["ssh", host, "rm -rf ~/.cache/hvdrun /var/tmp/hvdrun-[0-9]* /tmp/hvdrun-[0-9]* /run/user/*/hvdrun"])
        samples.append(expect(hvdrun(hosts, ["true"])))
    again = [expect(hvdrun(hosts, ["true"])) for _ in samples]
    table("First run on 4 hosts, the agent is placed on each", ("", "median s", "CPU s"),
          [("agent to be placed", f"{median(samples):.3f}", f"{median(samples, 'cpu'):.3f}"),
           ("agent in place", f"{median(again):.3f}", f"{median(again, 'cpu'):.3f}")])  # fmt: skip


LINE = re.compile(rb"^(?:\[(\d+)\]<stdout>: ?)?@R(\d{3}) L(\d{7}) ([a-z]{64})$")
LETTERS = b"abcdefghijklmnopqrstuvwxyz" * 4


def check_output(data, num_ranks):
    """(whole, missing, torn or strange): a whole line is one that its rank wrote, once."""
    seen, bad = set(), 0
    for text in data.split(b"\n"):
        match = LINE.match(text)
        if match and match[4] == LETTERS[int(match[3]) % 26 :][:64] and match[1] in (None, b"%d" % int(match[2])):
            seen.add((int(match[2]), int(match[3])))
        elif text:
            bad += 1
    return len(seen), num_ranks * LINES - len(seen), bad


def output(args):
    hosts, rows = hosts_of(4), []
    num_ranks = RANKS_PER_HOST * len(hosts)
    for mode in ("line", "block"):
        for name, make in ROWS.items():
            command = [PYTHON, "-I", "-S", str(EMITTER), str(LINES), mode]
            samples = [expect(make(hosts, command)) for _ in range(max(3, args.runs // 3))]
            checks = [check_output(sample.output, num_ranks) for sample in samples]
            whole = min(check[0] for check in checks)
            rows.append((mode, name, f"{median(samples):.2f}", f"{median(samples, 'cpu'):.2f}", whole,
                         max(check[1] for check in checks), max(check[2] for check in checks)))  # fmt: skip
            if name == "hvdrun" and whole != num_ranks * LINES:
                args.failures.append(f"output, {mode}: only {whole} of {num_ranks * LINES} lines are whole")
    table(f"Output: {num_ranks} ranks x {LINES} lines of 80 bytes ({num_ranks * LINES * 80 / 1e6:.0f} MB)",
          ("writes", "launcher", "median s", "CPU s", "whole lines", "missing", "torn"), rows)  # fmt: skip


def failure(args):
    """From the moment before a rank's exit to the end of hvdrun, which ends after the last process."""
    script = "[ $RANK = 5 ] && { date +at=%s.%N; exit 3; }; exec sleep 600"
    gaps = []
    for _ in range(args.runs):
        sample = expect(hvdrun(hosts_of(4), ["bash", "-c", script]), code=3)
        gaps.append(sample.ended - float(re.search(rb"at=([\d.]+)", sample.output)[1]))
    table("A rank of 32 exits with 3: until hvdrun has ended, all processes gone",
          ("runs", "median s", "min", "max"),
          [(len(gaps), f"{statistics.median(gaps):.3f}", f"{min(gaps):.3f}", f"{max(gaps):.3f}")])  # fmt: skip


def measure_inside(args):
    args.failures = []
    steps = {"start": start_time, "growth": growth, "placing": placing, "output": output, "failure": failure}
    for part in args.only:
        steps[part](args)
    if args.failures:
        sys.exit("launch: " + "; ".join(args.failures))


def describe_machine():
    version = subprocess.run([HVDRUN, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    cores = len(os.sched_getaffinity(0))
    print(f"{version}; Linux {os.uname().release}, {cores} cores; all hosts are on this one machine")


def measure_on_testbed(args):
    if os.geteuid() != 0:
        sys.exit("launch: the test hosts need root (network namespaces); run it as root")
    if not os.access(HVDRUN, os.X_OK):
        sys.exit(f"launch: {HVDRUN} is not there; run `make build`")
    describe_machine()
    needed = max(args.hosts) if "growth" in args.only else 4
    with tempfile.TemporaryDirectory(prefix="hvdrun-bench-") as scratch:
        folder = os.path.join(scratch, "testbed")
        try:
            subprocess.run([TESTBED, "up", folder, str(max(4, needed))], check=True)
            inside = [PYTHON, __file__, "--inside", "--runs", str(args.runs), "--only", ",".join(args.only),
                      "--hosts", ",".join(map(str, args.hosts))]  # fmt: skip
            code = subprocess.run([TESTBED, "exec", folder, "launcher", *inside]).returncode
        finally:
            subprocess.run([TESTBED, "down", folder], check=True)
    return code


def run_outside_stand():
    stand = os.environ.get("PEERS_STAND")
    if not stand:
        return 0
    return subprocess.run([stand, "start"], env={**os.environ, "PEERS_HVDRUN": HVDRUN}).returncode


def comma_list(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def part_name(word):
    if word not in PARTS:
        raise ValueError(word)
    return word


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--hosts", type=comma_list(int), default=[1, 2, 4, 8, 16])
    parser.add_argument("--only", type=comma_list(part_name), default=list(PARTS))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        measure_inside(args)
        return 0
    return measure_on_testbed(args) or run_outside_stand()


if __name__ == "__main__":
    sys.exit(main())
