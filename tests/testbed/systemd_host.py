"""Hosts that systemd runs as process 1, a copy of this machine's Debian: where their parts are found.

Such a host hangs on its first process (systemd_init.sh) like a light one. Beside it, it has groups
in the machine's cgroup trees, which must be removed when its processes have gone.
"""

import os
import shutil
import subprocess

import layout

BOOT_LIMIT = 60.0
V2_ROOTS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
V1_ROOT = "/sys/fs/cgroup/systemd"  # systemd's own tree on a machine that is not pure v2


def v2_root():
    """Where cgroup v2 is mounted; None without it."""
    return next((r for r in V2_ROOTS if os.path.exists(f"{r}/cgroup.procs")), None)


def what_is_missing(options):
    """Why this machine cannot boot such a host; empty if it can."""
    if shutil.which("systemd-nspawn") is None:
        return "no systemd-nspawn: install systemd-container"
    if v2_root() is None:
        return "no cgroup v2 on this machine"
    if options.hybrid and not os.path.exists(f"{V1_ROOT}/cgroup.procs"):
        return "a hybrid host needs a machine with cgroups v1 and v2; this one has v2 alone"
    return ""


def cgroup_of(folder, name):
    return f"{v2_root()}/{layout.cgroup_name(folder)}/{name}"


def cgroups(folder=None):
    """The groups of the testbed in `folder`, of any testbed without it."""
    found = []
    for root in filter(os.path.isdir, (*V2_ROOTS, V1_ROOT)):
        for name in os.listdir(root):
            if name.startswith(layout.CGROUP_PREFIX) and folder in (None, folder_of(name)):
                found.append(f"{root}/{name}")
    return found


def folder_of(cgroup):
    """Of the testbed that the group is for."""
    return os.path.basename(cgroup).removeprefix(layout.CGROUP_PREFIX).replace(":", "/")


def _children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _is_process_1(pid):
    """Of a namespace two below this one, with systemd in it."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return False
    return lines["Name"].strip() == "systemd" and lines["NSpid"].split()[-1] == "1"


def find_process_1(stem):
    """systemd of the host whose first process is `stem`; None while it is off or about to boot."""
    grandchildren = [g for child in _children_of(stem) for g in _children_of(child)]
    return next(filter(_is_process_1, grandchildren), None)


def state_of(command):
    """What `systemctl is-system-running` says at the end of the boot, nothing before systemd is there; `command`
    runs it there."""
    done = subprocess.run(command(["systemctl", "is-system-running", "--wait"]), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=BOOT_LIMIT)
    state = done.stdout.strip()
    return "" if state == "offline" else state
