"""ssh: what asks for a person, what does not answer, what the user's configuration says."""

import os
import time

import harness
import lab
import layout
from harness import LAUNCHER

TWO = "node1:1,node2:1"
TARPIT = ("import socket,time\ns=socket.create_server(('',22))\nprint('ready',flush=True)\n"
          "held=[]\nwhile True: held.append(s.accept())")


class WithServers(harness.EndToEnd):
    def sshd(self, host, *lines):
        self.bed.set_sshd(host, list(lines))
        self.addCleanup(self.bed.set_sshd, host, [])

    def shared(self, name, text, mode=0o600):
        path = self.script(text, name)
        os.chmod(path, mode)
        return path

    def config(self, identity="", known_hosts="", more=""):
        """A private ssh configuration; without an identity there is none in it."""
        key = f"  IdentityFile {identity}\n" if identity else ""
        known = known_hosts or f"{self.bed.folder}/known_hosts"
        return self.shared("config", f"{more}Host *\n  User root\n{key}"
                           f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n")

    @property
    def known_hosts(self):
        return lab.read_text(f"{self.bed.folder}/known_hosts")

    @property
    def key(self):
        return os.path.join(self.bed.folder, "key")


class Refusals(WithServers):
    def refuse(self, *arguments, limit=10, code=125, env=None):
        run = self.hvdrun(*arguments, "true", env=env, limit=limit + 20)
        self.assert_code(run, code)
        self.assertNotRegex(run.err.text, "terminate called|Aborted")
        self.assert_within(run.seconds, limit, "refused")
        return run

    def test_server_that_wants_a_password_is_named_with_the_remedy(self):
        self.sshd("node2", "PasswordAuthentication yes", "PubkeyAuthentication no")
        run = self.refuse("-np", 2, "-H", TWO)
        self.assert_says(run, "node2", "ssh-copy-id")
        self.assertNotRegex(run.err.text, r"(?i)password:\s*$")

    def test_unknown_host_keys_are_named_all_at_once_with_the_remedy(self):
        empty = self.shared("empty_known_hosts", "")
        run = self.refuse("--ssh-config", self.config(self.key, empty), "-np", 4, "-H",
                          "node1:1,node2:1,node3:1,node4:1")
        self.assert_says(run, "node1", "node2", "node3", "node4", "ssh-keyscan")
        self.assertEqual(lab.read_text(empty), "")

    def test_new_host_keys_are_accepted_where_asked(self):
        empty = self.shared("empty_known_hosts", "")
        run = self.hvdrun("--ssh-config", self.config(self.key, empty), "--accept-new-host-keys",
                          "-np", 2, "-H", TWO, "hostname")
        self.assert_code(run, 0)

    def test_changed_host_key_is_refused_even_so(self):
        other = lab.read_text(self.key + ".pub").split()
        known = self.shared("other_known_hosts", f"node2,10.77.0.2 {other[0]} {other[1]}\n"
                            + self.known_hosts.splitlines()[0] + "\n")
        before = lab.read_text(known)
        run = self.refuse("--ssh-config", self.config(self.key, known), "--accept-new-host-keys",
                          "-np", 2, "-H", TWO)
        self.assert_says(run, "node2", "(?i)changed|another|differ|not match")
        self.assertEqual(lab.read_text(known), before)

    def test_encrypted_key_without_an_agent_is_named_with_the_remedy(self):
        locked = os.path.join(self.bed.folder, "shared", "locked")
        if not os.path.exists(locked):
            self.bed.run("launcher", ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f",
                                      locked])
        run = self.refuse("--ssh-config", self.config(locked), "-np", 2, "-H", TWO)
        self.assert_says(run, "node1", "node2", "ssh-add")

    def test_different_failures_of_several_hosts_come_together(self):
        self.sshd("node1", "ListenAddress 127.0.0.1")
        self.sshd("node2", "PasswordAuthentication yes", "PubkeyAuthentication no")
        run = self.refuse("-np", 4, "-H", "node1:1,node2:1,node3:1,nowhere:1")
        self.assert_says(run, "node1.*(?i:refuse)", "node2.*ssh-copy-id", "nowhere")

    def test_refused_connection_ends_at_once(self):
        self.sshd("node3", "ListenAddress 127.0.0.1")
        run = self.refuse("-np", 4, "-H", "node1:2,node3:2", "--start-timeout", "10", limit=3)
        self.assert_says(run, "node3.*(?i:refuse)")


class NoAnswer(WithServers):
    LIMIT = 3

    def pending(self, *said):
        run = self.hvdrun("-np", 4, "-H", "node1:2,node3:2", "--start-timeout", self.LIMIT, "true",
                          limit=self.LIMIT + 20)
        self.assert_code(run, 124)
        self.assert_says(run, "node3", *said)
        self.assertGreaterEqual(run.seconds, self.LIMIT - 0.1)
        self.assert_within(run.seconds, self.LIMIT + 2, "--start-timeout 3")

    def test_black_hole_ends_at_the_limit(self):
        self.bed.set_black_hole("node3", True)
        self.addCleanup(self.bed.set_black_hole, "node3", False)
        self.pending("connect")

    def test_tarpit_ends_at_the_limit(self):
        self.sshd("node3", "Port 2222")
        pit = self.on_host("node3", harness.PYTHON, "-c", TARPIT)
        self.assertTrue(pit.out.find("ready", 5), pit.err.text)
        self.addCleanup(pit.end)
        self.pending("connect|authenticate")

    def test_server_that_never_starts_the_agent_ends_at_the_limit(self):
        self.sshd("node3", "ForceCommand sleep 999")
        self.settle = 5
        self.addCleanup(self.end_sleepers)
        self.pending("agent|hello")

    def end_sleepers(self):
        """sshd does not end a forced command whose client has gone; that is the server's affair."""
        for process in self.state.processes(host="node3"):
            if process.words == "sleep 999":
                os.kill(process.pid, 9)


class Silence(WithServers):
    """A network that comes back: what it has swallowed is tried again at once."""

    NODES = 2

    def cut(self, is_on):
        self.bed.set_black_hole("node2", is_on)

    def healed(self, run):
        """How long the job took once the network was there again."""
        self.cut(False)
        healed = time.monotonic()
        self.assertEqual(run.wait(30), 0, run.report())
        return time.monotonic() - healed

    def start_silent(self, *arguments):
        self.settle = 30  # for what sshd has of connections that were cut
        self.addCleanup(self.cut, False)
        return self.start("-np", 2, "-H", TWO, *arguments, "true")

    def test_a_connection_is_tried_anew(self):
        self.hvdrun("-np", 2, "-H", TWO, "true")  # places the agents
        self.cut(True)
        run = self.start_silent()
        time.sleep(12)  # by now the kernel lets eight seconds pass before it tries again
        self.assert_within(self.healed(run), 4, "from the healed cable to the end of the job")

    def test_a_silent_address_of_a_name_gives_its_turn_to_the_next(self):
        self.hvdrun("-np", 2, "-H", TWO, "true")
        hosts = os.path.join(self.bed.folder, LAUNCHER, "hosts")
        self.addCleanup(lab.write_text, hosts, lab.read_text(hosts))
        lab.write_text(hosts, lab.read_text(hosts) + "10.77.0.99 twice\n10.77.0.2 twice\n")
        silent = ["10.77.0.99", "lladdr", layout.WRONG_MAC, "nud", "permanent", "dev", "eth0"]
        self.bed.run(LAUNCHER, ["ip", "neigh", "replace", *silent])
        self.addCleanup(self.bed.run, LAUNCHER, ["ip", "neigh", "del", "10.77.0.99", "dev", "eth0"])
        known = self.shared("twice_known_hosts", self.known_hosts + "twice "
                            + " ".join(self.known_hosts.split()[1:3]) + "\n")
        run = self.hvdrun("--ssh-config", self.config(self.key, known), "-np", 2, "-H",
                          "node1:1,twice:1", "hostname", limit=20)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines()[1], ["node2"])
        self.assertGreater(run.seconds, 4)
        self.assert_within(run.seconds, 6, "start by the second address of a name")

    def test_one_that_has_lost_its_server_meanwhile_is_dropped_after_the_lease(self):
        self.hvdrun("-np", 2, "-H", TWO, "true")
        self.sshd("node2", "Port 2222")
        pit = self.on_host("node2", harness.PYTHON, "-c", TARPIT)
        self.assertTrue(pit.out.find("ready", 5), pit.err.text)
        run = self.start_silent("-vv", "--lease", 3)
        self.assertTrue(run.err.find("node2: connect", 5), run.report())
        self.cut(True)
        pit.end()
        self.bed.set_sshd("node2", [])
        time.sleep(6)  # nothing that it has to send tells the launcher
        self.assert_within(self.healed(run), 6, "from the healed cable to the end of the job")


class Configuration(WithServers):
    NODES = 2

    def hostnames(self, *arguments, env=None):
        run = self.hvdrun(*arguments, "hostname", env=env)
        self.assert_code(run, 0)
        return run.rank_lines()

    def test_key_that_only_the_agent_has_is_used(self):
        agent = self.on_host("launcher", "ssh-agent", "-D", "-a", "/tmp/agent.sock")
        path = f"{self.bed.root_of('launcher')}/tmp/agent.sock"
        lab.wait_until(lambda: os.path.exists(path), 5, "no ssh-agent")
        env = {"SSH_AUTH_SOCK": "/tmp/agent.sock"}
        self.bed.run("launcher",
                     ["env", "SSH_AUTH_SOCK=/tmp/agent.sock", "ssh-add", "-q", self.key])
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        self.addCleanup(agent.end)
        config = self.config(identity="/nowhere/key")
        self.assertEqual(self.hostnames("--ssh-config", config, "-np", 2, "-H", TWO, env=env),
                         {0: ["node1"], 1: ["node2"]})
        run = self.hvdrun("--ssh-config", config, "-np", 2, "-H", TWO, "true")
        self.assert_code(run, 125)

    def test_identity_file_of_the_command_line_is_used(self):
        self.assertEqual(self.hostnames("--ssh-config", self.config(), "-i", self.key, "-np", 1,
                                        "-H", "node1:1"), {0: ["node1"]})

    def test_aliases_ports_and_users_are_honoured(self):
        self.sshd("node2", "Port 2222")
        key = " ".join(self.known_hosts.split()[1:3])
        known = self.shared("port_known_hosts", self.known_hosts
                            + f"[10.77.0.2]:2222 {key}\n[node2]:2222 {key}\n")
        config = self.config(self.key, known, "Host gpu2\n  HostName 10.77.0.2\n  Port 2222\n")
        self.assertEqual(self.hostnames("--ssh-config", config, "-np", 2, "-H", "node1:1,gpu2:1"),
                         {0: ["node1"], 1: ["node2"]})
        self.assertEqual(self.hostnames("--ssh-config", config, "-p", 2222, "-H", "root@node2:2"),
                         {0: ["node2"], 1: ["node2"]})

    def test_missing_configuration_is_refused(self):
        run = self.hvdrun("--ssh-config", "/nowhere/config", "-np", 1, "-H", "node1:1", "true")
        self.assertIn(run.code, (2, 125), run.report())
        self.assert_says(run, "/nowhere/config")


if __name__ == "__main__":
    harness.main()
