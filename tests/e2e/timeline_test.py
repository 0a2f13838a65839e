"""Timelines: one trace of all ranks after the job, and files that parse wherever a job was cut off."""

import glob
import json
import os
import re
import shutil
import signal
import time

import harness
import lab


def program(name):
    build = os.path.dirname(os.path.dirname(harness.HVDRUN))
    return os.path.join(build, "tests", "programs", name)


WORKER = program("timeline_worker")
CLOCK_ERROR = 50e3  # us: half a round trip to an agent, on a busy machine


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def timed(trace, **wanted):
    """The events with a time that have these fields."""
    return [e for e in trace if e["ph"] != "M" and all(e.get(k) == v for k, v in wanted.items())]


class Timeline(harness.EndToEnd):
    NODES = 2

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.bed.folder, "shared", "timeline")
        os.makedirs(self.folder)
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "trace.json")

    def run_job(self, *arguments, command=(WORKER, 10), limit=30, **kwargs):
        return self.hvdrun("-np", 4, "-H", "node1:2,node2:2", "--timeline-filename", self.file,
                           *arguments, *command, limit=limit, **kwargs)

    def start_endless(self, *arguments):
        """A job that writes until it is cut off; all ranks have written for some time."""
        run = self.start("-np", 4, "-H", "node1:2,node2:2", "--timeline-filename", self.file,
                         *arguments, WORKER, 0)
        for rank in range(4):
            self.assertTrue(run.out.find(rf"rank {rank} at step 50", 20), run.report())
        return run

    def places(self, run):
        """{host: folder on the machine}, of the start line."""
        lines = re.findall(r"^hvdrun: timelines stand in (.*) until they are merged into (.*)$",
                           run.err.text, re.MULTILINE)
        self.assertEqual(len(lines), 1, run.report())
        self.assertEqual(lines[0][1], self.file)
        return {host: self.bed.root_of(host) + path
                for host, _, path in (entry.partition(":") for entry in lines[0][0].split(", "))}

    def assert_in_order(self, trace):
        last = {}
        for event in timed(trace):
            track = event["pid"], event["tid"]
            self.assertGreaterEqual(event["ts"], last.get(track, event["ts"]), event)
            last[track] = event["ts"]

    def assert_left_over(self, folder, ranks):
        """Files of a job that was cut off; removed here."""
        self.assertEqual(sorted(map(os.path.basename, glob.glob(folder + "/*"))),
                         [f"rank{rank}.json" for rank in ranks])
        for rank in ranks:
            trace = read(f"{folder}/rank{rank}.json")
            self.assertGreater(len(timed(trace, name="TCP_ALLREDUCE", pid=rank)), 50)
        shutil.rmtree(folder)

    # ---- the file ---------------------------------------------------------------------------

    def test_all_ranks_of_two_nodes_in_one_trace(self):
        run = self.run_job("-v")
        self.assert_code(run, 0)
        trace = read(self.file)
        names = {e["pid"]: e["args"]["name"] for e in trace if e["name"] == "process_name"}
        self.assertEqual(names, {0: "rank 0 on node1", 1: "rank 1 on node1",
                                 2: "rank 2 on node2", 3: "rank 3 on node2"})
        self.assert_in_order(trace)
        for rank in range(4):
            for name in ("ALLREDUCE", "TCP_ALLREDUCE", "MEMCPY_IN_FUSION_BUFFER"):
                self.assertEqual(len(timed(trace, pid=rank, name=name)), 20)
            first = timed(trace, pid=rank, name="STEP 1")[0]
            last = timed(trace, pid=rank, name="STEP 10")[0]
            self.assertGreater(first["ts"], -CLOCK_ERROR)
            self.assertLess(last["ts"] + last["dur"], run.seconds * 1e6)
            self.assertGreater(last["ts"] - first["ts"], 9 * 20e3)
        self.assertIn('bucket 0: "head"', {e["args"].get("name") for e in trace
                                           if e["name"] == "thread_name"})
        self.assertEqual(set(self.places(run)), {"node1", "node2"})
        self.assert_says(run, rf"timeline of 4 ranks in {self.file} \(\d+ KiB\)")
        self.assertEqual(os.listdir(self.folder), ["trace.json"])
        self.tell("4 ranks", run.seconds)

    def test_trace_is_in_the_order_of_real_time_across_nodes(self):
        # The second rank, on the other node, starts when the first one has written its steps.
        flag = os.path.join(self.folder, "flag")
        text = f"""if [ $RANK = 1 ]; then while [ ! -e {flag} ]; do sleep 0.01; done; fi
{WORKER} 10; touch {flag}"""
        script = self.script("#!/bin/sh\n" + text + "\n", "in_turn.sh")
        # The second node's boot time is a day ahead, as after a day more of uptime, its clock an hour.
        rsh = ("sh -c 'h=$1; shift; [ $h = b ] && exec env HVDRUN_TEST_CLOCK=3600 unshare -T --boottime 86400 "
               "\"$@\"; exec \"$@\"' x {host} {command}")
        run = self.hvdrun("-np", 2, "-H", "a:1,b:1", "--transport", "command", "--rsh", rsh,
                          "--timeline-filename", self.file, "sh", script)
        self.assert_code(run, 0)
        trace = read(self.file)
        end = max(e["ts"] + e.get("dur", 0) for e in timed(trace, pid=0))
        begin = min(e["ts"] for e in timed(trace, pid=1))
        self.assertGreater(begin, end)
        self.assertLess(begin - end, 5e6)

    def test_without_the_runtime_one_warning_and_the_file_is_left_alone(self):
        lab.write_text(self.file, "Horovod's own")
        run = self.run_job(command=("true",))
        self.assert_code(run, 0)
        self.assertEqual(run.err.text.count("no rank has written a timeline"), 1, run.report())
        self.assertEqual(lab.read_text(self.file), "Horovod's own")

    def test_a_job_without_the_option_writes_none(self):
        run = self.hvdrun("-np", 1, "-H", "node1:1", WORKER, 3,
                          env={"HVDRUN_TIMELINE": self.folder})
        self.assert_code(run, 0)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertNotIn("timeline", run.err.text)

    # ---- where the file shall stand ---------------------------------------------------------

    def test_bad_paths_are_refused_before_anything_starts(self):
        cases = [(self.folder, "it is a folder; name a file in it"),
                 (self.folder + "/none/t.json", "there is no folder .*; make it or name another"),
                 ("/proc/t.json", "no file can be made in .*; name another folder"),
                 ("/dev/null", "it is no file; name another"),
                 ("", "no file is named")]
        for path, reason in cases:
            run = self.hvdrun("-H", "node1:1", "--timeline-filename", path, "true")
            self.assert_code(run, 2)
            self.assertRegex(run.err.text, rf"\Ahvdrun: error: --timeline-filename \S+: {reason}\n\Z")
        run = self.hvdrun("-H", "node1:1", "true", env={"HOROVOD_TIMELINE": self.folder})
        self.assert_code(run, 2)
        self.assert_says(run, "HOROVOD_TIMELINE: .*: it is a folder")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_relative_path_means_the_directory_of_hvdrun(self):
        below = os.path.join(self.folder, "below")
        os.makedirs(below)
        run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", WORKER, 2, cwd=below,
                          env={"HOROVOD_TIMELINE": "../relative.json"})
        self.assert_code(run, 0)
        trace = read(os.path.join(self.folder, "relative.json"))
        self.assertEqual({e["pid"] for e in trace}, {0, 1})
        self.assertEqual(os.listdir(below), [])

    # ---- jobs that are cut off --------------------------------------------------------------

    def test_killed_hvdrun_leaves_the_files_where_it_said(self):
        run = self.start_endless()
        run.signal(signal.SIGKILL)
        run.wait(10)
        self.seconds_until_gone(time.monotonic(), 15)
        places = self.places(run)
        self.assert_left_over(places["node1"], [0, 1])
        self.assert_left_over(places["node2"], [2, 3])
        self.assertEqual(os.listdir(self.folder), [])

    def test_killed_worker_is_in_the_trace(self):
        run = self.start_endless()
        ranks = {rank: pid for pid, rank in self.workers().items()}
        os.kill(ranks[2], signal.SIGKILL)
        self.assertEqual(run.wait(20), 137, run.report())
        trace = read(self.file)
        self.assert_in_order(trace)
        for rank in range(4):
            self.assertGreater(len(timed(trace, pid=rank, name="TCP_ALLREDUCE")), 50)
        self.assert_last_line(run, "rank 2 .*SIGKILL")

    def test_a_lost_node_keeps_its_files_and_the_others_are_merged(self):
        run = self.start_endless()
        for pid in self.agents("node2"):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(run.wait(20), 125, run.report())
        self.assertEqual({e["pid"] for e in read(self.file)}, {0, 1})
        self.assert_says(run, r"warning: node2: not all of its timelines are in .*: the connection "
                              r"was lost; they stay in /var/tmp/\S+ on that node")
        self.seconds_until_gone(time.monotonic(), 15)
        self.assert_left_over(self.places(run)["node2"], [2, 3])

    # ---- bounds -----------------------------------------------------------------------------

    def test_window_of_steps(self):
        run = self.run_job("--timeline-steps", "3-5", "--timeline-mark-cycles")
        self.assert_code(run, 0)
        trace = read(self.file)
        for rank in range(4):
            self.assertEqual([e["args"]["step"] for e in timed(trace, pid=rank, name="CYCLE_START")],
                             [3, 4, 5])
            self.assertEqual([e["name"] for e in timed(trace, pid=rank, tid=0)
                              if e["name"].startswith("STEP")], ["STEP 3", "STEP 4", "STEP 5"])
            self.assertEqual(len(timed(trace, pid=rank, name="ALLREDUCE")), 6)
            end = timed(trace, pid=rank, name="TIMELINE_END")
            self.assertEqual(len(end), 1)
            self.assertIn("step 5 was the last", end[0]["args"]["reason"])

    def test_full_disk_of_a_node_ends_its_files_early_and_is_named(self):
        mount = self.on_host("node2", "mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", "/var/tmp")
        self.assertEqual(mount.wait(5), 0, mount.report())
        self.addCleanup(lambda: self.on_host("node2", "umount", "/var/tmp").wait(5))
        run = self.run_job(command=(WORKER, 5, 5000))
        self.assert_code(run, 0)
        for rank in (2, 3):
            self.assert_says(run, rf"warning: node2: timeline of rank {rank}: it ends early: the disk "
                                  r"of its node is full; [1-9]\d* events of it are kept\n")
        self.assertNotIn("no clock", run.err.text)
        trace = read(self.file)
        self.assert_in_order(trace)
        kept = [len(timed(trace, pid=rank)) for rank in range(4)]
        self.assertGreater(min(kept), 0)
        self.assertLess(max(kept[2:]), min(kept[:2]))

    def test_bound_of_size(self):
        run = self.run_job("--timeline-max-mb", 1, command=(WORKER, 5, 5000))
        self.assert_code(run, 0)
        trace = read(self.file)
        for rank in range(4):
            end = timed(trace, pid=rank, name="TIMELINE_END")
            self.assertEqual(len(end), 1, f"rank {rank}")
            self.assertIn("1048576 bytes", end[0]["args"]["reason"])
        size = os.path.getsize(self.file)
        self.assertLess(size, 4.2 * 2**20)
        self.assertGreater(size, 3 * 2**20)


if __name__ == "__main__":
    harness.main()
