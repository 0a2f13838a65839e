"""The testbed itself: its hosts are apart, its troubles bite and end, nothing stays behind."""

import os
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import lab
import layout

NEEDS_ROOT = "the testbed makes namespaces, mounts and a network: needs root"
PROGRAM = os.path.join(lab.HERE, "testbed")


def left_of(folder):
    return [line for line in lab.what_is_left() if folder in line]


class Layout(unittest.TestCase):
    """Pure parts; need no root."""

    def test_keeps_only_what_a_private_mount_would_hide(self):
        self.assertEqual(layout.folders_to_keep(["/tmp/a", "/srv/b", "/tmp/a/c", "/tmp/a"]),
                         ["/tmp/a"])

    def test_names_its_own_host_by_loopback_only_where_asked(self):
        text = layout.hosts_file("node1", ["node1", "node2"],
                                 layout.HostOptions(loopback_name=True))
        self.assertIn("127.0.1.1 node1\n10.77.0.2 node2\n", text)

    def test_refuses_an_unknown_host_option(self):
        with self.assertRaisesRegex(ValueError, "unknown host option 'dokcer0'"):
            layout.HostOptions.apply(layout.HostOptions(), "dokcer0")

    def test_takes_listen_address_from_the_extra_lines(self):
        text = layout.sshd_config("/d", "node1",
                                  layout.HostOptions(sshd_lines=["ListenAddress 127.0.0.1"]))
        self.assertEqual(text.count("ListenAddress"), 1)


@unittest.skipIf(os.geteuid() != 0, NEEDS_ROOT)
class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bed = lab.Testbed(lab.new_folder())
        cls.addClassCleanup(cls.bed.down)
        started = time.monotonic()
        cls.bed.up(4, {"node2": layout.HostOptions(interface="enpA", docker0=True,
                                                   dead_interface=True, loopback_name=True)},
                   dies_with_caller=True)
        cls.seconds = time.monotonic() - started
        print(f"four hosts up in {cls.seconds:.2f} s")

    def ssh(self, host, command, at=layout.LAUNCHER, limit=3):
        """Exit code and output of a command over ssh."""
        done = subprocess.run(
            self.bed.command(at, ["timeout", str(limit), "ssh", "-o", "ConnectTimeout=1", host,
                                  command]),
            env=self.bed.environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout.strip()

    def assert_reached_again(self, host, at=layout.LAUNCHER):
        """A cable just plugged in may lose the first frames: up to 10 s."""
        deadline = time.monotonic() + 10
        while self.ssh(host, "true", at)[0] != 0:
            self.assertLess(time.monotonic(), deadline, f"{at} does not reach {host} again")

    def test_each_host_answers_by_its_own_name(self):
        for name in self.bed.names[:4]:
            self.assertEqual(self.ssh(name, "hostname"), (0, name))

    def test_hosts_share_no_temporary_file_and_no_process(self):
        self.ssh("node1", "touch /tmp/mark /dev/shm/mark /root/mark /var/tmp/mark")
        for name in ("node2", layout.LAUNCHER):
            shown = self.bed.run(name, ["sh", "-c", "ls /tmp /dev/shm /root /var/tmp; ps ax"])
            self.assertNotIn("mark", shown.split())
            self.assertNotIn("testbed/host_init.sh " + self.bed.folder + " node1", shown)
        self.assertFalse(os.path.exists("/root/mark"))

    def test_own_checkout_is_visible_at_its_own_path(self):
        self.assertEqual(self.ssh("node3", f"cmp {PROGRAM} {PROGRAM} && echo same"), (0, "same"))

    def test_odd_host_has_its_interfaces_and_loopback_name(self):
        shown = self.bed.run("node2", ["ip", "-br", "-4", "addr"])
        for part in ("enpA", "10.77.0.2/24", "docker0", "172.17.0.1/16", "eth9", "10.99.0.2/24"):
            self.assertIn(part, shown)
        self.assertIn("127.0.1.1", self.bed.run("node2", ["getent", "hosts", "node2"]))

    def test_link_down_cuts_a_host_until_it_is_up_again(self):
        self.bed.set_link("node3", False)
        self.addCleanup(self.bed.set_link, "node3", True)
        self.assertNotEqual(self.ssh("node3", "true")[0], 0)
        self.bed.set_link("node3", True)
        self.assert_reached_again("node3")

    def test_black_hole_between_two_hosts_leaves_the_others_alone(self):
        self.bed.set_black_hole("node3", True, ["node1"])
        self.addCleanup(self.bed.set_black_hole, "node3", False, ["node1"])
        self.assertNotEqual(self.ssh("node1", "true", at="node3")[0], 0)
        self.assertEqual(self.ssh("node2", "true", at="node3")[0], 0)
        self.bed.set_black_hole("node3", False, ["node1"])
        self.assert_reached_again("node1", at="node3")

    def test_delay_holds_in_each_direction_and_is_taken_back(self):
        started = time.monotonic()
        self.assertEqual(self.ssh("node4", "true")[0], 0)
        plain = time.monotonic() - started
        self.bed.set_delay("node4", 40)
        self.addCleanup(self.bed.set_delay, "node4", 0)
        started = time.monotonic()
        self.assertEqual(self.ssh("node4", "true", limit=20)[0], 0)
        slow = time.monotonic() - started
        print(f"ssh takes {plain:.2f} s plain, {slow:.2f} s at 40 ms each way")
        self.assertGreater(slow, plain + 5 * 0.08)
        self.bed.set_delay("node4", 0)
        self.assert_reached_again("node4")

    def test_other_cables_do_not_change_where_the_launcher_is_found(self):
        def bridge():
            return self.bed.run(layout.LAUNCHER, ["cat", "/sys/class/net/br0/address"]).strip()

        for host in ("node1", "node2", "node3"):  # one of three new ports has the lowest address
            self.bed.set_delay(host, 1)
            self.addCleanup(self.bed.set_delay, host, 0)
            self.assertEqual(bridge(), layout.BRIDGE_MAC)

    def test_sshd_takes_other_lines_and_gives_them_back(self):
        self.bed.set_sshd("node4", ["ForceCommand echo forced"])
        self.addCleanup(self.bed.set_sshd, "node4", [])
        self.assertEqual(self.ssh("node4", "hostname"), (0, "forced"))
        self.bed.set_sshd("node4", [])
        self.assertEqual(self.ssh("node4", "hostname"), (0, "node4"))


WITH_SYSTEMD = layout.HostOptions(systemd=True)


@unittest.skipIf(os.geteuid() != 0, NEEDS_ROOT)
class HostsWithSystemd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bed = lab.Testbed(lab.new_folder())
        cls.addClassCleanup(cls.bed.down)
        started = time.monotonic()
        cls.bed.up(2, {"node1": WITH_SYSTEMD, "node2": WITH_SYSTEMD}, dies_with_caller=True)
        print(f"two hosts with systemd up in {time.monotonic() - started:.2f} s")
        cls.bed.add_user("node1", "alice", 1201)

    def at_node1(self, *words):
        return self.bed.run("node1", list(words)).strip()

    def test_boots_whole_and_is_reached_as_a_light_host(self):
        for name in ("node1", "node2"):
            self.assertEqual(self.bed.run(name, ["systemctl", "is-system-running"]), "running\n")
            self.assertEqual(self.bed.run(layout.LAUNCHER, ["ssh", name, "hostname"]), name + "\n")
            self.assertEqual(self.bed.run(name, ["cmp", PROGRAM, PROGRAM]), "")  # the checkout

    def test_what_runs_there_is_in_groups_of_the_host(self):
        self.assertIn("0::/testbed.scope", self.at_node1("cat", "/proc/self/cgroup"))
        shown = self.bed.run(layout.LAUNCHER, ["ssh", "alice@node1", "cat /proc/self/cgroup"])
        self.assertIn("0::/user.slice/user-1201.slice/session-", shown)

    def test_runs_a_unit_as_a_user_and_stops_it(self):
        self.at_node1("systemd-run", "--unit=nap", "-p", "User=alice", "sleep", "600")
        pid = self.at_node1("systemctl", "show", "--value", "-p", "MainPID", "nap")
        self.assertEqual(self.at_node1("stat", "-c", "%U", f"/proc/{pid}"), "alice")
        self.at_node1("systemctl", "stop", "nap")
        self.assertNotIn("sleep", self.at_node1("ps", "ax"))

    def test_reboots_with_what_is_on_its_disk_and_nothing_else(self):
        before = self.bed.inits["node1"]
        self.at_node1("touch", "/home/alice/kept", "/tmp/lost")
        self.bed.reboot("node1")
        self.assertNotEqual(self.bed.inits["node1"], before)
        self.assertEqual(self.at_node1("sh", "-c", "ls /home/alice /tmp | grep -E 'kept|lost'"),
                         "kept")

    def test_goes_off_in_order_or_at_once_and_comes_on_again(self):
        for turn_off in (self.bed.shut_down, self.bed.cut_power):
            turn_off("node2")
            self.assertFalse(os.path.exists(f"/proc/{self.bed.inits['node2']}/root/"))
            self.bed.power_on("node2")
            self.assertEqual(self.bed.run(layout.LAUNCHER, ["ssh", "node2", "hostname"]), "node2\n")


@unittest.skipIf(os.geteuid() != 0, NEEDS_ROOT)
class Leftovers(unittest.TestCase):
    def test_two_testbeds_live_side_by_side_and_down_leaves_nothing(self):
        beds = [lab.Testbed(lab.new_folder()) for _ in range(2)]
        for bed in beds:
            self.addCleanup(bed.down)
            bed.up(2, {"node2": WITH_SYSTEMD}, dies_with_caller=True)
        beds[0].down()
        self.assertEqual(left_of(beds[0].folder), [])
        self.assertEqual(beds[1].run("launcher", ["ssh", "node1", "hostname"]), "node1\n")
        beds[1].down()
        self.assertEqual(left_of(beds[1].folder), [])

    def test_down_cleans_up_after_an_interrupted_up(self):
        folder = lab.new_folder()
        self.addCleanup(lab.Testbed(folder).down)
        for moment in (0.12, 0.2, 0.3, 0.5):
            up = subprocess.Popen([sys.executable, PROGRAM, "up", folder, "4", "--host",
                                   "node4:systemd"])
            time.sleep(moment)
            up.send_signal(signal.SIGKILL)
            up.wait()
            subprocess.run([sys.executable, PROGRAM, "down", folder], check=True)
            self.assertEqual([line for line in left_of(folder)
                              if line.startswith(("process", "group"))], [])

    def test_hosts_of_a_killed_caller_end_with_it(self):
        folder = lab.new_folder()
        self.addCleanup(lab.Testbed(folder).down)
        caller = subprocess.Popen(
            [sys.executable, "-c", "import sys, time; sys.path.insert(0, sys.argv[1]); import lab\n"
             "lab.Testbed(sys.argv[2]).up(2, {'node2': lab.layout.HostOptions(systemd=True)},"
             " dies_with_caller=True)\nprint('up', flush=True)\n"
             "time.sleep(60)", lab.HERE, folder], stdout=subprocess.PIPE, text=True)
        self.assertEqual(caller.stdout.readline(), "up\n")
        caller.kill()
        caller.wait()
        caller.stdout.close()
        lab.wait_until(lambda: not lab.processes_of(folder), 5, "the hosts did not end")

        def is_removed():
            lab.remove_abandoned()
            return not left_of(folder)

        lab.wait_until(is_removed, 5, f"something stays: {left_of(folder)}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
