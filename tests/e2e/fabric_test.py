"""How the nodes find each other: addresses, interfaces, the reserved port."""

import time

import harness
import layout
from harness import HostOptions, scaled

LISTEN = ("import socket,sys,time\ns=socket.create_server(('',int(sys.argv[1])))\n"
          "print('ready',flush=True)\ntime.sleep(600)")
# Rank 0 serves on MASTER_PORT as a store would; the others fetch a word. A plain bind fails.
STORE = """
import os, socket
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    plain = socket.socket()
    try:
        plain.bind(("", at[1]))
        print("plain bind went through")
    except OSError as error:
        print("plain bind refused")
    plain.close()
    server = socket.create_server(("", at[1]))
    for _ in range(size - 1):
        peer, _ = server.accept()
        peer.sendall(b"word")
        peer.close()
else:
    import time
    while True:
        try:
            with socket.create_connection(at, 5) as peer:
                print("got", peer.recv(10).decode())
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
"""


class Fabric(harness.EndToEnd):
    OPTIONS = {
        "node1": HostOptions(docker0=True, dead_interface=True),
        "node2": HostOptions(docker0=True, dead_interface=True, interface="enpA"),
        "node3": HostOptions(loopback_name=True),
        "node4": HostOptions(interface="eno1"),
    }

    def test_address_that_peers_reach_is_advertised(self):
        envs = self.environments("-np", 2, "-H", "node1:1,node2:1")
        self.assertEqual(self.values(envs, "MASTER_ADDR"), ["10.77.0.1"] * 2)
        self.assertEqual(self.values(envs, "HVDRUN_ADDRESS"), ["10.77.0.1", "10.77.0.2"])

    def test_interface_names_may_differ_per_node(self):
        envs = self.environments("-np", 3, "-H", "node2:1,node1:1,node4:1")
        self.assertEqual(self.values(envs, "MASTER_ADDR"), ["10.77.0.2"] * 3)
        self.assertEqual(self.values(envs, "GLOO_SOCKET_IFNAME"), ["enpA", "eth0", "eno1"])
        self.assertEqual(self.values(envs, "NCCL_SOCKET_IFNAME"), ["=enpA", "=eth0", "=eno1"])
        envs = self.environments("-np", 2, "-H", "node4:1,node1:1", "--network-interfaces", "10.77.0.0/16")
        self.assertEqual(self.values(envs, "MASTER_ADDR"), ["10.77.0.4"] * 2)
        self.assertEqual(self.values(envs, "NCCL_SOCKET_IFNAME"), ["=eno1", "=eth0"])

    def test_loopback_name_of_a_host_is_never_told_to_others(self):
        for hosts in ("node3:1,node1:1", "node1:1,node3:1"):
            envs = self.environments("-np", 2, "-H", hosts)
            for name in ("MASTER_ADDR", "HVDRUN_ADDRESS"):
                for value in self.values(envs, name):
                    self.assertTrue(value.startswith("10.77.0."), (name, value))

    def test_only_loopback_on_one_of_two_hosts_is_refused_with_the_file(self):
        alone = ["--transport", "command", "--rsh", "sh -c '[ $1 = b ] && shift && exec unshare -n \"$@\"; shift; "
                 "exec \"$@\"' x {host} {command}"]
        run = self.hvdrun("-np", 2, "-H", "b:1,a:1", *alone, "sh", "-c", "echo started")
        self.assert_code(run, 125)
        self.assert_says(run, "/etc/hosts")
        self.assertNotIn("started", run.out.text)

    def test_localhost_beside_another_host_gets_a_reachable_address(self):
        envs = self.environments("-np", 2, "-H", "localhost:1,node1:1")
        self.assertEqual(self.values(envs, "MASTER_ADDR"), ["10.77.0.254"] * 2)
        self.assertEqual(self.values(envs, "HVDRUN_ADDRESS"), ["10.77.0.254", "10.77.0.1"])

    def test_choice_is_printed_at_vv(self):
        run = self.hvdrun("-vv", "-np", 2, "-H", "node1:1,node2:1", "true")
        self.assert_code(run, 0)
        self.assert_says(run, r"node1: 10\.77\.0\.1 on eth0", r"node2: 10\.77\.0\.2 on enpA",
                         r"NCCL_SOCKET_IFNAME==eth0 \(unless the node sets it\)", "NCCL_SOCKET_IFNAME==enpA")
        run = self.hvdrun("-vv", "-np", 2, "-H", "node1:1,node2:1", "true", env={"NCCL_SOCKET_IFNAME": "^docker0"})
        self.assert_says(run, r"NCCL_SOCKET_IFNAME=\^docker0 \(the user's\)")

    def test_users_interface_and_address_win(self):
        envs = self.environments("-np", 2, "-H", "node1:1,node3:1", "--network-interfaces", "eth0")
        self.assertEqual(self.values(envs, "MASTER_ADDR"), ["10.77.0.1"] * 2)
        envs = self.environments("-np", 2, "-H", "node1:1,node2:1", "--master-addr", "10.77.0.1",
                                 env={"NCCL_SOCKET_IFNAME": "mine"})
        self.assertEqual(self.values(envs, "MASTER_ADDR"), ["10.77.0.1"] * 2)
        self.assertEqual(self.values(envs, "NCCL_SOCKET_IFNAME"), ["mine"] * 2)

    def test_dead_interface_that_the_user_insists_on_is_an_error(self):
        run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", "--network-interfaces", "eth9", "true")
        self.assert_code(run, 125)
        self.assert_says(run, "node1", "node2", r"10\.99\.0\.1")

    def test_nodes_that_cannot_reach_each_other_are_named_as_a_pair(self):
        self.bed.set_black_hole("node2", True, ["node1"])
        self.addCleanup(self.bed.set_black_hole, "node2", False, ["node1"])
        run = self.hvdrun("-np", 3, "-H", "node1:1,node2:1,node3:1", "true")
        self.assert_code(run, 125)
        self.assert_says(run, r"node2.*node1|node1.*node2", r"10\.77\.0\.1")
        self.assert_within(run.seconds, 15, "fabric check with a blocked pair")
        for mode in ("warn", "skip"):
            run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", f"--fabric={mode}", "true")
            self.assert_code(run, 0)
            if mode == "warn":
                self.assert_says(run, "node2")

    def test_nodes_that_reach_each_other_late_are_no_error(self):
        self.bed.set_black_hole("node2", True, ["node1"])
        self.addCleanup(self.bed.set_black_hole, "node2", False, ["node1"])
        run = self.start("-vv", "-np", 2, "-H", "node1:1,node2:1", "true")
        begin = run.err.find("reaching -> fabric", 10)
        self.assertTrue(begin, run.report())
        time.sleep(7)
        self.bed.set_black_hole("node2", False, ["node1"])
        healed = time.monotonic()
        self.assertEqual(run.wait(20), 0, run.report())
        # The check waits for node1's dead interface, too, up to its limit of 10 s.
        self.assert_within(time.monotonic() - healed, 4, "from the healed cable to the end")

    def test_a_silent_address_beside_another_one_holds_up_the_start_for_two_seconds(self):
        silent = ["10.99.0.1", "lladdr", layout.WRONG_MAC, "nud", "permanent", "dev", "eth9"]
        self.bed.run("node2", ["ip", "neigh", "replace", *silent])
        self.addCleanup(self.bed.run, "node2", ["ip", "neigh", "del", "10.99.0.1", "dev", "eth9"])
        run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", "true")
        self.assert_code(run, 0)
        self.assertGreater(run.seconds, 2)
        self.assert_within(run.seconds, 4, "start with a silent address")

    def test_taken_master_port_is_named(self):
        holder = self.on_host("node1", harness.PYTHON, "-c", LISTEN, "61234")
        self.assertTrue(holder.out.find("ready", 5), holder.err.text)
        run = self.hvdrun("-np", 2, "-H", "node1:1,node2:1", "--master-port", 61234, "true")
        self.assert_code(run, 125)
        self.assert_says(run, "node1", "61234")
        envs = self.environments("-np", 2, "-H", "node1:1,node2:1", "--master-port", "61234-61235")
        self.assertEqual(self.values(envs, "MASTER_PORT"), ["61235"] * 2)

    def test_rank_zero_can_serve_on_the_reserved_port_and_nobody_else(self):
        script = self.script(STORE, "store.py")
        run = self.hvdrun("-np", 4, "-H", "node1:2,node2:2", harness.PYTHON, script)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["plain bind refused"], 1: ["got word"],
                                            2: ["got word"], 3: ["got word"]})

    def test_two_jobs_at_once_have_two_ports(self):
        holder = self.on_host("node1", harness.PYTHON, "-c", LISTEN, "29500")
        self.assertTrue(holder.out.find("ready", 5), holder.err.text)
        for _ in range(scaled(3, 50)):
            runs = [self.start("-np", 2, "-H", "node1:2", "bash", "-c",
                               "echo $MASTER_PORT; sleep 0.5") for _ in range(2)]
            for run in runs:
                self.assertEqual(run.wait(20), 0, run.report())
            ports = [run.rank_lines()[0][0] for run in runs]
            self.assertEqual(len(set(ports)), 2, ports)
            self.assertNotIn("29500", ports)


if __name__ == "__main__":
    harness.main()
