"""hvdrun inside a real Slurm allocation: Debian's slurm-wlm and munge on the test hosts."""

import os
import shutil
import signal
import subprocess
import sys

import harness
import lab

PROGRAMS = ["slurmctld", "slurmd", "munged", "salloc"]
CONFIGURATION = """\
ClusterName=hosts
SlurmctldHost=launcher(10.77.0.254)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=node[1-{nodes}] CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class OnSlurm(harness.EndToEnd):
    """Hosts with Slurm's daemons."""

    NODES = 2
    CPUS = 4  # of each, as Slurm sees it
    CGROUP_CONFIGURATION = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = os.path.join(cls.bed.folder, "shared", "slurm")
        for name in ("state", "munge"):
            os.makedirs(os.path.join(cls.folder, name), mode=0o700)
        cls.conf = os.path.join(cls.folder, "slurm.conf")
        lab.write_text(cls.conf, CONFIGURATION.format(folder=cls.folder, nodes=cls.NODES, cpus=cls.CPUS))
        if cls.CGROUP_CONFIGURATION:
            lab.write_text(os.path.join(cls.folder, "cgroup.conf"), cls.CGROUP_CONFIGURATION)
        key = os.path.join(cls.folder, "munge", "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(1024))
        munge = os.path.join(cls.folder, "munge")
        cls.daemon(harness.LAUNCHER, "munged", "-F", "--force", "-S", f"{munge}/socket",
                   f"--key-file={key}", f"--log-file={munge}/log", f"--pid-file={munge}/pid",
                   f"--seed-file={munge}/seed")
        lab.wait_until(lambda: os.path.exists(f"{munge}/socket"), 10, "munged did not start")
        cls.daemon(harness.LAUNCHER, "slurmctld", "-D", "-f", cls.conf)
        for node in map(harness.layout.node_name, range(1, cls.NODES + 1)):
            cls.daemon(node, "slurmd", "-D", "-N", node, "-f", cls.conf)
        lab.wait_until(lambda: cls.idle() == str(cls.NODES), 60, f"nodes are not idle; see {cls.folder}")

    @classmethod
    def daemon(cls, host, program, *words):
        with open(os.path.join(cls.folder, f"{program}-{host}.out"), "wb") as out:
            child = subprocess.Popen(cls.bed.command(host, [f"/usr/sbin/{program}", *words]),
                                     env=cls.slurm_environment(), stdin=subprocess.DEVNULL,
                                     stdout=out, stderr=out)
        cls.addClassCleanup(child.wait)
        cls.addClassCleanup(cls.end, child)

    @staticmethod
    def end(child):
        for pid in filter(None, (lab.first_child_of(child.pid), child.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    @classmethod
    def slurm_environment(cls):
        return {"PATH": harness.PATH, "SLURM_CONF": cls.conf, "HOME": "/root"}

    @classmethod
    def idle(cls):
        done = subprocess.run(
            cls.bed.command(harness.LAUNCHER, ["sinfo", "-h", "-t", "idle", "-o", "%D"]),
            env=cls.slurm_environment(), capture_output=True, text=True, check=False)
        return done.stdout.strip()


class Slurm(OnSlurm):
    def salloc(self, *hvdrun_words, tasks=2, limit=40):
        run = self.on_host(harness.LAUNCHER, "salloc", "--quiet", "-N2",
                           f"--ntasks-per-node={tasks}", harness.HVDRUN, *map(str, hvdrun_words),
                           env={**self.slurm_environment(), **self.environment()})
        run.wait(limit)
        self.assert_no_workers(run)
        return run

    def test_ranks_run_on_the_allocations_nodes_by_srun(self):
        run = self.salloc("hostname")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(),
                         {0: ["node1"], 1: ["node1"], 2: ["node2"], 3: ["node2"]})
        self.assert_says(run, r"hosts of Slurm job \d+ \(SLURM_JOB_NODELIST\), reached by srun: "
                         "node1:2,node2:2")

    def test_output_is_whole_and_codes_are_those_of_the_ranks(self):
        run = self.salloc("sh", "-c", "yes abcdefghijklmnopqrstuvwxyz | head -n 20000; "
                          "[ $RANK != 3 ] || exit 7")
        self.assert_code(run, 7)
        lines = run.rank_lines()
        self.assertEqual(lines[3], ["abcdefghijklmnopqrstuvwxyz"] * 20000)

    def test_more_ranks_than_tasks_are_refused(self):
        run = self.salloc("-np", 5, "true")
        self.assert_code(run, 2)
        self.assert_says(run, "-np 5 is more than the 4 slots of Slurm job")

    def test_filters_hold_for_the_allocation(self):
        run = self.salloc("--exclude", "node1", "hostname")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["node2"], 1: ["node2"]})

    def test_named_hosts_are_reached_by_ssh_as_ever(self):
        run = self.salloc("-H", "node2:1", "hostname")
        self.assert_code(run, 0)
        self.assertNotIn("srun", run.err.text)


if __name__ == "__main__":
    if any(shutil.which(name, path=harness.PATH) is None for name in PROGRAMS):
        print("skipped: no slurm here; apt-get install slurm-wlm munge")
        sys.exit(harness.SKIPPED)
    harness.main()
