"""The agent as a service of systemd, from the Debian package: whose jobs they are, and what becomes of
them when the service or its host is stopped, restarted, killed or upgraded."""

import os
import re
import signal
import time
import unittest

import harness
import on_systemd
import systemd_host
from harness import IS_LONG, LAUNCHER, lab, scaled
from on_systemd import OnSystemd

# Each SIGTERM leaves a line in its rank's file; the rank takes a second to end.
SAVE = """import os, signal, time
end = None
def save(*_):
    global end
    with open(os.path.expanduser("~/saved.") + os.environ["RANK"], "a") as file:
        file.write("TERM\\n")
    end = end or time.monotonic() + 1
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
while end is None or time.monotonic() < end:
    time.sleep(0.02)
"""
# Counts until the file is there.
COUNT = """import itertools, os, sys, time
for number in itertools.count():
    print(number, flush=True)
    time.sleep(0.01)
    if os.path.exists(sys.argv[1]):
        break
print("end")
"""
HYBRID = harness.HostOptions(systemd=True, hybrid=True)
STOPPED = "the agent was stopped by the service manager"


class Programs:
    """Jobs of programs in Python, on all nodes. This and what follows is mixed into OnSystemd below."""

    def setUp(self):
        super().setUp()
        self.num_ranks = 2 * len(self.nodes)

    def start_savers(self, *words):
        self.on_all("rm -f /home/alice/saved.*")
        run = self.start_job(self.num_ranks, harness.PYTHON, self.script(SAVE, "save.py"), words=words)
        self.wait_told(run, "up", self.num_ranks)
        return run

    def assert_saved_once(self, run):
        for rank in range(self.num_ranks):
            home = f"{self.bed.root_of(self.nodes[rank // 2])}/home/alice"
            self.assertEqual(lab.read_text(f"{home}/saved.{rank}"), "TERM\n", f"rank {rank}: " + run.report())

    def assert_ended_by_the_stop(self, run, host):
        run.wait(30)
        self.assert_code(run, 125)
        self.assert_says(run, f"{host} .*{STOPPED}")
        self.assert_no_workers(run)

    def start_counters(self):
        self.enough = os.path.join(self.shared, "enough")
        run = self.start_job(self.num_ranks, harness.PYTHON, self.script(COUNT, "count.py"), self.enough)
        self.wait_told(run, ":100$", self.num_ranks)
        return run

    def assert_counted_to_the_end(self, run):
        """Some time after all that was done to it."""
        told = len(run.out.find(r">:\d+$", 0))
        self.wait_told(run, r">:\d+$", told + 100 * self.num_ranks)
        self.addCleanup(os.unlink, self.script("", "enough"))
        run.wait(30)
        self.assert_code(run, 0)
        lines = run.rank_lines()
        self.assertEqual(sorted(lines), list(range(self.num_ranks)))
        for rank, told in lines.items():
            self.assertEqual(told, [*map(str, range(len(told) - 1)), "end"], f"lines of rank {rank}")

    def assert_known(self, host):
        """The agent that serves now knows the job that the one before it had let in."""
        jobs = self.ask(host, "status")["jobs"]
        self.assertEqual([(job["client"], job["user"], job["state"]) for job in jobs], [("alice", "alice", "running")])


class Stopped(Programs):
    def test_stop_of_the_service_stops_its_jobs_first_and_once(self):
        run = self.start_savers()
        self.systemctl("node2", "stop", on_systemd.UNIT)
        self.addCleanup(self.systemctl, "node2", "start", on_systemd.UNIT)
        self.assert_ended_by_the_stop(run, "node2")
        self.assert_saved_once(run)
        self.assertEqual(self.property("node2", "Result"), "success", self.journal("node2"))
        self.wait_no_job_unit("node2")

    def test_shutdown_of_a_host_stops_its_jobs_in_order(self):
        run = self.start_savers()
        self.bed.begin_reboot("node2")
        self.assert_ended_by_the_stop(run, "node2")
        self.bed.wait_boot("node2")
        self.assert_saved_once(run)
        self.wait_property("node2", "ActiveState", "active", 20)  # it is enabled
        self.look_anew()
        self.run_job(self.num_ranks, "true")

    def test_power_cut_of_a_host_is_its_loss(self):
        run = self.start_savers("--lease", 5)
        self.bed.cut_power("node2")
        run.wait(30)
        self.assert_code(run, 125)
        self.assert_says(run, "node2 was lost")
        self.bed.power_on("node2")
        self.wait_property("node2", "ActiveState", "active", 20)
        self.look_anew()
        self.run_job(self.num_ranks, "true")


class RunsOn(Programs):
    """No line is lost or told twice, and the new agent knows the job."""

    def test_over_a_restart(self):
        run = self.start_counters()
        old = self.main_pid("node2")
        self.systemctl("node2", "restart", on_systemd.UNIT)
        self.assertNotEqual(self.main_pid("node2"), old)
        self.assert_known("node2")
        self.assert_counted_to_the_end(run)

    def runs_on_over_a_signal(self, name):
        """To the agent, which systemd starts again."""
        run = self.start_counters()
        old = self.main_pid("node2")
        self.bed.run("node2", ["kill", f"-{name}", str(old)])
        self.restart_by_itself("node2", old)
        self.assert_known("node2")
        self.assert_counted_to_the_end(run)

    def test_over_a_kill_of_the_agent(self):
        self.runs_on_over_a_signal("KILL")

    def test_over_an_agent_that_hangs(self):
        """By the watchdog, within the lease."""
        self.runs_on_over_a_signal("STOP")

    def test_over_a_reload_and_an_upgrade_with_a_wrong_configuration(self):
        """Both say so and change nothing."""
        run = self.start_counters()
        old = self.main_pid("node2")
        self.sh("node2", "echo bussy_gpus: wait >>/etc/hvdrun/agent.yaml")
        self.addCleanup(self.sh, "node2", "sed -i /bussy/d /etc/hvdrun/agent.yaml")
        self.systemctl("node2", "reload", on_systemd.UNIT, code=1)
        said = self.sh("node2", f"dpkg -i --force-confold {self.deb}")
        self.assertRegex(said, "agent.yaml:[0-9]+: there is no key bussy_gpus")
        self.assertIn("the agent of the old version runs on", said)
        self.assertEqual(self.main_pid("node2"), old)
        self.assert_counted_to_the_end(run)

    def test_over_an_upgrade(self):
        made = on_systemd.with_other_version(self.deb, self.shared)
        self.addCleanup(os.unlink, made)
        run = self.start_counters()
        old = self.main_pid("node2")
        self.bed.run("node2", ["dpkg", "-i", made])
        self.addCleanup(self.bed.run, "node2", ["dpkg", "-i", "--force-downgrade", self.deb])
        self.assertIn("+other", self.bed.run("node2", ["dpkg-query", "-W", "hvdrun"]))
        self.restart_by_itself("node2", old)
        self.assert_known("node2")
        self.assert_counted_to_the_end(run)

    def test_over_a_restart_of_all_agents_at_once(self):
        run = self.start_counters()
        self.on_all(f"systemctl restart {on_systemd.UNIT}")
        self.assert_counted_to_the_end(run)


class Jobs(Programs):
    def test_ranks_are_the_clients_in_a_unit_of_their_own(self):
        words = "id -un; id -Gn; echo $HOME; pwd; ulimit -Sl; ulimit -Hl; ulimit -Sn; ulimit -Hn; cat /proc/self/cgroup"
        run = self.run_job(scaled(8, 32), "bash", "-c", words)
        for rank, lines in run.rank_lines().items():
            self.assertEqual(lines[:4], ["alice", "alice gpu", "/home/alice", "/"], f"rank {rank}")
            self.assertEqual(lines[4], lines[5], "locked memory")
            self.assertEqual(lines[6], lines[7], "files")
            self.assertRegex("\n".join(lines[8:]), r"/hvdrun\.slice/hvdrun-job-[0-9a-f]{32}-\d+\.service(/|$)")
            if self.can_raise_limits("node1"):
                self.assertEqual(lines[4], "unlimited")
        self.assertEqual(len(run.rank_lines()), scaled(8, 32))

    def test_units_ask_for_all_that_jobs_need(self):
        run = self.start_savers()
        (unit,) = self.job_units("node1")
        shown = dict(line.split("=", 1) for line in self.bed.run(
            "node1", ["systemctl", "show", unit, "-p", "User,Slice,Delegate,KillMode,TasksMax,LimitMEMLOCK,LimitCORE"]
        ).splitlines())
        self.assertEqual(shown, {"User": "alice", "Slice": "hvdrun.slice", "Delegate": "yes", "KillMode": "mixed",
                                 "TasksMax": "infinity", "LimitMEMLOCK": "infinity", "LimitCORE": "infinity"})
        for name in (on_systemd.UNIT, "hvdrun.slice"):
            self.assertEqual(self.property("node1", "TasksMax", name), "infinity")
        run.signal(signal.SIGINT)
        run.wait(20)
        self.assert_code(run, 130)

    def test_what_the_agent_keeps_is_closed_to_all_the_jobs_own_user_too(self):
        """Or a job could hide from its agent, take another's place, or fill /run."""
        run = self.start_savers()
        shown = self.sh("node1", "cd /run/hvdrun && stat -c '%a %U' . records jobs")
        self.assertEqual(shown.splitlines(), ["755 root", "700 root", "700 root"])
        for user in "alice", "bob":
            self.assertEqual(self.sh("node1", f"su {user} -c 'find /run/hvdrun -user {user}' 2>/dev/null").split(), [])
            for what in "ls {}", "rm -r {}", "mv {} /tmp/x", "touch {}/x":
                for path in "records", "jobs":
                    said = self.sh("node1", f"cd /run/hvdrun && su {user} -c '{what.format(path)}' 2>&1")
                    self.assertIn("Permission denied", said)
        run.signal(signal.SIGINT)
        run.wait(20)

    def test_the_journal_tells_a_job_by_its_fields(self):
        run = self.start_savers()
        job_id = self.ask("node1", "status")["jobs"][0]["job"]
        run.signal(signal.SIGINT)
        run.wait(20)
        unit = f"hvdrun-job-{job_id}-0"

        def lines(*words):
            return self.sh("node1", f"journalctl --no-pager -o cat {' '.join(words)}")

        def its_end():
            return lines("-u", unit, "HVDRUN_EVENT=job-ended", f"HVDRUN_JOB_ID={job_id}", "HVDRUN_NODE=0")

        lab.wait_until(its_end, 5, f"no line of {unit}")
        self.assertIn(f"job {job_id} node 0 of alice", lines("-u", on_systemd.UNIT, "HVDRUN_EVENT=job-started"))
        lab.wait_until(lambda: "has gone" in lines(f"HVDRUN_JOB_ID={job_id}"), 5, "nobody saw its end")
        self.assertEqual(lines("-u", on_systemd.UNIT, "HVDRUN_CLIENT=alice", f"HVDRUN_JOB_ID={job_id}",
                               "HVDRUN_EVENT=refused").strip(), "")

    def test_names_in_tmp_that_somebody_else_has_taken(self):
        taken = "/tmp/hvdrun-1201 /var/tmp/hvdrun-1201"
        self.addCleanup(self.sh, "node1", f"rm -rf {taken} /tmp/hvdrun-1201-*")
        self.sh("node1", f"rm -rf {taken}; su bob -c 'mkdir {taken}'")
        for _ in range(3):
            self.run_job(1, "true")
        found = self.sh("node1", "ls -d /tmp/hvdrun-1201*").split()
        self.assertEqual(len(found), 2, found)  # bob's and one of alice's

    def test_a_job_that_stops_its_own_agent_is_ended_all_the_same(self):
        run = self.start_job(1, "sh", "-c", "kill -STOP $(pgrep -f 'hvd-agent job'); sleep 600", words=["--lease", 2])
        run.wait(60)
        self.assert_code(run, 125)
        self.assert_says(run, "node1: verified clean")
        self.wait_no_job_unit("node1")

    def test_kill_of_a_jobs_own_agent_loses_the_node_and_leaves_nothing(self):
        run = self.start_savers()
        (unit,) = self.job_units("node2")
        self.bed.run("node2", ["kill", "-9", str(self.main_pid("node2", unit))])
        killed = time.monotonic()
        run.wait(30)
        self.assert_code(run, 125)
        self.assert_says(run, "node2 was lost")
        self.assert_no_workers(run)
        self.assert_within(time.monotonic() - killed, 20, "end of a job whose agent was killed")
        self.run_job(self.num_ranks, "true")

    @unittest.skipUnless(IS_LONG, "one of the long tests")
    def test_survives_the_log_out_of_its_user(self):
        """KillUserProcesses ends what is in sessions of the user; jobs are in none. RemoveIPC takes what
        the user has in /dev/shm unless he lingers."""
        folder = "/etc/systemd/logind.conf.d"
        self.bed.run("node1", ["mkdir", "-p", folder])
        lab.write_text(f"{self.bed.root_of('node1')}{folder}/strict.conf",
                       "[Login]\nKillUserProcesses=yes\nRemoveIPC=yes\nUserStopDelaySec=0\n")
        self.addCleanup(self.sh, "node1", f"rm -r {folder} && systemctl restart systemd-logind")
        self.systemctl("node1", "restart", "systemd-logind")
        run = self.start_counters()
        self.bed.run(LAUNCHER, ["ssh", "alice@node1", "true"])
        # loginctl itself fails when she goes while it looks.
        lab.wait_until(lambda: "alice" not in self.sh("node1", "loginctl list-users"), 20, "alice stays")
        self.bed.run("node1", ["loginctl", "enable-linger", "alice"])
        self.addCleanup(self.sh, "node1", "loginctl disable-linger alice")
        self.bed.run(LAUNCHER, ["ssh", "alice@node1", "touch /dev/shm/kept"])
        self.addCleanup(self.sh, "node1", "rm /dev/shm/kept")
        lab.wait_until(lambda: "session-" not in self.bed.run("node1", ["loginctl", "user-status", "alice"]), 20,
                       "her session stays")
        self.bed.run("node1", ["ls", "/dev/shm/kept"])
        self.assert_counted_to_the_end(run)


class Starts(Programs, OnSystemd):
    NODES = 1
    OPTIONS = harness.with_systemd(1)

    def test_wrong_configuration_stays_down_and_says_why(self):
        self.systemctl("node1", "stop", on_systemd.UNIT)
        path = f"{self.bed.root_of('node1')}/etc/hvdrun/agent.yaml"
        lab.write_text(path, "listn: x\n")
        self.systemctl("node1", "start", on_systemd.UNIT, code=1)
        time.sleep(3)  # three times RestartSec
        self.assertEqual(self.property("node1", "ActiveState"), "failed", self.journal("node1"))
        self.assertEqual(self.property("node1", "NRestarts"), "0")
        self.assertEqual(self.property("node1", "ExecMainStatus"), "2")
        self.assertRegex(self.journal("node1"), r"agent\.yaml:1: there is no key listn")
        lab.write_text(path, on_systemd.CONFIG)
        self.systemctl("node1", "start", on_systemd.UNIT)
        self.run_job(1, "true")

    def test_jobs_of_an_agent_that_one_user_runs_end_in_order_at_a_restart(self):
        folder = "/etc/systemd/system/hvd-agent.service.d"
        self.sh("node1", f"mkdir -p {folder}; sed s/mluser/alice/ /usr/share/doc/hvdrun/examples/single-user.conf "
                         f">{folder}/single-user.conf; chown -R alice /etc/hvdrun/tls; systemctl daemon-reload")
        self.addCleanup(self.sh, "node1", f"rm -r {folder}; chown -R root /etc/hvdrun/tls; systemctl daemon-reload; "
                                          f"rm -rf /run/hvdrun/*; systemctl restart {on_systemd.UNIT}")
        self.sh("node1", f"systemctl stop {on_systemd.UNIT}; rm -rf /run/hvdrun/*")
        self.systemctl("node1", "start", on_systemd.UNIT)
        run = self.start_savers()
        self.assertEqual(self.job_units("node1"), [])
        self.systemctl("node1", "restart", on_systemd.UNIT)
        run.wait(30)
        self.assert_code(run, 125)
        self.assert_says(run, "node1 .*the agent was restarted by the service manager")
        self.assert_saved_once(run)

    def test_port_that_is_taken_is_tried_until_it_is_free(self):
        self.systemctl("node1", "stop", on_systemd.UNIT)
        holder = self.on_host("node1", harness.PYTHON, "-c", "import socket, time\n"
                              f"s = socket.create_server(('::', {on_systemd.PORT}), family=socket.AF_INET6)\n"
                              "print('held', flush=True)\ntime.sleep(600)")
        self.assertTrue(holder.out.find("held", 10), holder.report())
        self.systemctl("node1", "start", "--no-block", on_systemd.UNIT)
        # Ten starts are above systemd's own limit of five in ten seconds.
        self.wait_property("node1", "NRestarts", lambda count: int(count) >= scaled(6, 12), 60)
        self.assertIn(self.property("node1", "ActiveState"), ("activating", "inactive"), self.journal("node1"))
        self.assertIn(f"port {on_systemd.PORT}: Address already in use", self.journal("node1"))
        holder.end()
        self.wait_property("node1", "ActiveState", "active", 20)
        self.run_job(1, "true")

    def test_a_socket_of_no_known_job_is_told_and_left_alone(self):
        path = f"/run/hvdrun/jobs/{'0' * 32}-0"
        stranger = self.on_host("node1", harness.PYTHON, "-c", "import socket, time\n"
                                f"s = socket.socket(socket.AF_UNIX)\ns.bind('{path}')\ns.listen()\n"
                                "print('up', flush=True)\ns.accept()\nprint('called', flush=True)\ntime.sleep(600)")
        self.addCleanup(self.sh, "node1", f"rm {path}")
        self.assertTrue(stranger.out.find("up", 10), stranger.report())
        self.systemctl("node1", "restart", on_systemd.UNIT)
        self.assertIn(f"{path} belongs to no job of this agent", self.journal("node1"))
        self.run_job(1, "true")
        self.assertEqual(stranger.out.find("called", 0), [])

    def test_units_have_no_fault_that_systemd_sees(self):
        units = self.bed.run("node1", ["sh", "-c", "dpkg -L hvdrun | grep ^/lib/systemd/system/"]).split()
        self.assertIn("/lib/systemd/system/hvd-agent.service", units)
        said = self.sh("node1", "systemd-analyze verify --man=no --recursive-errors=no " + " ".join(units) +
                                " && echo clean")
        self.assertEqual(said, "clean\n")
        for unit in units:
            if unit.endswith(".service"):
                name = os.path.basename(unit)
                said = self.sh("node1", f"systemd-analyze security --no-pager --threshold=40 {name} || echo above")
                score = re.search(r"exposure level for .*: ([\d.]+)", said)
                self.assertIsNotNone(score, said)
                print(f"    {name}: exposure {score[1]}", flush=True)
                self.assertNotIn("\nabove", said)

    @unittest.skipUnless(IS_LONG, "one of the long tests")
    def test_removal_of_the_package_stops_jobs_and_leaves_nothing(self):
        run = self.start_job(2, "sleep", 600)
        self.wait_workers(2, run)
        self.bed.run("node1", ["dpkg", "-r", "hvdrun"])
        self.addCleanup(self.on_all, f"dpkg -i {self.deb} && systemctl enable --now {on_systemd.UNIT}")
        run.wait(20)
        self.assert_code(run, 125)
        self.assert_says(run, STOPPED)
        self.assertEqual(self.sh("node1", "systemctl list-unit-files --no-legend 'hvd*'; ls /usr/bin/hvd*").count(
            "hvd-agent.service"), 0)


class OnTwoHosts(Stopped, RunsOn, Jobs, OnSystemd):
    pass


@unittest.skipUnless(IS_LONG, "one of the long tests")
@unittest.skipIf(systemd_host.what_is_missing(HYBRID), f"hosts whose cgroups are v1 and v2 cannot be had: "
                                                       f"{systemd_host.what_is_missing(HYBRID)}")
class OnFourHybridHosts(Stopped, RunsOn, Jobs, OnSystemd):
    NODES = 4
    OPTIONS = harness.with_systemd(4, hybrid=True)


if __name__ == "__main__":
    harness.main()
