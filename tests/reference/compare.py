"""Compares two files of dump.py or `petrv2 verify --json`: A against the reference B.

compare.py A.json B.json [--precision P] [--all]     exit 0 when all is within tolerances.py, else 1
The columns are those of the precision of A, or of B where that is the lower one. A key that only
one file has is an error naming it. Whole tensors are not in the files: a relative difference here
is the largest of those of the sampled values, the L2 norm and the two means, each measured on the
scale of the tensor's root mean square.
"""
import argparse
import json
import math
import pathlib
import sys

import tolerances
from dump import BASE_LR, PRECISIONS, layer_name
from train_step import BACKBONE_FACTOR, CLIP, WARM_UP_RATIO

FIELDS = ("shape", "n", "mean", "abs_mean", "l2", "first", "last")
KEYS = ("stages", "parameters", "losses", "assignments", "grad_norm", "decoded")


class Mismatch(Exception):
    pass


def read(path):
    """null stands for a number that JSON cannot write."""
    def numbers(value):
        if isinstance(value, list):
            return [numbers(item) for item in value]
        return math.nan if value is None else value

    def pairs(items):
        return {key: v if key in ("grad", "after_step") else numbers(v) for key, v in items}

    return json.loads(pathlib.Path(path).read_text(), object_pairs_hook=pairs)


def same_keys(a, b, where):
    for key in a.keys() ^ b.keys():
        raise Mismatch(f"{where}: {key} is only in {'A' if key in a else 'B'}")
    return b.keys()


def check_summary(a, b, where):
    for label, one in (("A", a), ("B", b)):
        for field in FIELDS:
            if field not in one:
                raise Mismatch(f"{where}: {field} is missing in {label}")
    if a["n"] != b["n"]:
        raise Mismatch(f"{where}: {a['n']} values against {b['n']}")
    # Leading dimensions may be merged, (B, tokens, C) is (B * tokens, C), and a size of 1 may be left out.
    last = lambda shape: [size for size in shape if size != 1][-1:]
    if last(a["shape"]) != last(b["shape"]):
        raise Mismatch(f"{where}: shape {a['shape']} against {b['shape']}")
    for field in ("first", "last"):
        if len(a[field]) != len(b[field]):
            raise Mismatch(f"{where}: {field} has {len(a[field])} values against {len(b[field])}")


def norm(values):
    return math.sqrt(sum(v * v for v in values))


def finite(value):
    return value if math.isfinite(value) else math.inf


def relative_difference(a, b, parts=("first", "last"), totals=("l2", "mean", "abs_mean")):
    rms = b["l2"] / math.sqrt(b["n"]) if b["n"] else 0.0
    result = 0.0
    x = [v for part in parts for v in a[part]]
    y = [v for part in parts for v in b[part]]
    scale = max(norm(y), rms * math.sqrt(len(y)))
    difference = norm([p - q for p, q in zip(x, y)])
    if difference or not math.isfinite(difference):
        result = finite(difference / scale) if scale else math.inf
    for field in totals:
        difference = a[field] - b[field]
        scale = b["l2"] if field == "l2" else rms
        if difference or not math.isfinite(difference):
            result = max(result, finite(abs(difference) / scale) if scale else math.inf)
    return result


def absolute_difference(a, b):
    pairs = zip(a["first"] + a["last"], b["first"] + b["last"])
    return max((abs(p - q) for p, q in pairs), default=0.0)


class Table:
    def __init__(self, show_all):
        self.rows, self.failed, self.show_all = [], False, show_all

    def add(self, name, difference, limit, unit="rel"):
        passed = difference <= limit
        self.failed |= not passed
        self.rows.append((name, difference, limit, unit, "" if passed else "FAIL"))

    def group(self, name, items):
        """One line for the worst of many (name, difference, limit); failures on their own."""
        if not items:
            return
        worst = max(items, key=lambda item: item[1] / item[2])
        for item in items:
            if self.show_all or item[1] > item[2]:
                self.add(*item)
        self.add(f"{name}: worst of {len(items)}, {worst[0]}", *worst[1:])

    def note(self, text):
        self.rows.append((text, None, None, None, "note"))

    def print(self):
        for name, difference, limit, unit, verdict in self.rows:
            if difference is None:
                print(f"{name}")
            else:
                print(f"{difference:10.2e} {limit:9.1e} {unit}  {name}  {verdict}".rstrip())
        print("differs" if self.failed else "within the accepted differences")


def compare_stages(a, b, precision, table):
    for name in same_keys(a, b, "stages"):
        check_summary(a[name], b[name], f"stages.{name}")
        family = tolerances.family_of_stage(name)
        limit = tolerances.relative(family, precision)
        table.add(name, relative_difference(a[name], b[name]), limit)
        if family in tolerances.ABSOLUTE and precision != "fp64":
            difference = absolute_difference(a[name], b[name])
            table.add(name, difference, tolerances.ABSOLUTE[family], "abs")


def compare_gradient(name, a, b):
    """None for gradients that are zero but for rounding."""
    if tolerances.exact_zero(name):
        return None
    zero = tolerances.zero_thirds(name)
    parts = [part for part, third in (("first", 0), ("last", 2)) if not zero[third]]
    return relative_difference(a, b, parts)


def first_update(gradient, factor):
    g = gradient * factor
    return g / (abs(g) + 1e-8)


def compare_step(name, a, b, factors, lr):
    """AdamW's first update has nearly the size of the learning rate whatever the gradient's, so a
    rounding error in the gradient can turn it round. Hence each file's own gradient predicts the
    difference of the two updated values; only what is left counts. The totals cannot be corrected
    so: they must agree to one learning rate each way."""
    if tolerances.exact_zero(name):
        return None
    x, y = a["after_step"], b["after_step"]
    zero = tolerances.zero_thirds(name)
    rms = y["l2"] / math.sqrt(y["n"])
    worst = 0.0
    for part, third in (("first", 0), ("last", 2)):
        if zero[third]:
            continue
        columns = x[part], y[part], a["grad"][part], b["grad"][part]
        for p, q, gradient_a, gradient_b in zip(*columns):
            updates = first_update(gradient_a, factors[0]), first_update(gradient_b, factors[1])
            left = abs((p - q) + lr * (updates[0] - updates[1]))
            worst = max(worst, finite(left / max(abs(q), rms)))
    for field, scale in (("l2", y["l2"]), ("mean", rms), ("abs_mean", rms)):
        beyond = abs(x[field] - y[field]) - 2.1 * lr * scale / rms
        worst = max(worst, finite(beyond / scale))
    return worst


def trainable(parameters):
    """A frozen parameter may be left out, or have no gradient."""
    return {name: v for name, v in parameters.items() if v.get("grad") is not None}


def compare_parameters(a, b, precision, table):
    factors = [min(1.0, CLIP / (one["grad_norm"] + 1e-6)) for one in (a, b)]
    gradients, steps = {}, []
    p, q = trainable(a["parameters"]), trainable(b["parameters"])
    for name in same_keys(p, q, "parameters"):
        for field in ("grad", "after_step"):
            for label, one in (("A", p), ("B", q)):
                if field not in one[name]:
                    raise Mismatch(f"parameters.{name}: {field} is missing in {label}")
            check_summary(p[name][field], q[name][field], f"parameters.{name}.{field}")
        difference = compare_gradient(name, p[name]["grad"], q[name]["grad"])
        if difference is not None:
            family = tolerances.family_of_gradient(name)
            item = name, difference, tolerances.relative(family, precision)
            gradients.setdefault(family, []).append(item)
        lr = BASE_LR * WARM_UP_RATIO * (BACKBONE_FACTOR if name.startswith("img_backbone.") else 1)
        difference = compare_step(name, p[name], q[name], factors, lr)
        if difference is not None:
            steps.append((name, difference, tolerances.relative("step", precision)))
    for family, items in gradients.items():
        table.group(family, items)
    norms = a["grad_norm"], b["grad_norm"]
    limit = tolerances.relative("gradient norm", precision)
    table.add("grad_norm", finite(abs(norms[0] - norms[1]) / norms[1]), limit)
    table.group("after_step", steps)


def compare_losses(a, b, precision, table):
    if len(a["assignments"]) != len(b["assignments"]):
        raise Mismatch("assignments: different numbers of layers")
    moved = set()
    for layer, (x, y) in enumerate(zip(a["assignments"], b["assignments"])):
        if [sorted(s) for s in x] != [sorted(s) for s in y]:
            moved.add(layer_name(layer, len(a["assignments"])))
    if moved and precision in ("fp64", "fp32"):
        table.add(f"assignments of layers {', '.join(sorted(moved))}", len(moved), 0, "   ")
    elif moved:
        table.note(f"assignments differ in layers {', '.join(sorted(moved))}: their losses and "
                   "the total are left out; give dump.py --assignments")  # fmt: skip
    else:
        table.add("assignments", 0, 0, "   ")
    limit = tolerances.relative("loss", precision)
    for name in same_keys(a["losses"], b["losses"], "losses"):
        of_moved = name == "total" or name.partition(".")[2] in moved
        if moved and of_moved and not name.startswith("dn_"):
            continue
        x, y = a["losses"][name], b["losses"][name]
        table.add(f"loss {name}", finite(abs(x - y) / max(abs(y), 1e-12)), limit)


def compare_decoded(a, b, precision, table):
    """Scores by position; boxes with a partner of the same label and nearly the same score, so that
    near scores may swap, at the end of the list with boxes beyond it."""
    if len(a) != len(b):
        raise Mismatch(f"decoded: {len(a)} samples against {len(b)}")
    limit = tolerances.relative("decoded", precision)
    near = {"fp64": 1e-12, "fp32": 1e-6}.get(precision, limit)
    for sample, (x, y) in enumerate(zip(a, b)):
        where = f"decoded.{sample}"
        for field in same_keys(x, y, where):
            if len(x[field]) != len(y[field]) and precision in ("fp64", "fp32"):
                raise Mismatch(f"{where}.{field}: {len(x[field])} against {len(y[field])}")
        scores = zip(x["scores"], y["scores"])
        worst = max((abs(p - q) / max(q, 1e-6) for p, q in scores), default=0.0)
        table.add(f"{where} scores", finite(worst), limit)
        if precision not in ("fp64", "fp32"):
            continue
        unmatched, worst = 0, 0.0
        free = set(range(len(y["scores"])))
        for score, label, box in zip(x["scores"], x["labels"], x["boxes"]):
            fits = [
                (norm([p - q for p, q in zip(box, y["boxes"][j])]) / norm(y["boxes"][j]), j)
                for j in free
                if y["labels"][j] == label and abs(y["scores"][j] - score) <= near + limit * score
            ]
            if not fits:
                unmatched += 1
                continue
            difference, j = min(fits)
            free.remove(j)
            worst = max(worst, difference)
        last = min(y["scores"], default=0)
        at_the_end = sum(y["scores"][j] - last <= near + limit * last for j in free)
        table.add(f"{where} boxes", finite(worst), limit)
        table.add(f"{where} boxes without a partner", max(unmatched - at_the_end, 0), 0, "   ")


def compare(a, b, precision, show_all):
    table = Table(show_all)
    for label, one in (("A", a), ("B", b)):
        for key in KEYS:
            if key not in one:
                raise Mismatch(f"{key} is missing in {label}")
    compare_stages(a["stages"], b["stages"], precision, table)
    compare_losses(a, b, precision, table)
    compare_parameters(a, b, precision, table)
    compare_decoded(a["decoded"], b["decoded"], precision, table)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--precision", choices=PRECISIONS)
    parser.add_argument("--all", action="store_true", help="a line for every parameter")
    arguments = parser.parse_args()
    a, b = read(arguments.a), read(arguments.b)
    precision = arguments.precision
    if precision is None:
        found = [PRECISIONS.index(one.get("precision", "fp64")) for one in (a, b)]
        precision = PRECISIONS[max(found)]
    try:
        table = compare(a, b, precision, arguments.all)
    except Mismatch as mismatch:
        sys.exit(str(mismatch))
    print(f"{'difference':>10} {'accepted':>9}      {precision}")
    table.print()
    sys.exit(1 if table.failed else 0)


if __name__ == "__main__":
    main()
