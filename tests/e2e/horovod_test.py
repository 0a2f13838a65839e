"""Horovod's contract: the variables of its ranks, and the store by which its Gloo ranks find each other. The client is our
own, written from the protocol (tests/programs/horovod_kv_client.py), and in the long run Horovod itself."""

import os
import re
import subprocess
import unittest

import harness
from harness import HostOptions

CLIENT = [harness.PYTHON, os.path.join(harness.CHECKOUT, "tests", "programs", "horovod_kv_client.py")]
UNEQUAL = "node1:3,node2:1,node3:2,node4:2"
SAME_FOR_ALL = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo", "PYTHONUNBUFFERED": "1"}
# The rank asks the store by the address in its argument; what it answers, or how it does not.
ASK = """
import os, socket, sys
port = int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
try:
    with socket.create_connection((sys.argv[1], port), 5) as store:
        store.sendall(b"GET /global/0 HTTP/1.1\\r\\nContent-Length: 0\\r\\n\\r\\n")
        print("answer", store.recv(1000).split(b"\\r\\n")[0].decode())
except OSError as error:
    print("answer", type(error).__name__)
"""
# Half of the ranks send rubbish to the store and keep connections without a word while the others meet beside them.
NOISE = """
import os, socket, subprocess, sys
at = (os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]))
idle = [socket.create_connection(at, 10) for _ in range(40)]
for rubbish in (b"\\x16\\x03\\x01" + bytes(500), b"GET /" + b"x" * 200000, b"PUT /a/b HTTP/1.1\\r\\nContent-Length: 9\\r\\n\\r\\n"):
    with socket.create_connection(at, 10) as noise:
        noise.sendall(rubbish)
sys.exit(subprocess.call(sys.argv[1:]))
"""


class Horovod(harness.EndToEnd):
    OPTIONS = {"node1": HostOptions(docker0=True), "node2": HostOptions(interface="enpA")}

    def environments(self, *arguments, env=None):
        run = self.print_environments(*arguments, env=env)
        return run, self.environments_of(run)

    def assert_all_met(self, run, ranks):
        for rank in range(ranks):
            lines = run.rank_lines().get(rank, [])
            self.assertTrue(any(f"rank {rank} of {ranks} met all" in line for line in lines), run.report())

    def test_ranks_of_unequal_hosts_meet_by_the_store(self):
        run = self.hvdrun("-np", 8, "-H", UNEQUAL, *CLIENT, limit=40)
        self.assert_code(run, 0)
        self.assert_all_met(run, 8)
        self.assertRegex(run.out.text, r"rank 3 of 8 met all on enpA at 10\.77\.0\.1 ")
        self.assertEqual(run.out.text.count(" on eth0 at 10.77.0.1 "), 7, run.report())
        self.tell("8 ranks", run.seconds)

    def test_ranks_of_one_machine_meet_on_loopback(self):
        run = self.hvdrun("-np", 4, *CLIENT)
        self.assert_code(run, 0)
        self.assert_all_met(run, 4)
        self.assertEqual(run.out.text.count(" on lo at 127.0.0.1 "), 4, run.report())

    def test_a_restart_begins_with_an_empty_store(self):
        run = self.hvdrun("-np", 8, "-H", UNEQUAL, "--max-restarts", 1, *CLIENT, "--die-in-attempt", 0, limit=40)
        self.assert_code(run, 0)
        self.assert_all_met(run, 8)
        self.assertIn("restart 1 of 1", run.err.text)

    def test_noise_at_the_store_costs_nobody_his_meeting(self):
        run = self.hvdrun("-np", 4, "-H", "node1:2,node2:2", harness.PYTHON, "-c", NOISE, *CLIENT, limit=60)
        self.assert_code(run, 0)
        self.assert_all_met(run, 4)

    def test_variables_of_the_contract(self):
        _, envs = self.environments("-np", 4, "-H", "node1:2,node2:2", env={
            "HOROVOD_CONTROLLER": "mpi", "HOROVOD_GLOO_IFACE": "of-an-outer-job", "HOROVOD_CYCLE_TIME": "7"})
        for env in envs:
            self.assertEqual({name: env.get(name) for name in SAME_FOR_ALL}, SAME_FOR_ALL)
            self.assertEqual(env["HOROVOD_GLOO_RENDEZVOUS_ADDR"], "10.77.0.1")
            self.assertEqual(env["HOROVOD_CYCLE_TIME"], "7")
            self.assertNotIn("HOROVOD_ELASTIC", env)
        self.assertEqual([env["HOROVOD_GLOO_IFACE"] for env in envs], ["eth0", "eth0", "enpA", "enpA"])
        self.assertEqual(len({env["HOROVOD_GLOO_RENDEZVOUS_PORT"] for env in envs}), 1)
        _, envs = self.environments("-np", 1, "-x", "HOROVOD_GLOO_IFACE=mine")
        self.assertEqual(envs[0]["HOROVOD_GLOO_IFACE"], "mine")

    def test_only_the_ranks_address_is_answered(self):
        for hosts, address, answer in (("node1:1,node2:1", "10.77.0.1", "HTTP/1.0 404 Not Found"),
                                       ("node1:1,node2:1", "172.17.0.1", ""),
                                       ("node1:1", "10.77.0.1", "ConnectionRefusedError"),
                                       ("node1:1", "127.0.0.1", "HTTP/1.0 404 Not Found")):
            with self.subTest(hosts=hosts, address=address):
                run = self.hvdrun("-H", hosts, "bash", "-c", '[ $RANK = 0 ] || exit 0; exec "$@"', "x",
                                  harness.PYTHON, "-c", ASK, address)
                self.assert_code(run, 0)
                said = run.rank_lines()[0][0]
                self.assertIn(said, (f"answer {answer}", "answer ConnectionResetError") if not answer
                              else (f"answer {answer}",))

    def test_without_ipv4_the_variables_are_left_out_and_that_is_told(self):
        for number in (1, 2):
            interface = "eth0" if number == 1 else "enpA"
            at = [f"fd00:77::{number}/64", "dev", interface]
            self.bed.run(f"node{number}", ["ip", "-6", "addr", "add", *at, "nodad"])
            self.addCleanup(self.bed.run, f"node{number}", ["ip", "-6", "addr", "del", *at])
        run, envs = self.environments("-v", "-H", "node1:1,node2:1", "--network-interfaces", "fd00:77::/64")
        self.assertEqual(envs[1]["MASTER_ADDR"], "fd00:77::1")
        for name in ("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT", "HOROVOD_CONTROLLER",
                     "HOROVOD_GLOO_IFACE"):
            self.assertNotIn(name, envs[1])
        self.assert_says(run, "no store for Horovod's ranks: .*IPv4.*node1")


@unittest.skipUnless(harness.IS_LONG, "Horovod itself is built and run with the label long")
class RealHorovod(harness.EndToEnd):
    NODES = 2

    def test_horovod_trains_as_one_process_would(self):
        build = subprocess.run([os.path.join(harness.HERE, "real_horovod.sh")], stdout=subprocess.PIPE, check=True)
        python = build.stdout.decode().split()[-1]
        script = os.path.join(harness.CHECKOUT, "tests", "programs", "horovod_train.py")
        run = self.hvdrun("-np", 4, "-H", "node1:3,node2:1", "-x", "HOROVOD_DYNAMIC_PROCESS_SETS=1", "-x",
                          f"TORCHINDUCTOR_CACHE_DIR={self.bed.folder}/shared/inductor", python, script, limit=120)
        self.assert_code(run, 0)
        lines = [run.rank_lines()[rank][-1] for rank in range(4)]
        for rank, line in enumerate(lines):
            self.assertRegex(line, rf"rank {rank} of 4 local {rank % 3} of {1 if rank == 3 else 3} ", run.report())
        self.assertEqual(len({re.search(r"weights (\S+)", line)[1] for line in lines}), 1, run.report())
        self.assertIn("as computed alone", lines[0])
        self.tell("Horovod, 4 ranks", run.seconds)


if __name__ == "__main__":
    harness.main()
