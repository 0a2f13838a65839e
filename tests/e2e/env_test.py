"""The environment of the ranks: what arrives, what stays away, what other launchers' scripts find."""

import hashlib
import os

import harness
import lab
from harness import HostOptions

TWO = "node1:1,node2:1"
# Bytes do not survive JSON: name, length and sum of each that is asked for.
PRINT_SUMS = [harness.PYTHON, "-c",
              "import hashlib,os,sys\nfor n in sys.argv[1:]:\n v=os.environb[n.encode()]\n"
              " print(n,len(v),hashlib.sha256(v).hexdigest())"]
SECRET = "s3cret-0d1f"
OLD_SCRIPT = """import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("config")
parser.add_argument("--{0}", type=int, default=-1, dest="local_rank")
parser.add_argument("--launcher")
arguments = parser.parse_args()
print(arguments.config, arguments.local_rank, arguments.launcher, os.environ["LOCAL_RANK"])
"""
DEEPSPEED = """for name in MASTER_ADDR MASTER_PORT WORLD_SIZE RANK LOCAL_RANK LOCAL_SIZE CROSS_RANK CROSS_SIZE; do
  eval "[ -n \\"\\$$name\\" ]" || { echo "$name is not set"; exit 1; }
done
echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_SIZE $CROSS_RANK/$CROSS_SIZE"
[ "$MASTER_HOST" = "$MASTER_ADDR:$MASTER_PORT" ]
"""
# Rank 0 serves MASTER_PORT once a file is there.
LATE_STORE = """import os, socket, sys, time
if os.environ["RANK"] == "0":
    print("port", os.environ["MASTER_PORT"], flush=True)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
    socket.create_server(("", int(os.environ["MASTER_PORT"])))
time.sleep(60)
"""
LISTEN = ("import socket,sys,time\ns=socket.create_server(('',int(sys.argv[1])))\n"
          "print('ready',flush=True)\ntime.sleep(600)")


class EnvCase(harness.EndToEnd):
    NODES = 2


class Travel(EnvCase):
    OPTIONS = {
        "node1": HostOptions(sshd_lines=["SetEnv CUDA_VISIBLE_DEVICES=3,1 SLURM_NTASKS=9"]),
        "node2": HostOptions(sshd_lines=["SetEnv CUDA_VISIBLE_DEVICES=MIG-4f7e LOCAL_RANK=7 L=/b"]),
    }

    def test_values_arrive_byte_for_byte(self):
        values = {"LINES": b"a\nb\n\n", "NO_TEXT": b"\xff\xfe'\"$x", "EMPTY": b"",
                  "LARGE": b"x" * 100_000}
        path = self.script("FROM_FILE='it is\n\"quoted\" # here'\nexport PLAIN = b # gone\n", "run.env")
        expected = {**values, "FROM_FILE": b'it is\n"quoted" # here', "PLAIN": b"b"}
        run = self.hvdrun("-np", 3, "-H", "localhost:1," + TWO, "--env-file", path, *PRINT_SUMS,
                          *expected, env={k: os.fsdecode(v) for k, v in values.items()})
        self.assert_code(run, 0)
        told = [f"{n} {len(v)} {hashlib.sha256(v).hexdigest()}" for n, v in expected.items()]
        self.assertEqual(run.rank_lines(), {rank: told for rank in range(3)})

    def test_rules_decide_what_travels_also_to_this_machine(self):
        env = {"NCCL_DEBUG": "INFO", "API": "1", "SLURM_JOB_ID": "7", "SLURM_PROCID": "3"}
        hosts = ["-np", 2, "-H", "localhost:1,node1:1"]
        for rules, seen in [
                ([], ["INFO", "1", None, None]),
                (["--env-deny", "AP?"], ["INFO", None, None, None]),
                (["--env-deny", "*", "--env-allow", "NCCL_*"], ["INFO", None, None, None]),
                (["--env-allow", "NCCL_*", "--env-deny", "*"], [None] * 4),
                (["--env-allow", "SLURM_JOB_*"], ["INFO", "1", "7", None]),
                (["--env-deny", "*", "-x", "A*", "-x", "SLURM_PROCID"], [None, "1", None, "3"])]:
            with self.subTest(rules=rules):
                for rank in self.environments(*hosts, *rules, env=env):
                    self.assertEqual([rank.get(name) for name in env], seen)
                    self.assertEqual(rank["HOME"], "/root")

    def test_nodes_own_devices_are_seen_unless_the_user_names_some(self):
        envs = self.environments("-np", 2, "-H", TWO)
        self.assertEqual(self.values(envs, "CUDA_VISIBLE_DEVICES"), ["3,1", "MIG-4f7e"])
        for name in ("SLURM_NTASKS", "TORCHELASTIC_RUN_ID"):
            self.assertEqual(self.values(envs, name), [None, None], name)
        self.assertEqual(self.values(envs, "LOCAL_RANK"), ["0", "0"])
        envs = self.environments("-np", 2, "-H", "node1:2")
        self.assertEqual(self.values(envs, "CUDA_VISIBLE_DEVICES"), ["3,1"] * 2)
        self.assertEqual(self.values(envs, "LOCAL_RANK"), ["0", "1"])
        for gpus in ("3,1", "GPU-8f3a,GPU-77c1", "MIG-4f7e,MIG-4f7f"):
            env = {} if gpus == "3,1" else {"CUDA_VISIBLE_DEVICES": gpus}
            envs = self.environments("-H", "node1:2", "--one-gpu-per-rank", env=env)
            self.assertEqual(self.values(envs, "CUDA_VISIBLE_DEVICES"), gpus.split(","))
        for value in ("GPU-8f3a,GPU-77c1", "", "0,-1,1", "MIG-GPU-8f3a/1/0"):
            envs = self.environments("-np", 2, "-H", TWO, env={"CUDA_VISIBLE_DEVICES": value})
            self.assertEqual(self.values(envs, "CUDA_VISIBLE_DEVICES"), [value] * 2)
        run = self.hvdrun("-np", 2, "-H", TWO, "true", env={"CUDA_VISIBLE_DEVICES": "1,1"})
        self.assert_code(run, 2)
        self.assert_says(run, "node1: CUDA_VISIBLE_DEVICES=\"1,1\" lists 1 twice; list each GPU once")

    def test_python_of_the_active_environment_runs_on_the_nodes(self):
        folder = os.path.join(self.bed.folder, "shared", "venv")
        self.bed.run("launcher", [harness.PYTHON, "-m", "venv", "--without-pip", folder])
        os.mkdir(os.path.join(self.bed.folder, "shared", "lib"))
        self.script("WORD = 'mine'\n", "lib/mine.py")
        env = {"VIRTUAL_ENV": folder, "CONDA_PREFIX": folder, "LD_LIBRARY_PATH": folder + "/lib",
               "PYTHONPATH": os.path.join(self.bed.folder, "shared", "lib"),
               "PATH": f"{folder}/bin:{harness.PATH}"}
        run = self.hvdrun("-np", 3, "-H", "localhost:1," + TWO, "python", "-c",
                          "import sys,os,mine;print(sys.prefix,mine.WORD,os.environ['VIRTUAL_ENV'],"
                          "os.environ['CONDA_PREFIX'],os.environ['LD_LIBRARY_PATH'])", env=env)
        self.assert_code(run, 0)
        said = f"{folder} mine {folder} {folder} {folder}/lib"
        self.assertEqual(run.rank_lines(), {rank: [said] for rank in range(3)})

    def test_secrets_stand_on_no_command_line_and_in_no_message(self):
        path = self.script(f"DB_PASSWORD={SECRET}\n", "secret.env")
        run = self.start("-vv", "-np", 3, "-H", "localhost:1," + TWO, "--env-file", path, "-x",
                         "WANDB_API_KEY", "-x", "SHOWN=plain-word", "sleep", 60,
                         env={"HF_TOKEN": SECRET, "WANDB_API_KEY": SECRET})
        workers = self.wait_workers(3, run)
        for pid in workers.values():
            self.assertIn(f"DB_PASSWORD={SECRET}".encode(), lab.environment_of(pid))
        for pid in filter(str.isdigit, os.listdir("/proc")):
            self.assertNotIn(SECRET, lab.read_text(f"/proc/{pid}/cmdline"), f"process {pid}")
        run.signal(15)
        run.wait(20)
        self.assertNotIn(SECRET, run.err.text)
        self.assert_says(run, "HF_TOKEN", r"DB_PASSWORD=\(hidden\)", r"SHOWN=plain-word")

    def test_errors_of_the_file_name_its_line(self):
        path = self.script("A=1\n\nB='open\n", "bad.env")
        run = self.hvdrun("--env-file", path, "true")
        self.assert_code(run, 2)
        self.assert_says(run, r"bad\.env:3: the quote")
        path = self.script("L=/opt/x:$L\n", "literal.env")
        envs = self.environments("-np", 2, "-H", TWO, "--env-file", path, "-x", "M=/opt:$L", env={"L": "/a"})
        self.assertEqual(self.values(envs, "L"), ["/opt/x:$L"] * 2)
        self.assertEqual(self.values(envs, "M"), ["/opt:$L"] * 2)


class Size(EnvCase):
    def test_what_no_process_can_be_given_is_refused_before_the_start(self):
        path = self.script("MODEL=" + "x" * 200_000 + "\n", "big.env")
        run = self.hvdrun("--env-file", path, "-np", 2, "-H", TWO, "true")
        self.assert_code(run, 2)
        self.assert_says(run, r"MODEL takes 195\.3 KiB", "128.0 KiB", "--env-deny")

    def test_a_nodes_lower_limit_is_known_before_the_start(self):
        low = ["--transport", "command", "--rsh", "sh -c 'ulimit -Ss 512; exec \"$@\"' x {command}"]
        path = self.script("A=" + "x" * 60_000 + "\nB=" + "x" * 80_000 + "\n", "two.env")
        run = self.hvdrun("--env-file", path, "-np", 2, "-H", "a:1,b:1", *low, "true")
        self.assert_code(run, 2)
        self.assert_says(run, "a: COMMAND", r"the largest: B 78\.1 KiB, A 58\.6 KiB", "ulimit -s")

    def test_what_only_the_node_can_know_is_told_with_the_largest(self):
        fill = "$(head -c 80000 /dev/zero | tr \"\\0\" x)"
        low = ["--transport", "command", "--rsh",
               f"sh -c 'ulimit -Ss 1024; export N1={fill} N2={fill}; exec \"$@\"' x {{command}}"]
        path = self.script("A=" + "x" * 110_000 + "\n", "one.env")
        run = self.hvdrun("--env-file", path, "-np", 1, "-H", "a:1", *low, "true")
        self.assert_code(run, 126)
        self.assert_says(run, r"hvdrun's largest: A 107\.4 KiB", "--env-deny")
        self.assert_last_line(run, "rank 0", "Argument list too long")


# What a rank on another host gets beside its node's and the user's own variables: scripts rely on it.
FROZEN_NAMES = """
CROSS_RANK CROSS_SIZE GLOO_SOCKET_IFNAME GROUP_RANK GROUP_WORLD_SIZE HOROVOD_CONTROLLER HOROVOD_CPU_OPERATIONS
HOROVOD_CROSS_RANK HOROVOD_CROSS_SIZE HOROVOD_GLOO_IFACE HOROVOD_GLOO_RENDEZVOUS_ADDR HOROVOD_GLOO_RENDEZVOUS_PORT
HOROVOD_HOSTNAME HOROVOD_LOCAL_RANK HOROVOD_LOCAL_SIZE HOROVOD_RANK HOROVOD_SIZE HVDRUN_ADDRESS HVDRUN_JOB_ID
HVDRUN_NODE HVDRUN_RENDEZVOUS LOCAL_RANK LOCAL_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_HOST MASTER_PORT
MPI_LOCALNRANKS MPI_LOCALRANKID NCCL_SOCKET_IFNAME OMP_NUM_THREADS PMI_FD PMI_RANK PMI_SIZE PYTHONUNBUFFERED RANK
ROLE_NAME ROLE_RANK ROLE_WORLD_SIZE TORCHELASTIC_ERROR_FILE TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RESTART_COUNT
TORCH_NCCL_ASYNC_ERROR_HANDLING UCX_NET_DEVICES WORLD_SIZE
""".split()


class Contracts(EnvCase):
    def test_names_that_ranks_are_given_are_frozen(self):
        for extra, more in (([], set()), (["--torchelastic"], {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"})):
            env = self.environments("-np", 3, "-H", "node1:2,node2:1", *extra, env={"OWN": "1"})[0]
            login = {"HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "SHLVL", "_", "PATH", "MAIL", "LANG", "OWN", "HVT",
                     *(name for name in env if name.startswith(("SSH_", "XDG_")))}
            self.assertEqual(sorted(env.keys() - login), sorted({*FROZEN_NAMES} | more))

    def test_a_script_for_deepspeed_finds_its_variables(self):
        script = self.script(DEEPSPEED, "deepspeed.sh")
        run = self.hvdrun("-np", 4, "-H", "node1:2,node2:2", "sh", script)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(),
                         {r: [f"{r}/4 {r % 2}/2 {r // 2}/2"] for r in range(4)})

    def test_torchruns_mark_is_set_only_on_request(self):
        for arguments, mark, store in ([], False, None), (["--torchelastic"], True, "False"):
            envs = self.environments("-np", 2, "-H", TWO, *arguments,
                                     env={"TORCHELASTIC_RUN_ID": "of-the-shell"})
            ids = self.values(envs, "TORCHELASTIC_RUN_ID")
            self.assertEqual(ids, [envs[0]["HVDRUN_JOB_ID"]] * 2 if mark else [None] * 2)
            self.assertEqual(self.values(envs, "TORCHELASTIC_USE_AGENT_STORE"), [store] * 2)
            self.assertEqual(self.values(envs, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), ["1"] * 2)

    def test_old_scripts_are_given_their_local_rank(self):
        for option, words in ("local-rank", ["--local-rank-arg"]), (
                "local_rank", ["--local-rank-arg=local_rank"]):
            script = self.script(OLD_SCRIPT.format(option), "old.py")
            run = self.hvdrun("-np", 4, "-H", "node1:2,node2:2", *words, harness.PYTHON, "-u",
                              script, "petr.py", "--launcher", "pytorch")
            self.assert_code(run, 0)
            self.assertEqual(run.rank_lines(),
                             {r: [f"petr.py {r % 2} pytorch {r % 2}"] for r in range(4)})

    def test_who_took_the_reserved_port_is_named(self):
        go = os.path.join(self.bed.folder, "shared", "go")
        script = self.script(LATE_STORE, "late.py")
        run = self.start("-np", 2, "-H", TWO, harness.PYTHON, script, go)
        self.assertTrue(run.out.find("port", 15), run.report())
        port = run.rank_lines()[0][0].split()[1]
        holder = self.on_host("node1", harness.PYTHON, "-c", LISTEN, port)
        self.assertTrue(holder.out.find("ready", 5), holder.err.text)
        lab.write_text(go, "")
        self.assertEqual(run.wait(20), 1, run.report())
        self.assert_says(run, rf"MASTER_PORT 10\.77\.0\.1:{port}.* held by process \d+ \(uid 0\)",
                         "--master-port")
        self.assert_last_line(run, "rank 0", "node1")
        holder.end()


class Limits(EnvCase):
    def under(self, limits, *arguments):
        """Runs hvdrun under limits of its caller's shell."""
        run = self.on_host(harness.LAUNCHER, "bash", "-c", f'{limits}; exec "$@"', "x", harness.HVDRUN,
                           *map(str, arguments), env=self.environment())
        run.wait(30)
        return run

    def test_ranks_have_the_users_soft_limits_and_the_nodes_hard_ones(self):
        low = ["--transport", "command", "--rsh", "sh -c 'ulimit -Sn 100; ulimit -Hn 512; exec \"$@\"' x {command}"]
        words = ["bash", "-c", "ulimit -Sn; ulimit -Hn; ulimit -Sc"]
        for soft, seen in (200, "200"), (700, "512"):
            run = self.under(f"ulimit -Sn {soft}; ulimit -Sc 100", "-vv", "-np", 2, "-H", "a:1,b:1",
                             *low, *words)
            self.assert_code(run, 0)
            self.assertEqual(run.rank_lines(), {r: [seen, "512", "100"] for r in range(2)})
            for host in "ab":
                self.assert_says(run, rf"{host}: .*limits memlock \w+, nofile {seen} of 512, core ")
        run = self.under("ulimit -Sn 200", "-np", 2, "-H", TWO, "bash", "-c", "ulimit -Sn")
        self.assertEqual(run.rank_lines(), {r: ["200"] for r in range(2)})

    def test_ranks_are_bound_within_the_cpus_of_their_agent(self):
        words = [harness.PYTHON, "-c", "import os;print(*sorted(os.sched_getaffinity(0)))"]
        allowed = sorted(os.sched_getaffinity(0))
        run = self.hvdrun("-np", 2, "-H", "node1:2", "--bind", "core", "--report-bindings", *words)
        self.assert_code(run, 0)
        seen = [set(map(int, run.rank_lines()[r][0].split())) for r in range(2)]
        for rank in range(2):
            self.assertTrue(seen[rank] and seen[rank] <= set(allowed), run.report())
            first = min(seen[rank])
            self.assert_says(run, rf"hvdrun: rank {rank} \(node1\): CPUs {first}\b.*memory of NUMA node \d+")
        if len(allowed) > 1 and seen[0] != set(allowed):
            self.assertNotEqual(seen[0], seen[1])
        last = str(allowed[-1])
        low = ["--transport", "command", "--rsh", f"sh -c 'exec taskset -c {last} \"$@\"' x {{command}}"]
        for mode in "numa", "core", "none":
            run = self.hvdrun("-np", 2, "-H", "a:2", *low, "--bind", mode, "--report-bindings", *words)
            self.assert_code(run, 0)
            self.assertEqual(run.rank_lines(), {r: [last] for r in range(2)})
            self.assert_says(run, rf"rank 1 \(a\): {'not bound, ' if mode == 'none' else ''}CPUs {last}\b")


if __name__ == "__main__":
    harness.main()
