"""Nodes whose agents serve by TLS and at a unix socket, with certificates of an authority of hvdctl's."""

import os
import shutil
import signal

import harness
from harness import lab

BIN = os.path.dirname(harness.HVDRUN)
AGENT = os.path.join(BIN, "hvd-agent")
HVDCTL = os.path.join(BIN, "hvdctl")
PORT = 50451
FOLDER = "/run/hvdrun"


class Place:
    """Certificates of an authority and the nodes' configurations, in a folder that all hosts of a testbed see."""

    def __init__(self, bed, users, config):
        self.bed = bed
        self.config = config
        self.path = os.path.join(bed.folder, "shared", "tls")
        os.makedirs(self.path)
        self.ca("init")
        for user in users:
            self.ca("issue", "--user", user, "--out", self.at(user))

    def at(self, name):
        return os.path.join(self.path, name)

    def ca(self, *words, folder="ca"):
        self.bed.run(harness.LAUNCHER, [HVDCTL, "ca", *words, "--dir", self.at(folder)])

    def add_node(self, host):
        """What its agent needs."""
        self.ca("issue", "--node", host, "--out", self.at(host))
        lab.write_text(self.at(f"{host}.yaml"), f"listen: [tls:0.0.0.0:{PORT}, unix:{FOLDER}/agent.sock]\n"
                                                f"tls: {self.at(host)}\n{self.config}")
        self.bed.run(host, ["mkdir", FOLDER])

    def remove_node(self, host):
        self.bed.run(host, ["rm", "-rf", FOLDER])

    def agent_words(self, host):
        return [AGENT, "serve", "--config", self.at(f"{host}.yaml")]

    def hvdrun_words(self, who):
        return ["--transport", "tls", "--tls-dir", self.at(who)]


class OnTls(harness.EndToEnd):
    """An agent on each node; `alice` and whom else CONFIG names can start jobs, as root."""

    NODES = 2
    USERS = ("alice",)
    CONFIG = "clients: {alice: {run_as: root}}\n"

    def setUp(self):
        super().setUp()
        self.hosts = [name for name in self.bed.names if name != harness.LAUNCHER]
        self.place = Place(self.bed, self.USERS, self.CONFIG)
        self.addCleanup(shutil.rmtree, self.place.path)
        self.agents = {}
        for host in self.hosts:
            self.place.add_node(host)
            self.addCleanup(self.place.remove_node, host)
            self.start_agent(host)

    def at(self, name):
        return self.place.at(name)

    def must(self, host, *words):
        run = self.on_host(host, *words)
        self.assertEqual(run.wait(10), 0, run.report())

    def ca(self, *words, folder="ca"):
        self.place.ca(*words, folder=folder)

    def start_agent(self, host):
        agent = self.on_host(host, *self.place.agent_words(host))
        self.agents[host] = agent
        self.addCleanup(self.stop_agent, agent)
        self.assertTrue(agent.err.find("serving at", 10), agent.err.text)

    def stop_agent(self, agent):
        if agent.process.poll() is None:
            agent.signal(signal.SIGTERM)
            self.assertEqual(agent.wait(15), 0, agent.report())

    def tls_words(self, who="alice"):
        return self.place.hvdrun_words(who)

    def by_tls(self, *words, who="alice", **kwargs):
        return self.hvdrun(*self.tls_words(who), *words, **kwargs)

    def start_by_tls(self, *words, who="alice", **kwargs):
        return self.start(*self.tls_words(who), *words, **kwargs)
