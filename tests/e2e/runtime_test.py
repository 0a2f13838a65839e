"""Workers of the runtime and their launcher: who is let in, who is watched, who is told what."""

import os
import re
import shutil
import signal
import time
import unittest

import harness

FOUR = "node1:2,node2:2"
STALL = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "1", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "2"}
BEATS = ("-x", "HVDRUN_BEAT_MS=100")


class RuntimeJob(harness.EndToEnd):
    NODES = 2

    def program(self):
        build = os.path.dirname(os.path.dirname(harness.HVDRUN))
        return os.path.join(build, "tests", "programs", "runtime_worker")

    def job(self, *arguments, env=None, hosts=FOUR):
        return self.start("-np", 4, "-H", hosts, *BEATS, self.program(), *arguments, env=env)

    def ended(self, *arguments, limit=20, **kwargs):
        run = self.job(*arguments, **kwargs)
        run.wait(limit)
        self.assert_no_workers(run)
        return run

    def faulty(self, name, rank, *arguments, **kwargs):
        return self.ended("--fault", name, "--fault-rank", rank, *arguments, **kwargs)

    def wait_training(self, run):
        """Until the agents have heard of it. The pids by rank."""
        self.assertEqual(len(run.out.find(r"rank \d trains", 15, 4)), 4, run.report())
        time.sleep(0.3)  # some heartbeats
        return self.wait_workers(4, run)

    def assert_once(self, run, text):
        self.assertEqual((run.out.text + run.err.text).count(text), 1, run.report())


class Registration(RuntimeJob):
    def test_ranks_that_fit_together_run(self):
        run = self.ended()
        self.assert_code(run, 0)
        self.assertEqual([f"rank {rank} done" for rank in range(4)],
                         [run.rank_lines()[rank][-1] for rank in range(4)])
        self.assertNotIn("warning", run.err.text)

    def test_another_nccl_on_one_node_is_one_table_and_73(self):
        run = self.faulty("version", 3)
        self.assert_code(run, 73)
        self.assert_once(run, "nodes ")
        self.assert_says(run, r"node1, node2 rank 2 \(3 ranks\) +2\.28\.9",
                         r"node2 rank 3 \(1 rank\) +2\.27\.3", "LD_LIBRARY_PATH")
        self.assert_last_line(run, "NCCL version differs", r"2\.27\.3 on node2 rank 3")
        self.assert_within(run.seconds, 8, "refusal")

    def test_one_job_has_one_id_and_a_new_one_starts_while_it_dies(self):
        """hvdrun is killed while its ranks connect."""
        first = self.job("--fault", "connect", "--fault-rank", 1)
        self.wait_workers(4, first)
        time.sleep(0.5)
        first.signal(signal.SIGKILL)
        run = self.start("-np", 4, "-H", FOUR, *BEATS, self.program())
        self.assertEqual(run.wait(20), 0, run.report())
        self.assertEqual(len(run.out.find(r"rank \d done", 0, 4)), 4, run.report())
        self.assertNotIn("warning", run.err.text)

    def test_another_plan_shows_its_differing_words(self):
        run = self.faulty("plan", 1)
        self.assert_code(run, 73)
        self.assert_last_line(run, "plan differs", "batch=2 on node1 rank 1")
        self.assertNotIn("model=tiny", run.last_line)

    def test_two_ranks_on_one_gpu_are_named_with_host_and_slots(self):
        run = self.faulty("gpu", 3)
        self.assert_code(run, 73)
        self.assert_last_line(run, "node2: ranks 2, 3 share GPU GPU-0", "2 ranks of this job on 1 GPU")

    def test_fewer_rdma_devices_are_a_warning_and_the_job_runs(self):
        run = self.faulty("rdma", 2)
        self.assert_code(run, 0)
        self.assert_once(run, "not the same on all nodes: RDMA devices")
        self.assert_says(run, r"warning: node2 rank 2 \(1 rank\) +1")

    def test_doubled_rank_is_named_with_both_processes(self):
        run = self.faulty("double", 3)
        self.assert_code(run, 73)
        self.assert_last_line(run, r"rank 0 came twice: pid \d+ on node\d and pid \d+ on node\d")

    def test_rank_that_never_registers_is_named_at_the_deadline(self):
        run = self.faulty("silent", 2, "--timeout", 2)
        self.assert_code(run, 124)
        self.assert_last_line(run, r"only 3 of 4 ranks registered within 2 s, the program's limit",
                              r"missing: rank 2 \(node2, pid \d+, sleeping \(S\)\)")
        self.assert_within(run.seconds, 10, "a rank that never registers, limit 2 s")

    def test_rank_stopped_before_it_registers_is_named_and_gone(self):
        run = self.faulty("stop-first", 2, "--timeout", 2, hosts="node1:1,node2:3")
        self.assert_code(run, 124)
        self.assert_last_line(run, r"missing: rank 2 \(node2, pid \d+, stopped \(T\)\)")

    def test_rank_that_ends_unregistered_ends_the_waiting_at_once(self):
        run = self.faulty("absent", 2, "--timeout", 60)
        self.assert_code(run, 124)
        self.assert_last_line(run, r"^hvdrun: rank 2 \(node2, pid \d+\) ended with code 0 before "
                              "it registered; the other ranks of 4")
        self.assert_within(run.seconds, 10, "a rank that ended, limit 60 s")

    def test_rank_that_hangs_in_the_connection_is_told_with_its_stage(self):
        run = self.job("--fault", "connect", "--fault-rank", 1, "--timeout", 3)
        told = run.err.find("not all ranks run within the time for their start", 15)
        run.signal(signal.SIGTERM)
        run.wait(20)
        self.assertEqual(len(told), 1, run.report())
        self.assert_says(run, "ranks 0, 2, 3: running|rank 1: connecting")


class Stall(RuntimeJob):
    def assert_stalled(self, run, *parts):
        self.assert_code(run, 72)
        self.assert_last_line(run, "it stalled: no progress for", *parts)
        self.assert_says(run, "warning: no progress for")
        self.assert_within(run.seconds, 15, "stall of 1 s and 2 s")

    def test_stopped_rank_is_named_with_its_state(self):
        run = self.faulty("stop", 2, "--steps", 100000, "--fault-step", 50, env=STALL)
        self.assert_stalled(run, r"missing rank 2 on node2, (?:registering|running) at step \d+, stopped \(T\), no word")
        self.assertEqual(len(run.out.find(r"rank [013] dumps: no progress", 0, 3)), 3, run.report())
        self.assertEqual(len(run.out.find(r"rank [013] aborts: .*it stalled", 0, 3)), 3, run.report())

    def test_rank_that_hands_nothing_over_is_named_with_its_tensors(self):
        run = self.faulty("lag", 1, "--steps", 100000, env=STALL)
        self.assert_stalled(run, "missing rank 1 on node1, running at step 2",
                            "ranks 0, 2, 3 waiting for all_reduce of step 2")
        self.assert_says(run, "still lacks head.w, head.b and 7 more")

    def test_rank_that_left_early_is_named_with_its_end(self):
        run = self.faulty("early", 3, "--steps", 100000, "--fault-step", 50, env=STALL)
        self.assert_stalled(run, "missing rank 3 on node2, ended with code 0")

    def test_without_a_shutdown_time_it_only_warns_and_ctrl_c_ends_it(self):
        run = self.job("--fault", "stop", "--fault-rank", 2, "--steps", 100000,
                       env={"HOROVOD_STALL_CHECK_TIME_SECONDS": "1"})
        times = run.err.find("warning: no progress", 15, 2)
        self.assertEqual(len(times), 2, run.report())
        self.assertGreater(times[1] - times[0], 0.7, run.report())
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(20), 130, run.report())

    def test_user_variable_switches_it_off(self):
        run = self.start("-np", 4, "-H", FOUR, "-x", "HOROVOD_STALL_CHECK_DISABLE=1",
                         *BEATS, self.program(), "--fault", "stop", "--fault-rank", 2, "--steps", 100000,
                         env=STALL)
        self.assertEqual(run.err.find("no progress", 5), [], run.report())
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(20), 143, run.report())


class Abort(RuntimeJob):
    def test_the_others_abort_with_the_name_of_the_killed_rank(self):
        run = self.job("--steps", 100000)
        ranks = self.wait_training(run)
        os.kill(ranks[1], signal.SIGKILL)
        run.wait(20)
        self.assert_no_workers(run)
        self.assert_code(run, 137)
        self.assert_last_line(run, r"rank 1 \(node1, pid \d+\) was killed by SIGKILL")
        for rank in (0, 2, 3):
            self.assertEqual(len(run.out.find(rf"rank {rank} aborts: rank 1 \(node1, pid \d+\) was "
                                              "killed by SIGKILL", 0)), 1, run.report())

    def test_lost_node_of_rank_zero_is_the_cause_whatever_the_others_say(self):
        run = self.job("--steps", 100000)
        self.wait_training(run)
        for pid in self.agents("node1"):
            os.kill(pid, signal.SIGKILL)
        run.wait(20)
        self.assert_no_workers(run)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node node1 was lost")
        for rank in (2, 3):
            self.assertEqual(len(run.out.find(rf"rank {rank} aborts: .*node1 was lost", 0)), 1, run.report())

    def test_ctrl_c_is_no_abort_so_that_ranks_may_save(self):
        run = self.job("--steps", 100000)
        self.wait_training(run)
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(20), 130, run.report())
        self.assertNotIn("aborts", run.out.text)


class OtherNccl(RuntimeJob):
    """The second node finds another library than the first."""

    LIBRARY = os.path.join(os.path.dirname(os.path.dirname(harness.HVDRUN)), "tests", "programs", "other_nccl")
    OPTIONS = {"node2": harness.HostOptions(sshd_lines=[f"SetEnv LD_LIBRARY_PATH={LIBRARY}"])}

    def test_it_is_refused_with_one_table_of_the_nodes(self):
        run = self.ended()
        self.assert_code(run, 73)
        self.assert_once(run, "nodes ")
        self.assert_says(run, r"node1 \(2 ranks\) +\d", r"node2 \(2 ranks\) +2\.27\.3", "LD_LIBRARY_PATH")
        self.assert_last_line(run, "NCCL version differs", r"2\.27\.3 on node2")
        self.assertNotIn("done", run.out.text)


EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(harness.HVDRUN)), "examples")


@unittest.skipUnless(os.path.exists(os.path.join(EXAMPLES, "hello")), "no examples in this build")
class TwoNodes(harness.EndToEnd):
    """Programs of the runtime's library, on two nodes that are not alike."""

    NODES = 2

    def run_example(self, hosts, name, *arguments, **kwargs):
        run = self.hvdrun("-vv", "-H", hosts, os.path.join(EXAMPLES, name), *arguments, **kwargs)
        self.assert_code(run, 0)
        return run

    def on_node(self, host, path, text):
        """A file of this node alone."""
        whole = self.bed.root_of(host) + path
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="ascii") as file:
            file.write(text)
        self.addCleanup(os.unlink, whole)

    def test_unequal_numbers_of_ranks_give_exact_sums(self):
        for hosts in ("node1:1,node2:2", "node1:3,node2:1"):
            run = self.run_example(hosts, "all_reduce_bench", "-b", "4K", "-e", "1M", "-f", "256", "-n", 2)
            wrong = re.findall(r"float32 +[\d.]+ +[\d.]+ +[\d.]+ +(\d+) +[\d.]+ +[\d.]+ +[\d.]+ +(\d+)", run.out.text)
            self.assertEqual(wrong, [("0", "0")] * 2, run.report())

    def test_limits_of_open_files_are_told_of_each_rank(self):
        run = self.run_example("node1:1,node2:1", "hello")
        for rank in range(2):
            self.assert_says(run, rf"node{rank + 1}: rank {rank} \(pid \d+\): .*, open files (\d+) \(hard \1\)")

    def test_settings_in_the_file_of_one_node_are_a_warning_with_a_table(self):
        self.on_node("node2", "/root/.nccl.conf", "# tuned\nNCCL_ALGO=Ring\nNCCL_BUFFSIZE=1048576\n")
        run = self.run_example("node1:1,node2:1", "hello")
        self.assert_says(run, "warning: not the same on all nodes: NCCL settings",
                         r"warning: node1 \(1 rank\) +none\n",
                         r"warning: node2 \(1 rank\) +NCCL_ALGO=Ring NCCL_BUFFSIZE=1048576\n")

    def test_fewer_rdma_devices_are_a_warning_and_a_rank_that_hangs_then_is_ended(self):
        for host, states in (("node1", ("ACTIVE", "ACTIVE")), ("node2", ("ACTIVE", "DOWN"))):
            self.addCleanup(shutil.rmtree, self.bed.root_of(host) + "/tmp/sysfs")
            for number, state in enumerate(states):
                self.on_node(host, f"/tmp/sysfs/class/infiniband/mlx5_{number}/ports/1/state", f"4: {state}\n")
        run = self.start("-H", "node1:1,node2:1", "-x", "HVDRUN_SYSFS=/tmp/sysfs", *BEATS,
                         os.path.join(EXAMPLES, "all_reduce_bench"), "-b", "1M", "-e", "1M", "-n", 10**7,
                         env=STALL)
        self.assertTrue(run.err.find(r"warning: node2 \(1 rank\) +1$", 15), run.report())
        self.assert_says(run, "not the same on all nodes: RDMA devices", r"warning: node1 \(1 rank\) +2\n")
        time.sleep(1)  # until it reduces
        hung = next(pid for pid, rank in self.workers().items() if rank == 1)
        os.kill(hung, signal.SIGSTOP)
        since = time.monotonic()
        run.wait(20)
        self.assert_no_workers(run)
        self.assert_code(run, 72)
        self.assert_last_line(run, "it stalled: no progress for", r"missing rank 1 on node2, .*stopped \(T\)")
        self.assert_within(time.monotonic() - since, 10, "a stopped rank, limits of 1 s and 2 s")


if __name__ == "__main__":
    harness.main()
