"""petrv2 train as its users meet it: several ranks, checkpoints, signals, broken data, full disks."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

from trained import HVDRUN, IS_LONG, PETRV2, Run, Training, read_safetensors

def norm(values):
    return sum(value * value for value in values) ** 0.5


PLAIN = ("--no-augmentation", "--no-dropout", "--no-denoising")


class Parallel(Training):
    def both_ways(self, precision):
        """Ten steps of four ranks, and of one process with four micro-batches."""
        runs = []
        for ranks, accumulate in ((4, 1), (1, 4)):
            out = self.folder / f"{precision}-{ranks}"
            self.train("--precision", precision, "--steps", 10, "--accumulate", accumulate, *PLAIN, "--json",
                       f"{out}.json", ranks=ranks, out=out)
            runs.append((self.steps(f"{out}.json"), read_safetensors(self.newest(out))[0]))
        return runs

    def test_four_ranks_are_one_process_with_four_micro_batches(self):
        (ranked, weights), (alone, others) = self.both_ways("fp64")
        self.assertEqual([step["step"] for step in ranked], list(range(1, 11)))
        for mine, other in zip(ranked, alone):
            self.assertEqual(mine["loss"].keys(), other["loss"].keys())
            self.assertGreater(len(mine["loss"]), 6)
            for name, loss in mine["loss"].items():
                self.assertLessEqual(abs(loss - other["loss"][name]), 1e-10 * max(1, abs(loss)), name)
        self.assertEqual(weights.keys(), others.keys())
        for name, values in weights.items():
            if name.startswith("model."):
                worst = max(map(lambda a, b: abs(a - b), values, others[name]))
                self.assertLessEqual(worst, 1e-10, name)

    def test_in_fp32_they_agree_as_far_as_its_sums_do(self):
        (ranked, _), (alone, _) = self.both_ways("fp32")
        for name, loss in ranked[0]["loss"].items():
            self.assertLessEqual(abs(loss - alone[0]["loss"][name]), 1e-6 * max(1, abs(loss)), name)
        tenth = ranked[9]["loss"]["total"], alone[9]["loss"]["total"]
        self.assertLessEqual(abs(tenth[0] - tenth[1]), 1e-2 * tenth[1])

    def test_in_fp32_their_first_gradients_agree(self):
        """By the first moments after one step: a tenth of the gradient."""
        moments = []
        for ranks, accumulate in ((4, 1), (1, 4)):
            out = self.folder / str(ranks)
            self.train("--steps", 1, "--accumulate", accumulate, *PLAIN, ranks=ranks, out=out)
            tensors, _ = read_safetensors(self.newest(out))
            moments.append({name: v for name, v in tensors.items() if "first_moment" in name})
        self.assertGreater(len(moments[0]), 100)
        largest = max(norm(values) for values in moments[1].values())
        for name, values in moments[1].items():
            difference = norm([a - b for a, b in zip(moments[0][name], values)])
            limit = 3e-3 if "backbone" in name or "position_encoder" in name else 3e-4
            # Gradients that are zero but for rounding have no relative size.
            self.assertLessEqual(difference, limit * norm(values) + 1e-7 * largest, name)

    def test_all_ranks_end_with_the_same_weights(self):
        run = self.train("--steps", 3, ranks=4)
        sums = re.findall(r"rank (\d): done after step 3, 0 steps skipped; weights ([0-9a-f]{8})", run.out)
        self.assertEqual(sorted(rank for rank, _ in sums), list("0123"), run.report())
        self.assertEqual(len({weights for _, weights in sums}), 1, run.report())

    def test_timeline_shows_every_part_of_every_step(self):
        trace = self.folder / "trace.json"
        environment = {**self.environment(), "HVDRUN_TIMELINE_FILENAME": str(trace)}
        run = Run(self.launched(2, self.words("--steps", 4)), 120, self.folder, environment)
        self.assertEqual(run.code, 0, run.report())
        events = json.loads(trace.read_text())
        for rank in range(2):
            begun = [e["name"] for e in events if e["pid"] == rank and e["ph"] in "BX"]
            for part in ("FORWARD", "BACKWARD", "OPTIMIZER"):
                self.assertEqual(begun.count(part), 4, part)
            self.assertGreaterEqual(begun.count("TCP_ALLREDUCE"), 4)

    def test_unequal_shares_are_dropped_or_padded_and_told(self):
        run = self.train("--epochs", 1, ranks=4)  # ten samples
        self.assertIn("10 samples in steps of 4: 2 steps an epoch, 2 samples dropped each epoch", run.out)
        self.assertIn("done after step 2", run.out)
        run = self.train("--epochs", 1, "--remainder", "pad", ranks=4)
        self.assertIn("done after step 3", run.out)

    def test_ranks_of_different_jobs_are_refused(self):
        words = " ".join(self.words("--steps", 3)) + ' --seed "$((RANK / 3))"'
        run = subprocess.run([HVDRUN, "-np", "4", "bash", "-c", words], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(run.returncode, 73, run.stderr)
        self.assertIn("--seed is 1 on rank 3 and 0 on ranks 0-2; give all ranks the same", run.stderr)

    def test_start_tells_batch_rate_and_rule(self):
        run = self.train("--steps", 1, "--accumulate", 2, ranks=2)
        self.assertIn("= 4 samples a step; learning rate 0.001", run.out)
        run = self.train("--steps", 1)
        self.assertIn("linear: x 0.25", run.out)
        self.assertIn("off the table of known results", run.err)


class Resuming(Training):
    def test_continues_bit_for_bit_in_mid_epoch(self):
        whole, parts = self.folder / "whole", self.folder / "parts"
        for ranks in (1, 2):
            shutil.rmtree(whole, ignore_errors=True)
            shutil.rmtree(parts, ignore_errors=True)
            self.train("--steps", 7, ranks=ranks, out=whole)
            self.train("--steps", 3, ranks=ranks, out=parts)
            run = self.train("--steps", 4, ranks=ranks, out=parts)
            self.assertIn("resumed from", run.out)
            self.assert_same_state(self.newest(whole), self.newest(parts))

    def test_another_number_of_ranks_repeats_and_loses_no_sample(self):
        out, log = self.folder / "out", self.folder / "samples"
        self.train("--epochs", 1, "--steps", 2, "--sample-log", log, ranks=2, out=out)  # 4 of 10
        self.train("--epochs", 1, "--sample-log", log, "--json", "last.json", ranks=3, out=out)  # 6
        tokens = [token for line in log.read_text().splitlines() for token in line.split()[1:]]
        self.assertEqual(len(tokens), 10)
        self.assertEqual(len(set(tokens)), 10)
        self.assertEqual(self.steps(self.folder / "last.json")[-1]["samples_seen"], 10)

    def test_usr1_saves_and_goes_on(self):
        out = self.folder / "out"
        process = self.start("--epochs", 1000, "--save-every", 100000, ranks=2, out=out)
        self.wait_for_step(process, 3)
        process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 20
        while not list(out.glob("step-*.safetensors")) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(list(out.glob("step-*.safetensors")))
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)

    def test_term_to_one_rank_saves_on_all_and_ends_143(self):
        out = self.folder / "out"
        process = self.start("--epochs", 1000, ranks=4, out=out)
        self.wait_for_step(process, 3)
        found = subprocess.run(["pgrep", "-f", f"^{PETRV2} train .*--out {out}"], capture_output=True, text=True)
        pid = int(found.stdout.split()[-1])
        rank = re.search(rb"\0RANK=(\d+)\0", pathlib.Path(f"/proc/{pid}/environ").read_bytes())[1].decode()
        os.kill(pid, signal.SIGTERM)
        text, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 143, text)
        self.assertEqual(len(re.findall("stopped after step", text)), 4, text)
        self.assertRegex(text.splitlines()[-1], rf"rank {rank} .* received SIGTERM \(not sent by hvdrun\)")
        self.train("--epochs", 1000, "--steps", 1, ranks=4, out=out)

    def wait_for_step(self, process, step):
        for line in process.stdout:
            found = re.search(r"step (\d+) epoch", line)
            if found and int(found[1]) >= step:
                return
        self.fail("the training ended before")

    def test_killed_at_any_moment_it_resumes(self):
        out = self.folder / "out"
        draw = random.Random(5)
        for attempt in range(200 if IS_LONG else 10):
            process = self.start("--epochs", 100000, "--save-every", 1, out=out)
            self.wait_for_step(process, 1)
            time.sleep(draw.uniform(0, 0.15))
            process.kill()
            text, _ = process.communicate(timeout=30)
            self.assertNotIn("error", text, attempt)
            left = [path.name for path in out.iterdir() if path.name.endswith("tmp") or ".tmp" in path.name]
            self.assertLessEqual(len(left), 1, left)
        run = self.train("--epochs", 100000, "--steps", 1, out=out)
        self.assertIn("resumed from", run.out)

    def test_restarted_by_hvdrun_it_ends_like_an_undisturbed_one(self):
        options = ("--epochs", 2, "--save-every", 1, "--seed", 4)
        whole, parts = self.folder / "whole", self.folder / "parts"
        self.train(*options, ranks=2, out=whole)
        killed = ('"$@" & petrv2=$!; if [ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then '
                  f'until [ -e "$(echo {parts}/step-*3.safetensors)" ]; do sleep 0.02; done; '
                  "kill -9 $petrv2; fi; wait $petrv2")
        run = Run([HVDRUN, "-np", "2", "--max-restarts", "2", "bash", "-c", killed, "x",
                   *self.words(*options, out=parts)], 120, self.folder, self.environment())
        self.assertEqual(run.code, 0, run.report())
        self.assertIn("restart 1 of 2", run.err, run.report())
        self.assertIn("resumed from", run.out, run.report())
        self.assert_same_state(self.newest(whole), self.newest(parts))

    def test_second_training_in_the_same_folder_is_refused(self):
        out = self.folder / "out"
        process = self.start("--epochs", 1000, out=out)
        self.wait_for_step(process, 1)
        run = self.train("--steps", 1, out=out, code=74)
        self.assertIn(str(out), run.err)
        process.terminate()
        process.communicate(timeout=30)

    def test_damaged_newest_checkpoint_is_passed_over(self):
        out = self.folder / "out"
        self.train("--steps", 2, "--save-every", 1, out=out)
        newest = self.newest(out)
        newest.write_bytes(newest.read_bytes()[:-100])
        run = self.train("--steps", 1, out=out)
        self.assertIn("step-00000001", run.out)
        self.assertIn("step-00000002", run.err)

    @unittest.skipUnless(os.geteuid() == 0, "mounts a small file system")
    def test_full_disk_keeps_the_previous_checkpoint(self):
        out = self.folder / "disk"
        out.mkdir()
        sample = self.folder / "sample"
        self.train("--steps", 1, out=sample)
        size = self.newest(sample).stat().st_size
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={int(size * 1.5)}", "none", out], check=True)
        try:
            run = self.train("--epochs", 50, "--save-every", 1, ranks=2, out=out, code=74)
            self.assertIn("No space left on device", run.err)
            self.assertEqual([path.name for path in out.glob("step-*")], ["step-00000001.safetensors"])
            tensors, metadata = read_safetensors(self.newest(out))
            self.assertEqual(metadata["step"], "1")
        finally:
            subprocess.run(["umount", out], check=True)

    def test_checkpoint_whose_bytes_changed_is_passed_over(self):
        out = self.folder / "out"
        self.train("--steps", 2, "--save-every", 1, out=out)
        newest = self.newest(out)
        blob = bytearray(newest.read_bytes())
        blob[-5000] ^= 1
        newest.write_bytes(blob)
        run = self.train("--steps", 1, out=out)
        self.assertIn("step-00000001", run.out)
        self.assertIn("not what was saved", run.err)

    def test_new_training_among_the_checkpoints_of_another_is_refused(self):
        out = self.folder / "out"
        self.train("--steps", 3, "--save-every", 1, out=out)
        run = self.train("--steps", 1, "--resume", "none", out=out, code=2)
        self.assertIn("holds step 3 of another training", run.err)
        self.train("--steps", 1, "--resume", out / "step-00000002.safetensors", out=out, code=2)
        self.train("--steps", 1, "--resume", out / "step-00000002.safetensors", out=self.folder / "new")

    def test_another_data_set_is_refused(self):
        out, data = self.folder / "out", self.folder / "other"
        subprocess.run([PETRV2, "synth", "--out", data, "--scenes", "1", "--samples-per-scene", "4",
                        "--image-size", "400x225", "--records"], check=True, capture_output=True)
        self.train("--steps", 1, out=out)
        run = self.train("--steps", 1, out=out, data=data / "records", code=74)
        self.assertIn("another data set (10 samples", run.err)

    def test_interrupt_saves_and_ends_130(self):
        out = self.folder / "out"
        process = self.start("--epochs", 1000, out=out)
        self.wait_for_step(process, 2)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, text)
        self.assertIn("saved as", text)
        self.assertTrue(self.newest(out))

    def test_checkpoint_of_another_configuration_is_refused(self):
        out = self.folder / "out"
        self.train("--steps", 1, out=out)
        run = self.train("--steps", 1, "--precision", "fp64", out=out, code=74)
        self.assertIn("another configuration or precision", run.err)
        run = self.train("--steps", 1, "--seed", 9, out=out, code=74)
        self.assertIn("--seed 0", run.err)


class Broken(Training):
    def test_corrupt_record_ends_all_ranks_with_its_place(self):
        data = self.folder / "records"
        shutil.copytree(self.data, data)
        shard = sorted(data.glob("*.tfrecord"))[0]
        blob = bytearray(shard.read_bytes())
        start = blob.index(b"\xff\xd8\xff") + 200  # inside the first JPEG
        blob[start] ^= 0x40
        shard.write_bytes(blob)
        run = self.train("--epochs", 3, ranks=4, data=data, code=74, timeout=60)
        self.assertRegex(run.err, rf"{re.escape(str(shard))}.*record \d+.*offset \d+")

    def test_missing_data_is_one_sentence(self):
        run = self.train("--steps", 1, data=self.folder / "nowhere", code=2)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.assertIn("nowhere", run.err)

    def test_reader_that_goes_does_not_end_the_training(self):
        out = self.folder / "out"
        words = " ".join(self.words("--steps", 6, out=out)) + " | head -3"
        subprocess.run(["bash", "-c", words], env=self.environment(), capture_output=True, timeout=60)
        deadline = time.monotonic() + 20
        while not list(out.glob("step-00000006*")) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertTrue(list(out.glob("step-00000006*")))

    def test_shard_that_shrinks_is_an_error_not_a_crash(self):
        data = self.folder / "records"
        shutil.copytree(self.data, data)
        process = subprocess.Popen(self.words("--epochs", 1000, data=data), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env=self.environment())
        self.addCleanup(process.stdout.close)
        for line in process.stdout:
            if "step 2 " in line:
                break
        os.truncate(sorted(data.glob("*.tfrecord"))[0], 4096)
        text, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 74, text)
        self.assertIn("cut short", text)

    def test_samples_of_one_shard_twice_are_refused(self):
        data = self.folder / "records"
        shutil.copytree(self.data, data)
        for suffix in ("tfrecord", "index"):
            first = sorted(data.glob(f"*.{suffix}"))[0]
            shutil.copy(first, data / f"all-00001-of-00002.{suffix}")
            first.rename(data / f"all-00000-of-00002.{suffix}")
        run = self.train("--steps", 1, data=data, code=74)
        self.assertIn("is there twice", run.err)

    def test_wrong_options_start_nothing(self):
        for options, text in ((("--precision", "fp8"), "fp64|fp32|bf16|fp16"), (("--batch", "0"), "--batch"),
                              (("--bogus",), "--bogus"), (("--lr", "-1"), "--lr"), (("--batch", "11"), "--remainder pad")):
            run = self.train(*options, code=2)
            self.assertIn(text, run.err)
            self.assertEqual(run.out, "")

    def test_gradients_that_stay_infinite_end_the_run_with_the_step(self):
        run = self.train("--lr", "1e30", "--max-skipped", 4, "--epochs", 100, ranks=2, code=75)
        self.assertRegex(run.err, r"step \d+: the gradient was not finite in 4 steps in a row")

    def test_stopped_rank_is_looked_at_and_named_at_the_stall_limit(self):
        out = self.folder / "out"
        limits = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "1", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "3",
                  "HVDRUN_BEAT_MS": "200"}
        process = subprocess.Popen(
            [HVDRUN, "-np", "4", "--on-stall", "echo stack of {rank}, {pid}", *self.words("--epochs", 1000, out=out)],
            cwd=self.folder, env={**self.environment(), **limits}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        for line in process.stdout:
            if "step 2 " in line:
                break
        found = subprocess.run(["pgrep", "-f", f"^{PETRV2} train .*--out {out}"], capture_output=True, text=True)
        pid = found.stdout.split()[-1]
        rank = re.search(rb"\0RANK=(\d+)\0", pathlib.Path(f"/proc/{pid}/environ").read_bytes())[1].decode()
        os.kill(int(pid), signal.SIGSTOP)
        text, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 72, text)
        self.assertEqual(sorted(re.findall(r"\| stack of (\d),", text)), list("0123"), text)
        self.assertIn(f"| stack of {rank}, {pid}\n", text)
        self.assertRegex(text.splitlines()[-1], rf"it stalled: .*missing rank {rank} on localhost, .*stopped \(T\)")

    def test_rank_that_dies_is_named_by_the_others(self):
        out = self.folder / "out"
        process = self.start("--epochs", 1000, ranks=4, out=out)
        for line in process.stdout:
            if "step 2 " in line:
                break
        found = subprocess.run(["pgrep", "-f", f"^{PETRV2} train .*--out {out}"], capture_output=True, text=True)
        os.kill(int(found.stdout.split()[-1]), signal.SIGKILL)
        text, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 137, text)


class Learning(Training):
    SCENES = 8
    SAMPLES = 6

    @unittest.skipUnless(IS_LONG, "three trainings of minutes: HVDRUN_LONG=1")
    def test_equal_total_batches_have_equal_curves(self):
        curves = []
        for ranks in (1, 2, 4):
            self.train("--steps", 300, "--epochs", 25, "--accumulate", 4 // ranks, "--json", f"{ranks}.json",
                       ranks=ranks, timeout=1200)
            losses = [step["loss"]["total"] for step in self.steps(self.folder / f"{ranks}.json")]
            curves.append([sum(losses[begin : begin + 50]) / 50 for begin in range(0, 300, 50)])
        print(f"means of 50 losses by 1, 2, 4 ranks: {curves}")
        for curve in curves[1:]:
            for mine, alone in zip(curve, curves[0]):
                self.assertLess(abs(mine - alone), 0.03 * alone)

    def last_loss(self, *options):
        self.train("--epochs", 100, "--batch", 2, "--json", "loss.json", *options, ranks=2, timeout=3000)
        steps = self.steps(self.folder / "loss.json")
        os.unlink(self.folder / "loss.json")
        return sum(step["loss"]["total"] for step in steps[-12:]) / 12  # the last epoch

    @unittest.skipUnless(IS_LONG, "two trainings of minutes: HVDRUN_LONG=1")
    def test_the_model_looks_at_its_images(self):
        seen, noise = self.last_loss(), self.last_loss("--noise-images")
        print(f"last loss: {seen:.3f} with images, {noise:.3f} with noise, {noise / seen - 1:+.0%}")
        self.assertGreaterEqual(noise, 1.2 * seen)


if __name__ == "__main__":
    unittest.main(verbosity=2)
