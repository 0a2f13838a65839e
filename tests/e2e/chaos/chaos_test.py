"""Faults at any place and in any phase of a job: it ends in time, with the right code and cause, and
nothing is left; what must be survived is.

  chaos_test.py [--transport ssh|tls] [--seed N] [--count N] [--only PATTERN] [--sets N]
                [--timings scaled|default] [--list] [--table FILE]

Cases (cases.py) run in an order drawn by the seed, which is printed and repeats a run; without one
it comes from HVDRUN_CHAOS_SEED or the day. Each set of hosts works off the cases by itself.
"""

import argparse
import datetime
import multiprocessing
import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import cases
import figures
import harness
import nodes
import trial


def default_seed():
    return int(os.environ.get("HVDRUN_CHAOS_SEED") or datetime.date.today().strftime("%Y%m%d"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=default_seed())
    parser.add_argument("--count", type=int, help="only so many cases, drawn by the seed")
    parser.add_argument("--only", default="", help="only cases whose name matches")
    parser.add_argument("--sets", type=int, default=2, help="sets of hosts that work in parallel")
    parser.add_argument("--transport", choices=sorted(nodes.TRANSPORTS), default="ssh")
    parser.add_argument("--timings", choices=("scaled", "default"), default="scaled")
    parser.add_argument("--list", action="store_true", help="print the cases, run nothing")
    parser.add_argument("--table", help="write the figures there, too")
    return parser.parse_args()


def work_off(todo, verdicts, timings, asked):
    """One set of hosts: takes cases until there are no more."""
    stage = trial.Stage(asked.transport)
    try:
        while (case := todo.get()) is not None:
            try:
                verdict = trial.try_case(stage, case, timings, asked.seed)
            except Exception as error:  # the other cases still run, on new hosts
                stage.discard()
                verdict = trial.Verdict(case.name, case.kind, trial.Figures(),
                                        cases.bounds_of(case, timings), None, [repr(error)], "")
            verdicts.put(verdict)
    finally:
        stage.discard()


def run_all(chosen, timings, asked):
    todo, done = multiprocessing.Queue(), multiprocessing.Queue()
    for case in [*chosen, *[None] * asked.sets]:
        todo.put(case)
    sets = [multiprocessing.Process(target=work_off, args=(todo, done, timings, asked))
            for _ in range(asked.sets)]
    for one in sets:
        one.start()
    verdicts = []
    for _ in chosen:
        verdicts.append(done.get())
        print(figures.line(verdicts[-1]), flush=True)
        for problem in verdicts[-1].problems:
            print(f"       {problem}", flush=True)
    for one in sets:
        one.join()
    return verdicts


def tell(verdicts, order, ran, table_file):
    """The figures in the table's order; logs of what failed. True: nothing failed."""
    failed = [verdict for verdict in verdicts if verdict.problems]
    for verdict in failed:
        print(f"\n==== {verdict.name}: {'; '.join(verdict.problems)}\n{verdict.log}")
    verdicts.sort(key=lambda verdict: order.index(verdict.name))
    word = f"{len(failed)} failed" if failed else "all within their bounds"
    text = figures.report(verdicts, f"{ran}: {word}.")
    print(f"\n{text}")
    if table_file:
        with open(table_file, "w", encoding="utf-8") as file:
            file.write(text)
    for verdict in failed:
        print(f"FAILED {verdict.name}: {'; '.join(verdict.problems)}")
    return not failed


def main():
    asked = arguments()
    known = cases.all_cases(asked.transport)
    every = [case for case in known if re.search(asked.only, case.name)]
    chosen = cases.draw(every, asked.seed, asked.count)
    print(f"{len(chosen)} of {len(known)} cases by {asked.transport}, seed {asked.seed}, "
          f"{asked.timings} timings", flush=True)
    if not chosen:
        return f"no case matches {asked.only!r}"
    if asked.list:
        print("\n".join(f"{case.name:32} {cases.formula_of(case)}" for case in chosen))
        return 0
    if os.geteuid() != 0:
        print("SKIPPED: the test hosts are namespaces, mounts and networks, which needs root")
        return harness.SKIPPED
    if not os.access(harness.HVDRUN, os.X_OK):
        return f"no program {harness.HVDRUN}: build hvdrun, or name it in HVDRUN_BIN"
    began = time.monotonic()
    timings = cases.SCALED if asked.timings == "scaled" else cases.DEFAULT
    verdicts = run_all(chosen, timings, asked)
    ran = (f"{len(verdicts)} cases by {asked.transport} in {time.monotonic() - began:.0f} s, seed {asked.seed}, "
           f"{asked.timings} timings ({timings.in_words()})")
    return 0 if tell(verdicts, [case.name for case in every], ran, asked.table) else 1


if __name__ == "__main__":
    sys.exit(main())
