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


class OnTls(harness.EndToEnd):
    """An agent on each node; `alice` and whom else CONFIG names can start jobs, as root."""

    NODES = 2
    USERS = ("alice",)
    CONFIG = "clients: {alice: {run_as: root}}\n"

    def setUp(self):
        super().setUp()
        self.hosts = [name for name in self.bed.names if name != harness.LAUNCHER]
        self.place = os.path.join(self.bed.folder, "shared", "tls")
        os.makedirs(self.place)
        self.addCleanup(shutil.rmtree, self.place)
        self.ca("init")
        for user in self.USERS:
            self.ca("issue", "--user", user, "--out", self.at(user))
        self.agents = {}
        for host in self.hosts:
            self.ca("issue", "--node", host, "--out", self.at(host))
            lab.write_text(self.at(f"{host}.yaml"), f"listen: [tls:0.0.0.0:{PORT}, unix:{FOLDER}/agent.sock]\n"
                                                    f"tls: {self.at(host)}\n{self.CONFIG}")
            self.must(host, "mkdir", FOLDER)
            self.addCleanup(self.must, host, "rm", "-rf", FOLDER)
            self.start_agent(host)

    def at(self, name):
        return os.path.join(self.place, name)

    def must(self, host, *words):
        run = self.on_host(host, *words)
        self.assertEqual(run.wait(10), 0, run.report())

    def ca(self, *words, folder="ca"):
        self.must(harness.LAUNCHER, HVDCTL, "ca", *words, "--dir", self.at(folder))

    def start_agent(self, host):
        agent = self.on_host(host, AGENT, "serve", "--config", self.at(f"{host}.yaml"))
        self.agents[host] = agent
        self.addCleanup(self.stop_agent, agent)
        self.assertTrue(agent.err.find("serving at", 10), agent.err.text)

    def stop_agent(self, agent):
        if agent.process.poll() is None:
            agent.signal(signal.SIGTERM)
            self.assertEqual(agent.wait(15), 0, agent.report())

    def tls_words(self, who="alice"):
        return ["--transport", "tls", "--tls-dir", self.at(who)]

    def by_tls(self, *words, who="alice", **kwargs):
        return self.hvdrun(*self.tls_words(who), *words, **kwargs)

    def start_by_tls(self, *words, who="alice", **kwargs):
        return self.start(*self.tls_words(who), *words, **kwargs)
