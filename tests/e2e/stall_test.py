"""Ranks that hang: who is named, what is learnt of them before they are stopped, and the GPUs' use as
nvidia-smi tells it."""

import json
import os
import signal
import time

import harness
import lab

FOUR = "node1:2,node2:2"
HOOK = "echo hook of {rank} on {host}, {pid}"
LINES = """#!/bin/sh
while :; do
  printf '0, 3, 1024, 81920\\n1, [N/A], 2048, 81920\\n'
  sleep 0.2
done
"""


def program(name):
    build = os.path.dirname(os.path.dirname(harness.HVDRUN))
    return os.path.join(build, "tests", "programs", name)


class Hung(harness.EndToEnd):
    NODES = 2

    def busy(self, *arguments, command=(program("busy"),), **kwargs):
        return self.start("-np", 4, "-H", FOUR, "--grace", 1, *arguments, *command, **kwargs)

    def stop_rank(self, run, rank=2):
        """Stops one of four ranks; returns its pid on its host and when that was."""
        pid = self.wait_workers(4, run)[rank]
        time.sleep(0.3)
        os.kill(pid, signal.SIGSTOP)
        return time.monotonic()

    def ended(self, run, limit=20):
        run.wait(limit)
        self.assert_no_workers(run)
        return time.monotonic()

    def assert_blamed(self, run, rank=2, host="node2", state=r"stopped \(T\)"):
        self.assert_code(run, 124)
        self.assert_last_line(
            run, rf"it stalled: rank {rank} \({host}, pid \d+\) has given no sign of life for [23]"
                 rf"[.\d]* s, it is {state}: no output, no CPU time.* \(--stall-timeout 2 s\)")


class StallTimeout(Hung):
    def test_stopped_rank_is_named_after_the_hook_has_spoken_for_all_ranks(self):
        kept = os.path.join(self.bed.folder, "shared", "ranks")
        run = self.busy("--stall-timeout", 2, "--on-stall", HOOK, "--output-filename", kept)
        since = self.stop_rank(run)
        self.assert_within(self.ended(run) - since, 5, "a stopped rank, limit 2 s")
        self.assert_blamed(run)
        for rank in range(4):
            host = f"node{rank // 2 + 1}"
            self.assert_says(run, rf"rank {rank} \({host}, pid (\d+)\), .*; --on-stall says of it:\n"
                                  rf"  \| hook of {rank} on {host}, \1\n")
            self.assertRegex(lab.read_text(f"{kept}/rank.{rank}/stderr"), rf"\| hook of {rank} on {host}, \d+\n$")
        first = run.err.text.index("; --on-stall says")
        self.assertIn("rank 2 (node2", run.err.text[:first].splitlines()[-1])
        self.assertNotIn("silent, too", run.err.text)

    def test_without_a_hook_the_kernel_tells_of_the_stopped_rank(self):
        run = self.busy("--stall-timeout", 2)
        since = self.stop_rank(run, 1)
        self.assert_within(self.ended(run) - since, 5, "a stopped rank, limit 2 s")
        self.assert_blamed(run, 1, "node1")
        self.assert_says(run, r"rank 1 \(node1, pid (\d+)\), stopped \(T\); the kernel tells of it:\n"
                              r"  \| busy \(pid \1\), stopped \(T\), 1 thread\n"
                              r"  \|   1 thread: stopped \(T\)")
        self.assertEqual(run.err.text.count("the kernel tells of it"), 1, run.report())

    def test_hook_that_hangs_is_ended_at_its_limit(self):
        run = self.busy("--stall-timeout", 2, "--on-stall-limit", 1, "--on-stall",
                        "sh -c 'echo first of {rank}; sleep 100'")
        since = self.stop_rank(run)
        self.assert_within(self.ended(run) - since, 6, "limit 2 s and a hook that hangs, limit 1 s")
        self.assert_blamed(run)
        for rank in range(4):
            self.assert_says(run, rf"rank {rank} .*\(the command did not end within 1 s\):\n"
                                  rf"  \| first of {rank}\n")

    def test_hook_that_is_missing_or_fails_is_told_in_a_line(self):
        for hook, problem in (("no-such-program {pid}", "could not be executed: No such file"),
                              ("sh -c 'exit 3'", "ended with code 3")):
            run = self.busy("--stall-timeout", 2, "--on-stall", hook)
            self.stop_rank(run)
            self.ended(run)
            self.assert_blamed(run)
            self.assertEqual(len(run.err.find(rf"^hvdrun: rank \d .*; --on-stall printed nothing: "
                                              f"the command {problem}", 0, 4)), 4, run.report())

    def test_hook_that_could_never_run_is_refused(self):
        for arguments, words in ((("--stall-timeout", 2, "--on-stall", "dump {foo}"), "there is no {foo}"),
                                 (("--on-stall", "dump"), "give --stall-timeout TIME or --timeout TIME")):
            run = self.busy(*arguments)
            self.ended(run)
            self.assert_code(run, 2)
            self.assert_last_line(run, words)

    def test_rank_of_the_runtime_is_named_with_its_step(self):
        run = self.start("-np", 4, "-H", FOUR, "--stall-timeout", 2, "--on-stall", HOOK,
                         "-x", "HVDRUN_BEAT_MS=100", program("runtime_worker"), "--steps", 100000,
                         "--fault", "stop", "--fault-rank", 2, "--fault-step", 50)
        self.ended(run)
        self.assert_blamed(run)
        self.assert_last_line(run, r"no progress told by its heartbeats \(running at step \d+\)")
        self.assert_says(run, r"hook of 2 on node2, \d+")
        self.assertEqual(len(run.out.find(r"rank [013] aborts: .*it stalled", 0, 3)), 3, run.report())
        self.assert_within(run.seconds, 9, "a stopped rank of the runtime, limit 2 s")

    def test_sleepers_are_stalled_and_those_that_write_or_compute_are_not(self):
        run = self.busy("--stall-timeout", 2, command=(program("sleeper"),))
        self.ended(run)
        self.assert_blamed(run, r"\d", r"node\d", r"sleeping \(S\)")
        self.assert_last_line(run, "silent, too: ranks ")
        for command in ((program("busy"),),
                        ("sh", "-c", "while :; do echo x; sleep 0.3; done"),
                        ("sh", "-c", f"setsid {program('busy')} & wait")):
            run = self.busy("--stall-timeout", 1, command=command)
            self.wait_workers(4, run)
            time.sleep(3)
            run.signal(signal.SIGINT)
            self.ended(run)
            self.assert_code(run, 130)
            self.assertNotIn("no sign of life", run.err.text)

    def test_evidence_stands_in_the_report(self):
        path = os.path.join(self.bed.folder, "shared", "report.json")
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        run = self.busy("--stall-timeout", 2, "--report", path, "--on-stall",
                        "sh -c 'echo {rank}; seq 200'")
        self.stop_rank(run)
        self.ended(run)
        self.assert_blamed(run)
        self.assert_says(run, r"  \| \(\d+ bytes left out\)\n")
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        cause, stall = report["first_cause"], report["stall"]
        self.assertEqual((cause["class"], cause["rank"], cause["host"]), ("stalled", 2, "node2"))
        self.assertEqual(stall["rank"], 2)
        self.assertEqual(stall["hung"], [2])
        ranks = {entry["rank"]: entry for entry in stall["ranks"]}
        self.assertEqual(sorted(ranks), [0, 1, 2, 3])
        for rank, entry in ranks.items():
            self.assertEqual(entry["text"].split(), [str(rank), *map(str, range(1, 201))])
        self.assertEqual(ranks[2]["state"], "T")


class OtherKills(Hung):
    def test_time_limit_of_the_job_asks_the_hook_first(self):
        run = self.busy("--timeout", 2, "--on-stall", HOOK)
        self.ended(run)
        self.assert_code(run, 124)
        self.assert_last_line(run, "--timeout 2 s had passed")
        self.assertEqual(len(run.err.find(r"  \| hook of \d on node\d", 0, 4)), 4, run.report())
        self.assert_within(run.seconds, 5, "time limit of 2 s and a hook")

    def test_stall_among_ranks_of_the_runtime_asks_the_hook_first(self):
        for fault, words in (("spin", "missing rank 1 on node1"), ("stop", r"stopped \(T\)")):
            run = self.start("-np", 4, "-H", FOUR, "--on-stall", HOOK, "-x", "HVDRUN_BEAT_MS=100",
                             program("runtime_worker"), "--steps", 100000, "--fault", fault,
                             "--fault-rank", 1,
                             env={"HOROVOD_STALL_CHECK_TIME_SECONDS": "1",
                                  "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "2"})
            self.ended(run)
            self.assert_asked(run, words)

    def assert_asked(self, run, words):
        self.assert_code(run, 72)
        self.assert_last_line(run, "it stalled", words)
        self.assertEqual(len(run.err.find(r"  \| hook of \d on node\d", 0, 4)), 4, run.report())
        first = run.err.text.index("; --on-stall says")
        self.assertIn("rank 1 (node1", run.err.text[:first].splitlines()[-1])

    def test_hook_that_kills_does_not_hide_the_cause(self):
        run = self.busy("--stall-timeout", 2, "--on-stall", "kill -9 {pid}")
        self.stop_rank(run)
        self.ended(run)
        self.assert_blamed(run)

    def test_ctrl_c_while_a_hook_hangs_ends_the_job_at_once(self):
        run = self.busy("--stall-timeout", 2, "--on-stall-limit", 20, "--on-stall", "sleep 100")
        self.stop_rank(run)
        lab.wait_until(lambda: any(p.program == "sleep" for p in self.state.processes(mark=self.mark)),
                       10, "no hook runs")
        since = time.monotonic()
        run.signal(signal.SIGINT)
        self.assert_within(self.ended(run) - since, 3, "Ctrl-C during a hook")
        self.assert_blamed(run)


class GpuStats(Hung):
    def with_gpus(self, text, *arguments, command=("sleep", 3), **kwargs):
        path = self.script(text, "nvidia-smi")
        os.chmod(path, 0o755)
        self.addCleanup(os.unlink, path)
        return self.start("-np", 4, "-H", FOUR, "--gpu-stats", 0.2, *arguments, *command,
                          env={"PATH": f"{os.path.dirname(path)}:{harness.PATH}"}, **kwargs)

    def test_lowest_and_mean_in_the_status_line_the_events_and_the_report(self):
        events, report = (os.path.join(self.bed.folder, "shared", name) for name in ("e", "r"))
        self.addCleanup(lambda: [os.unlink(path) for path in (events, report)])
        run = self.with_gpus(LINES, "-v", "--events", events, "--report", report)
        self.ended(run)
        self.assert_code(run, 0)
        numbers = (r"4 GPUs: utilisation lowest 3 % \(node1 GPU 0\), mean 3 %; memory lowest 1\.0 GiB "
                   r"\(node1 GPU 0\), mean 1\.5 GiB")
        self.assert_says(run, rf"hvdrun: {numbers}\n", rf"hvdrun: over the run, {numbers}\n")
        with open(events, encoding="utf-8") as file:
            told = [e for e in map(json.loads, file) if e["event"] == "gpu_stats"]
        self.assertIn({"host": "node2", "gpu": 1, "utilization": None, "memory_mib": 2048},
                      told[-1]["gpus"])
        with open(report, encoding="utf-8") as file:
            gpus = json.load(file)["gpu"]["gpus"]
        self.assertEqual([(g["host"], g["gpu"]) for g in gpus],
                         [("node1", 0), ("node1", 1), ("node2", 0), ("node2", 1)])
        self.assertEqual(gpus[0]["utilization"], {"lowest": 3, "mean": 3.0})

    def test_one_that_hangs_is_told_once_a_node_and_goes_with_the_job(self):
        run = self.with_gpus("#!/bin/sh\ntrap '' TERM\nsleep 1000\n", command=("sleep", 4))
        self.ended(run)
        self.assert_code(run, 0)
        for host in ("node1", "node2"):
            text = f"warning: {host}: no GPU statistics: nvidia-smi has said nothing for 2 s"
            self.assertEqual(run.err.text.count(text), 1, run.report())
        self.assert_within(run.seconds, 8, "a job of 4 s beside an nvidia-smi that hangs")

    def test_one_that_dies_is_told_with_its_words(self):
        run = self.with_gpus("#!/bin/sh\necho Failed to initialize NVML\nexit 9\n")
        self.ended(run)
        self.assert_code(run, 0)
        for host in ("node1", "node2"):
            text = (f"{host}: no GPU statistics: nvidia-smi ended with code 9 (it said: Failed to "
                    "initialize NVML)")
            self.assertEqual(run.err.text.count(text), 1, run.report())

    def test_one_that_is_missing_is_told_once_a_node(self):
        run = self.start("-np", 4, "-H", FOUR, "--gpu-stats", 1, "true",
                         env={"PATH": "/usr/bin:/bin"})
        self.ended(run)
        self.assert_code(run, 0)
        self.assertEqual(run.err.text.count("no GPU statistics: nvidia-smi: No such file"), 2,
                         run.report())

    def test_it_goes_with_a_killed_agent(self):
        run = self.with_gpus(LINES, command=(program("busy"),))
        self.wait_workers(4, run)
        time.sleep(0.5)
        for pid in self.agents("node2"):
            os.kill(pid, signal.SIGKILL)
        self.ended(run)
        self.assert_code(run, 125)


if __name__ == "__main__":
    harness.main()
