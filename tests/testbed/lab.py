"""A small cluster on one machine: node1..nodeN and a launching host, each with its own network,
host name, mounts and process table, each node with a real sshd.

Everything hangs on the first process of each host: when it is killed, the host's processes, network
and mounts go with it. All of these carry HVDRUN_TESTBED=FOLDER in their environment, so that an
interrupted testbed is found again. The machine's own network is never touched.
"""

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
        try:
            self._write_files(names)
            self._start(names, layout.folders_to_keep([self.folder, CHECKOUT, *keep]),
                        dies_with_caller)
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
        if os.path.exists(os.path.join(self.folder, MARK)):
            shutil.rmtree(self.folder)
        self.options, self.inits = {}, {}

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
        for name in names:
            os.mkdir(os.path.join(self.folder, name))
            options = self.options[name]
            self._write(f"{name}/hosts", layout.hosts_file(name, names, options))
            self._write(f"{name}/network", layout.network_commands(name, options))
            self._write(f"{name}/sshd_config",
                        layout.sshd_config(self.folder, name, options.sshd_lines))

    def _start(self, names, keep, dies_with_caller):
        hosts = {}
        for name in names:
            hosts[name] = _StartingHost(self.folder, name, keep, dies_with_caller)
            self._children.append(hosts[name].process)
        for name, host in hosts.items():
            host.wait_ready()
            self.inits[name] = first_child_of(host.process.pid)
        self._save()
        self._ip(layout.LAUNCHER, layout.cable_commands(
            [(name, self.inits[name], self.options[name].interface) for name in names]))
        for host in hosts.values():
            host.plug_in()
        for name in names:
            wait_until(lambda n=name: self._is_serving(n), START_LIMIT,
                       f"{name} did not come up: {self._log(name)}")

    def _is_serving(self, name):
        if name == layout.LAUNCHER:
            return read_text(os.path.join(self.folder, name, "state"))
        return "Server listening" in read_text(os.path.join(self.folder, name, "sshd.log"))

    def _log(self, name):
        return "".join(read_text(os.path.join(self.folder, name, log))
                       for log in ("init.log", "sshd.log")).strip()

    def _write(self, name, text):
        write_text(os.path.join(self.folder, name), text)

    def _save(self):
        """Written to the end in one step: other processes read it at any time."""
        state = {"owner": os.getpid(), "owner_start": start_time_of(os.getpid()),
                 "options": {n: vars(o) for n, o in self.options.items()}, "inits": self.inits}
        self._write(MARK + ".new", json.dumps(state))
        os.rename(os.path.join(self.folder, MARK + ".new"), os.path.join(self.folder, MARK))

    def _load(self, state):
        self.options = {n: layout.HostOptions(**o) for n, o in state["options"].items()}
        self.inits = state["inits"]

    # ---- use --------------------------------------------------------------------------------

    @property
    def names(self):
        return list(self.options)

    def command(self, host, argv, cwd=None):
        """The words that run argv on a host, for subprocess; see environment()."""
        if host not in self.inits:
            raise TestbedError(f"no host {host!r} in {self.folder}; there are: "
                               f"{' '.join(self.inits) or 'none'}")
        return ["nsenter", "-t", str(self.inits[host]), "-n", "-u", "-m", "-p", "--",
                "env", "-C", cwd or "/", *argv]

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

    def set_sshd(self, host, lines):
        """Gives sshd other extra lines. Sessions that exist live on."""
        self._write(f"{host}/sshd_config", layout.sshd_config(self.folder, host, lines))
        log = os.path.join(self.folder, host, "sshd.log")
        before = read_text(log).count("Server listening")
        self.run(host, ["sh", "-c", f"kill -HUP $(cat {self.folder}/{host}/sshd.pid)"])
        wait_until(lambda: read_text(log).count("Server listening") > before, START_LIMIT,
                   f"sshd of {host} did not take {lines}: {read_text(log)[-500:]}")

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

    def __init__(self, folder, name, keep, dies_with_caller):
        self.name = name
        self.log = os.path.join(folder, name, "init.log")
        self.ready, ready_writer = os.pipe()
        words = ["unshare", "-n", "-u", "-m", "-p", "-f", "--mount-proc", "--kill-child",
                 "bash", os.path.join(HERE, "host_init.sh"), folder, name, *keep]
        if dies_with_caller:
            words = ["setpriv", "--pdeathsig", "KILL", *words]
        # The pipe is descriptor 3 there, as host_init.sh expects.
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
            shutil.rmtree(folder, ignore_errors=True)


def what_is_left():
    """One line for each process and folder of any testbed."""
    lines = []
    for pid, folder in sorted(processes_of().items()):
        words = read_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
        lines.append(f"process {pid} of {folder}: {words}")
    return lines + [f"folder {folder}" for folder in sorted(_folders())]
