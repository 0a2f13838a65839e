"""Whatever a worker leaves behind is gone when hvdrun has ended, by either layer of containment; a
node that was lost is looked at again; what could not be cleaned up is told."""

import collections
import fcntl
import json
import os
import random
import signal
import shutil
import time
import unittest

import freezer
import harness
import lab
from harness import HVDRUN, LAUNCHER

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(HVDRUN)), "tests", "programs")
AGENT = os.path.join(os.path.dirname(HVDRUN), "hvd-agent")
ESCAPEE = os.path.join(PROGRAMS, "escapee")
OBEDIENT = ["bash", "-c", "echo up; exec sleep 600"]
CGROUPS = "/sys/fs/cgroup"
NOBODY = 65534
UNIFIED = next((path for path in (CGROUPS, f"{CGROUPS}/unified")
                if os.path.exists(f"{path}/cgroup.procs")), None)


def own_cgroup():
    """The folder of the v2 cgroup that this process is in."""
    line = next(l for l in lab.read_text("/proc/self/cgroup").splitlines() if l.startswith("0::"))
    return UNIFIED + line[len("0::"):].rstrip("/")


def enter(folder):
    lab.write_text(f"{folder}/cgroup.procs", str(os.getpid()))


def leave(folder, home):
    """What an interrupted test left goes with it."""
    enter(home)
    lab.write_text(f"{folder}/cgroup.kill", "1")
    lab.wait_until(lambda: "populated 0" in lab.read_text(f"{folder}/cgroup.events"), 5,
                   f"{folder} is in use")
    for inside, _, _ in os.walk(folder, topdown=False):
        os.rmdir(inside)


class Containment(harness.EndToEnd):
    """Cases for both layers; the subclasses say which is in force."""

    NODES = 2
    LAYER = {}
    HELD_BY = ""
    ABANDONED = ""  # what is said of a node whose agent and shim were killed, when it is clean
    cgroup = None  # of the test and all its hosts, where there are cgroups

    @classmethod
    def setUpClass(cls):
        if UNIFIED is not None and os.access(f"{own_cgroup()}/cgroup.procs", os.W_OK):
            home = own_cgroup()
            cls.cgroup = f"{home}/hvdrun-test-{os.getpid()}-{cls.__name__}"
            os.mkdir(cls.cgroup)
            cls.addClassCleanup(leave, cls.cgroup, home)
            enter(cls.cgroup)
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.addCleanup(lambda: self.assertEqual(self.job_cgroups(), []))

    def job_cgroups(self):
        names = os.listdir(self.cgroup) if self.cgroup else []
        return [name for name in names if name.startswith("hvd-")]

    def environment(self, extra=None):
        return super().environment({**self.LAYER, **(extra or {})})

    def nvidia_smi(self, processes, gpus):
        """-x of a stand-in that answers with what these two shell commands print."""
        folder = os.path.join(self.bed.folder, "shared", "gpu")
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        script = os.path.join(folder, "nvidia-smi")
        lab.write_text(script, f"#!/bin/sh\ncase \"$*\" in\n*compute-apps*) {processes};;\n*) {gpus};;\nesac\n")
        os.chmod(script, 0o755)
        return f"PATH={folder}:{harness.PATH}"

    def start_up(self, *arguments, worker=OBEDIENT, count=2, env=None):
        run = self.start("-np", count, *arguments, *worker, env=env)
        self.assertEqual(len(run.out.find("up", 15, count=count)), count, run.report())
        return run

    def others(self):
        """Processes of the hosts that were not there before the test and are none of ssh's."""
        return [str(p) for pid, p in self.state.take().processes.items()
                if pid not in self.before.processes and not p.program.startswith("sshd")]

    def only(self, pids, what):
        self.assertEqual(len(pids), 1, f"not one {what}: {pids}")
        return pids[0]

    def kill(self, *pids, number=signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
        return time.monotonic()


class Cases:
    """What holds by either layer."""

    def test_the_layer_is_told_at_v(self):
        run = self.hvdrun("-v", "-np", 2, "-H", "node1,node2", "true")
        self.assert_code(run, 0)
        for node in ("node1", "node2"):
            self.assert_says(run, f"{node}: processes are held by {self.HELD_BY}")

    def test_a_process_that_wants_to_stay_is_gone_at_the_end(self):
        ways = ([], ["daemon"], ["deaf"], ["holding"], ["stopped"], ["bare", "daemon"],
                ["daemon", "deaf", "holding"], ["daemon", "deaf", "stopped", "bare"])
        for words in ways:
            with self.subTest(" ".join(words)):
                run = self.hvdrun("-np", 1, "-H", "node1", ESCAPEE, *words)
                self.assert_code(run, 0)
                self.assertRegex(run.out.text, r"escaped \d+")
                self.assertEqual([p for p in self.others() if "escapee" in p or "sleep" in p], [])
                self.assertLess(run.seconds, 4)

    def test_a_chain_of_forks_is_gone_at_the_end(self):
        run = self.hvdrun("-np", 1, "-H", "node1", os.path.join(PROGRAMS, "comet"), 20000)
        self.assert_code(run, 0)
        self.assertEqual([p for p in self.others() if "comet" in p], [])
        self.assertLess(run.seconds, 4)

    def test_deaf_daemons_go_with_a_failing_rank(self):
        script = (f"{ESCAPEE} daemon deaf; echo up; trap '' TERM; "
                  "[ $RANK = 1 ] && sleep .5 && exit 3; while :; do sleep 1; done")
        run = self.hvdrun("-np", 2, "-H", "node1,node2", "--grace", 1, "bash", "-c", script)
        self.assert_code(run, 3)
        self.assertEqual([p for p in self.others() if "escapee" in p], [])

    def test_after_agent_and_shim_were_killed_the_node_is_cleaned(self):
        for transport in ([], harness.AGENTS_HERE, ["--transport", "local"]):
            with self.subTest(" ".join(transport[:2])):
                here = bool(transport)
                hosts, host = ("localhost:2", LAUNCHER) if here else ("node1:1,node2:1", "node2")
                run = self.start_up("-H", hosts, "--grace", 1, *transport,
                                    worker=["bash", "-c", f"{ESCAPEE} daemon deaf; echo up; "
                                            "exec sleep 600"])
                killed = self.kill(self.only(self.shims(host), "shim"),
                                   self.only(self.agents(host), "agent"))
                run.wait(20)
                self.assert_code(run, 125)
                self.assert_says(run, f"{'localhost' if here else host}: {self.ABANDONED}")
                self.assert_within(time.monotonic() - killed, 3, "agent and shim killed")
                self.assertEqual(self.others(), [])

    def test_a_stopped_agent_is_cleared_away(self):
        run = self.start_up("-H", "node1,node2", "--grace", 1, "--lease", 2, "--heartbeat-ms", 100)
        stopped = self.kill(self.only(self.agents("node2"), "agent"), number=signal.SIGSTOP)
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_last_line(run, "node2", "no heartbeat")
        self.assert_says(run, "node2: verified clean")
        self.assert_within(time.monotonic() - stopped, 2 + 1 + 5, "agent stopped, lease 2 s")
        self.assert_no_agents("node2", run)

    def test_stopped_agent_and_shim_are_cleared_away(self):
        run = self.start_up("-H", "node1,node2", "--grace", 1, "--lease", 2, "--heartbeat-ms", 100,
                            worker=["bash", "-c", f"{ESCAPEE} daemon deaf; echo up; sleep 600"])
        self.kill(self.only(self.agents("node2"), "agent"),
                  self.only(self.shims("node2"), "shim"), number=signal.SIGSTOP)
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_says(run, f"node2: {self.ABANDONED}")
        self.assert_no_agents("node2", run)
        self.assert_no_workers(run)

    def test_segments_of_dead_workers_go_and_other_files_are_told(self):
        script = "echo x >/dev/shm/torch_$$_1; echo x >/dev/shm/mine_$$; echo x >/tmp/other-$$"
        run = self.hvdrun("-np", 1, "-H", "node1", "bash", "-c", script)
        self.assert_code(run, 0)
        root = self.bed.root_of("node1")
        left = os.listdir(f"{root}/dev/shm")
        self.assertEqual([f for f in left if f.startswith("torch_")], [])
        mine = self.only([f for f in left if f.startswith("mine_")], "file of ours")
        pid = mine.removeprefix("mine_")
        self.assert_says(run, f"node1: /dev/shm/{mine} was left by dead process {pid}",
                         f"node1: /tmp/other-{pid} was left by dead process {pid}")
        os.unlink(f"{root}/dev/shm/{mine}")
        os.unlink(f"{root}/tmp/other-{pid}")

    def test_as_root_a_process_of_another_user_is_gone_too(self):
        run = self.hvdrun("-np", 1, "-H", "node1", "bash", "-c",
                          self.become_user_script("node1"))
        self.assert_code(run, 0)
        self.assertRegex(run.out.text, r"pid \d+")
        self.assertEqual([p for p in self.others() if "become_user" in p], [])

    def become_user_script(self, host):
        """Leaves a process behind that has become another user by a set-uid program."""
        copy = f"{self.bed.root_of(host)}/tmp/become_user"
        shutil.copy(os.path.join(PROGRAMS, "become_user"), copy)
        self.addCleanup(os.unlink, copy)
        os.chmod(copy, 0o4755)
        return "/tmp/become_user 7 & sleep .3"

    def hang(self, last, *arguments):
        """A job that hangs, whose hook starts what leaves its session and clears its environment."""
        return self.start("-np", 2, "-H", "node1,node2", "--grace", 1, "--stall-timeout", 1, *arguments,
                          "--on-stall", f"sh -c 'env -i setsid -f sleep 1000; echo told; {last}'",
                          "sleep", 600)

    def escaped(self, host=None):
        return [p.pid for p in self.state.processes(host=host) if p.words == "sleep 1000"]

    def test_what_a_hook_starts_goes_with_it(self):
        for last in ("true", "sleep 100", "kill -9 {pid}; sleep 100", "kill -9 $PPID; sleep 100"):
            with self.subTest(last):
                run = self.hang(last, "--on-stall-limit", 1)
                run.wait(20)
                self.assert_code(run, 124)
                if "{pid}" not in last:  # that ends the job on the other node, too
                    self.assertEqual(run.err.text.count("  | told\n"), 2, run.report())
                self.assertEqual(self.escaped(), [])

    def test_what_a_hook_starts_goes_with_the_agent(self):
        run = self.hang("sleep 100", "--on-stall-limit", 20)
        lab.wait_until(lambda: self.escaped("node2"), 10, "no hook runs")
        self.kill(self.only(self.agents("node2"), "agent"))
        lab.wait_until(lambda: not self.escaped("node2"), 5, "left by a hook")
        run.wait(20)
        self.assertEqual(self.others(), [])

    def test_reap_by_hand_says_whether_a_node_is_clean(self):
        job = "0123456789abcdef0123456789abcdef"
        for node in (4, 5):
            self.bed.run("node1", ["sh", "-c", f"HVDRUN_JOB_ID={job} HVDRUN_NODE={node} setsid "
                                   f"sleep 60{node} >/dev/null 2>&1 </dev/null &"])
        sleeping = lambda: sorted(p.words for p in self.state.processes(host="node1")
                                  if p.words.startswith("sleep 60"))
        lab.wait_until(lambda: sleeping() == ["sleep 604", "sleep 605"], 5, "no sleep")
        reap = self.on_host("node1", AGENT, "reap", "--job", job, "--node", "4")
        self.assertEqual(reap.wait(10), 0, reap.report())
        told = json.loads(reap.out.text)
        self.assertEqual((told["job"], told["node"], told["clean"], told["killed"]),
                         (job, 4, True, 1))
        self.assertEqual(sleeping(), ["sleep 605"], "another node's process is not touched")
        other = self.only([p.pid for p in self.state.processes(host="node1")
                           if p.words == "sleep 605"], "process")
        self.kill(other)


class ByCgroup(Cases, Containment):
    HELD_BY = rf"cgroup {CGROUPS}\S*/hvd-[0-9a-f]+-n\d"
    ABANDONED = "verified clean"

    def setUp(self):
        if self.cgroup is None:
            self.skipTest("no cgroup v2 on this machine that can be written")
        super().setUp()

    def test_what_nobody_could_find_is_gone_after_agent_and_shim_were_killed(self):
        """No mark, no parent of ours, no group: only the cgroup knows it."""
        run = self.start_up("-H", "node1,node2", "--grace", 1,
                            worker=["bash", "-c", f"{ESCAPEE} daemon deaf bare; echo up; "
                                    "exec sleep 600"])
        self.kill(self.only(self.shims("node2"), "shim"), self.only(self.agents("node2"), "agent"))
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_says(run, "node2: verified clean")
        self.assertEqual(self.others(), [])

    def test_a_hook_is_in_the_cgroup_of_its_job(self):
        run = self.hang("sleep 100", "--on-stall-limit", 2)
        pid = lab.wait_until(lambda: self.escaped("node2"), 10, "no hook runs")[0]
        self.assertRegex(lab.read_text(f"/proc/{pid}/cgroup"), r"0::/.*/hvd-[0-9a-f]+-n1/beside\n")
        run.wait(20)
        self.assert_code(run, 124)

    def test_empty_cgroups_of_dead_jobs_go_with_the_next_one_in_their_place(self):
        dead, held, young = (f"{self.cgroup}/hvd-{letter * 32}-n1" for letter in "def")
        for folder in (dead, held, young):
            os.makedirs(f"{folder}/rank0")
            self.addCleanup(lab.remove_cgroup, folder)
        for folder in (dead, held):
            os.utime(folder, (0, 0))
        lock = os.open(held, os.O_RDONLY)  # as its shim would
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_SH)
        self.assert_code(self.hvdrun("-np", 1, "-H", "node1", "true"), 0)
        self.assertEqual([os.path.exists(folder) for folder in (dead, held, young)],
                         [False, True, True])

    def test_a_set_uid_process_of_an_ordinary_user_is_gone_where_the_cgroup_is_his(self):
        parent = os.path.join(self.cgroup, "of-a-user")
        os.mkdir(parent)
        self.addCleanup(os.rmdir, parent)
        os.chown(parent, NOBODY, NOBODY)
        for name in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(os.path.join(parent, name), NOBODY, NOBODY)
        join = f"echo $$ >{parent}/cgroup.procs; exec setpriv --reuid {NOBODY} --clear-groups \"$@\""
        run = self.on_host(LAUNCHER, "bash", "-c", join, "x", HVDRUN, "-v", "-np", "1",
                           "--transport", "local", "bash", "-c",
                           self.become_user_script(LAUNCHER))
        self.assertEqual(run.wait(20), 0, run.report())
        self.assertRegex(run.out.text, r"pid \d+")
        self.assert_says(run, f"processes are held by cgroup {parent}")
        self.assertNotIn("outlived", run.err.text)
        self.assertEqual([p for p in self.others() if "become_user" in p], [])


class ByTree(Cases, Containment):
    LAYER = {"HVDRUN_CGROUP_ROOT": "none"}
    HELD_BY = r"the process tree and the job's mark \(switched off\)"
    ABANDONED = "unverified: agent and shim were killed"

    def test_a_process_of_another_user_is_reported_to_an_ordinary_user(self):
        script = self.become_user_script(LAUNCHER)
        run = self.on_host(LAUNCHER, "setpriv", "--reuid", str(NOBODY), "--clear-groups", HVDRUN,
                           "-np", "1", "--transport", "local", "bash", "-c", script,
                           env=self.LAYER)
        self.assertEqual(run.wait(30), 0, run.report())
        self.assert_within(run.seconds, 1 + 5 + 1, "until a survivor is told")
        self.assert_says(run, r"localhost: process \d+ \(uid 7, state S.*\) outlived SIGKILL: "
                              r"\S+become_user 7")
        for process in self.state.processes(host=LAUNCHER):
            if "become_user" in process.words:
                self.kill(process.pid)


class Lost(Containment):
    """A node that cannot be reached again."""

    def cut(self, *arguments):
        self.settle = 30
        run = self.start_up("-H", "node1,node2", "--grace", 1, "--lease", 2, "--heartbeat-ms", 100,
                            *arguments)
        self.bed.set_black_hole("node2", True)
        self.addCleanup(self.bed.set_black_hole, "node2", False)
        return run, time.monotonic()

    def test_it_is_unverified(self):
        run, cut = self.cut()
        run.wait(30)
        self.assert_code(run, 125)
        self.assert_says(run, "node2: unverified: no connection")
        self.assert_last_line(run, "node node2 was lost: no heartbeat for [23]")
        self.assert_within(time.monotonic() - cut, 2 + 1 + 5 + 0.5, "cut to the end, lease 2 s")

    def test_the_user_need_not_wait_for_it(self):
        run, cut = self.cut()
        lab.wait_until(lambda: not self.workers("node1"), 10, "node1 was not stopped")
        time.sleep(0.5)
        self.assertIsNone(run.process.poll(), run.report())
        asked = time.monotonic()
        run.signal(signal.SIGINT)
        run.wait(5)
        self.assert_code(run, 125)
        self.assert_says(run, "node2: unverified")
        self.assert_within(time.monotonic() - asked, 1, "Ctrl-C while a lost node is looked at")


class Unstarted(Containment):
    def test_an_agent_stopped_at_any_moment_of_the_start_is_cleared_away(self):
        random.seed(11)
        for _ in range(harness.scaled(4, 200)):
            run = self.start("-np", 2, "-H", "node1,node2", "--start-timeout", 3, "--lease", 2,
                             "--heartbeat-ms", 100, "--grace", 1, "sleep", 600)
            agents = lab.wait_until(lambda: self.agents("node1"), 10, "no agent on node1")
            time.sleep(random.uniform(0, 0.03))
            self.kill(min(agents), number=signal.SIGSTOP)
            run.wait(20)
            self.assertIn(run.code, (124, 125), run.report())
            self.assert_no_agents("node1", run)
            self.assert_no_workers(run)


    def test_set_uid_workers_of_an_ordinary_user_go_with_their_agent(self):
        """Their parent-death signal was cleared when they were executed."""
        copy = f"{self.bed.root_of(LAUNCHER)}/tmp/sleeper"
        shutil.copy(os.path.join(PROGRAMS, "sleeper"), copy)
        self.addCleanup(os.unlink, copy)
        os.chmod(copy, 0o4755)
        random.seed(17)
        for _ in range(harness.scaled(4, 1000)):
            run = self.on_host(LAUNCHER, "setpriv", "--reuid", str(NOBODY), "--clear-groups", HVDRUN,
                               "-np", "4", "--transport", "local", "--grace", "1", "/tmp/sleeper",
                               env={"HVT": self.mark})
            agents = lab.wait_until(lambda: self.agents(LAUNCHER), 10, "no agent")
            lab.wait_until(lambda: any(self.sleepers()) or run.process.poll() is not None, 10, "no worker")
            time.sleep(random.uniform(0, 0.005))
            killed = self.kill(min(agents))
            run.wait(20)
            self.assert_code(run, 125)
            lab.wait_until(lambda: not self.sleepers(), 1 + 5, "set-uid workers live")
            self.assertLess(time.monotonic() - killed, 1 + 5)

    def sleepers(self):
        return [p.pid for p in self.state.processes(host=LAUNCHER) if p.words == "/tmp/sleeper"]


class Adopted(Containment):
    """An agent that is the first process of its machine, and ranks that leave orphans behind all the time."""

    AS_INIT = ["--transport", "command", "--rsh", "unshare -pf --mount-proc --kill-child {command}"]

    def test_orphans_are_reaped_and_their_codes_are_no_ranks(self):
        count = harness.scaled(150, 5000)
        orphans = f"for i in $(seq {count}); do (sh -c 'sleep .1; exit 9' &) ; done; sleep .3; exit $((RANK * 7))"
        run = self.start("-np", 2, "-H", "a:2", *self.AS_INIT, "bash", "-c", orphans)
        zombies, oldest, seen = {}, 0, collections.Counter()
        while run.process.poll() is None:
            now = time.monotonic()
            dead, supervisors = self.dead_and_supervisors()
            zombies = {who: zombies.get(who, now) for parent, who in dead if parent in supervisors}
            oldest = max([oldest, *(now - since for since in zombies.values())])
            seen.update(supervisors)
            time.sleep(0.02)
        run.wait(5)
        # A child of the shim has its name until it is executed.
        self.assertEqual(sum(times > 2 for times in seen.values()), 2, "agent and shim")
        self.assert_code(run, 7)
        self.assert_last_line(run, r"rank 1 \(a, pid \d+\) exited with code 7")
        self.assert_within(oldest, 1, f"oldest zombie of {2 * count} orphans")

    def dead_and_supervisors(self):
        """[(parent, (pid, start time))] of zombies, and the pids of this test's agent and shim."""
        mark = f"HVT={self.mark}".encode()
        dead, supervisors = [], set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            name, _, fields = lab.read_text(f"/proc/{pid}/stat").rpartition(")")
            state, parent, *rest = fields.split() or ("", "")
            if state == "Z":
                dead.append((int(parent), (pid, rest[17])))
            elif name.partition("(")[2].startswith("hvd-") and mark in lab.environment_of(pid):
                supervisors.add(int(pid))
        return dead, supervisors


@unittest.skipUnless(freezer.can_freeze(), "no cgroup v1 freezer on this machine that can be written")
class Unkillable(Containment):
    def test_it_is_named_and_the_end_does_not_wait_for_it(self):
        run = self.start_up("-H", "node1,node2", "--grace", 0.2)
        pid = next(pid for pid, rank in self.workers("node2").items() if rank == 1)
        marks = lab.wait_until(  # there is none for a moment while it becomes sleep
            lambda: [v for v in lab.environment_of(pid) if v.startswith(b"HVDRUN_JOB_ID=")], 5, "no mark")
        job = marks[0].partition(b"=")[2].decode()
        thaw = freezer.freeze(self, pid)
        sent = time.monotonic()
        run.signal(signal.SIGINT)
        run.wait(20)
        self.assert_code(run, 130)
        self.assert_within(time.monotonic() - sent, 10, "Ctrl-C to the end, one cannot be killed, grace 0.2 s")
        self.assert_says(run, r"node2: process \d+ \(uid 0, state D, in \w+\) outlived SIGKILL: sleep\n")
        self.assertEqual(run.err.text.count("outlived"), 1, run.report())
        self.assertEqual(list(self.workers()), [pid])
        thaw()
        reap = self.on_host("node2", AGENT, "reap", "--job", job, "--node", "1")
        self.assertEqual(reap.wait(10), 0, reap.report())


class EarlierJobs(Containment):
    """What a job has left whose hvdrun, agent and shim were all killed."""

    LISTEN = "import socket, time\ns = socket.create_server(('', 0))\ntime.sleep(600)"

    def test_they_are_told_with_what_ends_them_and_left_alone(self):
        worker = (f"[ $RANK = 1 ] && {{ setsid -f sleep 600; setsid -f {harness.PYTHON} -c \"$0\"; sleep .3; }} "
                  "</dev/null >/dev/null 2>&1; echo up; exec sleep 600")
        run = self.start_up("-H", "node1,node2", worker=["bash", "-c", worker, self.LISTEN])
        lost = [self.only(self.shims("node2"), "shim"), self.only(self.agents("node2"), "agent")]
        self.kill(*lost, number=signal.SIGSTOP)
        self.kill(run.pid)
        self.kill(*lost)
        lab.wait_until(lambda: len(self.workers()) == 2, 10, "not two are left")
        left = self.workers("node2")
        path = self.nvidia_smi("sleep .3; for p in /proc/[0-9]*; do echo \"GPU-a, ${p#/proc/}, 1536\"; done",
                               'echo "0, GPU-a, 4"')
        again = self.hvdrun_beside("-np", 2, "-H", "node1,node2", "-x", path, "bash", "-c", "echo started")
        told = again.err.find(r"warning: node2: 2 processes of an earlier job, whose agent and shim have gone \(last sign "
                              r"[\d.]+ m?s ago\), still here: .*sleep 600 \(pid \d+, for [\d.]+ s\).*listens on TCP "
                              r"port \d+\); GPU memory held: 3\.0 GiB; left alone", 0)
        self.assertEqual(len(told), 1, again.report())
        self.assertLess(told[0], again.out.lines[0][0], "told after the start")
        self.assertNotIn("node1", again.err.text)
        self.assertEqual(self.workers("node2"), left)
        remedy = again.err.text.partition("this ends them: ")[2].split("\n")[0].split()
        self.assertEqual(remedy[1:2] + remedy[4:], ["reap", "--node", "1"], again.report())
        self.assertEqual(self.on_host("node2", *remedy).wait(10), 0)
        self.assertEqual(self.workers(), {})
        self.remove_job_folders("node2")

    def hvdrun_beside(self, *arguments):
        run = self.start(*arguments)
        self.assertEqual(run.wait(20), 0, run.report())
        return run

    def remove_job_folders(self, host):
        """Nobody was left to do it."""
        parent = f"{self.bed.root_of(host)}/tmp/hvdrun-0"
        for name in os.listdir(parent):
            shutil.rmtree(os.path.join(parent, name))


class Gpus(Containment):
    def test_memory_that_stays_is_told(self):
        seen = os.path.join(self.bed.folder, "shared", "gpu", "seen")
        path = self.nvidia_smi('echo "GPU-b, 1, 12390"',
                               f"""if [ -e {seen} ]; then echo "0, GPU-a, 10"; echo "3, GPU-b, 12395"
   else : >{seen}; echo "0, GPU-a, 4"; echo "3, GPU-b, 5"; fi""")
        run = self.hvdrun("-np", 1, "-H", "node1", "-x", path, "sleep", 0.5)
        self.assert_code(run, 0)
        self.assert_says(run, r"node1: GPU 3 still holds 12\.1 GiB \(process 1 of uid 0, not of "
                              r"this job\)")
        self.assertNotIn("GPU 0", run.err.text)


if __name__ == "__main__":
    harness.main()
