"""What hvdrun tells of a run: the first cause with its proof, the report, the events."""

import calendar
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

import harness

FOUR = "node1:2,node2:2"
INITIAL_PID_NAMESPACE = 0xEFFFFFFC
KMSG_KILL = "3,2087,35814505701,-;Memory cgroup out of memory: Killed process {} (python3) total-vm:9kB"
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
# As torch's @record leaves it.
RECORD = """
import json, os, sys, traceback
try:
    if os.environ["RANK"] == "1":
        raise ValueError("no shard 7")
    import time; time.sleep(600)
except ValueError as error:
    message = {"message": f"ValueError: {error}",
               "extraInfo": {"py_callstack": traceback.format_exc(), "timestamp": "1"}}
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
        json.dump({"message": message}, file)
    sys.exit(1)
"""


class Reporting(harness.EndToEnd):
    NODES = 2

    def shared(self, name):
        return os.path.join(self.bed.folder, "shared", name)

    def reported(self, *arguments, limit=30, name="report.json", **kwargs):
        """A run to its end, and its report."""
        path = self.shared(name)
        if os.path.exists(path):
            os.unlink(path)
        run = self.hvdrun("--report", path, *arguments, limit=limit, **kwargs)
        with open(path) as file:
            return run, json.load(file)


class Causes(Reporting):
    def test_lack_of_memory_is_claimed_with_its_proof(self):
        """On the machine itself: the test hosts number their processes by themselves."""
        if os.stat("/proc/self/ns/pid").st_ino != INITIAL_PID_NAMESPACE:
            self.skipTest("in a container the kernel's log names processes by other numbers")
        group = self.memory_group(64 << 20)
        path = self.shared("oom.json")
        worker = (f"[ $RANK = 1 ] || exec sleep 600; sleep 0.3; echo $$ > {group}/cgroup.procs; "
                  "exec python3 -c 'a = b\"x\" * 10**9'")
        run = subprocess.run([harness.HVDRUN, "--report", path, "-np", "2", "bash", "-c", worker],
                             env={"PATH": harness.PATH}, capture_output=True, text=True, timeout=30)
        self.assertEqual(run.returncode, 137, run.stderr)
        with open(path) as file:
            cause = json.load(file)["first_cause"]
        self.assertTrue(cause["oom"], run.stderr)
        self.assertIn(f"Killed process {cause['pid']} (python3)", cause["oom_proof"])
        self.assertRegex(run.stderr.splitlines()[-1], r"rank 1 \(localhost, pid \d+\) was killed by "
                         r"SIGKILL \(signal 9; out of memory: the kernel's log says")

    def memory_group(self, limit):
        """A control group with this limit, of v1 or v2, that goes with the test."""
        for base, name in (("/sys/fs/cgroup", "memory.max"),
                           ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
            group = os.path.join(base, f"hvdrun-test-{self.mark}")
            try:
                os.mkdir(group)
            except OSError:
                continue
            if os.path.exists(os.path.join(group, name)):
                with open(os.path.join(group, name), "w") as file:
                    file.write(str(limit))
                self.addCleanup(os.rmdir, group)
                return group
            os.rmdir(group)
        self.skipTest("the memory of a process cannot be limited here")

    def test_kill_without_proof_claims_nothing(self):
        run = self.start("--report", self.shared("killed.json"), "-np", 4, "-H", FOUR, "sleep", 600)
        os.kill(self.wait_workers(4, run)[2], signal.SIGKILL)
        run.wait(15)
        self.assert_code(run, 137)
        self.assert_last_line(run, r"rank 2 \(node2, pid \d+\) was killed by SIGKILL \(signal 9; not sent by "
                              r"hvdrun; .*out-of-memory killer")
        with open(self.shared("killed.json")) as file:
            self.assertFalse(json.load(file)["first_cause"]["oom"])

    def test_kernel_log_is_read_from_the_start_of_the_job_on(self):
        log = self.shared("kmsg")
        with open(log, "w") as file:
            file.write(KMSG_KILL.format(1) + "\n")
        worker = (f"[ $RANK = 1 ] || exec sleep 600; printf '4,1,2,-;{XID}\\n4,1,3,-;{XID}\\n' >> {log}; "
                  f"echo \"{KMSG_KILL}\" | sed s/{{}}/$$/ >> {log}; kill -9 $$")
        run, report = self.reported("-np", 2, "-H", "localhost:2", "bash", "-c", worker,
                                    env={"HVDRUN_KERNEL_LOG": log})
        self.assert_code(run, 137)
        cause = report["first_cause"]
        self.assertIn(f"Killed process {cause['pid']} ", cause["oom_proof"])
        self.assertEqual(cause["xid"], [XID])
        self.assertEqual(run.err.text.count(XID), 1, run.report())
        self.assertEqual(len(report["nodes"][0]["kernel_log"]), 2)

    def test_bus_error_hints_at_shared_memory(self):
        run, report = self.reported("-np", 2, "-H", "node1:1,node2:1", "python3", "-c",
                                    "import os; os.environ['RANK'] == '1' and os.kill(os.getpid(), 7);"
                                    "import time; time.sleep(600)")
        self.assert_code(run, 135)
        self.assert_last_line(run, r"rank 1 .*SIGBUS \(signal 7; .*/dev/shm")
        self.assertEqual(report["first_cause"]["signal"], "SIGBUS")

    def crash(self, limit, *words):
        """hvdrun below `ulimit -c`; its ranks work in the folder."""
        folder = self.shared("cores")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        path = self.shared("core.json")
        run = harness.Run(self.bed, ["bash", "-c", f"ulimit -c {limit} && exec \"$@\"", "_", harness.HVDRUN, "--report",
                                     path, *words], self.environment(), cwd=folder)
        self.addCleanup(run.end)
        run.wait(30)
        self.assert_code(run, 134)
        with open(path) as file:
            return folder, run, json.load(file)["first_cause"]

    def test_core_is_told_with_its_place_where_the_caller_allows_one(self):
        """Of one rank: where cores have one name, the kernel gives up the second of two at the same moment."""
        for limit, is_dumped in (("unlimited", True), ("0", False)):
            folder, run, cause = self.crash(limit, "-np", "4", "-H", "node1:4", "bash", "-c",
                                            "[ $RANK = 2 ] || exec sleep 60; kill -ABRT $$")
            self.assertEqual(cause["core"], is_dumped, run.report())
            said = re.search(r"was killed by SIGABRT \(signal 6; core dumped(, given to \S+| in its working directory as | as )"
                             r"([^;)]*)", run.last_line)
            self.assertEqual(said is not None, is_dumped, run.report())
            if is_dumped and not said[1].startswith(", given"):
                place = self.bed.root_of("node1") if said[2][0] == "/" else folder
                self.assertTrue(glob.glob(f"{place}/{re.sub('%.', '*', said[2]).lstrip('/')}"), run.report())

    def test_one_rank_alone_may_leave_a_core(self):
        for rank, is_dumped in ((0, True), (1, False)):
            _, run, cause = self.crash("unlimited", "--core-dumps", "rank0", "-np", "2", "-H", "node1:2", "bash", "-c",
                                       f"[ $RANK = {rank} ] || exec sleep 60; kill -ABRT $$")
            self.assertEqual(cause["core"], is_dumped, run.report())

    def test_traceback_of_a_python_program_is_shown(self):
        script = self.script(RECORD, "record.py")
        run, report = self.reported("-np", 2, "-H", "node1:1,node2:1", harness.PYTHON, script)
        self.assert_code(run, 1)
        self.assert_says(run, r"the error that rank 1 \(node2\) recorded", r"\| ValueError: no shard 7")
        traceback = report["first_cause"]["traceback"]
        self.assertEqual(traceback[0], "Traceback (most recent call last):")
        self.assertEqual(traceback[-1], "ValueError: no shard 7")

    def test_what_a_rank_wrote_acts_on_no_terminal(self):
        run, report = self.reported(
            "-np", 1, "-H", "node1:1", "bash", "-c",
            r"printf 'a\a\033]0;title\a\033[2Jb\n' >&2; yes '' | head -n 5000 >&2; exit 3")
        self.assert_code(run, 3)
        self.assert_says(run, r"\| a\\x07\\x1b\]0;title\\x07\\x1b\[2Jb\nhvdrun: rank 0")
        self.assertEqual(report["first_cause"]["last_lines"], ["a\a\033]0;title\a\033[2Jb"])

    def test_error_file_of_the_user_stays_the_users(self):
        run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", "-x", "TORCHELASTIC_ERROR_FILE=/tmp/mine",
                          "bash", "-c", "echo $TORCHELASTIC_ERROR_FILE")
        self.assertEqual(run.rank_lines(), {0: ["/tmp/mine"], 1: ["/tmp/mine"]})

    def test_ranks_that_save_after_the_stop_are_no_failures(self):
        worker = ("[ $RANK = 3 ] && sleep 0.5 && echo BOOM >&2 && exit 7; "
                  "trap 'exit $((RANK == 1 ? 143 : 0))' TERM; while :; do sleep 0.05; done")
        run, report = self.reported("-np", 4, "-H", FOUR, "bash", "-c", worker)
        self.assert_code(run, 7)
        self.assert_says(run, "hvdrun: 3 ranks stopped by hvdrun\n")
        self.assertEqual((report["num_stopped"], report["num_failed_after"]), (3, 0))
        self.assertEqual([rank["state"] for rank in report["ranks"]], ["stopped"] * 3 + ["failed"])

    def test_ranks_that_fail_after_the_cause_are_counted(self):
        worker = ("[ $RANK = 3 ] && sleep 0.5 && exit 7; [ $RANK = 2 ] && exec sleep 600; "
                  "trap 'exit 9' TERM; while :; do sleep 0.05; done")
        run, report = self.reported("-np", 4, "-H", FOUR, "bash", "-c", worker)
        self.assert_says(run, "hvdrun: 1 rank stopped by hvdrun, 2 failed after it\n")
        self.assertEqual((report["num_stopped"], report["num_failed_after"]), (1, 2))

    def runtime_worker(self, *arguments):
        build = os.path.dirname(os.path.dirname(harness.HVDRUN))
        program = os.path.join(build, "tests", "programs", "runtime_worker")
        return self.reported("-np", 4, "-H", FOUR, "-x", "HVDRUN_BEAT_MS=50", program, "--steps", 100,
                             *arguments)

    def test_rank_that_left_with_zero_is_named_where_the_others_missed_it(self):
        run, report = self.runtime_worker("--fault", "missed", "--fault-rank", 2)
        self.assert_code(run, 71)
        self.assert_last_line(run, r"rank 2 \(node2, pid \d+\) ended with 0 before the others, which "
                              "then lost it")
        self.assertEqual(report["reason"], "left_early")

    def test_rank_that_dies_after_the_others_have_missed_it_is_named(self):
        run, report = self.runtime_worker("--fault", "killed", "--fault-rank", 1)
        self.assert_code(run, 137)
        self.assertEqual(report["first_cause"]["rank"], 1)
        self.assertEqual(report["first_cause"]["signal"], "SIGKILL")

    def test_signal_that_somebody_sent_to_one_rank_names_that_rank(self):
        worker = ("import os, signal, socket, sys, time\n"
                  "rank = int(os.environ['RANK'])\n"
                  "print('up', flush=True)\n"
                  "time.sleep(600)\n")
        for number in (signal.SIGTERM, signal.SIGINT):
            run = self.start("-np", 4, "-H", FOUR, harness.PYTHON, self.script(worker, "wait.py"))
            self.assertEqual(len(run.out.find("up", 15, count=4)), 4, run.report())
            os.kill(self.wait_workers(4, run)[1], number)
            run.wait(15)
            self.assert_code(run, 128 + number)
            self.assert_last_line(run, rf"rank 1 .*{signal.Signals(number).name} \(signal {number:d}; not sent "
                                  "by hvdrun")

    def test_clocks_of_nodes_are_compared(self):
        """The second node's boot time is a day ahead, as after a day more of uptime."""
        rsh = ("sh -c 'h=$1; shift; [ $h = b ] && exec unshare -T --boottime 86400 \"$@\"; "
               "exec \"$@\"' x {host} {command}")
        # A busy machine may end the later one first, or see it first: now and then, while clocks that were not
        # compared would put the same rank first each time.
        right = rounds = 0
        while right < 3 and rounds < 10:
            rounds += 1
            at = time.time() + 2.5
            worker = ("import os, time\nrank = int(os.environ['RANK'])\n"
                      f"while time.time() < {at!r} + 0.005 * (rank == 0): pass\n"
                      "os._exit(5 if rank == 1 else 6)  # at once: no end of the interpreter in between\n")
            run, report = self.reported("-np", 2, "-H", "a:1,b:1", "--transport", "command", "--rsh", rsh,
                                        harness.PYTHON, self.script(worker, "fail.py"))
            self.assertIn(run.code, (5, 6), run.report())
            self.assertEqual(report["first_cause"]["host"], "b" if run.code == 5 else "a")
            right += run.code == 5
            ended = report["ranks"][1]["ended"]
            told = calendar.timegm(time.strptime(ended[:19], "%Y-%m-%dT%H:%M:%S"))
            self.assertLess(abs(told - at), 2, ended)
        self.assertEqual(right, 3, f"of {rounds} rounds")

    def test_wall_clocks_that_are_wrong_or_jump_change_nothing(self):
        """One node's is ten minutes ahead, one's behind, and one's jumps an hour ahead while the job runs."""
        clocks = "a) clock=600;; b) clock=-600;; c) clock=3600@1;; d) clock=0;;"
        rsh = f"sh -c 'case $0 in {clocks} esac; exec env HVDRUN_TEST_CLOCK=$clock \"$@\"' {{host}} {{command}}"
        run, report = self.reported(
            "-np", 4, "-H", "a:1,b:1,c:1,d:1", "--transport", "command", "--rsh", rsh, "--lease", 2,
            "--heartbeat-ms", 100, "bash", "-c", "for i in $(seq 1 60); do echo $i; sleep 0.05; done; "
            "sleep 0.3; [ $RANK != 2 ] || exit 5; sleep 600")
        self.assert_code(run, 5)
        self.assertGreater(run.seconds, 3)
        for rank in range(4):
            self.assertEqual(run.rank_lines()[rank], [str(i) for i in range(1, 61)])
        self.assertEqual([line for line in run.err.text.splitlines() if "warning" in line],
                         [f"hvdrun: warning: {host}: its clock differs by {skew} s; only printed times are affected"
                          for host, skew in (("a", "+600.0"), ("b", "-600.0"))])
        self.assertEqual(report["first_cause"]["host"], "c")
        for rank in report["ranks"]:
            for moment in (rank["started"], rank["ended"]):
                told = calendar.timegm(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S"))
                self.assertLess(abs(told - time.time()), 30, moment)


class Records(Reporting):
    def test_report_of_a_failure_tells_who_when_and_what_became_of_the_rest(self):
        run, report = self.reported("-np", 4, "-H", FOUR, "bash", "-c",
                                    "[ $RANK = 3 ] && echo BOOM >&2 && sleep 0.3 && exit 7; "
                                    "exec sleep 600", env={"SECRET": "s3cr3t"})
        self.assert_code(run, 7)
        self.assertEqual(report["version"], 1)
        self.assertEqual((report["exit_code"], report["reason"]), (7, "exited"))
        self.assertEqual(report["command"][:2], ["bash", "-c"])
        cause = report["first_cause"]
        self.assertEqual((cause["rank"], cause["host"], cause["code"]), (3, "node2", 7))
        self.assertEqual(cause["last_lines"], ["BOOM"])
        self.assertIn(cause["sentence"], run.last_line)
        ranks = report["ranks"]
        self.assertEqual([rank["host"] for rank in ranks], ["node1", "node1", "node2", "node2"])
        self.assertEqual([rank["signal"] for rank in ranks], ["SIGTERM"] * 3 + [None])
        self.assertEqual(ranks[3]["pid"], cause["pid"])
        for rank in ranks:
            self.assertLessEqual(report["begun"], rank["started"])
            self.assertLessEqual(rank["started"], rank["ended"])
            self.assertLessEqual(rank["ended"], report["ended"])
        for node in report["nodes"]:
            self.assertEqual((node["clean"], node["survivors"]), ("verified", []))
            self.assertIn(node["layer"], ("descendants", "cgroup"))
            self.assertRegex(node["agent_version"], r"^\d+\.\d+\.\d+")
        self.assertNotIn("s3cr3t", json.dumps(report))

    def test_report_of_a_success_and_of_a_stop_by_the_user(self):
        run, report = self.reported("-np", 2, "-H", "node1:1,node2:1", "true")
        self.assert_code(run, 0)
        self.assertEqual((report["reason"], report["first_cause"]), ("success", None))
        self.assertEqual([rank["state"] for rank in report["ranks"]], ["succeeded"] * 2)
        path = self.shared("stopped.json")
        run = self.start("--report", path, "-np", 2, "-H", "node1:1,node2:1", "sleep", 600)
        self.wait_workers(2, run)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(15), 143, run.report())
        with open(path) as file:
            report = json.load(file)
        self.assertEqual((report["reason"], report["num_stopped"]), ("user_signal", 2))

    def test_report_is_written_where_no_job_was_started(self):
        run, report = self.reported("-np", 9, "-H", FOUR, "true")
        self.assert_code(run, 2)
        self.assertEqual(report["reason"], "error")
        self.assertIn(report["error"], run.err.text)
        run, report = self.reported("-np", 2, "-H", "node1:1,nosuchhost:1", "true")
        self.assertIn(report["reason"], ("start_failed", "start_timeout"))
        self.assertEqual(report["nodes"][1]["clean"], "not_used")
        self.assertEqual([rank["state"] for rank in report["ranks"]], ["not_started"] * 2)

    def test_report_of_a_lost_node_says_what_is_known_of_it(self):
        path = self.shared("lost.json")
        run = self.start("--report", path, "-np", 2, "-H", "node1:1,node2:1", "bash", "-c",
                         "echo up; exec sleep 600")
        self.assertEqual(len(run.out.find("up", 15, 2)), 2, run.report())
        for pid in self.agents("node2"):
            os.kill(pid, signal.SIGKILL)
        run.wait(30)
        self.assert_code(run, 125)
        with open(path) as file:
            report = json.load(file)
        self.assertEqual((report["reason"], report["first_cause"]["host"]), ("node_lost", "node2"))
        self.assertEqual([node["clean"] for node in report["nodes"]], ["verified"] * 2)
        self.assertEqual([rank["state"] for rank in report["ranks"]], ["stopped", "running"])
        self.seconds_until_gone(time.monotonic(), 10)

    def test_full_disk_under_the_report_is_one_sentence_and_no_other_code(self):
        words = ["unshare", "-m", "bash", "-c", "mount -t tmpfs -o size=4k none /mnt && cd / && "
                 "echo old > /mnt/report && exec \"$@\"", "_", harness.HVDRUN, "--report",
                 "/mnt/report", "-np", "4", "-H", FOUR, "true"]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        self.assertEqual(run.wait(30), 0, run.report())
        self.assert_says(run, "--report .*No space left on device")

    def events_of(self, path):
        with open(path) as file:
            return [json.loads(line) for line in file]

    def test_events_tell_the_run_in_its_order(self):
        path = self.shared("events")
        run = self.hvdrun("--events", path, "-np", 4, "-H", FOUR, "bash", "-c",
                          "[ $RANK = 3 ] && sleep 0.5 && exit 7; exec sleep 600")
        self.assert_code(run, 7)
        events = self.events_of(path)
        names = [event["event"] for event in events]
        self.assertEqual([event["phase"] for event in events if event["event"] == "phase"],
                         ["fabric", "starting", "running", "stopping", "ended"])
        self.assertEqual([event["ranks"] for event in events if event["event"] == "spawn"],
                         [[0, 1], [2, 3]])
        self.assertEqual((names.count("rank_start"), names.count("rank_exit")), (4, 4))
        self.assertEqual((names[-1], events[-1]["exit_code"]), ("end", 7))
        first = next(event for event in events if event["event"] == "rank_exit")
        self.assertEqual((first["rank"], first["state"], first["code"]), (3, "failed", 7))
        ages = [event["monotonic_ms"] for event in events]
        self.assertEqual(ages, sorted(ages))
        for event in events:
            self.assertRegex(event["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_events_among_the_output_are_whole_lines(self):
        run = self.hvdrun("--events", "-", "-np", 4, "-H", FOUR, "bash", "-c",
                          "for i in $(seq 200); do echo line $i; done")
        self.assert_code(run, 0)
        lines = run.out.text.splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        self.assertEqual(events[-1]["event"], "end")
        self.assertEqual(sum(len(of_rank) for of_rank in run.rank_lines().values()), 800)
        self.assertEqual(len(events) + 800, len(lines), run.report())

    def test_reader_of_the_events_that_leaves_ends_nothing(self):
        fifo = self.shared("fifo")
        os.mkfifo(fifo)
        words = ["bash", "-c", f"head -n 1 < {fifo} & sleep 0.3; exec \"$@\"", "_", harness.HVDRUN,
                 "--events", fifo, "-np", "2", "-H", "node1:1,node2:1", "bash", "-c",
                 "sleep 1; echo done"]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        self.assertEqual(run.wait(30), 0, run.report())
        self.assertEqual(run.rank_lines(), {0: ["done"], 1: ["done"]}, run.report())
        self.assert_says(run, "its reader has gone")

    def test_report_and_events_in_one_place_are_refused(self):
        both = self.shared("both")
        for place, other in (("-", "-"), ("-", "/dev/stdout"), (both, both),
                             (both, self.shared("./both"))):
            run = self.hvdrun("--report", place, "--events", other, "-np", 2, "-H", FOUR, "true")
            self.assert_code(run, 2)
            self.assert_last_line(run, "give each a file of its own")

    def test_report_goes_to_the_standard_output_by_any_of_its_names(self):
        for name in ("-", "/dev/stdout"):
            run = self.hvdrun("--report", name, "-np", 2, "-H", "node1:1,node2:1", "true")
            self.assert_code(run, 0)
            self.assertEqual(json.loads(run.out.text)["exit_code"], 0, run.report())
        run = self.hvdrun("--report", "/dev/stderr", "-np", 2, "-H", "node1:1,node2:1", "true")
        self.assert_code(run, 2)
        self.assert_last_line(run, "--report .*it is no file; name another")

    def test_first_clean_exit_is_told_with_those_still_running(self):
        run = self.hvdrun("-v", "-np", 4, "-H", FOUR, "bash", "-c", "[ $RANK = 1 ] || sleep 1")
        self.assert_code(run, 0)
        self.assert_says(run, r"rank 1 \(node1\) ended with 0, waiting for 3 more")


if __name__ == "__main__":
    harness.main()
