"""What was measured, as Markdown."""

import statistics


def _range(values):
    values = [value for value in values if value is not None]
    if not values:
        return "| |"
    return f"{statistics.median(values):.2f} | {max(values):.2f} |"


def _bound(values):
    values = sorted({value for value in values if value is not None})
    return "" if not values else "..".join(f"{value:g}" for value in dict.fromkeys(
        (values[0], values[-1])))


def table(verdicts):
    """One row for each kind of fault: cases, then bound, median and worst of three times."""
    lines = ["| target, fault | cases | obedient: bound | median | worst | deaf: bound | median | "
             "worst | hvdrun's end: bound | median | worst |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for kind in dict.fromkeys(verdict.kind for verdict in verdicts):
        chosen = [verdict for verdict in verdicts if verdict.kind == kind]
        row = f"| {kind} | {len(chosen)} |"
        for what in ("obedient", "deaf", "end"):
            row += f" {_bound([getattr(v.bounds, what) for v in chosen])} | "
            row += _range([getattr(v.figures, what) for v in chosen])
        lines.append(row)
    return "\n".join(lines)


def report(verdicts, summary):
    """The table under one sentence, to be put into a document as it is."""
    return f"{summary}\n\n{table(verdicts)}\n"


def line(verdict):
    """One case: its times against their bounds."""
    parts = []
    for what in ("obedient", "deaf", "end"):
        seconds, bound = getattr(verdict.figures, what), getattr(verdict.bounds, what)
        if bound is not None:
            took = "-" if seconds is None else f"{seconds:.2f}"
            parts.append(f"{what} {took} of {bound:g}")
    word = "FAILED" if verdict.problems else "ok"
    return f"{word:6} {verdict.name:32} code {verdict.code}  {', '.join(parts)}"
