"""The golden numbers of the model and the parameter counts, in fp64."""
import dataclasses
import itertools
import unittest

import numpy as np
import torch

import config as configs
import filler
import geometry
import golden_case
import losses
import model
import train_step
from assignment import match, shortest_augmenting_paths
from backbones import ResNet, VoVNet99
from golden_numbers import BACKBONES, DN, GRADIENTS, PAIRS, PARAMETERS, TENSORS
from head import PETRHead
from neck import CPFPN

HEAD = dataclasses.replace(configs.Config(), height=64, width=96, queries=20, groups=2)


class Golden(unittest.TestCase):
    def near(self, value, golden, relative=1e-8):
        if isinstance(value, torch.Tensor):
            value = value.item()
        self.assertLessEqual(abs(value - golden), relative * abs(golden), f"{value} not {golden}")

    def printed(self, values, text):
        """Equal to all printed digits."""
        words = text.split()
        values = torch.as_tensor(values, dtype=torch.float64).flatten().tolist()
        self.assertEqual(len(values), len(words))
        for value, word in zip(values, words):
            digits = len(word.partition("e")[0].partition(".")[2])
            exponent = int(word.partition("e")[2] or 0)
            unit = 10.0 ** (exponent - digits)
            self.assertLessEqual(abs(value - float(word)), 0.5001 * unit, f"{value} not {word}")

    def tensor(self, values, golden):
        total, l2, first, last = golden
        flat = values.detach().flatten()
        self.near(flat.sum(), total)
        self.near(flat.norm(), l2)
        for value, expected in zip(flat, first):
            self.near(value, expected)
        if last is not None:
            self.near(flat[-1], last)


class FillerTest(Golden):
    def test_values(self):
        self.printed(filler.u(0, (4,)), "-1.00000000 -.36480228 -.61753046 .04640819")
        self.printed(filler.u(7, (3,)), "-.05675941 .94473536 -.05637561")

    def test_counts(self):
        for name, count in PARAMETERS.items():
            with self.subTest(name):
                self.assertEqual(model.parameter_count(configs.CONFIGS[name]), count)
        with torch.device("meta"):
            head = PETRHead(configs.Config(), 256)
        self.assertEqual(sum(p.numel() for p in head.parameters()), 14_543_886)


class ConfigTest(unittest.TestCase):
    def test_files_agree(self):
        """The trainer's own files, where they are there, say the same as config.py."""
        for name, expected in configs.CONFIGS.items():
            path = configs.CONFIG_FOLDER / f"{name}.yaml"
            if path.is_file():
                with self.subTest(name):
                    self.assertEqual(configs.from_yaml(path), expected)

    def test_yaml(self):
        text = "a:\n  b: {c: [1, 2.5], d: true}  # note\n  e: word\nf: -1e-3\n"
        expected = {"a": {"b": {"c": (1, 2.5), "d": True}, "e": "word"}, "f": -1e-3}
        self.assertEqual(configs.read_yaml(text), expected)


class HeadTest(Golden):
    @classmethod
    def setUpClass(cls):
        cls.plain = cls.run_head(HEAD)
        cls.denoised = cls.run_head(dataclasses.replace(HEAD, denoising=True))

    @staticmethod
    def run_head(config):
        head = PETRHead(config, 256).double()
        filler.fill_head(head)
        head.eval()
        feature = filler.u(filler.FEATURE, (12, 256, 4, 6)).requires_grad_()
        img2lidar = golden_case.cameras(1, 64, 96, 12)
        boxes = [torch.tensor(golden_case.BOXES, dtype=torch.float64)]
        labels = [torch.tensor(golden_case.LABELS)]
        dn = golden_case.denoising_queries(config, boxes, labels) if config.denoising else None
        stages = {}
        delta_t = torch.tensor([golden_case.DELTA_T], dtype=torch.float64)
        outputs = head(feature, img2lidar, delta_t, (64, 96), dn, stages.__setitem__)
        truth = losses.GroundTruth.pad(boxes, labels)
        terms, total, matches = golden_case.all_losses(config, head, outputs, truth, dn)
        total.backward()
        return locals()

    def test_camera(self):
        view = geometry.golden_cameras(64, 96)[1]
        for row, text in enumerate((
            "-15.169219382 69.72614132 0 -24",
            "-27.712812921 16 -52.8 -31.84",
            "-.866025404 .5 0 -.5",
        )):  # fmt: skip
            self.printed(view[row], text)

    def test_stages(self):
        stages = self.plain["stages"]
        stages["class"] = torch.cat([stages[f"class.{l}"] for l in range(6)])
        stages["box"] = torch.cat([stages[f"box.{l}"] for l in range(6)])
        for name, golden in TENSORS.items():
            with self.subTest(name):
                self.tensor(stages[name], golden)
        self.printed(
            stages["class.5"][0, 0],
            "-.0799387613 1.30492986 -.0580948647 1.0789039 .653534627 .122380398 .283482439 "
            "-.197449396 -.0903229781 .132580726",
        )
        self.printed(
            stages["box.5"][0, 0],
            "16.8554882 29.7572691 .00380603651 .330269626 -4.05373114 -.0416618794 .495675357 "
            ".231564552 .462144149 .630251625",
        )

    def test_losses(self):
        for run in (self.plain, self.denoised):
            for l, (pairs, class_loss, box_loss) in enumerate(PAIRS):
                queries = run["matches"][l, 0].tolist()
                self.assertEqual({q: g for g, q in enumerate(queries)}, pairs)
                self.near(run["terms"]["class"][l], class_loss)
                self.near(run["terms"]["box"][l], box_loss)
        self.near(self.plain["total"], 165.6096828)

    def test_cost_margin(self):
        _, costs = golden_case.solve(*self.plain["outputs"], self.plain["truth"], None)
        cost = costs[5][0].numpy()
        self.printed(cost[[9, 15, 19], [1, 0, 2]], "5.996873444 3.362077341 4.406687983")
        best = sum(cost[[9, 15, 19], [1, 0, 2]])
        others = []
        for query, truth in ((9, 1), (15, 0), (19, 2)):
            without = cost.copy()
            without[query, truth] = 1e6
            queries = match(without)
            others.append(without[queries, range(3)].sum() - best)
        self.printed(min(others), "0.295")

    def test_gradients(self):
        parameters = dict(self.plain["head"].named_parameters())
        for name, (total, l2) in GRADIENTS.items():
            with self.subTest(name):
                gradient = parameters[name].grad
                if total is not None:
                    self.near(gradient.sum(), total)
                self.near(gradient.norm(), l2)
        zero = "transformer.decoder.layers.0.attentions.0.attn.in_proj_weight"
        self.assertLess(parameters[zero].grad.norm(), 1e-13)
        self.near(self.plain["feature"].grad.norm(), 5.874697337)
        for run, norm in ((self.plain, 2398.821905), (self.denoised, 3936.651532)):
            gradients = [p.grad for p in run["head"].parameters() if p.requires_grad]
            self.near(torch.nn.utils.get_total_norm(gradients), norm)

    def test_denoising(self):
        dn, terms = self.denoised["dn"], self.denoised["terms"]
        self.assertEqual(dn.labels.tolist(), [0, 10, 10, 0, 8, 10])
        self.near(dn.anchors.sum(), 9.96600649)
        self.near(dn.anchors.norm(), 2.41736416)
        noise = 0.6 * filler.u(filler.DENOISING, (6, 3))
        expected = 0.734945690, 0.764619163, 0.762857663, 0.665542660, 0.575185355, 0.845182308
        for row, norm in zip(noise, expected):
            self.near(row.norm(), norm)
        for l, (class_loss, box_loss) in enumerate(DN):
            self.near(terms["dn_class"][l], class_loss)
            self.near(terms["dn_box"][l], box_loss)
        self.near((terms["dn_class"] + terms["dn_box"]).sum(), 120.6682249)
        self.near(self.denoised["total"], 286.2779077)

    def test_no_path_from_denoising_to_learned(self):
        for plain, denoised in zip(self.plain["outputs"], self.denoised["outputs"]):
            self.assertLess((plain - denoised[:, :, 6:]).abs().max(), 1e-12)


class BackboneTest(Golden):
    def check(self, make, golden, last):
        with torch.device("meta"):
            backbone = make()
            neck = CPFPN(backbone.channels)
        backbone = backbone.double().to_empty(device="cpu")
        neck = neck.double().to_empty(device="cpu")
        self.assertEqual(filler.fill_backbone_and_neck(backbone, neck), last)
        images = filler.u(filler.IMAGE, (1, 3, 64, 96))
        with torch.no_grad():
            outputs = backbone(images)
            outputs += neck(*outputs[-2:])
            backbone.fold = True
            folded = backbone(images)
        for output, expected in zip(outputs, golden):
            self.tensor(output, expected)
        for output, expected in zip(folded, outputs):
            self.assertLess((output - expected).norm() / expected.norm(), 1e-13)

    def test_vovnet(self):
        self.check(VoVNet99, BACKBONES["vovnet99"], 5526)

    def test_resnet50(self):
        for style in ("pytorch", "caffe"):
            with self.subTest(style):
                self.check(lambda: ResNet(50, style), BACKBONES[style], 5264)

    def test_last_numbers(self):
        for depth, last in ((18, 5099), (101, 5519)):
            with torch.device("meta"):
                backbone = ResNet(depth)
                numbers = (
                    1 if isinstance(m, torch.nn.Conv2d) else 4
                    for m, _ in backbone.in_execution_order()
                )
                self.assertEqual(5000 + sum(numbers) - 1, last)


class SmallCases(Golden):
    def test_focal(self):
        logits = torch.tensor([-4.59511985, 0, 2], dtype=torch.float64)
        negative = losses.focal_element(logits, torch.zeros(3, dtype=torch.bool))
        positive = losses.focal_element(logits, torch.ones(3, dtype=torch.bool))
        self.printed(negative, "7.53775189e-7 .129965096 1.23755863")
        self.printed(positive, "1.12838182 .0433216988 4.50890709e-4")

    def test_matching_cost(self):
        logits = torch.tensor([[[-4.59511985], [0], [2], [-2]]], dtype=torch.float64)
        boxes = torch.zeros(1, 4, 10, dtype=torch.float64)
        truth = losses.GroundTruth([1], boxes[:, :1], torch.zeros(1, 1, dtype=torch.int64))
        cost = losses.matching_cost(logits, boxes, truth)
        self.printed(cost, "2.25676214 -.173286795 -2.47421549 .822333745")

    def test_target_code(self):
        box = torch.tensor([10, -5, 1, 1.9, 4.5, 1.6, 0.3, 2, -1], dtype=torch.float64)
        self.printed(
            losses.encode(box),
            "10 -5 .641853886 1.50407740 1 .470003629 .295520207 .955336489 2 -1",
        )

    def test_assignment(self):
        logits = torch.tensor([[(2, -2), (-1, 1), (0, 0), (-4, -4)]], dtype=torch.float64)
        dims = [0.5, 1.4, -1, 0.4, 0.1, 0.99, 0, 0]
        points = ((1, 2), (9, -3), (1.2, 2.1))
        rows = [[x, y, *dims] for x, y in points] + [[0] * 7 + [1, 0, 0]]
        boxes = torch.tensor([rows], dtype=torch.float64)
        codes = torch.tensor([[[1.1, 2, *dims], [9.5, -3, *dims]]], dtype=torch.float64)
        truth = losses.GroundTruth([2], codes, torch.tensor([[1, 0]]))
        cost = losses.matching_cost(logits, boxes, truth)
        self.printed(cost, ".8473 .9008 2.1835 .4419 -.1233 3.1767 3.5649 5.9149")
        matches = torch.from_numpy(losses.match_layer(cost.numpy(), [2]))
        self.assertEqual(matches.tolist(), [[2, 1]])
        terms = losses.detection_losses(
            logits[None], boxes[None], matches[None], truth, torch.ones(10).double(), 2, 2
        )
        self.printed(torch.cat(terms), "2.1141 .0875")

    def test_shortest_augmenting_paths(self):
        """Against all permutations."""
        rng = np.random.default_rng(0)
        for n, m in ((1, 5), (3, 3), (4, 6), (5, 7)):
            cost = rng.normal(size=(n, m))
            columns = shortest_augmenting_paths(cost)
            self.assertEqual(len(set(columns)), n)
            totals = (cost[range(n), p].sum() for p in itertools.permutations(range(m), n))
            self.assertAlmostEqual(cost[range(n), columns].sum(), min(totals), places=12)

    def test_extreme_truths(self):
        self.assertEqual(match(np.zeros((5, 0))).tolist(), [])
        left_over = match(np.arange(12.0).reshape(3, 4) ** 2)
        self.assertEqual((left_over < 0).sum(), 1)

    def test_inverse_sigmoid(self):
        values = torch.tensor([-0.1, 0, 1e-6, 1e-4, 0.25, 1.2], dtype=torch.float64)
        expected = "-11.512925 -11.512925 -11.512924 -9.21024 -1.098612 11.512925"
        self.printed(geometry.inverse_sigmoid(values), expected)
        self.printed(geometry.inverse_sigmoid(torch.tensor([0.99999])), "11.51156")

    def test_depth_bins(self):
        bins = geometry.depth_bins(HEAD)[[0, 1, 2, 10, 31, 32, 62, 63]]
        expected = "1.0 1.028942308 1.086826923 2.591826923 15.355384615 16.281538462"
        self.printed(bins, expected + " 57.524326923 59.347692308")

    def test_frustum(self):
        ida = torch.tensor([[0.5, 0, 0], [0, 0.5, -130], [0, 0, 1]], dtype=torch.float64)
        camera = [[1266.4172, 0, 816.267], [0, 1266.4172, 491.507], [0, 0, 1]]
        intrinsics = torch.eye(4, dtype=torch.float64)
        intrinsics[:3, :3] = ida @ torch.tensor(camera, dtype=torch.float64)
        lidar2cam = torch.eye(4, dtype=torch.float64)
        lidar2cam[:3, :3] = torch.tensor([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
        lidar2cam[:3, 3] = -lidar2cam[:3, :3] @ torch.tensor([0, 0.4, -0.3]).double()
        inverse = (intrinsics @ lidar2cam).inverse()[None, None]
        points = geometry.frustum(HEAD, (20, 50), (320, 800))
        d = points[2, 10, 25, 63]
        self.printed(points[:, 10, 25, 63] / torch.stack([d, d, d / d]), "400 160 59.347692")
        limits = geometry.position_range()
        c = geometry.normalised_coordinates(points, inverse, limits)[0, 0]
        extent = limits[1] - limits[0]
        self.printed(c[10, 25, 63] * extent + limits[0], "-.762315 59.747692 -4.447018")
        for value, expected in zip(c[10, 25, 63], (0.493771936, 0.988134741, 0.277649084)):
            self.near(value, expected)
        for value, expected in zip(c[10, 25, 63], (-0.0249135, 4.4222043, -0.9561530)):
            self.assertAlmostEqual(geometry.inverse_sigmoid(value).item(), expected, delta=1e-7)
        self.printed(c[19, 49, 63] * extent + limits[0], "35.228216 59.747692 -17.943468")
        self.printed(c[19, 49, 63, 2], "-.397")
        self.printed(geometry.inverse_sigmoid(c[19, 49, 63, 2]), "-11.512925")

    def test_sine(self):
        sine = geometry.multiview_sine(12, 20, 50)
        first = sine[0, [0, 1, 2, 3, 64, 65, 66, 128, 129, 192, 193, 256, 257, 320, 321]]
        self.printed(
            first,
            ".499999962 .438040555 .382632226 .333501609 .866025426 .898955211 .923900741 "
            ".309016979 .268707281 .951056521 .963221884 .125333231 .108605639 .992114702 "
            ".994084913",
        )
        self.printed(sine.mean(), "0.4936174")

    def test_anchor_sine(self):
        values = geometry.anchor_sine(torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64))
        index = [*range(4), *range(128, 132), *range(256, 260)]
        self.printed(
            values[index],
            ".951056516 .309016994 .885794333 .464078010 .587785252 .809016994 .517649491 "
            ".855592780 .951056516 -.309016994 .998108981 -.061469191",
        )
        self.printed(values.sum(), "206.584052")

    def test_clip_and_adamw(self):
        weight = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
        module = torch.nn.ParameterDict({"w": weight})
        weight.grad = torch.tensor([30.0, 40.0], dtype=torch.float64)
        optimizer = train_step.adamw(module, 2e-4)
        self.assertEqual(train_step.clip([weight]).item(), 50)
        self.printed(weight.grad, "21.000 28.000")
        optimizer.step()
        self.printed(weight, ".999798 -2.000196")

    def test_schedule(self):
        rate = lambda it: train_step.learning_rate(2e-4, it, 3517, 24)
        self.printed(rate(0), "6.6667e-5")
        self.printed(rate(1), "6.69333e-5")
        self.printed(rate(250), "1.33333e-4")
        self.printed(rate(499), "1.997333e-4")
        self.near(rate(500), 2e-4, 1e-12)
        epochs = (1, 2, 5, 11, 12, 20, 23)
        expected = (
            "1.991453417e-4 1.965959900e-4 1.793559987e-4 1.131395666e-4 1.001e-4 "
            "1.358406216e-5 1.054658349e-6"
        )
        self.printed([rate(3517 * e) for e in epochs], expected)

    def test_hard_sigmoid(self):
        x = torch.tensor([-4.0, -1, 0, 1, 4], dtype=torch.float64)
        values = torch.nn.functional.relu6(x + 3) / 6
        self.assertTrue(torch.allclose(values, torch.tensor([0, 1 / 3, 0.5, 2 / 3, 1]).double()))


if __name__ == "__main__":
    unittest.main()
