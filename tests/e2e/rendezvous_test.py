"""Workers of the runtime meet through their agents: a value, a blocking get, a barrier."""

import json
import os
import re

import harness
from harness import scaled


def program(name="rendezvous"):
    build = os.path.dirname(os.path.dirname(harness.HVDRUN))
    places = [os.path.join(build, *p) for p in
              (("tests", "programs", name), ("tests", name), ("bin", name))]
    return next((p for p in places if os.access(p, os.X_OK)), places[0])


class Rendezvous(harness.EndToEnd):
    def test_all_ranks_take_rank_zeros_bytes_and_pass_a_barrier(self):
        run = self.hvdrun("-np", 32, "-H", "node1:8,node2:8,node3:8,node4:8", program(), limit=60)
        self.assert_code(run, 0)
        self.assert_same_bytes(run, 32)
        self.tell("32 ranks", run.seconds)

    def assert_same_bytes(self, run, ranks):
        ids = set()
        for rank in range(ranks):
            match = re.fullmatch(rf"rank {rank} of {ranks} id ([0-9a-f]{{32}})",
                                 run.rank_lines().get(rank, [""])[0])
            self.assertTrue(match, run.report())
            ids.add(match[1])
        self.assertEqual(len(ids), 1)

    def test_many_stand_in_ranks_get_one_id_and_pass_their_barriers(self):
        agents, clients = scaled((4, 32), (16, 64))
        hosts = ",".join(f"agent{k}:1" for k in range(agents))
        run = self.hvdrun("-np", agents, "-H", hosts, *harness.AGENTS_HERE,
                          program("rendezvous_crowd"), "--clients", clients, limit=100)
        self.assert_code(run, 0)
        passes = [[json.loads(line) for line in lines] for lines in run.rank_lines().values()]
        self.assertEqual(len(passes), agents, run.report())
        for number, name in enumerate(("connecting", "connected")):
            told = [lines[number] for lines in passes]
            self.assertEqual({(line["pass"], line["clients"]) for line in told}, {(number, clients)})
            self.assertEqual(len({line["id"] for line in told}), 1, run.report())
            # Who passes has seen everybody come.
            self.assertGreaterEqual(min(line["passed"] for line in told),
                                    max(line["begun"] for line in told))
            self.tell(f"{agents * clients} ranks over {agents} agents, {name}, first start to last pass",
                      max(line["passed"] for line in told) - min(line["begun"] for line in told))
        self.assertNotEqual(passes[0][0]["id"], passes[0][1]["id"])

    def test_jobs_at_once_do_not_mix(self):
        for _ in range(scaled(1, 20)):
            runs = [self.start("-np", 4, "-H", "node1:2,node2:2", program()) for _ in range(2)]
            for run in runs:
                self.assertEqual(run.wait(30), 0, run.report())
                self.assert_same_bytes(run, 4)
            self.assertNotEqual(*[run.rank_lines()[0] for run in runs])

    def test_rank_that_never_comes_is_named_at_the_deadline(self):
        run = self.hvdrun("-np", 4, "-H", "node1:2,node2:2", program(), "--timeout", "1.5",
                          "--skip-rank", "3")
        self.assert_code(run, 1)
        self.assert_says(run, r"\b3\b")
        self.assert_within(run.seconds, 8, "barrier with a rank that never comes, limit 1.5 s")

    def test_rank_that_fails_ends_the_waiting_ones(self):
        run = self.hvdrun("-np", 4, "-H", "node1:2,node2:2", "bash", "-c",
                          f"[ $RANK = 3 ] && sleep 0.5 && exit 9; exec {program()}")
        self.assert_code(run, 9)


if __name__ == "__main__":
    harness.main()
