"""Options: a line of horovodrun's with its configuration file, output files and times of lines;
where values come from; a job inside a job."""

import json
import os
import re

import harness
import lab

STAMP = r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \d{4}"


class Options(harness.EndToEnd):
    NODES = 1

    def folder(self, name):
        return os.path.join(self.bed.folder, "shared", name)

    def test_a_line_of_horovodrun_runs_unchanged(self):
        config = self.script("params:\n  fusion_threshold_mb: 32\n  cycle_time_ms: 9\n"
                             "stall_check:\n  enabled: true\n  warning_time_seconds: 30\n"
                             "logging:\n  level: INFO\n  with_timestamp: false\n", "horovod.yaml")
        output = self.folder("output")
        run = self.hvdrun(
            "-np", 2, "-H", "localhost:2", "--gloo", "--disable-cache", "--start-timeout", 30,
            "--output-filename", output, "-prefix-timestamp", "--config-file", config,
            "--cycle-time-ms", 3.5, "--cache", 2048, "--no-hierarchical-allreduce", "--tcp",
            "bash", "-c", "env | grep -E '^(HOROVOD|NCCL_IB)_' | sort; echo oops >&2",
            env={"HOROVOD_CYCLE_TIME": "1", "HOROVOD_THREAD_AFFINITY": "5"})
        self.assert_code(run, 0)
        self.assert_says(run, "--disable-cache has no effect")
        for rank in range(2):
            marked = re.compile(rf"^{STAMP}\[{rank}\]<stdout>:(.*)$", re.MULTILINE)
            lines = marked.findall(run.out.text)
            for line in ("HOROVOD_FUSION_THRESHOLD=33554432", "HOROVOD_CYCLE_TIME=3.5",
                         "HOROVOD_CACHE_CAPACITY=2048", "HOROVOD_STALL_CHECK_DISABLE=0",
                         "HOROVOD_STALL_CHECK_TIME_SECONDS=30", "HOROVOD_LOG_LEVEL=INFO",
                         "HOROVOD_LOG_HIDE_TIME=1", "HOROVOD_HIERARCHICAL_ALLREDUCE=0",
                         "HOROVOD_THREAD_AFFINITY=5", "NCCL_IB_DISABLE=1"):
                self.assertIn(line, lines, run.report())
            self.assertFalse([line for line in lines if "AUTOTUNE" in line or "TORUS" in line])
            self.assertRegex(run.err.text, rf"(?m)^{STAMP}\[{rank}\]<stderr>:oops$")
            place = os.path.join(output, f"rank.{rank}")
            self.assertEqual(lab.read_text(os.path.join(place, "stdout")), "\n".join(lines) + "\n")
            self.assertEqual(lab.read_text(os.path.join(place, "stderr")), "oops\n")

    def test_output_files_are_whole_wide_enough_and_replaced(self):
        output = self.folder("flood")
        for text, count in (("first", 300_000), ("again", 200_000)):
            run = self.hvdrun("-np", 11, "-H", "localhost:11", "--output-filename", output,
                              "--no-tag-output", "bash", "-c",
                              f"[ $RANK != 10 ] || exec seq -f '{text} %.0f' {count}; echo $RANK")
            self.assert_code(run, 0)
            self.assertEqual(sorted(os.listdir(output)), [f"rank.{r:02}" for r in range(11)])
            expected = "".join(f"{text} {i}\n" for i in range(1, count + 1))
            self.assertEqual(lab.read_text(output + "/rank.10/stdout"), expected)
            self.assertEqual(lab.read_text(output + "/rank.03/stdout"), "3\n")
            self.assertEqual(lab.read_text(output + "/rank.03/stderr"), "")
            self.assertEqual(sorted(run.out.text.splitlines()),
                             sorted(expected.splitlines() + [str(r) for r in range(10)]))

    def test_output_files_of_an_earlier_job_stay_until_ranks_are_started(self):
        output = self.folder("kept")
        first = self.hvdrun("-np", 2, "-H", "localhost:2", "--output-filename", output, "echo", "old")
        self.assert_code(first, 0)
        for code, words in ((2, ["--one-gpu-per-rank", "true"]), (2, ["--stage", "/nonexist", "true"]),
                            (127, ["no-such-program"])):
            run = self.hvdrun("-np", 2, "-H", "localhost:2", "--output-filename", output, *words)
            self.assert_code(run, code)
            self.assertEqual(lab.read_text(output + "/rank.1/stdout"), "old\n", run.report())
        fewer = self.hvdrun("-np", 1, "-H", "localhost:1", "--output-filename", output, "echo", "new")
        self.assertEqual(lab.read_text(output + "/rank.0/stdout"), "new\n")
        self.assert_says(fewer, "--output-filename .*kept: rank.1 of an earlier job with another number of ranks")

    def test_output_files_that_cannot_be_made_start_nothing(self):
        started = self.folder("started")
        run = self.hvdrun("-np", 2, "-H", "localhost:2", "--output-filename",
                          self.script("", "a_file"), "touch", started)
        self.assert_code(run, 2)
        self.assert_last_line(run, "--output-filename: cannot make .*a_file.*Not a directory")
        self.assertFalse(os.path.exists(started))

    def test_a_full_disk_is_told_once_and_the_job_goes_on(self):
        output = self.folder("full")
        go = self.folder("full_go")
        run = self.start("-np", 2, "-H", "localhost:2", "--output-filename", output, "bash", "-c",
                         f"until [ -e {go} ]; do sleep 0.05; done; for i in 1 2 3; do echo $RANK; "
                         "sleep 0.1; done")
        self.wait_workers(2, run)
        os.remove(output + "/rank.0/stdout")
        os.symlink("/dev/full", output + "/rank.0/stdout")
        lab.write_text(go, "")
        self.assertEqual(run.wait(20), 0, run.report())
        self.assertEqual(run.rank_lines(), {0: ["0"] * 3, 1: ["1"] * 3})
        self.assertEqual(run.err.text.count("No space left on device"), 1, run.report())
        self.assertEqual(lab.read_text(output + "/rank.1/stdout"), "1\n" * 3)

    def test_values_come_from_line_variable_and_files(self):
        home = self.folder("config_home")
        os.makedirs(home + "/hvdrun", exist_ok=True)
        lab.write_text(home + "/hvdrun/config.yaml", "grace: 3\nlease: 20\nfabric: warn\n"
                                                     "x: {FROM_FILE: a b}\n")
        env = {"XDG_CONFIG_HOME": home, "HVDRUN_LEASE": "25", "HVDRUN_FABRIC": "skip"}
        run = self.hvdrun("--show-config", "--fabric", "require", "-H", "nowhere:2", env=env)
        self.assert_code(run, 0)
        self.assertEqual(run.err.text, "")
        for name, value, origin in (("grace", "3", f"{home}/hvdrun/config.yaml:1"),
                                    ("lease", "25", "HVDRUN_LEASE"),
                                    ("fabric", "require", "command line"),
                                    ("hosts", "nowhere:2", "command line"),
                                    ("max-restarts", "0", "default")):
            self.assertRegex(run.out.text, rf"(?m)^--{name} +{value} +{re.escape(origin)}$")
        run = self.hvdrun("-np", 1, *harness.PRINT_ENV, env=env)
        self.assert_code(run, 0)
        worker = json.loads(run.rank_lines()[0][0])
        self.assertEqual(worker["FROM_FILE"], "a b")
        lab.write_text(home + "/hvdrun/config.yaml", "lease: 20\n\ngracee: 3\n")
        run = self.hvdrun("-np", 1, "true", env=env)
        self.assert_code(run, 2)
        self.assert_last_line(run, r"config\.yaml:3: key \"gracee\" is unknown; did you mean grace\?")

    def test_a_job_inside_a_job_takes_nothing_for_an_option(self):
        run = self.hvdrun("-np", 1, "-H", "localhost:1", "--timeline-filename",
                          self.folder("t.json"), "--timeline-steps", "1-2",
                          harness.HVDRUN, "--show-config")
        self.assert_code(run, 0)
        lines = run.rank_lines()[0]
        self.assertTrue([line for line in lines if re.match(r"--grace +10s +default", line)],
                        run.report())
        self.assertFalse([line for line in lines if "HVDRUN_" in line or "note" in line], lines)

    def test_unknown_variables_are_noted(self):
        run = self.hvdrun("-np", 1, "true", env={"HVDRUN_GRACEE": "secret"})
        self.assert_code(run, 0)
        self.assert_says(run, "HVDRUN_GRACEE.*did you mean HVDRUN_GRACE")
        self.assertNotIn("secret", run.err.text)

    def test_check_build_has_horovodruns_lists(self):
        run = self.hvdrun("-cb")
        self.assert_code(run, 0)
        self.assertRegex(run.out.text, r"(?s)^hvdrun v[0-9.]+:\n\nAvailable Frameworks:\n    \[.\] "
                         r"TensorFlow\n.*\n\nAvailable Controllers:\n.*    \[X\] Gloo\n\nAvailable "
                         r"Tensor Operations:\n    \[X\] NCCL\n")

    def test_elastic_options_start_nothing(self):
        run = self.hvdrun("-np", 2, "--min-np", 1, "--host-discovery-script", "./x", "true")
        self.assert_code(run, 2)
        self.assert_last_line(run, "--min-np: hvdrun has no elastic jobs.*--max-restarts")


if __name__ == "__main__":
    harness.main()
