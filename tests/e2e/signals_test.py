"""Signals to hvdrun, its standard input, Ctrl-C on a terminal, a reader that goes away."""

import hashlib
import os
import random
import re
import signal
import time

import harness
import lab

FOUR = "node1:2,node2:2"
MIXED = "localhost:2,node1:2"
UP_AND_SLEEP = ["bash", "-c", "echo up; exec sleep 600"]
DEAF = ["bash", "-c", "trap '' TERM INT HUP; echo up; while :; do sleep 1; done"]


class Signals(harness.EndToEnd):
    NODES = 2

    def start_up(self, *arguments, hosts=FOUR, worker=UP_AND_SLEEP, **kwargs):
        """A job whose four ranks have said "up"."""
        run = self.start("-np", 4, "-H", hosts, *arguments, *worker, **kwargs)
        self.assertEqual(len(run.out.find("up", 15, count=4)), 4, run.report())
        return run

    def seconds_to_end(self, run, number=signal.SIGINT, code=130):
        """From the signal until hvdrun and all ranks have gone."""
        sent = time.monotonic()
        run.signal(number)
        run.wait(20)
        self.assert_code(run, code)
        self.assert_no_workers(run)
        return time.monotonic() - sent

    def end_by(self, number, code, hosts=FOUR):
        run = self.start_up(hosts=hosts)
        seconds = self.seconds_to_end(run, number, code)
        self.assert_within(seconds, 5, f"{signal.Signals(number).name} to the end")

    def test_interrupt_ends_all_with_130(self):
        self.end_by(signal.SIGINT, 130)

    def test_terminate_ends_all_with_143(self):
        self.end_by(signal.SIGTERM, 143)
        self.end_by(signal.SIGTERM, 143, hosts="localhost:4")

    def test_hangup_ends_all_with_129(self):
        self.end_by(signal.SIGHUP, 129)

    def test_quit_ends_all_with_131(self):
        self.end_by(signal.SIGQUIT, 131)

    def test_hvdrun_dies_of_the_signal_so_that_shells_see_it(self):
        run = self.start_up()
        run.signal(signal.SIGTERM)
        run.wait(20)
        self.assertEqual(run.process.returncode, -signal.SIGTERM, run.report())

    def test_ignored_hangup_stays_ignored(self):
        words = [harness.HVDRUN, "-np", "4", "-H", FOUR, "bash", "-c",
                 "echo up; sleep 2; echo end"]
        run = harness.Run(self.bed, ["sh", "-c", "trap '' HUP; exec \"$@\"", "_", *words],
                          self.environment())
        self.addCleanup(run.end)
        self.assertEqual(len(run.out.find("up", 15, count=4)), 4, run.report())
        run.signal(signal.SIGHUP)
        self.assertEqual(run.wait(20), 0, run.report())
        self.assertEqual(len(run.out.find("end", 1, count=4)), 4, run.report())

    def test_blocked_signals_of_the_caller_end_it_all_the_same(self):
        words = [harness.HVDRUN, "-np", "2", "-H", FOUR, "bash", "-c", "echo up; exec sleep 600"]
        run = harness.Run(self.bed, [harness.PYTHON, "-c", "import os, signal, sys\n"
                                     "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n"
                                     "os.execv(sys.argv[1], sys.argv[1:])", *words], self.environment())
        self.addCleanup(run.end)
        self.assertEqual(len(run.out.find("up", 15, count=2)), 2, run.report())
        run.signal(signal.SIGTERM)
        run.wait(20)
        self.assert_code(run, 143)

    def test_user_signals_reach_every_rank(self):
        worker = ["bash", "-c", "trap 'echo got USR1' USR1; trap 'echo got USR2; exit 0' USR2; "
                  "echo up; while :; do sleep 0.05; done"]
        run = self.start_up(worker=worker)
        run.signal(signal.SIGUSR1)
        self.assertEqual(len(run.out.find("got USR1", 5, count=4)), 4, run.report())
        run.signal(signal.SIGUSR2)
        self.assertEqual(run.wait(10), 0, run.report())
        self.assertEqual(len(run.out.find("got USR2", 1, count=4)), 4, run.report())

    def test_verbose_tells_how_many_ranks_got_a_signal(self):
        run = self.start_up("-v")
        run.signal(signal.SIGUSR1)
        self.assertEqual(run.wait(10), 128 + signal.SIGUSR1, run.report())
        self.assert_says(run, "SIGUSR1 passed on to 4 of 4 ranks")
        self.assert_last_line(run, r"SIGUSR1 \(signal 10; passed on by hvdrun\)")

    def test_the_users_list_of_signals_is_passed_on_and_no_other(self):
        worker = ["bash", "-c", "trap 'echo got WINCH; exit 0' WINCH; trap 'echo got USR1' USR1; "
                  "echo up; while :; do sleep 0.05; done"]
        run = self.start_up("-v", "--forward-signals", "WINCH", worker=worker)
        run.signal(signal.SIGUSR1)
        self.assertTrue(run.err.find("SIGUSR1 is ignored", 5), run.report())
        run.signal(signal.SIGWINCH)
        self.assertEqual(run.wait(10), 0, run.report())
        self.assertEqual(len(run.out.find("got WINCH", 1, count=4)), 4, run.report())
        self.assertNotIn("got USR1", run.out.text)

    def test_first_signal_of_a_stop_is_the_users(self):
        worker = ["bash", "-c", "trap 'echo got INT; exit 130' INT; trap 'echo got TERM' TERM; "
                  "echo up; while :; do sleep 0.05; done"]
        run = self.start_up("--stop-signal", "INT", worker=worker)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(10), 143, run.report())
        self.assertEqual(run.out.text.count("got INT"), 4, run.report())
        self.assertNotIn("got TERM", run.out.text)
        self.assert_says(run, "4 ranks stopped by hvdrun")
        self.assertNotIn("failed", run.err.text)

    def test_first_signal_is_the_users_also_where_hvdrun_was_killed(self):
        mark = os.path.join(self.bed.folder, "shared", "got-int-")
        worker = ["bash", "-c", f"trap 'touch {mark}$RANK; exit 0' INT; echo up; "
                  "while :; do sleep 0.05; done"]
        run = self.start_up("--stop-signal", "INT", worker=worker)
        run.signal(signal.SIGKILL)
        run.wait(10)
        self.seconds_until_gone(time.monotonic(), 5)
        self.assertTrue(all(os.path.exists(f"{mark}{rank}") for rank in range(4)), run.report())

    def test_signal_before_the_time_limit_lets_ranks_save(self):
        worker = ["bash", "-c", "trap 'echo saved; exit 0' USR1; echo up; "
                  "while :; do sleep 0.05; done"]
        run = self.start_up("-v", "--timeout", "10", "--timeout-signal", "USR1@6", worker=worker)
        self.assertEqual(run.wait(20), 0, run.report())
        self.assertEqual(run.out.text.count("saved"), 4, run.report())
        self.assertGreater(run.seconds, 3.9)
        self.assertLess(run.seconds, 9)

    def test_ignored_interrupt_stays_ignored(self):
        """As of a job in the background of a script, whose Ctrl-C is meant for another program."""
        words = [harness.HVDRUN, "-np", "4", "-H", FOUR, "bash", "-c",
                 "echo up; sleep 1.5; echo end"]
        run = harness.Run(self.bed, ["sh", "-c", "trap '' INT QUIT; exec \"$@\"", "_", *words],
                          self.environment())
        self.addCleanup(run.end)
        self.assertEqual(len(run.out.find("up", 15, count=4)), 4, run.report())
        run.signal(signal.SIGINT)
        run.signal(signal.SIGQUIT)
        self.assertEqual(run.wait(20), 0, run.report())

    def test_deaf_workers_get_the_grace_and_then_go(self):
        run = self.start_up("--grace", "1", worker=DEAF)
        seconds = self.seconds_to_end(run)
        self.assertGreater(seconds, 1.0)
        self.assert_within(seconds, 1 + 5, "Ctrl-C to the end, deaf, grace 1 s")

    def test_second_interrupt_kills_at_once(self):
        run = self.start_up("--grace", "30", worker=DEAF)
        run.signal(signal.SIGINT)
        self.assertTrue(run.err.find("again", 5), run.report())
        time.sleep(0.05)
        seconds = self.seconds_to_end(run)
        self.assert_within(seconds, 5, "second Ctrl-C to the end")

    def test_interrupt_that_a_wrapper_passes_on_twice_is_one(self):
        words = ["timeout", "60", harness.HVDRUN, "-np", "4", "-H", FOUR, "--grace", "1", *DEAF]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        self.assertEqual(len(run.out.find("up", 15, count=4)), 4, run.report())
        seconds = self.seconds_to_end(run)
        self.assertGreater(seconds, 1.0)

    def test_burst_of_interrupts_leaves_nothing(self):
        run = self.start_up("--grace", "2", worker=DEAF)
        for _ in range(50):
            if run.process.poll() is None:
                try:
                    run.signal(signal.SIGINT)
                except (OSError, harness.lab.TestbedError):
                    break
            time.sleep(0.01)
        run.wait(20)
        self.assert_code(run, 130)
        self.assert_no_workers(run)

    def test_interrupt_while_a_host_is_not_reached_ends_at_once(self):
        self.bed.set_black_hole("node2", True)
        self.addCleanup(self.bed.set_black_hole, "node2", False)
        run = self.start("-np", 4, "-H", FOUR, "sleep", 600)
        time.sleep(1)
        sent = time.monotonic()
        run.signal(signal.SIGINT)
        run.wait(20)
        self.assert_code(run, 130)
        self.assert_within(time.monotonic() - sent, 3, "Ctrl-C during the start to the end")

    def test_interrupt_at_any_moment_of_the_start_is_130(self):
        random.seed(13)
        for i in range(harness.scaled(8, 200)):
            run = self.start("-np", 4, "-H", FOUR, "sleep", 600)
            pid = run.pid
            time.sleep(random.uniform(0, 0.01 if i % 2 else 0.5))
            os.kill(pid, signal.SIGINT)
            run.wait(20)
            self.assert_code(run, 130)
            self.assert_no_workers(run)

    def test_program_that_limits_its_time_ends_all(self):
        words = ["timeout", "2", harness.HVDRUN, "-np", "4", "-H", FOUR, *UP_AND_SLEEP]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        run.wait(20)
        self.assert_code(run, 124)
        self.assert_last_line(run, "hvdrun received SIGTERM")
        self.assert_no_workers(run)
        self.assert_within(run.seconds, 2 + 5, "timeout 2 hvdrun to the end")

    def test_stopped_worker_is_ended_too(self):
        run = self.start_up("--grace", "1")
        os.kill(self.wait_workers(4, run)[1], signal.SIGSTOP)
        seconds = self.seconds_to_end(run)
        self.assert_within(seconds, 1 + 5, "with a stopped rank, grace 1 s")

    def test_escaped_session_goes_with_an_interrupt(self):
        worker = ["bash", "-c", "setsid -f sleep 600 </dev/null >/dev/null 2>&1; echo up; "
                  "exec sleep 600"]
        run = self.start_up("--grace", "1", worker=worker)
        run.signal(signal.SIGINT)
        run.wait(20)
        self.assert_code(run, 130)
        self.assert_within(self.seconds_until_gone(run.started + run.seconds, 2), 1,
                           "escaped process, after the end")

    def test_reader_of_the_output_that_leaves_is_141(self):
        worker = ["bash", "-c", "while echo line; do sleep 0.02; done"]
        run = self.start("-np", 4, "-H", FOUR, *worker, read_stdout=False)
        os.read(run.process.stdout.fileno(), 100)
        run.process.stdout.close()
        closed = time.monotonic()
        run.wait(20)
        self.assert_code(run, 141)
        self.assert_no_workers(run)
        self.assert_within(time.monotonic() - closed, 5, "from the reader's end to ours")

    def test_stalled_standard_error_delays_no_signal(self):
        fifo = os.path.join(self.bed.folder, "shared", "unread")
        os.mkfifo(fifo)
        worker = ["bash", "-c", "echo up; yes x | head -c 3000000 >&2; exec sleep 600"]
        words = ["bash", "-c", f"exec 9<>{fifo}; exec \"$@\" 2>&9", "_", harness.HVDRUN, "-np", "2",
                 "-H", "node1:1,node2:1", "--grace", "1", *worker]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        self.assertEqual(len(run.out.find("up$", 10, count=2)), 2, run.report())
        stopped = time.monotonic()
        run.signal(signal.SIGINT)
        self.assert_within(self.seconds_until_gone(stopped, 5, lambda p: p.rank is not None), 1,
                           "Ctrl-C to the last worker, nobody reads stderr")
        time.sleep(0.5)
        if run.process.poll() is None:  # on a slow machine its patience is over before
            run.signal(signal.SIGINT)  # the ranks are gone: now it waits for nobody
        run.wait(5)
        self.assert_code(run, 130)

    def test_full_disk_under_the_output_is_named(self):
        words = ["bash", "-c", "exec \"$@\" >/dev/full", "_", harness.HVDRUN, "-np", "2", "-H",
                 "node1:2", "bash", "-c", "echo hi; exec sleep 600"]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_last_line(run, "No space left on device")

    def test_closed_standard_descriptors_are_never_ours(self):
        listing = "ls -l /proc/$(pgrep -x hvdrun)/fd/0 /proc/$(pgrep -x hvdrun)/fd/1"
        words = ["bash", "-c", f"\"$@\" <&- >&- & sleep 1; {listing}; wait $!", "_", harness.HVDRUN,
                 "-np", "2", "-H", "node1:2", "sleep", "2"]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        run.wait(20)
        self.assert_code(run, 0)
        self.assertEqual(run.out.text.count("/dev/null"), 2, run.report())


class Input(harness.EndToEnd):
    NODES = 2

    def file_of(self, size):
        path = os.path.join(self.bed.folder, "shared", f"input-{size}")
        block = bytes(random.Random(1).randbytes(1 << 16))
        with open(path, "wb") as file:
            for _ in range(size // len(block)):
                file.write(block)
        return path

    def feed(self, worker, *arguments, path="/dev/null", hosts=FOUR):
        with open(path, "rb") as file:
            run = self.start("-np", 4, "-H", hosts, *arguments, "bash", "-c", worker, stdin=file)
        run.wait(60)
        self.assert_no_workers(run)
        return run

    def test_rank_zero_gets_all_of_it_and_the_others_none(self):
        path = self.file_of(10 << 20)
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        empty = hashlib.sha256(b"").hexdigest()
        for hosts in (FOUR, "localhost:4"):
            run = self.feed("cat | sha256sum", "--stdin", path=path, hosts=hosts)
            self.assert_code(run, 0)
            digests = {rank: lines[0].split()[0] for rank, lines in run.rank_lines().items()}
            self.assertEqual(digests, {0: digest, 1: empty, 2: empty, 3: empty}, run.report())
        self.tell("10 MB of standard input through four agents", run.seconds)

    def test_without_the_option_nobody_gets_it(self):
        run = self.feed("cat | wc -c", path=self.file_of(1 << 20))
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {rank: ["0"] for rank in range(4)})

    def test_rank_that_reads_no_more_is_no_failure(self):
        run = self.feed("[ $RANK != 0 ] || head -c 5 | wc -c", "--stdin", path=self.file_of(10 << 20))
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["5"]})

    def test_nothing_is_read_ahead_of_a_rank_that_does_not_read(self):
        read_end, write_end = os.pipe()
        run = self.start("-np", 2, "-H", "node1:1,node2:1", "--stdin", "bash", "-c",
                         "echo up; exec sleep 600", stdin=read_end)
        os.close(read_end)
        self.addCleanup(os.close, write_end)
        self.assertEqual(len(run.out.find("up", 15, count=2)), 2, run.report())
        os.set_blocking(write_end, False)
        taken = 0
        end = time.monotonic() + 2
        while time.monotonic() < end:
            try:
                taken += os.write(write_end, bytes(1 << 16))
            except BlockingIOError:
                time.sleep(0.02)
        print(f"    taken of an endless input: {taken >> 10} KiB", flush=True)
        self.assertLess(taken, 1 << 20)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(20), 143, run.report())
        self.assert_no_workers(run)


class Terminal(harness.EndToEnd):
    NODES = 1

    def on_terminal(self, keys, *arguments, worker=UP_AND_SLEEP):
        words = [harness.PYTHON, os.path.join(harness.HERE, "on_terminal.py"), "up", "4", keys,
                 harness.HVDRUN, "-np", "4", "-H", MIXED, *arguments, *worker]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        run.wait(20)
        self.assert_no_workers(run)
        return run

    def test_control_c_reaches_only_hvdrun(self):
        worker = ["bash", "-c", "trap 'echo INTERRUPTED' INT; trap 'echo TERMINATED; exit 0' TERM; "
                  "echo up; while :; do sleep 0.05; done"]
        run = self.on_terminal("\\x03", worker=worker)
        self.assert_code(run, 130)
        self.assertEqual(run.out.text.count("TERMINATED"), 4, run.report())
        self.assertNotIn("INTERRUPTED", run.out.text)

    def test_control_c_twice_kills_deaf_workers(self):
        run = self.on_terminal("\\x03\\x03", "--grace", "30", worker=DEAF)
        self.assert_code(run, 130)
        self.assert_within(run.seconds, 10, "start, Ctrl-C twice, end")

    def test_control_z_is_refused_with_one_line(self):
        run = self.on_terminal("\\x1a\\x03")
        self.assert_code(run, 130)
        self.assertEqual(run.out.text.count("Ctrl-Z is refused"), 1, run.report())

    def test_typed_lines_and_end_of_file_reach_rank_zero(self):
        worker = ["bash", "-c", "echo up; [ $RANK = 0 ] || exit 0; read -r a; echo \"<$a>\"; cat"]
        run = self.on_terminal("hi\\r\\x04", "--stdin", worker=worker)
        self.assert_code(run, 0)
        self.assertIn("<hi>", run.out.text)

    def test_background_of_a_terminal_stops_nothing(self):
        words = ["bash", "-c", "stty tostop; set -m; \"$@\" & wait $!", "_", harness.HVDRUN, "-np",
                 "4", "-H", MIXED, "--stdin", "bash", "-c", "echo up; sleep 1; echo done $RANK"]
        run = harness.Run(self.bed, [harness.PYTHON, os.path.join(harness.HERE, "on_terminal.py"),
                                     "up", "4", "typed\\r", *words], self.environment())
        self.addCleanup(run.end)
        run.wait(20)
        self.assert_code(run, 0)
        self.assertEqual(len(set(re.findall(r"done (\d)", run.out.text))), 4, run.report())

    def test_nohup_and_a_session_of_its_own_outlive_the_terminal(self):
        for starter in ("nohup", "setsid"):
            self.start_under(starter)
        for starter in ("nohup", "setsid"):
            output = os.path.join(self.bed.folder, "shared", starter)
            lab.wait_until(lambda o=output: lab.read_text(o).count("done") == 4, 10, lab.read_text(output))
            self.assertNotIn("hvdrun:", lab.read_text(output))
        self.seconds_until_gone(time.monotonic(), 5)

    def start_under(self, starter):
        """Until its ranks are up and the terminal has gone."""
        output = os.path.join(self.bed.folder, "shared", starter)
        shell = (f"{starter} \"$@\" >{output} 2>&1 </dev/null & "
                 f"until [ $(grep -c up {output}) = 4 ]; do sleep 0.05; done; echo up up up up; wait")
        words = [harness.PYTHON, os.path.join(harness.HERE, "on_terminal.py"), "up", "4", "hangup",
                 "bash", "-c", shell, "_", harness.HVDRUN, "-np", "4", "-H", MIXED, "bash", "-c",
                 "echo up; sleep 1.5; echo done"]
        run = harness.Run(self.bed, words, self.environment())
        self.addCleanup(run.end)
        run.wait(20)
        self.assertEqual(set(self.workers().values()), {0, 1, 2, 3}, run.report())

    def test_closed_terminal_ends_all_with_129(self):
        run = self.on_terminal("hangup")
        self.assert_code(run, 129)


if __name__ == "__main__":
    harness.main()
