"""The table of the chaos suite and how cases are drawn from it."""

import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import cases
import figures
from cases import DEFAULT, SCALED


def case(name, transport="ssh"):
    return next(case for case in cases.all_cases(transport) if case.name == name)


def of_both():
    return [*cases.all_cases("ssh"), *cases.all_cases("tls")]


class Cases(unittest.TestCase):
    def test_each_target_meets_each_fault_in_each_phase_it_lives_in(self):
        names = [case.name for case in cases.all_cases()]
        self.assertEqual(len(names), 2 * 5 * 5 + 3 * 2 * 4 + 6)
        self.assertEqual(len(set(names)), len(names))
        self.assertNotIn("agent/kill/connecting", names)
        self.assertEqual({name.split("/")[0] for name in names} & {"front", "front+front"}, set())

    def test_over_tls_there_are_fronts_too(self):
        by_ssh = {case.name for case in cases.all_cases()}
        by_tls = [case.name for case in cases.all_cases("tls")]
        self.assertEqual(len(set(by_tls)), len(by_tls))
        self.assertEqual(by_ssh - set(by_tls), set())
        self.assertEqual(len(by_tls) - len(by_ssh), 4 * 5 + 4)

    def test_a_front_that_is_back_within_half_of_the_lease_costs_no_job(self):
        for fault in cases.BACK_IN_TIME:
            for phase in ("starting", "running", "writing"):
                one = case(f"front/{fault}/{phase}", "tls")
                self.assertEqual(one.outcomes, (cases.ALL_WELL,), one.name)
                away = [cases.seconds_away(one, SCALED, seed) for seed in range(100)]
                self.assertLess(max(away), SCALED.lease / 2)
                self.assertGreater(max(away) - min(away), SCALED.lease / 4)
                self.assertGreater(cases.job_seconds(one, SCALED), max(away))
                self.assertEqual(away[7], cases.seconds_away(one, SCALED, 7))
        for fault in ("kill", "stop"):
            [(code, _)] = case(f"front/{fault}/running", "tls").outcomes
            self.assertEqual(code, 125)

    def test_a_launcher_that_dies_is_known_at_once_by_ssh_and_at_the_lease_over_tls(self):
        self.assertEqual(cases.bounds_of(case("launcher/kill/running"), SCALED).obedient, 1)
        self.assertEqual(cases.bounds_of(case("launcher/kill/running", "tls"), SCALED).obedient, 6 + 1)

    def test_bounds_follow_from_lease_and_grace(self):
        self.assertEqual(cases.bounds_of(case("agent/kill/running"), SCALED),
                         cases.Bounds(1, 1 + 1, 1 + 1 + 5))
        self.assertEqual(cases.bounds_of(case("agent/stop/running"), DEFAULT),
                         cases.Bounds(15 + 1, 15 + 10 + 1, 15 + 10 + 1 + 5))
        stopped = cases.bounds_of(case("launcher/stop/running"), SCALED)
        self.assertEqual((stopped.deaf, stopped.end), (6 + 1 + 1, 12 + 5))

    def test_nothing_has_to_go_within_a_bound_where_the_job_survives(self):
        bounds = cases.bounds_of(case("host/short-cut/running"), SCALED)
        self.assertEqual((bounds.obedient, bounds.deaf), (None, None))
        self.assertGreater(bounds.end, cases.job_seconds(case("host/short-cut/running"), SCALED))

    def test_whoever_lives_when_the_fault_strikes_must_be_seen_to_go(self):
        expected = {"connecting": ("end",), "starting": ("end",), "stopping": ("deaf", "end"),
                    "running": ("obedient", "deaf", "end"), "writing": ("obedient", "deaf", "end")}
        for one in of_both():
            wanted = ("end",) if one.is_survived else expected[one.phase]
            self.assertEqual(cases.figures_of(one), wanted, one.name)

    def test_a_slow_network_is_always_survived_before_the_stop(self):
        for one in of_both():
            if one.fault in cases.SURVIVED and one.phase != "stopping" and "+" not in one.target \
                    and (one.target, one.phase) != ("front", "connecting"):
                self.assertEqual(one.outcomes, (cases.ALL_WELL,), one.name)

    def test_a_cut_is_survived_up_to_a_third_of_the_lease(self):
        for timings in (SCALED, DEFAULT):
            self.assertEqual(timings.short_cut, timings.lease / 3)
            self.assertGreater(timings.long_cut, timings.lease + timings.grace)

    def test_in_the_phase_stopping_the_cause_stands_already(self):
        for one in of_both():
            if one.phase == "stopping" and (one.target, one.fault) != ("launcher", "kill"):
                self.assertEqual(one.outcomes, (cases.RANK_FAILED,), one.name)

    def test_whatever_ends_a_job_but_the_death_of_hvdrun_has_a_last_line(self):
        for one in of_both():
            for code, pattern in one.outcomes:
                self.assertTrue(re.compile(pattern).groups == 0, one.name)
                if not pattern:
                    self.assertTrue(code == 0 or "launcher" in one.target, one.name)

    def test_a_seed_repeats_order_and_choice(self):
        every = cases.all_cases()
        self.assertEqual(cases.draw(every, 7, 12), cases.draw(every[::-1], 7, 12))
        self.assertNotEqual(cases.draw(every, 7, 12), cases.draw(every, 8, 12))
        self.assertEqual(len(set(cases.draw(every, 7))), len(every))


class Table(unittest.TestCase):
    def test_a_row_has_median_and_worst_of_what_was_measured(self):
        class Verdict:
            kind = "agent, kill"
            bounds = cases.Bounds(1, 2, 7)

            def __init__(self, end):
                self.figures = cases.Bounds(0.5, None, end)

        rows = figures.table([Verdict(1), Verdict(2), Verdict(6)]).splitlines()
        self.assertEqual(len(rows), 3)
        self.assertIn("| agent, kill | 3 | 1 | 0.50 | 0.50 | 2 |", rows[2])
        self.assertTrue(rows[2].endswith("| 7 | 2.00 | 6.00 |"), rows[2])


if __name__ == "__main__":
    unittest.main()
