"""--stage: files of the launching host for the ranks of nodes that share no disk with it."""

import os
import re

import harness

TWO = "node1:2,node2:2"


class Stage(harness.EndToEnd):
    NODES = 3

    def setUp(self):
        super().setUp()
        # Only the launching host has this folder; the others have a /tmp of their own.
        self.project = f"/tmp/project-{self.mark[:8]}"
        self.addCleanup(self.forget_all)
        self.put("train.sh", '#!/bin/sh\necho "rank $RANK: $(cat lib/words) in $PWD"\n', 0o755)
        self.put("lib/words", "one two\n")

    def on_launcher(self, *argv):
        run = self.on_host(harness.LAUNCHER, *argv)
        run.wait(10)
        self.assertEqual(run.code, 0, run.report())

    def forget_all(self):
        """The project, and what the nodes have kept of it."""
        self.on_launcher("rm", "-r", self.project)
        for number in range(1, self.NODES + 1):
            self.on_host(f"node{number}", "rm", "-rf", "/var/tmp/hvdrun-0/staged").wait(10)

    def put(self, name, text, mode=0o644):
        path = os.path.join(self.project, name)
        shared = self.script(text, "put")
        self.on_launcher("install", "-D", "-m", f"{mode:o}", shared, path)

    def hvdrun_in_project(self, *arguments, **kwargs):
        return self.hvdrun(*arguments, cwd=self.project, **kwargs)

    def sent(self, run):
        """Megabytes, by hvdrun's word."""
        return float(re.search(r"staged .* ([\d.]+) MB of it sent", run.err.text)[1])

    def test_a_project_that_no_node_has_runs_everywhere_and_leaves_nothing(self):
        run = self.hvdrun_in_project("-v", "-np", 4, "-H", TWO, "--stage", ".", "./train.sh")
        self.assert_code(run, 0)
        folders = set(re.findall(r"rank \d: one two in (\S+)", run.out.text))
        self.assertEqual(len(re.findall(r"rank \d: one two", run.out.text)), 4, run.report())
        self.assertRegex(run.err.text, r"staged 2 files \(0\.0 MB\) on 2 hosts in ")
        for folder in folders:
            for host in ("node1", "node2"):
                gone = self.on_host(host, "ls", folder)
                gone.wait(10)
                self.assertEqual(gone.code, 2, gone.report())

    def test_what_a_node_has_got_is_not_sent_again(self):
        self.on_launcher("dd", "if=/dev/urandom", f"of={self.project}/data", "bs=1M", "count=20", "status=none")
        line = ("-v", "-np", 2, "-H", "node1:1,node2:1", "--stage", ".", "sh", "-c", "sha256sum < data; echo x >> data")
        first = self.hvdrun_in_project(*line)
        self.assert_code(first, 0)
        self.assertAlmostEqual(self.sent(first), 2 * 20.97, delta=0.1)
        self.put("lib/words", "other words\n")
        second = self.hvdrun_in_project(*line)
        self.assert_code(second, 0)
        self.assertEqual(self.sent(second), 0.0)
        self.assertEqual(set(first.out.text.split("\n")), set(second.out.text.split("\n")))
        # A node that joins gets all of it.
        third = self.hvdrun_in_project("-v", "-np", 2, "-H", "node1:1,node3:1", "--stage", ".", "true")
        self.assertAlmostEqual(self.sent(third), 20.97, delta=0.1)

    def test_files_keep_their_place_or_stand_under_their_name(self):
        other = self.script("far\n", "far.txt")
        run = self.hvdrun_in_project("-np", 1, "-H", "node1:1", "--stage", "lib/words", "--stage", other,
                                     "sh", "-c", "cat lib/words far.txt; ls")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines()[0], ["one two", "far", "far.txt", "lib"])

    def test_what_is_wrong_is_told_before_anything_starts(self):
        for words, code, sentence in (
                (("--stage", "missing", "true"), 2, r'--stage "missing": No such file'),
                (("--stage", "lib", "./train.sh"), 127, r"node1: command not found: \./train\.sh; .*--stage"),
                (("./train.sh",), 125, r"node1: cannot enter the working directory .*--stage")):
            with self.subTest(sentence):
                run = self.hvdrun_in_project("-np", 1, "-H", "node1:1", *words)
                self.assert_code(run, code)
                self.assert_last_line(run, sentence)

    def test_a_node_without_room_is_named(self):
        self.on_launcher("dd", "if=/dev/zero", f"of={self.project}/data", "bs=1M", "count=8", "status=none")
        full = self.on_host("node2", "sh", "-c", "mkdir -p /tmp/hvdrun-0 && chmod 700 /tmp/hvdrun-0 && "
                            "mount -t tmpfs -o size=4m,mode=0700 none /tmp/hvdrun-0")
        full.wait(10)
        self.assertEqual(full.code, 0, full.report())
        self.addCleanup(lambda: self.on_host("node2", "umount", "/tmp/hvdrun-0").wait(10))
        run = self.hvdrun_in_project("-np", 2, "-H", "node1:1,node2:1", "--stage", ".", "true")
        self.assert_code(run, 125)
        self.assert_last_line(run, r"node2: cannot stage files: .*/data: No space left on device")

    def test_a_restart_finds_its_files(self):
        run = self.hvdrun_in_project("-np", 2, "-H", "node1:2", "--max-restarts", 1, "--stage", ".", "sh", "-c",
                                     "cat lib/words; rm lib/words; exit $((1 - TORCHELASTIC_RESTART_COUNT))")
        self.assert_code(run, 0)

    def test_dry_run_names_what_would_be_sent(self):
        run = self.hvdrun_in_project("-np", 1, "-H", "node1:1", "--stage", ".", "--dry-run", "true")
        self.assert_code(run, 0)
        self.assertIn("in: a new folder with .", run.out.text)


if __name__ == "__main__":
    harness.main()
