"""Ranks that no hvdrun started, and some that it did, come to a job by Runtime::init: the variables of
each launcher, a folder and TCP as the place to meet, what is refused and how a job ends. Ranks are
processes of this machine; WORKER, C_WORKER and EXAMPLES are the programs, HVDRUN_BIN is for the jobs
of hvdrun."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

WORKER = os.environ["WORKER"]
C_WORKER = os.environ["C_WORKER"]
EXAMPLES = pathlib.Path(os.environ["EXAMPLES"])
HVDRUN = os.environ.get("HVDRUN_BIN")
LIMIT = 120  # s, for a busy machine
LAUNCHERS = re.compile(r"^(RANK|WORLD_SIZE|LOCAL_|GROUP_|MASTER_|TORCHELASTIC_|OMPI_|PMIX?_|MPI_|SLURM_|HVDRUN_|HOROVOD_)")


def torchrun(rank, size, port=None):
    variables = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size,
                 "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1, "TORCHELASTIC_RESTART_COUNT": 0}
    if port:
        variables.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    return variables


def mpirun(rank, size):
    return {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size,
            "OMPI_COMM_WORLD_LOCAL_RANK": rank, "OMPI_COMM_WORLD_LOCAL_SIZE": size}


def mpich(rank, size):
    return {"PMI_RANK": rank, "PMI_SIZE": size, "MPI_LOCALRANKID": rank}


def srun_on_two_nodes(rank, size):
    return {"SLURM_PROCID": rank, "SLURM_NTASKS": size, "SLURM_LOCALID": rank % (size // 2),
            "SLURM_NODEID": rank // (size // 2), "SLURM_JOB_ID": 7, "SLURM_STEP_ID": 0}


def by_hand(rank, size):
    return {"RANK": rank, "WORLD_SIZE": size}


def free_port():
    """One whose successor is free, too."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


class Job:
    """Ranks of one job: exit codes, outputs and errors in the order of the ranks."""

    def __init__(self, commands):
        plain = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
        ranks = [subprocess.Popen([str(word) for word in command],
                                  env=dict(plain, **{k: str(v) for k, v in variables.items()}),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for command, variables in commands]
        try:
            outputs = [rank.communicate(timeout=LIMIT) for rank in ranks]
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
                    rank.communicate()
        self.codes = [rank.returncode for rank in ranks]
        self.outputs = [output for output, _ in outputs]
        self.errors = [errors for _, errors in outputs]


class RuntimeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.meet_in_folder = {"HVDRUN_INIT": f"file://{self.folder}"}

    def run_ranks(self, size, launcher, *command, modes=None, **more):
        """modes: of ranks that get another one than the command's."""
        command = command or (WORKER, "ok")
        return Job([([*command[:1], (modes or {}).get(rank, command[1]), *command[2:]]
                     if len(command) > 1 else command, {**launcher(rank, size), **more})
                    for rank in range(size)])

    def assert_places(self, job, expected):
        self.assertEqual(job.codes, [0] * len(expected), job.errors)
        self.assertEqual([output.strip() for output in job.outputs], expected)

    def assert_refused(self, job, code, pattern):
        """Every rank says one line."""
        self.assertEqual(job.codes, [code] * len(job.codes), job.errors)
        for text in job.errors:
            self.assertRegex(text, pattern)
            self.assertEqual(text.count("\n"), 1, text)

    def one_node(self, size, launcher):
        return [f"rank {r} of {size}, local {r} of {size}, cross 0 of 1, by '{launcher}'"
                for r in range(size)]


class Launchers(RuntimeTest):
    def test_one_process_needs_nothing(self):
        self.assert_places(self.run_ranks(1, lambda rank, size: {}), self.one_node(1, ""))

    def test_torchrun_meets_beside_its_own_store(self):
        port = free_port()
        with socket.socket() as store:  # torch's, which has its port
            store.bind(("127.0.0.1", port))
            store.listen()
            job = self.run_ranks(2, lambda rank, size: torchrun(rank, size, port))
        self.assert_places(job, self.one_node(2, "torchrun"))

    def test_mpirun_and_mpich_meet_over_tcp(self):
        for launcher in (mpirun, mpich):
            with self.subTest(launcher=launcher.__name__):
                job = self.run_ranks(3, launcher, HVDRUN_INIT=f"tcp://localhost:{free_port()}")
                self.assert_places(job, self.one_node(3, "mpirun"))

    def test_srun_on_two_nodes_meets_in_a_folder(self):
        job = self.run_ranks(4, srun_on_two_nodes, **self.meet_in_folder)
        self.assert_places(job, [f"rank {r} of 4, local {r % 2} of 2, cross {r // 2} of 2, by 'srun'"
                                 for r in range(4)])

    def test_without_a_place_to_meet_the_variable_is_named(self):
        for launcher in (mpirun, srun_on_two_nodes, torchrun):
            with self.subTest(launcher=launcher.__name__):
                job = self.run_ranks(2, launcher)
                self.assertEqual(job.codes, [2, 2])
                self.assertIn("HVDRUN_INIT", job.errors[0])

    def test_half_set_variables_are_named(self):
        job = self.run_ranks(1, lambda rank, size: {"RANK": 0, "LOCAL_RANK": 0})
        self.assertEqual(job.codes, [2])
        self.assertRegex(job.errors[0], r"WORLD_SIZE, HVDRUN_INIT .*are not set")

    def test_ranks_by_hand_lack_all_that_is_missing_in_one_sentence(self):
        job = self.run_ranks(2, by_hand)
        self.assert_refused(job, 2, r"LOCAL_RANK, LOCAL_WORLD_SIZE .*, HVDRUN_INIT .* are not set")

    def test_ranks_by_hand_count_how_many_a_node_has(self):
        job = self.run_ranks(2, lambda rank, size: {**by_hand(rank, size), "LOCAL_RANK": rank},
                             **self.meet_in_folder)
        self.assert_places(job, self.one_node(2, "torchrun"))

    def test_equal_local_ranks_of_a_node_are_refused(self):
        job = self.run_ranks(3, by_hand, LOCAL_RANK=0, **self.meet_in_folder)
        self.assert_refused(job, 73, r"ranks 0 and 1 are both local rank 0 of ")

    def test_variables_that_make_no_sense_are_refused_by_name(self):
        for name, value in (("HVDRUN_ADDRESS", "192.0.2.7"), ("HVDRUN_ADDRESS", "head"),
                            ("HVDRUN_ABORT_TIMEOUT_MS", "soon"), ("HVDRUN_INIT", "file:///proc"),
                            ("HVDRUN_INIT", "file:///none/such"), ("HOROVOD_TIMELINE", "/tmp"),
                            ("HOROVOD_TIMELINE", "/dev/null")):
            with self.subTest(name=name, value=value):
                job = self.run_ranks(2, torchrun, **{**self.meet_in_folder, name: value})
                self.assert_refused(job, 2, f"{name}={value}[: ]")

    def test_variables_without_effect_are_told_once(self):
        job = self.run_ranks(2, torchrun, HOROVOD_CYCLE_TIME=5, HOROVOD_AUTOTUNE=1,
                             **self.meet_in_folder)
        self.assert_places(job, self.one_node(2, "torchrun"))
        self.assertRegex(job.errors[0], r"HOROVOD_CYCLE_TIME=5, HOROVOD_AUTOTUNE=1 have no effect")
        self.assertEqual(job.errors[1], "")

    def test_a_rank_lifts_its_limit_of_open_files(self):
        low = ("bash", "-c", 'ulimit -Sn 64; ulimit -Hn 256; exec "$0" "$@"', WORKER, "limits")
        job = self.run_ranks(2, lambda rank, size: torchrun(rank, size), *low, **self.meet_in_folder)
        self.assertEqual(job.codes, [0, 0], job.errors)
        for output in job.outputs:
            self.assertEqual(output.splitlines()[0], "256 256")

    @unittest.skipUnless(HVDRUN, "HVDRUN_BIN is not set")
    def test_hvdrun_gives_its_own(self):
        job = Job([([HVDRUN, "-np", "4", WORKER, "ok"], {})])
        self.assertEqual(job.codes, [0], job.errors)
        for line in self.one_node(4, "hvdrun"):
            self.assertIn(line, job.outputs[0])


class Meetings(RuntimeTest):
    def test_a_folder_of_an_earlier_run_serves_again(self):
        died = self.run_ranks(2, torchrun, WORKER, "vanish", **self.meet_in_folder)
        self.assertEqual(died.codes, [71, 9], died.errors)
        self.assertTrue(os.listdir(self.folder))  # nobody could clean up
        job = self.run_ranks(2, torchrun, **self.meet_in_folder)
        self.assert_places(job, self.one_node(2, "torchrun"))

    def test_a_missing_rank_is_named_at_the_limit(self):
        for where in (self.meet_in_folder, {"HVDRUN_INIT": f"tcp://127.0.0.1:{free_port()}"}):
            with self.subTest(where=where):
                job = Job([([WORKER, "ok"], {**torchrun(0, 2), **where, "START_TIMEOUT_MS": 1500})])
                self.assertEqual(job.codes, [124], job.errors)
                self.assertRegex(job.errors[0], r"missing.*\b1\b|rank 1")

    def test_a_rank_zero_that_never_comes_is_told(self):
        port = free_port()
        job = Job([([WORKER, "ok"], {**torchrun(1, 2), "HVDRUN_INIT": f"tcp://127.0.0.1:{port}",
                                     "START_TIMEOUT_MS": 800})])
        self.assert_refused(job, 124, rf"nobody listens at 127\.0\.0\.1:{port} \(rank 0 would\)")

    def test_a_host_that_is_unknown_is_told_at_once(self):
        job = self.run_ranks(2, torchrun, HVDRUN_INIT="tcp://no such host:1234")
        self.assert_refused(job, 2, r"tcp://no such host:1234.*host 'no such host' cannot be found")

    def test_an_address_that_is_not_rank_zeros_is_told(self):
        job = Job([([WORKER, "ok"], {**torchrun(0, 2), "HVDRUN_INIT": f"tcp://192.0.2.7:{free_port()}"})])
        self.assert_refused(job, 2, r"tcp://192\.0\.2\.7:\d+ does not lead to it")

    def test_a_rank_of_another_job_is_refused_and_harms_nobody(self):
        where = f"tcp://127.0.0.1:{free_port()}"

        def command(rank, size, run):
            return [WORKER, "ok"], {**torchrun(rank, size), "HVDRUN_INIT": where,
                                    "TORCHELASTIC_RUN_ID": run}

        first = {}
        rank_zero = threading.Thread(target=lambda: first.update(job=Job([command(0, 2, "a")])))
        rank_zero.start()
        strangers = Job([command(1, 2, "b"), command(2, 3, "a")])
        second = Job([command(1, 2, "a")])
        rank_zero.join()
        self.assertEqual(strangers.codes, [73, 73], strangers.errors)
        for text, name in zip(strangers.errors, ("run b, 2", "run a, 3")):
            self.assertRegex(text, r"another job \(torchrun run a, 2 ranks\) meets there than this "
                                   rf"rank's \(torchrun {name} ranks\)")
            self.assertEqual(text.count("\n"), 1, text)
        self.assertEqual(first["job"].codes + second.codes, [0, 0], second.errors)
        self.assertEqual(len(re.findall("of another job .* was turned away", first["job"].errors[0])), 2)

    def test_jobs_of_two_names_share_a_folder(self):
        ranks = [(rank, run) for run in "ab" for rank in (0, 1)]
        job = Job([([WORKER, "ok"], {**torchrun(rank, 2), **self.meet_in_folder,
                                     "TORCHELASTIC_RUN_ID": run}) for rank, run in ranks])
        self.assert_places(job, 2 * self.one_node(2, "torchrun"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_port_that_is_taken_is_told(self):
        port = free_port()
        with socket.socket() as other:
            other.bind(("127.0.0.1", port))
            other.listen()
            job = Job([([WORKER, "ok"],
                        {**torchrun(0, 2), "HVDRUN_INIT": f"tcp://127.0.0.1:{port}"})])
        self.assert_refused(job, 2, f"cannot listen at port {port} .*another program or job")

    def test_another_plan_is_refused_on_every_rank(self):
        for where in (self.meet_in_folder, {"HVDRUN_INIT": f"tcp://127.0.0.1:{free_port()}"}):
            with self.subTest(where=where):
                job = self.run_ranks(3, torchrun, modes={1: "plan"}, **where)
                self.assertEqual(job.codes, [73] * 3, job.errors)
                table = re.compile(r"^nodes +plan$", re.MULTILINE)  # once for the job
                self.assertEqual([len(table.findall(text)) for text in job.errors], [1, 0, 0])
                for text in job.errors:
                    self.assertRegex(text, r"runtime_worker: .*plan differs \(the test on .*rank 1\)")


class Ends(RuntimeTest):
    def test_a_rank_that_vanishes_is_named_and_what_is_known_is_kept(self):
        job = self.run_ranks(3, torchrun, WORKER, "vanish", HVDRUN_DUMP_DIR=self.folder,
                             **self.meet_in_folder)
        self.assertEqual(job.codes, [71, 9, 71], job.errors)
        for rank in (0, 2):
            self.assertRegex(job.errors[rank], rf"rank {rank} on .*: .*rank 1 on .* is lost")
            dump = json.loads(pathlib.Path(self.folder, f"rank{rank}.flight.json").read_text())
            last = dump["entries"][-1]  # the third step's, which rank 1 did not come to
            self.assertEqual((last["profiling_name"], last["state"]), ("tcp:all_reduce", "started"))

    def test_a_rank_that_leaves_tells_the_others_why(self):
        job = self.run_ranks(2, torchrun, WORKER, "leave", **self.meet_in_folder)
        self.assertEqual(job.codes, [71, 74], job.errors)
        self.assertRegex(job.errors[1], r"rank 1 on .*: of its own accord")
        self.assertIn("of its own accord", job.errors[0])

    def test_broadcasts_from_different_roots_end_all_ranks(self):
        job = self.run_ranks(3, torchrun, WORKER, "roots", **self.meet_in_folder)
        self.assertEqual(job.codes, [73] * 3, job.errors)
        for text in job.errors:
            self.assertRegex(text, r"is in another operation \(broadcast from rank \d of 1 float64")

    @unittest.skipUnless(HVDRUN, "HVDRUN_BIN is not set")
    def test_hvdrun_ends_ranks_that_wait_for_nobody(self):
        job = Job([([HVDRUN, "-np", "4", WORKER, "idle"], {})])
        self.assertEqual(job.codes, [9], job.errors)
        self.assertRegex(job.errors[0], r"rank 1\b.*\b9\b")

    def test_a_timeline_that_cannot_be_written_is_refused(self):
        job = self.run_ranks(1, lambda rank, size: {}, HOROVOD_TIMELINE="/none/such/file")
        self.assertEqual(job.codes, [2])
        self.assertIn("/none/such/file", job.errors[0])

    def test_a_timeline_is_one_file_a_rank(self):
        job = self.run_ranks(2, torchrun, HOROVOD_TIMELINE=f"{self.folder}/t", **self.meet_in_folder)
        self.assertEqual(job.codes, [0, 0], job.errors)
        for rank in (0, 1):
            events = json.loads(pathlib.Path(self.folder, f"t.rank{rank}.json").read_text())
            self.assertTrue(events)


class InterfaceForC(RuntimeTest):
    def test_every_function(self):
        for size in (2, 3):
            job = self.run_ranks(size, torchrun, C_WORKER, **self.meet_in_folder)
            self.assertEqual(job.codes, [0] * size, job.errors)

    def test_an_abort_ends_the_others_calls_and_leave_ends_the_process(self):
        job = self.run_ranks(2, torchrun, C_WORKER, "abort", **self.meet_in_folder)
        self.assertEqual(job.codes, [75, 75], job.errors)
        self.assertIn("after an abort", job.errors[0])

    def test_leaving_without_a_job_ends_with_its_reason(self):
        job = Job([([C_WORKER, "leave"], {})])
        self.assert_refused(job, 74, "before a job")


class Examples(RuntimeTest):
    def run_example(self, name, *arguments, size=2):
        job = self.run_ranks(size, torchrun, EXAMPLES / name, *arguments, **self.meet_in_folder)
        self.assertEqual(job.codes, [0] * size, job.errors)
        return job.outputs

    def test_hello_in_c(self):
        outputs = self.run_example("hello", size=3)
        for rank, output in enumerate(outputs):
            self.assertRegex(output, rf"^rank {rank} of 3 \({rank} of 3 on .*\): 1 \+ \.\.\. \+ 3 = 6$")

    def test_the_training_loop_ends_equal_everywhere(self):
        outputs = [output.split(": ")[1] for output in self.run_example("train_loop", size=3)]
        self.assertEqual(len(set(outputs)), 1, outputs)
        slope, offset = map(float, re.fullmatch(r"y = (\S+) x \+ (\S+)\n", outputs[0]).groups())
        self.assertAlmostEqual(slope, 2, delta=0.05)
        self.assertAlmostEqual(offset, -1, delta=0.05)

    def test_the_benchmark_finds_nothing_wrong(self):
        for name in ("float", "bfloat16", "half", "int64", "uint8"):
            outputs = self.run_example("all_reduce_bench", "-b", "8", "-e", "64K", "-f", "16", "-n",
                                       "2", "-d", name)
            lines = [line.split() for line in outputs[0].splitlines() if not line.startswith("#")]
            self.assertEqual([int(line[0]) for line in lines], [8, 128, 2048, 32768])
            for line in lines:
                self.assertEqual((line[6], line[10]), ("0", "0"), line)
            self.assertEqual(outputs[1], "")

    def test_the_benchmark_refuses_nonsense(self):
        job = Job([([EXAMPLES / "all_reduce_bench", *arguments], {})
                   for arguments in (["-b", "x"], ["-d", "float8"], ["--fast", "1"], ["-n"])])
        self.assertEqual(job.codes, [2] * 4)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main(verbosity=2)
