"""A small cluster on one machine: node1..nodeN and a launching host, each with its own network,
host name, mounts and process table, each node with a real sshd, on request with systemd.

Everything hangs on the first process of each host: when it is killed, the host's processes, network
and mounts go with it. All of these carry HVDRUN_TESTBED=FOLDER in their environment, so that an
interrupted testbed is found again. The machine's own network is never touched.
"""

import dataclasses
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import layout
import systemd_host

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKOUT = os.path.dirname(os.path.dirname(HERE))
MARK = "testbed.json"
PREFIX = "hvdrun-testbed-"
START_LIMIT = 20.0


class TestbedError(Exception):
    pass


def wait_until(is_true, limit, what):
    """Looks every 5 ms; the value once it is true."""
    end = time.monotonic() + limit
    while not (value := is_true()):
        if time.monotonic() > end:
            raise TestbedError(f"{what} within {limit:g} s")
        time.sleep(0.005)
    return value


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def start_time_of(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return None


def first_child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        children = file.read().split()
    return int(children[0]) if children else None


def remove_cgroup(path):
    """With those in it; whether it is gone. The kernel keeps one in which a process lives."""
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            pass
    return not os.path.exists(path)


def processes_of(folder=None):
    """Processes of the testbed in `folder`, of any testbed without it: {pid: folder}."""
    own = {os.getpid(), os.getppid()}
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in own:
            for item in environment_of(entry):
                if item.startswith(b"HVDRUN_TESTBED="):
                    found[int(entry)] = os.fsdecode(item[len(b"HVDRUN_TESTBED="):])
    return {pid: f for pid, f in found.items() if folder in (None, f)}


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Testbed:
    """One testbed in one folder. Made by up(); any later process may open it by its folder."""

    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.options = {}
        self.inits = {}
        self.stems = {}  # of hosts with systemd: what boots it, and lives on while the host is off
        self._children = []  # processes of this testbed that this object started
        state = read_text(os.path.join(self.folder, MARK))
        if state:
            self._load(json.loads(state))

    # ---- life -------------------------------------------------------------------------------

    def up(self, num_nodes, options=None, keep=(), dies_with_caller=False):
        """Brings the hosts up; an older testbed in the folder is taken down first."""
        if os.geteuid() != 0:
            raise TestbedError("a testbed needs root: it makes namespaces, mounts and a network")
        remove_abandoned()
        self.down()
        names = [layout.node_name(k) for k in range(1, num_nodes + 1)] + [layout.LAUNCHER]
        self.options = {name: (options or {}).get(name) or layout.HostOptions() for name in names}
        self._check_systemd()
        try:
            self._write_files(names)
            self._start(names, [self.folder, CHECKOUT, *keep], dies_with_caller)
        except BaseException:
            self.down()
            raise

    def down(self):
        """Ends every process of the testbed, removes its folder; also after an interrupted up()."""
        def kill_all():
            left = processes_of(self.folder)
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not left

        wait_until(kill_all, 10, f"the hosts of {self.folder} did not end")
        for child in self._children:
            child.wait()
        self._children = []
        for path in systemd_host.cgroups(self.folder):
            wait_until(lambda p=path: remove_cgroup(p), 10, f"processes in {path} did not end")
        if os.path.exists(os.path.join(self.folder, MARK)):
            shutil.rmtree(self.folder)
        self.options, self.inits, self.stems = {}, {}, {}

    def _check_systemd(self):
        for name, options in self.options.items():
            missing = systemd_host.what_is_missing(options) if options.systemd else ""
            if missing:
                raise TestbedError(f"{name} cannot be a host with systemd: {missing}")

    def _write_files(self, names):
        if os.path.isdir(self.folder) and os.listdir(self.folder):
            raise TestbedError(f"{self.folder} is not empty and no testbed; name another folder")
        os.makedirs(os.path.join(self.folder, "shared"), exist_ok=True)
        self._save()
        for key in ("key", "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "testbed", "-f",
                            os.path.join(self.folder, key)], check=True)
        self._write("ssh_config", layout.ssh_config(self.folder))
        public = read_text(os.path.join(self.folder, "host_key.pub"))
        self._write("known_hosts", layout.known_hosts(names, public))
        if any(options.systemd for options in self.options.values()):
            os.chmod(self.folder, 0o711)  # their users run programs of the shared folder
        for name in names:
            os.mkdir(os.path.join(self.folder, name))
            options = self.options[name]
            self._write(f"{name}/hosts", layout.hosts_file(name, names, options))
            self._write(f"{name}/network", layout.network_commands(name, options))
            self._write(f"{name}/sshd_config",
                        layout.sshd_config(self.folder, name, options))

    def _start(self, names, keep, dies_with_caller):
        hosts = {}
        for name in names:
            hosts[name] = _StartingHost(self.folder, name, self._script(name, keep),
                                        dies_with_caller)
            self._children.append(hosts[name].process)
        for name, host in hosts.items():
            host.wait_ready()
            self.inits[name] = first_child_of(host.process.pid)
        self._save()
        self._ip(layout.LAUNCHER, layout.cable_commands(
            [(name, self.inits[name], self.options[name].interface) for name in names]))
        for host in hosts.values():
            host.plug_in()
        self.stems = {name: self.inits[name] for name in names if self.options[name].systemd}
        for name in names:
            if name in self.stems:
                self.wait_boot(name)
            else:
                wait_until(lambda n=name: self._is_serving(n), START_LIMIT,
                           f"{name} did not come up: {self._log(name)}")

    def _script(self, name, keep):
        """The words that make a host of a process in its namespaces."""
        options = self.options[name]
        if not options.systemd:
            return [os.path.join(HERE, "host_init.sh"), self.folder, name,
                    *layout.folders_to_keep(keep)]
        return [os.path.join(HERE, "systemd_init.sh"), self.folder, name,
                systemd_host.cgroup_of(self.folder, name),
                "hybrid" if options.hybrid else "unified", *layout.outermost(keep)]

    def _is_serving(self, name):
        if name == layout.LAUNCHER:
            return read_text(os.path.join(self.folder, name, "state"))
        return "Server listening" in read_text(os.path.join(self.folder, name, "sshd.log"))

    def _log(self, name):
        return "".join(read_text(os.path.join(self.folder, name, log))
                       for log in ("init.log", "sshd.log", "boot.log")).strip()

    def _write(self, name, text):
        write_text(os.path.join(self.folder, name), text)

    def _save(self):
        """Written to the end in one step: other processes read it at any time."""
        state = {"owner": os.getpid(), "owner_start": start_time_of(os.getpid()),
                 "options": {n: vars(o) for n, o in self.options.items()}, "inits": self.inits,
                 "stems": self.stems}
        self._write(MARK + ".new", json.dumps(state))
        os.rename(os.path.join(self.folder, MARK + ".new"), os.path.join(self.folder, MARK))

    def _load(self, state):
        self.options = {n: layout.HostOptions(**o) for n, o in state["options"].items()}
        self.inits = state["inits"]
        self.stems = state["stems"]

    # ---- use --------------------------------------------------------------------------------

    @property
    def names(self):
        return list(self.options)

    def command(self, host, argv, cwd=None):
        """The words that run argv on a host, for subprocess; see environment()."""
        if host not in self.inits:
            raise TestbedError(f"no host {host!r} in {self.folder}; there are: "
                               f"{' '.join(self.inits) or 'none'}")
        enter = ["nsenter", "-t", str(self.inits[host]), "-n", "-u", "-m", "-p"]
        if host in self.stems:  # in a group of the host, as all that runs there
            procs = os.path.join(self._commands_group(host), "cgroup.procs")
            enter = ["sh", "-c", f'echo $$ >{procs} && exec "$@"', "_", *enter, "-i", "-C"]
        return [*enter, "--", "env", "-C", cwd or "/", *argv]

    def environment(self, base=None):
        environment = dict(os.environ if base is None else base)
        environment.update(HOME="/root", HVDRUN_TESTBED=self.folder)
        return environment

    def run(self, host, argv, cwd=None, **kwargs):
        """Runs argv on a host to its end; a failure is an error with its stderr."""
        done = subprocess.run(self.command(host, argv, cwd), env=self.environment(), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=30, **kwargs)
        if done.returncode != 0:
            raise TestbedError(f"{host}: {' '.join(argv)}: {done.stderr.strip()}")
        return done.stdout

    def root_of(self, host):
        """The host's file system, seen from the machine."""
        return f"/proc/{self.inits[host]}/root"

    def private_root_of(self, host):
        """What was written below /root on the host, seen from the machine."""
        if host in self.stems:
            return f"/proc/{self.stems[host]}/root{self.folder}/{host}/disk/upper/root"
        return f"{self.root_of(host)}/run/over/up"

    def set_sshd(self, host, lines):
        """Gives sshd other extra lines. Sessions that exist live on."""
        options = dataclasses.replace(self.options[host], sshd_lines=lines)
        self._write(f"{host}/sshd_config", layout.sshd_config(self.folder, host, options))
        if host in self.stems:
            self.run(host, ["systemctl", "restart", "ssh"])
            return
        log = os.path.join(self.folder, host, "sshd.log")
        before = read_text(log).count("Server listening")
        self.run(host, ["sh", "-c", f"kill -HUP $(cat {self.folder}/{host}/sshd.pid)"])
        wait_until(lambda: read_text(log).count("Server listening") > before, START_LIMIT,
                   f"sshd of {host} did not take {lines}: {read_text(log)[-500:]}")

    # ---- hosts with systemd -----------------------------------------------------------------

    def _commands_group(self, host):
        return os.path.join(systemd_host.cgroup_of(self.folder, host), "payload", "testbed.scope")

    def wait_boot(self, host):
        """Until the host, which begins to boot or to reboot, is up. Its degraded state is told."""
        old = self.inits[host]

        def process_1():
            pid = systemd_host.find_process_1(self.stems[host])
            return pid if pid != old else None

        self.inits[host] = wait_until(process_1, systemd_host.BOOT_LIMIT,
                                      f"{host} did not boot: {self._log(host)[-2000:]}")
        os.makedirs(self._commands_group(host), exist_ok=True)
        state = wait_until(lambda: systemd_host.state_of(lambda words: self.command(host, words)),
                           systemd_host.BOOT_LIMIT, f"no systemd on {host}: {self._log(host)[-2000:]}")
        if state not in ("running", "degraded"):
            raise TestbedError(f"{host} is {state}: {self._log(host)[-2000:]}")
        self._save()

    def begin_reboot(self, host):
        """systemd stops all its services; wait_boot() waits for the host's return."""
        self._end_session_with(host, "reboot")

    def reboot(self, host):
        self.begin_reboot(host)
        self.wait_boot(host)

    def shut_down(self, host):
        """In order; the host is off until power_on()."""
        self._end_session_with(host, "poweroff")
        self._wait_off(host)

    def cut_power(self, host):
        """Every process of the host is gone at once; it is off until power_on()."""
        os.kill(self.inits[host], signal.SIGKILL)
        self._wait_off(host)

    def power_on(self, host):
        if not os.path.exists(os.path.join(self.folder, host, "off")):
            raise TestbedError(f"{host} is not off")
        self._write(f"{host}/power", "on\n")
        self.wait_boot(host)

    def _end_session_with(self, host, verb):
        """The answer may be cut off by what was asked for."""
        subprocess.run(self.command(host, ["systemctl", verb]), env=self.environment(),
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)

    def _wait_off(self, host):
        wait_until(lambda: os.path.exists(os.path.join(self.folder, host, "off")),
                   systemd_host.BOOT_LIMIT, f"{host} did not go off: {self._log(host)[-2000:]}")

    def add_user(self, host, name, uid):
        """With a home folder and bash."""
        self.run(host, ["useradd", "-m", "-U", "-u", str(uid), "-s", "/bin/bash", name])

    # ---- trouble ----------------------------------------------------------------------------

    def set_link(self, host, is_up):
        self._ip(layout.LAUNCHER, f"link set {self._port(host)} {'up' if is_up else 'down'}\n")

    def set_black_hole(self, host, is_on, peers=None):
        """Frames between the host and its peers (default: all) go to nobody; no end is told."""
        def entry(at, other):
            word = f"replace {layout.address_of(other)} lladdr {layout.WRONG_MAC} nud permanent" \
                if is_on else f"del {layout.address_of(other)}"
            self._ip(at, f"neigh {word} dev {self.options[at].interface}\n", force=not is_on)

        for peer in peers or [n for n in self.names if n != host]:
            entry(host, peer)
            entry(peer, host)

    def set_delay(self, host, milliseconds, loss_percent=0.0):
        """Each frame is late by so much in each direction, some get lost. 0: the plain cable."""
        parameters = os.path.join(self.folder, host, "delay")
        pid_file = os.path.join(self.folder, host, "relay.pid")
        pid = read_text(pid_file)
        is_plain = milliseconds == 0 and loss_percent == 0
        if is_plain and not pid:
            return
        last = float(read_text(parameters).split()[0]) / 1000 if pid else 0
        write_text(parameters, f"{milliseconds} {loss_percent}")
        if pid:
            self.run(layout.LAUNCHER, ["kill", "-HUP", pid])
        else:
            self._slow_cable(host, parameters, pid_file)
        if is_plain:
            time.sleep(last + 0.05)  # what is on its way arrives: the end of a connection, say
            self._plain_cable(host, pid, pid_file)

    def _port(self, host):
        slow = os.path.exists(os.path.join(self.folder, host, "relay.pid"))
        return f"t-{host}" if slow else layout.port_of(host)

    def _slow_cable(self, host, parameters, pid_file):
        """The TAP takes the cable's place with its name, address and hardware address."""
        launcher, node = self.inits[layout.LAUNCHER], self.inits[host]
        log_path = os.path.join(self.folder, host, "relay.log")
        with open(log_path, "wb") as log:
            relay = subprocess.Popen(
                ["nsenter", "-t", str(launcher), "-p", "--", sys.executable,
                 os.path.join(HERE, "relay.py"), f"/proc/{launcher}/ns/net", f"t-{host}",
                 f"/proc/{node}/ns/net", "tap0", parameters, pid_file],
                env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=log, text=True, start_new_session=True)
        self._children.append(relay)
        with relay.stdout as told:
            if told.readline() != "ready\n":
                raise TestbedError(f"no relay for {host}: {read_text(log_path)}")
        dev = self.options[host].interface
        show = self.run(host, ["ip", "-o", "link", "show", dev])
        mac = show.split("link/ether ")[1].split()[0]
        self._ip(host, f"link set {dev} down\naddr flush dev {dev}\nlink set {dev} name cable0\n"
                       f"link set tap0 address {mac}\nlink set tap0 name {dev}\n"
                       f"addr add {layout.address_of(host)}/24 dev {dev}\nlink set {dev} up\n")
        self._ip(layout.LAUNCHER, f"link set {layout.port_of(host)} nomaster\n"
                                  f"link set t-{host} master br0 up\n")

    def _plain_cable(self, host, pid, pid_file):
        self.run(layout.LAUNCHER, ["kill", pid])
        wait_until(lambda: not os.path.exists(f"{self.root_of(layout.LAUNCHER)}/proc/{pid}/fd/0"),
                   5, f"the relay of {host} did not end")
        os.unlink(pid_file)
        dev = self.options[host].interface
        self._ip(host, f"link set cable0 name {dev}\n"
                       f"addr add {layout.address_of(host)}/24 dev {dev}\nlink set {dev} up\n")
        self._ip(layout.LAUNCHER, f"link set {layout.port_of(host)} master br0\n")

    def _ip(self, host, commands, force=False):
        """Runs commands of ip(8) in the host's network."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.inits[host]), "-n", "--", "ip",
             *(["-force"] if force else []), "-batch", "-"],
            input=commands, text=True, capture_output=True, timeout=30)
        if done.returncode != 0 and not force:
            raise TestbedError(f"{host}: ip: {done.stderr.strip()} in: {commands.strip()}")


class _StartingHost:
    """A host between its first process and the plugging in of its cable."""

    def __init__(self, folder, name, script, dies_with_caller):
        self.name = name
        self.log = os.path.join(folder, name, "init.log")
        self.ready, ready_writer = os.pipe()
        words = ["unshare", "-n", "-u", "-m", "-p", "-f", "--mount-proc", "--kill-child",
                 "bash", *script]
        if dies_with_caller:
            words = ["setpriv", "--pdeathsig", "KILL", *words]
        # The pipe is descriptor 3 there, as the script expects.
        words = ["bash", "-c", f'exec 3>&{ready_writer} {ready_writer}>&-; exec "$@"', "_", *words]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                pass_fds=[ready_writer], env={"PATH": os.environ.get("PATH", os.defpath),
                                              "HOME": "/root", "HVDRUN_TESTBED": folder})
        os.close(ready_writer)

    def wait_ready(self):
        with os.fdopen(self.ready, "rb") as pipe:
            if pipe.readline() != b"ready\n":
                raise TestbedError(f"{self.name} did not start: {read_text(self.log).strip()}")

    def plug_in(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.close()


def new_folder():
    return tempfile.mkdtemp(prefix=PREFIX)


def _folders():
    return glob.glob(os.path.join(tempfile.gettempdir(), PREFIX + "*"))


def remove_abandoned():
    """Removes folders of testbeds that have neither processes nor a living owner."""
    alive = set(processes_of().values())
    for folder in _folders():
        state = json.loads(read_text(os.path.join(folder, MARK)) or "{}")
        owned = state and start_time_of(state["owner"]) == state["owner_start"]
        if state and not owned and os.path.realpath(folder) not in alive:
            groups = systemd_host.cgroups(os.path.realpath(folder))
            if all([remove_cgroup(path) for path in groups]):  # else somebody there is about to end
                shutil.rmtree(folder, ignore_errors=True)


def what_is_left():
    """One line for each process, group and folder of any testbed."""
    lines = []
    for pid, folder in sorted(processes_of().items()):
        words = read_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
        lines.append(f"process {pid} of {folder}: {words}")
    lines += [f"group {path} of {systemd_host.folder_of(path)}" for path in systemd_host.cgroups()]
    return lines + [f"folder {folder}" for folder in sorted(_folders())]
