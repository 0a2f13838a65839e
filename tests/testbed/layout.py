"""What the hosts of a testbed look like: names, addresses and the files they are given.

Pure: texts and command lists go out, nothing is touched here.
"""

import dataclasses
import os

NETWORK = "10.77.0"
LAUNCHER = "launcher"
WRONG_MAC = "02:de:ad:00:00:01"
BRIDGE_MAC = "02:de:ad:00:00:02"
CGROUP_PREFIX = "hvdrun-testbed"
# Folders of which each host has its own, empty (/root: a private layer over the real one).
PRIVATE = ("/run", "/tmp", "/var/tmp", "/dev/shm", "/root")


@dataclasses.dataclass
class HostOptions:
    """How one host differs from a plain one."""

    interface: str = "eth0"
    docker0: bool = False  # a bridge 172.17.0.1/16 that leads to the host itself, as docker makes
    dead_interface: bool = False  # eth9: up, with an address, reaches nobody
    loopback_name: bool = False  # its hosts file says 127.0.1.1 for its own name, as Debian's does
    systemd: bool = False  # a whole Debian with systemd as its first process
    hybrid: bool = False  # that one has its cgroups as v1 and v2, not as v2 alone
    sshd_lines: list = dataclasses.field(default_factory=list)

    @staticmethod
    def apply(options, text):
        """Adds one command line option, as in `interface=enpA` or `docker0`."""
        name, _, value = text.partition("=")
        if name == "interface" and value:
            options.interface = value
        elif name == "sshd" and value:
            options.sshd_lines.append(value)
        elif name in ("docker0", "dead_interface", "loopback_name", "systemd", "hybrid") \
                and not value:
            setattr(options, name, True)
        else:
            raise ValueError(f"unknown host option {text!r}; there are interface=NAME, docker0, "
                             "dead_interface, loopback_name, systemd, hybrid and sshd=LINE")


def node_name(index):
    return f"node{index}"


def address_of(name):
    return f"{NETWORK}.254" if name == LAUNCHER else f"{NETWORK}.{int(name.removeprefix('node'))}"


def port_of(name):
    """The bridge's end of a host's cable."""
    return f"v-{name}"


def hosts_file(own_name, names, options):
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    for name in names:
        if name == own_name and options.loopback_name:
            lines.append(f"127.0.1.1 {name}")
        else:
            lines.append(f"{address_of(name)} {name}")
    return "\n".join(lines) + "\n"


def ssh_config(folder):
    return (f"Host *\n  User root\n  IdentityFile {folder}/key\n"
            f"  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
            "  StrictHostKeyChecking yes\n  LogLevel ERROR\n")


def known_hosts(names, host_public_key):
    kind, key = host_public_key.split()[:2]
    return "".join(f"{name},{address_of(name)} {kind} {key}\n" for name in names)


def sshd_config(folder, name, options):
    """sshd takes the first value of a keyword, so the extra lines stand in front."""
    lines = options.sshd_lines
    # With systemd every user can log in, into a session of logind.
    keys = "/etc/ssh/testbed_keys\nUsePAM yes" if options.systemd else f"{folder}/key.pub\nUsePAM no"
    own = (f"HostKey {folder}/host_key\nAuthorizedKeysFile {keys}\n"
           f"StrictModes no\nPidFile {folder}/{name}/sshd.pid\nPasswordAuthentication no\n"
           "PermitRootLogin yes\nUseDNS no\n")
    if not any(line.split()[0].lower() == "listenaddress" for line in lines):
        own += f"ListenAddress {address_of(name)}\n"
    return "".join(line + "\n" for line in lines) + own


def network_commands(name, options):
    """For `ip -batch` inside the host, once its cable is plugged in."""
    dev = options.interface
    commands = [f"addr add {address_of(name)}/24 dev {dev}", f"link set {dev} up"]
    if options.docker0:
        commands += ["link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0",
                     "link set docker0 up"]
    if options.dead_interface:
        last = address_of(name).rpartition(".")[2]
        commands += ["link add eth9 type veth peer name eth9-end",
                     f"addr add 10.99.0.{last}/24 dev eth9",
                     "link set eth9-end up", "link set eth9 up"]
    return "".join(command + "\n" for command in commands)


def cable_commands(hosts):
    """For `ip -batch` in the launcher: the bridge, a cable to each (name, init pid, interface)."""
    # The bridge, too, answers for the launcher. Without an address of its own it takes that of a
    # port, and another one with the next cable: who has the old one sends to nobody for a while.
    commands = [f"link add br0 address {BRIDGE_MAC} type bridge", "link set br0 up"]
    for name, pid, interface in hosts:
        commands += [f"link add {port_of(name)} type veth peer name {interface} netns {pid}",
                     f"link set {port_of(name)} master br0 up"]
    return "".join(command + "\n" for command in commands)


def cgroup_name(folder):
    """Of the group in which the groups of all systemd hosts of a testbed are."""
    return CGROUP_PREFIX + folder.replace("/", ":")


def folders_to_keep(folders):
    """Those that a private mount would hide, without the ones inside another."""
    return outermost(f for f in map(os.path.realpath, folders)
                     if any(_lies_in(f, top) for top in PRIVATE))


def outermost(folders):
    """Without doubles and the ones inside another."""
    real = list(dict.fromkeys(map(os.path.realpath, folders)))
    return [f for f in real if not any(f != g and _lies_in(f, g) for g in real)]


def _lies_in(path, top):
    return path == top or path.startswith(top + "/")
