"""Output: in time, whole lines, nothing lost, no worker held up."""

import os
import re
import time

import harness
import lab
from harness import scaled

FOUR = "node1:8,node2:8,node3:8,node4:8"


class Output(harness.EndToEnd):
    def test_lines_come_within_half_a_second(self):
        worker = [harness.PYTHON, "-c",
                  "import time\nfor i in range(6): print(time.monotonic()); time.sleep(0.3)"]
        run = self.hvdrun("-np", 2, "-H", "node1:2", *worker)
        self.assert_code(run, 0)
        late = [at - float(line.partition(":")[2]) for at, line in run.out.lines]
        self.assertEqual(len(late), 12, run.report())
        self.assert_within(max(late), 0.5, "latest line")

    def test_last_words_of_a_rank_are_not_lost(self):
        for ending, code in (("os._exit(1)", 1), ("os.kill(os.getpid(),9)", 137)):
            run = self.hvdrun("-np", 2, "-H", "node1:2", harness.PYTHON, "-c",
                              f"import os,sys\nprint('last');sys.stderr.write('words')\n{ending}")
            self.assert_code(run, code)
            self.assertIn(["last"], run.rank_lines().values(), run.report())
            self.assertIn("words", run.err.text)

    def test_standard_error_is_drained_beside_standard_output(self):
        run = self.hvdrun("-np", 2, "-H", "node1:2", harness.PYTHON, "-c",
                          "import sys;sys.stderr.write('e'*10**7);print('out')", limit=60)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["out"], 1: ["out"]})
        letters = re.sub(rb"(?m)^\[\d\]<stderr>:", b"", bytes(run.err.data)).count(b"e")
        self.assertEqual(letters, 2 * 10**7)

    def test_line_without_end_and_empty_lines_arrive(self):
        run = self.hvdrun("-np", 1, "-H", "node1:1", "printf", "a\\n\\nb\\n no end")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["a", "", "b", " no end"]})

    def flood(self, lines, *arguments, ranks=32, worker="exec seq -f \"$RANK %076.0f\" 1 {n}"):
        """Each line is about 80 bytes and names its rank and number."""
        words = ["sh", "-c", "exec \"$@\" 2>&1", "_", harness.HVDRUN, "-np", str(ranks), "-H", FOUR,
                 *arguments, "bash", "-c", worker.replace("{n}", str(lines))]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        self.assertEqual(run.wait(120), 0, run.report()[-2000:])
        return run

    def assert_whole(self, run, lines, stream, ranks=32):
        expected = {rank: 0 for rank in range(ranks)}
        whole = re.compile(rf"\[(\d+)\]<{stream}>:(\d+) +(\d+)$")
        for _, line in run.out.lines:
            match = whole.match(line)
            self.assertTrue(match, f"torn: {line!r}")
            rank = int(match[1])
            expected[rank] += 1
            self.assertEqual((int(match[2]), int(match[3])), (rank, expected[rank]),
                             "a line of another rank, or out of order")
        self.assertEqual(set(expected.values()), {lines})
        self.tell(f"{len(run.out.data) / 1e6:.0f} MB of {stream}, start to end", run.seconds)

    def test_flood_loses_and_tears_no_line(self):
        lines = scaled(4000, 20000)
        self.assert_whole(self.flood(lines), lines, "stdout")

    def test_flood_of_standard_error_loses_and_tears_no_line(self):
        lines = scaled(2000, 20000)
        run = self.flood(lines, worker="exec seq -f \"$RANK %076.0f\" 1 {n} >&2")
        self.assert_whole(run, lines, "stderr")

    def test_flood_by_the_command_transport_loses_and_tears_no_line(self):
        lines = scaled(2000, 20000)
        run = self.flood(lines, "--transport", "command", "--rsh", "ssh {host}")
        self.assert_whole(run, lines, "stdout")

    def test_reader_that_stands_still_holds_no_worker(self):
        size = scaled(10**7, 5 * 10**7)
        done = os.path.join(self.bed.folder, "shared", "done")
        run = self.start("-np", 2, "-H", "node1:2", "bash", "-c",
                         f"head -c {size} /dev/zero | tr '\\0' x | fold -w 99; touch {done}$RANK",
                         read_stdout=False)
        lab.wait_until(lambda: os.path.exists(done + "0") and os.path.exists(done + "1"), 60,
                       "workers did not end while nobody read")
        self.tell(f"2 x {size / 1e6:.0f} MB written while nobody reads",
                  time.monotonic() - run.started)
        run.out = harness.Stream(run.process.stdout)
        self.assertEqual(run.wait(60), 0, run.err.text[-2000:])
        self.assertEqual(run.out.data.count(b"x"), 2 * size, run.err.text[-2000:])

    def test_other_rank_is_heard_during_a_flood(self):
        size = scaled(3 * 10**7, 2 * 10**8)
        flood = f"head -c {size} /dev/zero | tr '\\0' x | fold -w 99"
        ticks = ("import time\nfor i in range(12): print('tick', time.monotonic()); "
                 "time.sleep(0.1)")
        run = self.hvdrun("-np", 2, "-H", "node1:2", "bash", "-c",
                          f"[ $RANK = 0 ] && {{ {flood}; exit 0; }}; exec $0 -c \"$1\"",
                          harness.PYTHON, ticks, limit=60)
        self.assert_code(run, 0)
        late = [at - float(line.split()[1]) for at, line in run.out.lines if ">:tick " in line]
        self.assertEqual(len(late), 12, run.err.text[-2000:])
        self.assert_within(max(late), 3, "latest line beside a flood")
        self.assertEqual(run.out.data.count(b"x"), size)


if __name__ == "__main__":
    harness.main()
