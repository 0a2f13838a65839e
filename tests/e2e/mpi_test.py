"""Programs built with MPICH initialise by PMI-1 without mpirun: ranks, collectives over several hosts,
and every way in which one of them can fail."""

import os
import shutil
import signal
import subprocess
import unittest

import harness
from harness import IS_LONG

BUILD = os.path.dirname(os.path.dirname(harness.HVDRUN))
HELLO = os.path.join(BUILD, "tests", "programs", "mpi_hello")
TORCHPACK = os.path.join(harness.CHECKOUT, "tests", "programs", "torchpack_like.py")
ALL = "node1:2,node2:2,node3:2,node4:2"
TWO = "node1:2,node2:2"
VARIABLES = ("PMI_FD", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "UCX_NET_DEVICES")
PRINT_VARIABLES = "echo " + " ".join(f"${{{name}-unset}}" for name in VARIABLES)
HAS_RDMA = os.path.isdir("/sys/class/infiniband") and bool(os.listdir("/sys/class/infiniband"))
# The test hosts share a kernel, by whose boot id UCX takes all ranks for those of one machine.
SEVERAL_MACHINES = ("-x", "UCX_TLS=tcp,self")
NEEDS_MPICH = unittest.skipUnless(os.path.exists(HELLO), "no mpicc.mpich (libmpich-dev) when this was built")


@NEEDS_MPICH
class Mpich(harness.EndToEnd):
    def hello(self, ranks, hosts, *words, **kwargs):
        hint = SEVERAL_MACHINES if "," in hosts else ()
        return self.hvdrun("-np", ranks, "-H", hosts, "--grace", 2, *hint, HELLO, *words, limit=60, **kwargs)

    def test_eight_ranks_on_four_hosts_find_each_other(self):
        run = self.hello(8, ALL, "part")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {r: [f"{r} 8 {r % 2} 2 36 together"] for r in range(8)})
        self.tell("8 ranks on 4 hosts through MPI_Init", run.seconds)

    def test_one_rank_and_ranks_of_one_host_ask_nobody_else(self):
        for ranks in (1, 4):
            run = self.hello(ranks, "node1:4")
            self.assert_code(run, 0)
            self.assertEqual(run.rank_lines(), {
                r: [f"{r} {ranks} {r} {ranks} {ranks * (ranks + 1) // 2} together"] for r in range(ranks)})

    def test_hosts_with_other_numbers_of_ranks(self):
        run = self.hello(6, "node2:3,node1:1,node4:2", "part")
        self.assert_code(run, 0)
        places = [(0, 3), (1, 3), (2, 3), (0, 1), (0, 2), (1, 2)]
        self.assertEqual(run.rank_lines(), {
            r: [f"{r} 6 {local} {size} 21 together"] for r, (local, size) in enumerate(places)})

    def test_an_abort_ends_the_job_with_its_code(self):
        for asked, code in ((5, 5), (0, 1)):
            run = self.hello(4, TWO, "abort", asked)
            self.assert_code(run, code)
            self.assert_last_line(run, rf"rank 1 \(node1, pid \d+\) called MPI_Abort with code {asked} at")

    def test_a_rank_that_dies_before_the_others_have_met_it(self):
        run = self.hello(4, TWO, "die")
        self.assert_code(run, 9)
        self.assert_last_line(run, r"rank 1 \(node1, pid \d+\) exited with code 9")

    def test_a_rank_that_leaves_without_finalize_is_a_failure(self):
        run = self.hello(4, TWO, "leave")
        self.assert_code(run, 1)
        self.assert_last_line(run, r"rank 1 \(node1, pid \d+\) ended between MPI_Init and MPI_Finalize")

    def test_a_rank_that_is_killed_while_others_wait_for_it(self):
        run = self.start("-np", 4, "-H", TWO, "--grace", 2, HELLO, "wait")
        self.assertEqual(len(run.out.find("together", 30, 4)), 4, run.report())
        os.kill(self.wait_workers(4, run)[1], signal.SIGKILL)
        self.assertEqual(run.wait(20), 137, run.report())
        self.assert_last_line(run, r"rank 1 \(node1, pid \d+\) was killed by SIGKILL")
        self.assert_no_workers(run)

    def test_without_pmi_each_program_is_alone(self):
        run = self.hvdrun("-np", 2, "-H", "node1:2", "--no-pmi", HELLO)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {r: ["0 1 0 1 1 together"] for r in range(2)})

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "no mpirun.mpich (package mpich)")
    def test_mpirun_below_hvdrun_has_its_own_ranks(self):
        run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", "mpirun.mpich", "-np", 2, HELLO, limit=60)
        self.assert_code(run, 0)
        for lines in run.rank_lines().values():
            self.assertEqual(sorted(lines), [f"{r} 2 {r} 2 3 together" for r in range(2)])


class Descriptor(harness.EndToEnd):
    NODES = 2

    def test_variables_are_hydras_and_go_with_no_pmi(self):
        hint = "unset" if HAS_RDMA else "eth0"
        run = self.hvdrun("-np", 4, "-H", TWO, "sh", "-c", PRINT_VARIABLES, env={"PMI_RANK": "77"})
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {r: [f"3 {r} 4 {r % 2} 2 {hint}"] for r in range(4)})
        run = self.hvdrun("--no-pmi", "-np", 2, "-H", TWO, "sh", "-c", PRINT_VARIABLES, env={"PMI_RANK": "77"})
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {r: [" ".join(["unset"] * len(VARIABLES))] for r in range(2)})
        run = self.hvdrun("--no-pmi", "--pmi", "-np", 1, "-H", "node1:1", "sh", "-c", PRINT_VARIABLES)
        self.assertEqual(run.rank_lines(), {0: ["3 0 1 0 1 unset"]})

    def test_garbage_on_the_descriptor_harms_nobody(self):
        garbage = ("import socket\ns = socket.socket(fileno=3)\ns.sendall(b'x' * 100000 + b'\\n')\n"
                   "try:\n  print('open' if s.recv(1) else 'closed')\nexcept ConnectionResetError:\n  print('closed')")
        run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", harness.PYTHON, "-c", garbage)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {r: ["closed"] for r in range(2)})
        for rank in range(2):
            self.assert_says(run, rf"rank {rank} sent what is no PMI command; its PMI descriptor was closed")

    def test_a_child_that_keeps_the_descriptor_holds_up_nothing(self):
        run = self.hvdrun("-np", 2, "-H", "node1:2", "--grace", 1, "sh", "-c",
                          "sleep 600 >/dev/null 2>&1 & exit 0", limit=20)
        self.assert_code(run, 0)


@NEEDS_MPICH
@unittest.skipIf(HAS_RDMA, "UCX takes this machine's RDMA devices, and no hint is given")
class Bridges(harness.EndToEnd):
    """Nodes with a bridge that looks like a way to the others and is none."""

    NODES = 2
    OPTIONS = {f"node{k}": harness.HostOptions(docker0=True) for k in (1, 2)}

    def test_ranks_meet_on_the_interface_by_which_the_nodes_did(self):
        run = self.hvdrun("-np", 4, "-H", TWO, *SEVERAL_MACHINES, HELLO, "part", limit=60)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {r: [f"{r} 4 {r % 2} 2 10 together"] for r in range(4)})


@NEEDS_MPICH
@unittest.skipUnless(IS_LONG, "builds mpi4py from its source package: HVDRUN_LONG=1")
class Mpi4py(harness.EndToEnd):
    def test_a_script_in_torchpacks_way_runs_unchanged(self):
        target = os.path.join(self.bed.folder, "shared", "mpi4py")
        subprocess.run([harness.PYTHON, "-m", "venv", target], check=True)
        python = os.path.join(target, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-binary", "mpi4py", "mpi4py"],
                       env={**os.environ, "MPICC": "mpicc.mpich"}, check=True)
        run = self.hvdrun("-np", 8, "-H", ALL, python, TORCHPACK, limit=60)
        self.assert_code(run, 0)
        for rank, lines in run.rank_lines().items():
            self.assertRegex(lines[0], rf"^{rank} 8 {rank % 2} 2 tcp://10\.77\.0\.1:\d+ 36$")
        self.assertEqual(len(run.rank_lines()), 8)
        self.tell("8 ranks of mpi4py", run.seconds)


if __name__ == "__main__":
    harness.main()
