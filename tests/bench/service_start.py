#!/usr/bin/env python3
"""Start time of 32 ranks of `true` on four hosts with systemd: by TLS to the agents that serve there (a unit
for each job), by ssh, and by Slurm's srun, in turns on the same hosts; and what the unit takes of it.

Needs root, the package (target hvdrun_deb) and slurm-wlm. HVDRUN_BENCH_ROUNDS=30 rounds.
"""
import os
import re
import statistics
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import harness
import on_systemd
import slurm_test

ROUNDS = int(os.environ.get("HVDRUN_BENCH_ROUNDS", "30"))
HOSTS = "node1:8,node2:8,node3:8,node4:8"


class Start(on_systemd.OnSystemd, slurm_test.OnSlurm):
    NODES = 4
    CPUS = 8
    # Slurm does not find its way in the cgroups of these hosts, and needs none.
    CGROUP_CONFIGURATION = "CgroupPlugin=cgroup/v1\n"
    OPTIONS = harness.with_systemd(NODES)

    def test_idle(self):
        """Of an agent that has run jobs and waits for the next: memory, and its part of a core within a minute."""
        def ticks(host):
            return sum(map(int, self.sh(host, f"cat /proc/{self.main_pid(host)}/stat").rsplit(")", 1)[1].split()[11:13]))

        self.seconds([harness.HVDRUN, "--transport", "tls", "--tls-dir", f"{self.shared}/alice", "-H", HOSTS, "true"])
        before = {host: ticks(host) for host in self.nodes}
        time.sleep(60)
        for host in self.nodes:
            used = (ticks(host) - before[host]) / os.sysconf("SC_CLK_TCK") / 60
            memory = int(re.search(r"VmRSS:\s+(\d+)", self.sh(host, f"cat /proc/{self.main_pid(host)}/status"))[1]) / 1024
            print(f"{host}: idle agent {memory:.1f} MB, {used:.3%} of a core", flush=True)
            self.assertLessEqual(memory, 25)
            self.assertLessEqual(used, 0.001)

    def main_pid(self, host):
        return self.sh(host, "systemctl show -p MainPID --value hvd-agent").strip()

    def seconds(self, words):
        env = self.bed.environment({**self.slurm_environment(), **self.environment()})
        began = time.monotonic()
        done = subprocess.run(self.bed.command(harness.LAUNCHER, words), env=env, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return time.monotonic() - began

    def test_start(self):
        rows = {
            "hvdrun --transport tls": [harness.HVDRUN, "--transport", "tls", "--tls-dir", f"{self.shared}/alice", "-np",
                                       "32", "-H", HOSTS, "true"],
            "hvdrun (ssh)": [harness.HVDRUN, "-np", "32", "-H", HOSTS, "true"],
            "srun": ["srun", "-N", "4", "-n", "32", "true"],
            "srun in an allocation": ["srun", "-N", "4", "-n", "32", "true"],
            "entering the host": ["true"],
        }
        times = {name: [] for name in rows}
        for _ in range(ROUNDS + 1):
            for name, words in rows.items():
                if name == "srun in an allocation":
                    continue
                times[name].append(self.seconds(words))
        # Within one allocation nothing waits for the scheduler.
        script = f"for i in $(seq {ROUNDS + 1}); do a=$(date +%s%N); srun true; echo $(( $(date +%s%N) - a )); done"
        env = self.bed.environment({**self.slurm_environment(), **self.environment()})
        done = subprocess.run(self.bed.command(harness.LAUNCHER, ["salloc", "--quiet", "-N", "4", "-n", "32", "bash", "-c", script]),
                              env=env, capture_output=True, text=True, timeout=300, check=True)
        times["srun in an allocation"] = [int(word) / 1e9 for word in done.stdout.split()]
        print(f"\n| 32 ranks of true on 4 hosts, median of {ROUNDS} | ms | of srun |\n|---|---|---|")
        medians = {name: statistics.median(all_[1:]) for name, all_ in times.items()}
        for name, median in medians.items():
            print(f"| {name} | {median * 1000:.0f} | {median / medians['srun']:.2f} |")
        up = [float(at) for host in self.nodes
              for at in re.findall(r"up after ([\d.]+) s", self.sh(host, "journalctl -u hvd-agent -o cat --no-pager"))]
        print(f"\nA job's unit was up after {statistics.median(up) * 1000:.0f} ms (median of {len(up)}), "
              f"{statistics.median(up) / medians['hvdrun --transport tls']:.0%} of it", flush=True)


if __name__ == "__main__":
    unittest.main()
