"""hvdctl nodes, jobs, kill, drain and undrain: two agents that serve by TLS, an administrator and two users."""

import json
import os
import shutil
import signal

import harness
from harness import lab

AGENT = os.path.join(os.path.dirname(harness.HVDRUN), "hvd-agent")
HVDCTL = os.path.join(os.path.dirname(harness.HVDRUN), "hvdctl")
HOSTS = ("node1", "node2")
CONFIG = """listen: [tls:0.0.0.0:50451, unix:/run/hvdrun/agent.sock]
tls: {0}
clients:
  alice: {{run_as: [root]}}
  bob: {{run_as: [root]}}
admins: [carol]
"""


class Hvdctl(harness.EndToEnd):
    NODES = 2

    def setUp(self):
        super().setUp()
        self.place = os.path.join(self.bed.folder, "shared", "tls")
        os.makedirs(self.place)
        self.addCleanup(shutil.rmtree, self.place)
        self.ca("init")
        for user in "alice", "bob", "carol":
            self.ca("issue", "--user", user, "--out", self.at(user))
        for host in HOSTS:
            self.ca("issue", "--node", host, "--out", self.at(host))
            lab.write_text(self.at(f"{host}.yaml"), CONFIG.format(self.at(host)))
            self.must(host, "mkdir", "/run/hvdrun")
            self.addCleanup(self.must, host, "rm", "-r", "/run/hvdrun")
            agent = self.on_host(host, AGENT, "serve", "--config", self.at(f"{host}.yaml"))
            self.addCleanup(self.stop_agent, agent)
            self.assertTrue(agent.err.find("serving at", 10), agent.err.text)

    def at(self, name):
        return os.path.join(self.place, name)

    def must(self, host, *words):
        run = self.on_host(host, *words)
        self.assertEqual(run.wait(10), 0, run.report())

    def ca(self, *words):
        self.must(harness.LAUNCHER, HVDCTL, "ca", *words, "--dir", self.at("ca"))

    def stop_agent(self, agent):
        if agent.process.poll() is None:
            agent.signal(signal.SIGTERM)
            self.assertEqual(agent.wait(15), 0, agent.report())

    def hvdctl(self, *words, who="carol", code=0, hosts="node[1-2]"):
        run = self.on_host(harness.LAUNCHER, HVDCTL, *words, "-H", hosts, "--tls-dir", self.at(who))
        self.assertEqual(run.wait(20), code, run.report())
        return run

    def here(self, host, *words, code=0):
        run = self.on_host(host, HVDCTL, *words)
        self.assertEqual(run.wait(20), code, run.report())
        return run

    def job(self, *words, who="alice", hosts="node1:1,node2:1"):
        return self.start("--transport", "tls", "--tls-dir", self.at(who), "-H", hosts, "--grace", 1, *words)

    def jobs(self):
        return json.loads(self.hvdctl("jobs", "--json").out.text)["jobs"]

    def test_nodes_and_their_jobs_are_told(self):
        job = self.job("sleep", 600)
        self.wait_workers(2, job)
        nodes = self.hvdctl("nodes").out.text.splitlines()
        self.assertRegex(nodes[0], r"^NODE +VERSION +JOBS +GPUS +STATE$")
        for host, line in zip(HOSTS, nodes[1:], strict=True):
            self.assertRegex(line, rf"^{host} +[\d.]+ +1(/\d+)? +\d+ +ok$")
        found, = self.jobs()
        self.assertEqual([part["node"] for part in found["nodes"]], list(HOSTS))
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
        refused = self.hvdctl("kill", found["job"], who="bob", code=1)
        self.assertRegex(refused.err.text, r"(?m)^hvdctl: error: node1: refused: .*alice.*bob")
        self.assertIsNone(job.process.poll())
        killed = self.hvdctl("kill", found["job"][:6], who="alice")
        self.assertRegex(killed.out.text, rf"^job {found['job']}: stopped on node1")
        job.wait(20)
        self.assert_code(job, 125)
        self.assert_last_line(job, "alice")
        self.assert_no_workers(job)
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
