"""A process that SIGKILL does not end, as one that hangs in a driver: in a frozen group of cgroup v1."""

import os

from harness import lab

FREEZER = "/sys/fs/cgroup/freezer"


def can_freeze():
    return os.access(f"{FREEZER}/cgroup.procs", os.W_OK)


def freeze(test, pid):
    """Returns what thaws it, which the end of the test does too."""
    group = f"{FREEZER}/hvdrun-test-{os.getpid()}"
    os.mkdir(group)

    def thaw():
        if not os.path.exists(group):
            return
        lab.write_text(f"{group}/freezer.state", "THAWED")
        lab.wait_until(lambda: not lab.read_text(f"{group}/cgroup.procs"), 5, "it lives")
        os.rmdir(group)

    test.addCleanup(thaw)
    lab.write_text(f"{group}/cgroup.procs", str(pid))
    lab.write_text(f"{group}/freezer.state", "FROZEN")
    lab.wait_until(lambda: lab.read_text(f"{group}/freezer.state").strip() == "FROZEN", 5, "not frozen")
    return thaw
