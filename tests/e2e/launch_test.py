"""Starting: ranks, environment, arguments, transports, placing of the agent, refusals."""

import json
import os

import harness
import lab
from harness import scaled

ALL = "node1:2,node2:2,node3:2,node4:2"
TWO = "node1:1,node2:1"


class Launch(harness.EndToEnd):
    def test_rank_order_is_host_order(self):
        run = self.hvdrun("-np", 8, "-H", ALL, "bash", "-c",
                          "echo $RANK $(hostname) $LOCAL_RANK $GROUP_RANK $WORLD_SIZE "
                          "$LOCAL_WORLD_SIZE $GROUP_WORLD_SIZE")
        self.assert_code(run, 0)
        expected = {r: [f"{r} node{r // 2 + 1} {r % 2} {r // 2} 8 2 4"] for r in range(8)}
        self.assertEqual(run.rank_lines(), expected, run.report())
        self.tell("8 ranks on 4 hosts, first time", run.seconds)

    def test_takes_fewer_ranks_than_slots_from_the_front(self):
        run = self.hvdrun("-np", 3, "-H", "node1:2,node2:2", "hostname")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["node1"], 1: ["node1"], 2: ["node2"]})

    def test_reads_a_hostfile_and_takes_all_its_slots(self):
        path = self.script("# four ranks\nnode2 slots=2\r\nnode4:1\n\nnode1\n", "hostfile")
        run = self.hvdrun("--hostfile", path, "hostname")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["node2"], 1: ["node2"], 2: ["node4"], 3: ["node1"]})

    def test_arguments_arrive_as_they_were_given(self):
        words = ["a b", "it's", '"q" -4C', "$HOME", "*", "", "n\nl", "--x=a b", "--", "-np", "9",
                 "é", "\\", "%s", "-x", "`id`"]
        run = self.hvdrun("-np", 2, "-H", TWO, "--", harness.PYTHON, "-c",
                          "import sys,json;print(json.dumps(sys.argv[1:]))", *words)
        self.assert_code(run, 0)
        for rank in range(2):
            self.assertEqual(json.loads(run.rank_lines()[rank][0]), words)

    def test_bytes_that_are_no_text_arrive(self):
        run = self.hvdrun("-np", 2, "-H", TWO, "bash", "-c", "printf '%s' \"$1\" | od -An -tx1",
                          "_", os.fsdecode(b"\xff\xfe x"))
        self.assert_code(run, 0)
        self.assertEqual({r: " ".join(v[0].split()) for r, v in run.rank_lines().items()},
                         {0: "ff fe 20 78", 1: "ff fe 20 78"})

    def test_prints_the_plan_and_contacts_nothing(self):
        run = self.hvdrun("--dry-run", "-np", 3, "-H", "nowhere1:2,nowhere2:2", "true")
        self.assert_code(run, 0)
        self.assertRegex(run.out.text, r"nowhere1(.|\n)*nowhere2")

    def test_bad_host_lists_are_refused_with_the_token(self):
        for arguments, said in [
                (["-H", "node1:1", "node2:1", "true"], "node2:1.*comma"),
                (["-H", "node1:x", "true"], "x"),
                (["-np", 5, "-H", "node1:2,node2:2", "true"], "5.*4|4.*5"),
                (["-np", 0, "-H", "node1:2", "true"], "0"),
                (["-np", -1, "-H", "node1:2", "true"], "-1"),
                (["--hostfile", "/nowhere/hosts", "true"], "/nowhere/hosts"),
                (["-np", 2], "[Cc]ommand|COMMAND")]:
            with self.subTest(arguments=arguments):
                run = self.hvdrun(*arguments)
                self.assert_code(run, 2)
                self.assert_says(run, said)
                self.assertEqual(run.out.text, "")

    def test_worker_finds_only_its_own_descriptors(self):
        """Descriptor 3 is that of PMI; the last one is what it reads with."""
        for option, expected in (("--pmi", "0 1 2 3 4"), ("--no-pmi", "0 1 2 3")):
            run = self.hvdrun("-np", 4, "-H", "node1:2,node2:2", option, harness.PYTHON, "-c",
                              "import os;print(*sorted(map(int,os.listdir('/proc/self/fd'))))")
            self.assert_code(run, 0)
            self.assertEqual({tuple(lines) for lines in run.rank_lines().values()}, {(expected,)})

    def test_many_short_workers_all_start_and_end(self):
        rounds, ranks = scaled((2, 60), (40, 125))
        for _ in range(rounds):
            # Four of them write 10 MB meanwhile.
            run = self.hvdrun("-np", ranks, "-H", f"node1:{ranks}", "sh", "-c",
                              "[ $RANK -lt 4 ] && yes $0 | head -c 2500000; exit 0", "x" * 999, limit=60,
                              env={"GRPC_ENABLE_FORK_SUPPORT": "1"})
            self.assert_code(run, 0)
        self.tell(f"last of {rounds} jobs of {ranks} ranks", run.seconds)

    def test_workers_outlive_whatever_thread_started_them(self):
        seconds = scaled(4, 35)
        run = self.hvdrun("-np", 4, "-H", "node1:2,node2:2", "--heartbeat-ms", 20, "bash", "-c",
                          f"sleep {seconds}; echo alive", limit=seconds + 20)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {r: ["alive"] for r in range(4)})

    def test_says_within_two_seconds_what_it_starts(self):
        run = self.start("-v", "-np", 2, "-H", TWO, "sleep", 3)
        times = run.err.find("starting", 5)
        self.assertTrue(times, run.report())
        self.assert_within(times[0] - run.started, 2, "first word at -v")
        self.assertEqual(run.wait(20), 0, run.report())


class Environment(harness.EndToEnd):
    NODES = 2

    def worker_environments(self, *arguments, env=None):
        return dict(enumerate(self.environments(*arguments, env=env)))

    def assert_has(self, environment, **expected):
        self.assertEqual({name: environment.get(name) for name in expected}, expected)

    def test_torch_and_horovod_find_their_variables(self):
        envs = self.worker_environments("-np", 4, "-H", "node1:2,node2:2")
        for rank, env in envs.items():
            node, local = divmod(rank, 2)
            self.assert_has(
                env, RANK=str(rank), WORLD_SIZE="4", LOCAL_RANK=str(local), LOCAL_WORLD_SIZE="2",
                GROUP_RANK=str(node), GROUP_WORLD_SIZE="2", ROLE_RANK=str(rank),
                ROLE_WORLD_SIZE="4", ROLE_NAME="default", MASTER_ADDR="10.77.0.1",
                TORCHELASTIC_RESTART_COUNT="0", TORCHELASTIC_MAX_RESTARTS="0",
                HOROVOD_RANK=str(rank), HOROVOD_SIZE="4", HOROVOD_LOCAL_RANK=str(local),
                HOROVOD_LOCAL_SIZE="2", HOROVOD_CROSS_RANK=str(node), HOROVOD_CROSS_SIZE="2",
                HOROVOD_HOSTNAME=f"node{node + 1}", HVDRUN_NODE=str(node),
                HVDRUN_ADDRESS=f"10.77.0.{node + 1}", PYTHONUNBUFFERED="1", OMP_NUM_THREADS="1",
                GLOO_SOCKET_IFNAME="eth0", NCCL_SOCKET_IFNAME="=eth0")
            self.assertTrue(env["TORCHELASTIC_ERROR_FILE"] and env["HVDRUN_RENDEZVOUS"])
            self.assertRegex(env["HVDRUN_JOB_ID"], "^[0-9a-f]{32}$")
            self.assertIn(int(env["MASTER_PORT"]), range(61000, 65536))
        for name in ("MASTER_PORT", "HVDRUN_JOB_ID"):
            self.assertEqual(len({env[name] for env in envs.values()}), 1, name)
        self.assertEqual(len({e["TORCHELASTIC_ERROR_FILE"] for e in envs.values()}), 4)

    def test_variables_of_the_launching_host_stay_there(self):
        stays = {"SSH_CONNECTION": "1 2 3 4", "SSH_AUTH_SOCK": "/nowhere", "TMPDIR": "/nowhere",
                 "HOSTNAME": "nowhere", "DISPLAY": ":9", "XDG_RUNTIME_DIR": "/nowhere",
                 "SLURM_PROCID": "7", "OMPI_COMM_WORLD_RANK": "7", "PMI_RANK": "7"}
        others = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
        goes = {"NCCL_DEBUG": "INFO", "A": "1 $x 'y'\n", "WANDB_MODE": "off",
                "http_proxy": "http://x", "GRPC_ENABLE_FORK_SUPPORT": "1"}
        for hosts in ("node1:1,node2:1", "localhost:1,node2:1"):
            with self.subTest(hosts=hosts):
                envs = self.worker_environments("-np", 2, "-H", hosts, env={**stays, **goes})
                for rank, env in envs.items():
                    self.assert_has(env, **goes)
                    for name, value in stays.items():
                        if rank == 1 or not hosts.startswith("localhost") or name in others:
                            self.assertNotEqual(env.get(name), value, f"{name} on rank {rank}")

    def test_ranks_of_this_host_and_another_have_the_same_variables(self):
        """Apart from what is a node's own (the list in the manual) and what tells the rank's place."""
        own = ("HOME USER LOGNAME SHELL HOSTNAME PWD OLDPWD SHLVL _ TMPDIR DISPLAY WAYLAND_DISPLAY XAUTHORITY "
               "MAIL TERM_SESSION_ID PATH").split()
        place = ("RANK GROUP_RANK ROLE_RANK NODE_RANK CROSS_RANK HOROVOD_RANK HOROVOD_CROSS_RANK HOROVOD_HOSTNAME "
                 "HVDRUN_NODE HVDRUN_ADDRESS HVDRUN_RENDEZVOUS PMI_RANK TORCHELASTIC_ERROR_FILE "
                 "GLOO_SOCKET_IFNAME NCCL_SOCKET_IFNAME UCX_NET_DEVICES HOROVOD_GLOO_IFACE").split()
        self.bed.set_sshd("node1", ["SetEnv TMPDIR=/var/tmp"])
        self.addCleanup(self.bed.set_sshd, "node1", [])
        here, there = self.environments("-np", 2, "-H", "localhost:1,node1:1",
                                        env={"NCCL_DEBUG": "INFO", "HVDRUN_GRACE": "3", "TMPDIR": "/tmp"})
        self.assertEqual((here["TMPDIR"], there["TMPDIR"]), ("/tmp", "/var/tmp"))
        differ = {name for name in here.keys() | there.keys() if here.get(name) != there.get(name)}
        unexpected = {name for name in differ if name not in own + place
                      and not name.startswith(("SSH_", "XDG_", "DBUS_"))}
        self.assertEqual({name: (here.get(name), there.get(name)) for name in unexpected}, {})
        self.assertNotIn("HVDRUN_GRACE", here)

    def test_user_values_win_over_ours_where_ours_are_only_hints(self):
        envs = self.worker_environments(
            "-np", 4, "-H", "node1:2,node2:2", "-x", "NCCL_SOCKET_IFNAME=bond0", "-x",
            "OMP_NUM_THREADS=5", "-x", "EMPTY=", "-x", "PLAIN", "-x", "RANK=77",
            env={"PYTHONUNBUFFERED": "", "PLAIN": "p"})
        for rank, env in envs.items():
            self.assert_has(env, NCCL_SOCKET_IFNAME="bond0", OMP_NUM_THREADS="5", EMPTY="",
                            PYTHONUNBUFFERED="", PLAIN="p", RANK=str(rank))

    def test_one_node_gets_no_interface_hints(self):
        env = self.worker_environments("-np", 1, "-H", "node1:1")[0]
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS"):
            self.assertNotIn(name, env)


class Preflight(harness.EndToEnd):
    NODES = 2

    def test_missing_working_directory_names_the_node(self):
        own = f"{self.bed.root_of(harness.LAUNCHER)}/tmp/only-here"
        os.mkdir(own)
        self.addCleanup(os.rmdir, own)
        os.mkdir(f"{self.bed.root_of('node1')}/tmp/only-here")
        self.addCleanup(os.rmdir, f"{self.bed.root_of('node1')}/tmp/only-here")
        run = self.hvdrun("-np", 2, "-H", TWO, "touch", "/tmp/started", cwd="/tmp/only-here")
        self.assert_code(run, 125)
        self.assert_says(run, "node2.*/tmp/only-here|/tmp/only-here.*node2")
        self.assertFalse(os.path.exists(f"{self.bed.root_of('node1')}/tmp/started"))

    def test_missing_command_names_the_node_before_any_rank_works(self):
        path = f"{self.bed.root_of('node1')}/tmp/train.sh"
        lab.write_text(path, "#!/bin/sh\ntouch /tmp/started\n")
        os.chmod(path, 0o755)
        self.addCleanup(os.unlink, path)
        run = self.hvdrun("-np", 2, "-H", TWO, "/tmp/train.sh")
        self.assert_code(run, 127)
        self.assert_says(run, "node2.*train.sh|train.sh.*node2")
        self.assertFalse(os.path.exists(f"{self.bed.root_of('node1')}/tmp/started"))

    def test_command_that_may_not_run_is_126(self):
        path = self.script("echo no\n", "not-executable")
        run = self.hvdrun("-np", 2, "-H", TWO, path)
        self.assert_code(run, 126)
        self.assert_says(run, "not-executable")


class Transports(harness.EndToEnd):
    def test_localhost_needs_no_sshd_no_key_and_no_names(self):
        for arguments in (["-np", 2, "-H", "localhost:2"], ["-np", 2], ["-H", "127.0.0.1:2"]):
            with self.subTest(arguments=arguments):
                run = self.hvdrun(*arguments, "hostname", env={"PATH": "/usr/bin:/bin"})
                self.assert_code(run, 0)
                self.assertEqual(run.rank_lines(), {0: ["launcher"], 1: ["launcher"]})

    def test_addresses_need_no_name(self):
        run = self.hvdrun("-np", 2, "-H", "10.77.0.1:1,10.77.0.2:1", "hostname")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["node1"], 1: ["node2"]})
        self.assert_within(run.seconds, 4, "launch by address")

    def test_proxies_of_the_environment_are_not_asked(self):
        proxy = "http://127.0.0.1:9"
        names = ["http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        shown = " ".join("$" + name for name in names)
        run = self.hvdrun("-np", 2, "-H", TWO, "bash", "-c", f"echo {shown}", env=dict.fromkeys(names, proxy))
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {r: [" ".join([proxy] * len(names))] for r in range(2)})

    def test_command_transport_reaches_hosts_by_ssh(self):
        run = self.hvdrun("-np", 8, "-H", ALL, "--transport", "command", "--rsh",
                          "ssh -o BatchMode=yes {host}", "hostname")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {r: [f"node{r // 2 + 1}"] for r in range(8)})

    def test_four_agents_live_on_one_machine(self):
        run = self.hvdrun("-np", 8, "-H", "a:2,b:2,c:2,d:2", *harness.AGENTS_HERE, "bash", "-c",
                          "echo $RANK $HVDRUN_NODE $HOROVOD_HOSTNAME")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(),
                         {r: [f"{r} {r // 2} {'abcd'[r // 2]}"] for r in range(8)})

    def test_command_that_cannot_reach_its_host_is_named(self):
        run = self.hvdrun("-np", 2, "-H", "a:1,b:1", "--transport", "command", "--rsh",
                          "sh -c 'echo no way to {host} >&2; exit 9'", "true")
        self.assert_code(run, 125)
        self.assert_says(run, "no way to a", "no way to b")


class Placing(harness.EndToEnd):
    def cached(self, host="node1"):
        return [(path, os.stat(path).st_mtime_ns) for path in self.state.cached_agents(host)]

    def remove_cached(self, host):
        for path in self.state.cached_agents(host):
            os.unlink(path)

    def test_agent_is_placed_once_and_then_found(self):
        self.remove_cached("node1")
        first = self.hvdrun("-vv", "-np", 1, "-H", "node1:1", "true")
        self.assert_code(first, 0)
        self.assert_says(first, r"/root/\.cache/hvdrun/")
        placed = self.cached()
        self.assertEqual(len(placed), 1)
        self.assertEqual(os.stat(os.path.dirname(placed[0][0])).st_mode & 0o777, 0o700)
        again = self.hvdrun("-np", 1, "-H", "node1:1", "true")
        self.assert_code(again, 0)
        self.assertEqual(self.cached(), placed)
        self.tell("first time, with placing", first.seconds)
        self.tell("afterwards", again.seconds)

    def test_damaged_copy_is_replaced(self):
        self.assert_code(self.hvdrun("-np", 1, "-H", "node2:1", "true"), 0)
        path = self.state.cached_agents("node2")[0]
        os.truncate(path, 1000)
        self.assert_code(self.hvdrun("-np", 1, "-H", "node2:1", "true"), 0)
        self.assertGreater(os.stat(path).st_size, 1000)

    def test_folder_without_exec_is_passed_over(self):
        self.bed.run("node3", ["sh", "-c", "mkdir -p -m 700 /root/.cache/hvdrun && mount -t tmpfs "
                               "-o noexec,mode=700 none /root/.cache/hvdrun"])
        self.addCleanup(self.bed.run, "node3", ["umount", "/root/.cache/hvdrun"])
        run = self.hvdrun("-vv", "-np", 1, "-H", "node3:1", "true")
        self.assert_code(run, 0)
        self.assert_says(run, "/var/tmp/hvdrun-0/")

    def test_two_jobs_place_at_once(self):
        self.remove_cached("node4")
        runs = [self.start("-np", 1, "-H", "node4:1", "hostname") for _ in range(2)]
        for run in runs:
            self.assertEqual(run.wait(30), 0, run.report())
        self.assertEqual(len(self.cached("node4")), 1)


class OddServers(harness.EndToEnd):
    NODES = 2

    def sshd(self, host, *lines):
        self.bed.set_sshd(host, list(lines))
        self.addCleanup(self.bed.set_sshd, host, [])

    def test_one_session_on_a_connection_is_enough_even_to_place(self):
        self.sshd("node1", "MaxSessions 1")
        for path in self.state.cached_agents("node1"):
            os.unlink(path)
        for _ in range(2):
            self.assert_code(self.hvdrun("-np", 8, "-H", "node1:8", "true"), 0)

    def test_connections_that_sshd_drops_are_tried_again(self):
        self.sshd("node2", "MaxStartups 3:100:3")
        holder = self.on_host("node1", harness.PYTHON, "-c", (
            "import socket,time\n"
            "held=[socket.create_connection(('node2',22)) for _ in range(3)]\n"
            "print('held',flush=True)\ntime.sleep(2.5)\n"))
        self.assertTrue(holder.out.find("held", 10))
        run = self.hvdrun("-np", 2, "-H", "node2:2", "hostname")
        self.assert_code(run, 0)
        self.tell("start behind a server that dropped the first tries", run.seconds)

    def test_greeting_of_the_login_shell_does_not_disturb(self):
        greeting = self.script("#!/bin/bash\nprintf 'Welcome!\\n\\033[31mred\\033[0m\\n'\n"
                               "exec bash -c \"$SSH_ORIGINAL_COMMAND\"\n", "greeting")
        os.chmod(greeting, 0o755)
        self.sshd("node2", f"ForceCommand {greeting}")
        run = self.hvdrun("-np", 2, "-H", "node2:2", "hostname")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["node2"], 1: ["node2"]})


if __name__ == "__main__":
    harness.main()
