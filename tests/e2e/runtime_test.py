"""Workers of the runtime and their launcher: who is let in, who is watched, who is told what."""

import os
import signal
import time

import harness

FOUR = "node1:2,node2:2"
STALL = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "1", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "2",
         "HVDRUN_BEAT_MS": "100"}


class RuntimeJob(harness.EndToEnd):
    NODES = 2

    def program(self):
        build = os.path.dirname(os.path.dirname(harness.HVDRUN))
        return os.path.join(build, "tests", "programs", "runtime_worker")

    def job(self, *arguments, env=None, hosts=FOUR):
        return self.start("-np", 4, "-H", hosts, self.program(), *arguments,
                          env={"HVDRUN_BEAT_MS": "100", **(env or {})})

    def ended(self, *arguments, limit=20, **kwargs):
        run = self.job(*arguments, **kwargs)
        run.wait(limit)
        self.assert_no_workers(run)
        return run

    def faulty(self, name, rank, *arguments, **kwargs):
        return self.ended("--fault", name, "--fault-rank", rank, *arguments, **kwargs)

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
        run = self.faulty("stop-first", 2, "--timeout", 2)
        self.assert_code(run, 124)
        self.assert_last_line(run, r"missing: rank 2 \(node2, pid \d+, stopped \(T\)\)")

    def test_rank_that_ends_unregistered_ends_the_waiting_at_once(self):
        run = self.faulty("absent", 2, "--timeout", 60)
        self.assert_code(run, 124)
        self.assert_last_line(run, r"^hvdrun: rank 2 \(node2, pid \d+\) ended with code 0 before "
                              "it registered; the other ranks of 4")
        self.assert_within(run.seconds, 10, "a rank that ended, limit 60 s")

    def test_rank_that_hangs_in_the_connection_is_told_with_its_stage(self):
        run = self.job("--fault", "connect", "--fault-rank", 1, "--timeout", 2)
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
        self.assert_stalled(run, r"missing rank 2 on node2, running at step \d+, stopped \(T\), no word")
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
                         self.program(), "--fault", "stop", "--fault-rank", 2, "--steps", 100000,
                         env=STALL)
        self.assertEqual(run.err.find("no progress", 5), [], run.report())
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(20), 143, run.report())


class Abort(RuntimeJob):
    def test_the_others_abort_with_the_name_of_the_killed_rank(self):
        run = self.job("--steps", 100000)
        ranks = self.wait_workers(4, run)
        # Until they train.
        time.sleep(0.5)
        os.kill(ranks[1], signal.SIGKILL)
        run.wait(20)
        self.assert_no_workers(run)
        self.assert_code(run, 137)
        self.assert_last_line(run, r"rank 1 \(node1, pid \d+\) was killed by SIGKILL")
        for rank in (0, 2, 3):
            self.assertEqual(len(run.out.find(rf"rank {rank} aborts: rank 1 \(node1, pid \d+\) was "
                                              "killed by SIGKILL", 0)), 1, run.report())

    def test_ctrl_c_is_no_abort_so_that_ranks_may_save(self):
        run = self.job("--steps", 100000)
        self.wait_workers(4, run)
        time.sleep(0.5)
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(20), 130, run.report())
        self.assertNotIn("aborts", run.out.text)


if __name__ == "__main__":
    harness.main()
