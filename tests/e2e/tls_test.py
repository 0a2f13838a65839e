"""--transport tls: agents that serve on their hosts, certificates of hvdctl's authority, and who is refused."""

import os
import signal
import time

import harness
from harness import lab
from on_tls import AGENT, PORT, OnTls


class Tls(OnTls):
    def refused(self, who, said, logged):
        run = self.by_tls("-H", "node1:1", "touch", self.at("started"), who=who)
        self.assert_code(run, 125)
        self.assert_says(run, f"node1: .*{said}")
        self.assertEqual(run.err.text.count("\n"), 1, run.report())
        self.assertTrue(self.agents["node1"].err.find(logged, 5), self.agents["node1"].err.text)
        self.assertFalse(os.path.exists(self.at("started")))

    def test_a_job_runs_as_by_ssh(self):
        run = self.by_tls("-H", "node1:2,node2:2", "bash", "-c", "echo $RANK $(hostname); exit $((RANK / 3 * 5))")
        self.assert_code(run, 5)
        self.assert_last_line(run, r"rank 3 \(node2, pid \d+\) exited with code 5")
        self.assertIn(["3 node2"], run.rank_lines().values())
        for host in self.hosts:
            err = self.agents[host].err
            self.assertTrue(err.find(r"job [0-9a-f]{32} node \d of alice \([\d.]+\) runs as user root", 5), err.text)
            self.assertTrue(err.find(r"job [0-9a-f]{32} node \d: bye after", 5), err.text)

    def test_output_is_whole(self):
        run = self.by_tls("-H", "node1:2,node2:2", "seq", 20000)
        self.assert_code(run, 0)
        for lines in run.rank_lines().values():
            self.assertEqual(lines, [str(i) for i in range(1, 20001)])

    def job_agents(self, host):
        return [p.pid for p in self.state.processes(host=host) if p.words.split()[1:2] == ["job"]]

    def counting(self, *words):
        """Two ranks that count to 300 within some seconds, through whatever happens meanwhile."""
        run = self.start_by_tls("-v", "-H", "node1:1,node2:1", *words,
                                "bash", "-c", "for ((i = 0; i < 300; ++i)); do echo $i; sleep 0.02; done")
        self.wait_workers(2, run)
        return run

    def assert_counted(self, run):
        self.assert_code(run, 0)
        for lines in run.rank_lines().values():
            self.assertEqual(lines, [str(i) for i in range(300)])

    def test_a_job_outlives_the_agent_that_serves(self):
        run = self.counting()
        for _ in range(3):
            self.agents["node2"].signal(signal.SIGKILL)
            self.agents["node2"].process.wait(5)
            time.sleep(0.3)
            self.start_agent("node2")
            self.assertTrue(self.agents["node2"].err.find("job [0-9a-f]{32} node 1 of alice runs on", 5))
        run.wait(30)
        self.assert_counted(run)
        self.assert_says(run, "node2: connected again after")

    def test_a_job_that_has_ended_is_told_once_by_all_agents_together(self):
        self.assert_code(self.by_tls("-H", "node1:1", "true"), 0)
        told = []
        for _ in range(3):
            self.agents["node1"].signal(signal.SIGKILL)
            self.agents["node1"].process.wait(5)
            told += self.agents["node1"].err.find("node 0 of alice has gone", 0)
            self.start_agent("node1")
        self.assertEqual(len(told), 1, told)

    def test_a_job_agent_that_is_killed_loses_its_job_and_the_node_is_named(self):
        run = self.start_by_tls("-H", "node1:1,node2:1", "--grace", 1, "sleep", 600)
        self.wait_workers(2, run)
        [agent] = self.job_agents("node2")
        os.kill(agent, signal.SIGKILL)
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node node2 was lost: .*the job's agent has gone")
        self.assertEqual(self.workers(), {})

    def test_a_stop_of_the_agent_ends_its_jobs_and_says_so(self):
        run = self.start_by_tls("-H", "node1:1,node2:1", "bash", "-c",
                                "trap 'echo saved; exit 0' TERM; echo up; sleep 600 & wait")
        self.assertEqual(len(run.out.find("up", 15, count=2)), 2, run.report())
        self.agents["node2"].signal(signal.SIGTERM)
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node node2 has stopped its ranks: the agent was stopped by the service manager")
        self.assertEqual(run.rank_lines(), {rank: ["up", "saved"] for rank in range(2)})

    def test_codes_are_the_same_below_any_init(self):
        """As process 1 of a container, and below an init that only waits; the agent's own code is none of ours."""
        serve = ["serve", "--config", self.at("node1.yaml")]
        inits = ([AGENT, *serve], ["sh", "-c", '"$@" & p=$!; trap "kill $p" TERM; wait $p; wait $p', "sh", AGENT, *serve])
        for words in inits:
            self.stop_agent(self.agents["node1"])
            self.agents["node1"] = agent = self.on_host("node1", "unshare", "--pid", "--fork", "--mount-proc",
                                                        "--kill-child", *words)
            self.assertTrue(agent.err.find("serving at", 10), agent.err.text)
            for signal_name, code in (("TERM", 143), ("KILL", 137)):
                run = self.by_tls("-H", "node1:2", "bash", "-c",
                                  f"(setsid -f sleep 0.1); [ $RANK = 0 ] && kill -{signal_name} $$; sleep 600")
                self.assert_code(run, code)
                self.assert_last_line(run, rf"rank 0 \(node1, pid \d+\) was killed by SIG{signal_name}")
            inside = lab.first_child_of(lab.first_child_of(agent.process.pid))
            os.kill(inside, signal.SIGTERM)
            self.assertLess(agent.wait(15), 126, agent.report())

    def test_who_is_nobody_is_refused_before_anything_is_read(self):
        self.ca("issue", "--user", "eve", "--out", self.at("eve"))
        self.refused("eve", "user eve is none of the clients", "refused 10.77.0.254: user eve is none")
        self.ca("init", folder="ca2")
        self.ca("issue", "--user", "alice", "--out", self.at("alien"), folder="ca2")
        lab.write_text(self.at("alien/ca.crt"), lab.read_text(self.at("ca/ca.crt")))
        self.useless("alien", "alien/client.crt does not hold by .*alien/ca.crt and .*crl.pem: unable to get .*issuer")
        self.ca("issue", "--node", "node9", "--out", self.at("node9"))
        for name in "key", "crt":
            os.rename(self.at(f"node9/agent.{name}"), self.at(f"node9/client.{name}"))
        self.useless("node9", "node9/client.crt is the certificate of the node node9; here it must be that of a user")

    def useless(self, who, why):
        """Files that hvdrun itself finds wrong: nobody is asked."""
        run = self.by_tls("-H", "node1:1", "touch", self.at("started"), who=who)
        self.assert_code(run, 2)
        self.assert_says(run, why)
        self.assertFalse(os.path.exists(self.at("started")))

    def test_a_revoked_node_is_refused_by_who_has_the_list_and_serves_no_more_after_a_restart(self):
        self.ca("revoke", "--node", "node1")
        revoked = lab.read_text(self.at("ca/crl.pem"))
        self.assert_code(self.by_tls("-H", "node1:1", "true"), 0)
        lab.write_text(self.at("alice/crl.pem"), revoked)
        run = self.by_tls("-H", "node1:1", "true")
        self.assert_code(run, 125)
        self.assert_says(run, r"node1: TLS: its certificate \(it says: node node1\) does not hold: certificate revoked")
        lab.write_text(self.at("node1/crl.pem"), revoked)
        self.agents["node1"].signal(signal.SIGHUP)
        self.assertTrue(self.agents["node1"].err.find("agent.crt does not hold .*revoked; going on as before", 5))
        self.assertNotEqual(self.on_host("node1", *self.place.agent_words("node1"), "--check").wait(5), 0)

    def test_a_certificate_that_ends_soon_is_told(self):
        for who in "--node node1", "--user alice":
            kind, name = who.split()
            self.ca("renew", kind, name, "--days", "3", "--out", self.at(name))
        self.agents["node1"].signal(signal.SIGHUP)
        self.assertTrue(self.agents["node1"].err.find("warning: the certificate in .* ends in 7[12] h", 5))
        run = self.by_tls("-H", "node1:1", "true")
        self.assert_code(run, 0)
        self.assert_says(run, "warning: .*alice/client.crt ends in 7[12] h .*; hvdctl ca renew makes another")

    def test_a_revoked_user_is_refused_once_the_list_is_there(self):
        self.ca("revoke", "--user", "alice")
        lab.write_text(self.at("node1/crl.pem"), lab.read_text(self.at("ca/crl.pem")))
        self.agents["node1"].signal(signal.SIGHUP)
        self.assertTrue(self.agents["node1"].err.find("read .*node1.yaml again", 5))
        self.refused("alice", "refused our certificate .*revoked", "certificate revoked")

    def test_a_wrong_file_at_a_reload_changes_nothing(self):
        agent = self.agents["node1"]
        self.ca("init", folder="ca2")
        self.ca("issue", "--node", "node1", "--out", self.at("other"), folder="ca2")
        right = {name: lab.read_text(self.at(f"node1/{name}")) for name in os.listdir(self.at("node1"))}
        for wrong in ["crl.pem"], ["ca.crt"], ["agent.key", "agent.crt"], ["agent.crt"]:
            for name in wrong:
                lab.write_text(self.at(f"node1/{name}"), lab.read_text(self.at(f"other/{name}")))
            found = len(agent.err.find("going on as before", 0))
            agent.signal(signal.SIGHUP)
            self.assertEqual(len(agent.err.find("going on as before", 5, count=found + 1)), found + 1, agent.err.text)
            check = self.on_host("node1", *self.place.agent_words("node1"), "--check")
            self.assertEqual(check.wait(5), 2, check.report())
            self.assertRegex(check.err.text, "does not hold by|is not the key of")
            for name in wrong:
                lab.write_text(self.at(f"node1/{name}"), right[name])
        self.assertEqual(self.on_host("node1", *self.place.agent_words("node1"), "--check").wait(5), 0)
        self.assert_code(self.by_tls("-H", "node1:1", "true"), 0)
        lab.write_text(self.at("node1.yaml"), "listn: x\n")
        agent.signal(signal.SIGHUP)
        self.assertTrue(agent.err.find("node1.yaml:1: there is no key listn.*going on as before", 5), agent.err.text)
        self.assert_code(self.by_tls("-H", "node1:1", "true"), 0)

    def test_another_place_to_listen_at_is_told_to_take_a_restart(self):
        agent = self.agents["node1"]
        config = lab.read_text(self.at("node1.yaml"))
        lab.write_text(self.at("node1.yaml"), config.replace(str(PORT), str(PORT + 9)))
        agent.signal(signal.SIGHUP)
        self.assertTrue(agent.err.find("warning: listen has changed; that takes a restart", 5), agent.err.text)
        self.assert_code(self.by_tls("-H", "node1:1", "true"), 0)

    def test_the_node_must_be_who_it_is_called(self):
        run = self.by_tls("-H", "10.77.0.1:1", "true")
        self.assert_code(run, 125)
        self.assert_says(run, "10.77.0.1: TLS: its certificate is that of node1; use that name, or issue one with "
                              "--address 10.77.0.1")

    def test_silent_strangers_cost_nobody_his_job(self):
        opened = self.on_host("node2", harness.PYTHON, "-c", "import socket, time\n"
                              f"all = [socket.create_connection(('10.77.0.1', {PORT})) for _ in range(300)]\n"
                              "print('open', flush=True)\ntime.sleep(600)")
        self.assertTrue(opened.out.find("open", 10), opened.report())
        self.assertTrue(self.agents["node1"].err.find("refused 10.77.0.2: too many connections", 5))
        self.assert_code(self.by_tls("-H", "node1:1", "true"), 0)

    def test_strangers_of_many_addresses_make_room(self):
        """They come again as soon as they are dropped."""
        others = [f"10.77.0.{100 + i}" for i in range(20)]
        self.must("node2", "sh", "-c", "".join(f"ip addr add {other}/24 dev eth0;" for other in others))
        self.addCleanup(self.must, "node2", "sh", "-c", "".join(f"ip addr del {other}/24 dev eth0;" for other in others))
        run = self.counting()
        opened = self.on_host("node2", harness.PYTHON, "-c", "import select, socket, time\n"
                              "def one(at):\n"
                              f"    return socket.create_connection(('10.77.0.1', {PORT}), 10, (at, 0))\n"
                              f"all = {{one(at): at for at in {others} for _ in range(16)}}\n"
                              "print('open', flush=True)\n"
                              "while True:\n"
                              "    for gone in select.select(list(all), [], [])[0]:\n"
                              "        at = all.pop(gone)\n"
                              "        gone.close()\n"
                              "        all[one(at)] = at\n"
                              "    time.sleep(0.01)\n")
        self.assertTrue(opened.out.find("open", 10), opened.report())
        self.assertTrue(self.agents["node1"].err.find("too many connections .*; the oldest goes", 5))
        for _ in range(5):
            other = self.start_by_tls("-H", "node1:1", "true")
            other.wait(10)
            self.assert_code(other, 0)
        self.agents["node1"].signal(signal.SIGKILL)
        self.agents["node1"].process.wait(5)
        self.start_agent("node1")
        run.wait(30)
        self.assert_counted(run)


if __name__ == "__main__":
    harness.main()
