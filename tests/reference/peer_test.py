"""The training peer takes the step of the reference; the comparison sees what differs."""
import copy
import dataclasses
import unittest

import torch

import compare
import config as configs
import dump
import filler
import golden_case
import model as models
import train_peer
import train_step
from peer_data import Batches

SMALL = configs.Config(
    backbone="resnet18", base_width=16, trainable_norm=True, height=64, width=96, queries=20,
    embed=64, heads=4, layers=2, feedforward=128, depth_bins=16, denoising=True, groups=2,
)  # fmt: skip


class PeerTest(unittest.TestCase):
    def one_step(self, config):
        torch.manual_seed(1)
        model = models.build(config)
        filler.fill_model(model)
        peer = copy.deepcopy(model).to(memory_format=torch.channels_last)
        peer.img_backbone.fold = True
        model.eval(), peer.eval()  # no dropout
        batches = Batches(config, 2, 3, torch.device("cpu"), 0)
        images, img2lidar, delta_t, truth, dn = batches.next()

        outputs = model(images, img2lidar, delta_t, dn)
        head = model.pts_bbox_head
        _, total, _ = golden_case.all_losses(config, head, outputs, truth, dn)
        total.backward()
        optimizer = train_step.adamw(model, config.lr, foreach=False)
        train_step.step(model, optimizer, 0, train_peer.ITERATIONS_PER_EPOCH, config.epochs)

        module = train_peer.TrainingModule(peer)
        copies = 0 if dn is None else len(dn.labels)
        counts = train_peer.MeanCounts(truth.positives(config.queries), copies, images.device)
        loss = module(images, img2lidar, delta_t, truth, dn, counts)
        stepper = train_peer.Stepper(module, config, "fp32", images.device)
        stepper.step(loss, 0)

        self.assertAlmostEqual(loss.item() / total.item(), 1, delta=1e-5)
        lr = config.lr / 3
        differences = [
            (p - q).abs().flatten() for p, q in zip(model.parameters(), peer.parameters())
        ]
        differences = torch.cat(differences).detach()
        self.assertLess(differences.max(), 2.1 * lr)  # where rounding turns an update round
        self.assertLess(differences.median(), 0.02 * lr)

    def test_plain(self):
        self.one_step(dataclasses.replace(SMALL, denoising=False))

    def test_denoising_and_weighted_matcher(self):
        weights = (2.0, 2.0) + (1.0,) * 8
        self.one_step(dataclasses.replace(SMALL, code_weights=weights, match_weighted=True))

    def test_not_finite_gradient_skips(self):
        model = models.build(SMALL)
        filler.fill_model(model)
        before = copy.deepcopy(model.state_dict())
        module = train_peer.TrainingModule(model)
        stepper = train_peer.Stepper(module, SMALL, "fp32", torch.device("cpu"))
        loss = sum(p.sum() for p in stepper.parameters) * float("inf")
        stepper.step(loss, 0)
        self.assertEqual(stepper.skipped, 1)
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)


class CompareTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = dump.run(SMALL)

    def table(self, change):
        other = copy.deepcopy(self.result)
        change(other)
        return compare.compare(other, self.result, "fp64", False)

    def test_equal(self):
        self.assertFalse(self.table(lambda other: None).failed)

    def test_recompute(self):
        other = dump.run(SMALL, recompute=True)
        self.assertFalse(compare.compare(other, self.result, "fp64", False).failed)

    def test_forced_assignment(self):
        other = dump.run(SMALL, assignments=self.result["assignments"])
        self.assertFalse(compare.compare(other, self.result, "fp64", False).failed)

    def test_changes_are_seen(self):
        def stage(other):
            other["stages"]["pe3d"]["l2"] *= 1 + 1e-6

        def gradient(other):
            other["parameters"]["img_neck.fpn_convs.0.conv.weight"]["grad"]["last"][3] *= 1.001

        def step(other):
            other["parameters"]["img_backbone.conv1.weight"]["after_step"]["first"][0] += 1e-6

        def assignment(other):
            other["assignments"][1][0][0][0] += 1

        def decoded(other):
            other["decoded"][0]["boxes"][7][2] += 0.01

        for change in (stage, gradient, step, assignment, decoded):
            with self.subTest(change.__name__):
                self.assertTrue(self.table(change).failed)

    def test_missing_key_is_named(self):
        with self.assertRaisesRegex(compare.Mismatch, "stages: gate is only in B"):
            self.table(lambda other: other["stages"].pop("gate"))
        with self.assertRaisesRegex(compare.Mismatch, "decoded is missing in A"):
            self.table(lambda other: other.pop("decoded"))


if __name__ == "__main__":
    unittest.main()
