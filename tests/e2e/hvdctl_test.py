"""hvdctl nodes, jobs, kill, drain and undrain: two agents that serve by TLS, an administrator and two users."""

import json
import signal

import harness
from harness import lab
from on_tls import HVDCTL, OnTls


class Hvdctl(OnTls):
    USERS = ("alice", "bob", "carol")
    CONFIG = """clients:
  alice: {run_as: [root]}
  bob: {run_as: [root]}
admins: [carol]
"""

    def hvdctl(self, *words, who="carol", code=0, hosts="node[1-2]"):
        run = self.on_host(harness.LAUNCHER, HVDCTL, *words, "-H", hosts, "--tls-dir", self.at(who))
        self.assertEqual(run.wait(20), code, run.report())
        return run

    def here(self, host, *words, code=0):
        run = self.on_host(host, HVDCTL, *words)
        self.assertEqual(run.wait(20), code, run.report())
        return run

    def job(self, *words, who="alice", hosts="node1:1,node2:1"):
        return self.start_by_tls("-H", hosts, "--grace", 1, *words, who=who)

    def jobs(self):
        return json.loads(self.hvdctl("jobs", "--json").out.text)["jobs"]

    def test_nodes_and_their_jobs_are_told(self):
        job = self.job("sleep", 600)
        self.wait_workers(2, job)
        nodes = self.hvdctl("nodes").out.text.splitlines()
        self.assertRegex(nodes[0], r"^NODE +VERSION +JOBS +GPUS +STATE$")
        for host, line in zip(self.hosts, nodes[1:], strict=True):
            self.assertRegex(line, rf"^{host} +[\d.]+ +1(/\d+)? +\d+ +ok$")
        found, = self.jobs()
        self.assertEqual([part["node"] for part in found["nodes"]], self.hosts)
        self.assertEqual([part["state"] for part in found["nodes"]], ["running", "running"])
        self.assertEqual((found["client"], found["user"], found["from"]), ("alice", "root", "10.77.0.254"))
        _, line = self.hvdctl("jobs").out.text.splitlines()
        self.assertRegex(line, rf"^{found['job'][:8]} +root +alice@10.77.0.254 .* running +node1,node2$")
        self.assertLessEqual(len(line), 80)
        self.assertIn(found["job"][:8], self.here("node2", "jobs").out.text)
        job.signal(signal.SIGINT)
        job.wait(20)
        lab.wait_until(lambda: not self.jobs(), 5, "the job is still told of")

    def test_who_killed_a_job_is_told_where_it_ends(self):
        job = self.job("sleep", 600)
        self.wait_workers(2, job)
        found, = self.jobs()
        for word in found["job"], found["job"][:8]:
            refused = self.hvdctl("kill", word, who="bob", code=1)
            self.assertEqual(refused.err.text, f"hvdctl: error: job {found['job'][:8]} is alice's; only its owner and "
                                               "administrators of the node may end it\n")
        self.assertIsNone(job.process.poll())
        killed = self.hvdctl("kill", found["job"][:6], who="alice")
        self.assertRegex(killed.out.text, rf"^job {found['job']}: stopped on node1")
        job.wait(20)
        self.assert_code(job, 125)
        self.assert_last_line(job, "alice")
        self.assert_no_workers(job)
        lab.wait_until(lambda: not self.jobs(), 5, "the job is still told of")
        gone = self.hvdctl("kill", found["job"], code=1)
        self.assertIn("no job here begins with", gone.err.text)

    def test_an_administrator_kills_any_job_and_so_does_root_on_the_node(self):
        for kill in lambda job: self.hvdctl("kill", job), lambda job: self.here("node1", "kill", job):
            job = self.job("sleep", 600)
            self.wait_workers(2, job)
            kill(self.jobs()[0]["job"][:12])
            job.wait(20)
            self.assert_code(job, 125)
            self.assert_last_line(job, "hvdctl kill")
            self.assert_no_workers(job)
            lab.wait_until(lambda: not self.jobs(), 5, "the job is still told of")

    def test_a_drained_node_keeps_its_jobs_and_takes_no_others(self):
        job = self.job("sleep", 600)
        self.wait_workers(2, job)
        self.assertIn("no admin", self.hvdctl("drain", who="alice", code=1).err.text)
        drained = self.hvdctl("drain", "--reason", "new disks", hosts="node2").out.text
        self.assertEqual(drained, "node2: draining: new disks\n")
        self.assertRegex(self.hvdctl("nodes").out.text, r"(?m)^node1 .* ok\nnode2 .* draining: new disks$")
        other = self.job("true", who="bob")
        other.wait(20)
        self.assert_code(other, 125)
        self.assert_says(other, "node2: .*drained: new disks")
        self.assertIsNone(job.process.poll())
        self.assertEqual(self.here("node2", "undrain").out.text, "node2: takes jobs\n")
        other = self.job("true", who="bob")
        other.wait(20)
        self.assert_code(other, 0)
        job.signal(signal.SIGINT)
        job.wait(20)

    def test_a_node_that_does_not_answer_is_named_and_the_others_are_told(self):
        run = self.hvdctl("nodes", "--timeout", "2", hosts="node1,10.77.0.99,nowhere", code=1)
        self.assertRegex(run.out.text, r"(?m)^node1 .* ok$")
        self.assertRegex(run.out.text, r"(?m)^10.77.0.99 .* unreachable: ")
        self.assertRegex(run.out.text, r"(?m)^nowhere .* unreachable: the name")
        self.assertLess(run.seconds, 4)


if __name__ == "__main__":
    harness.main()
