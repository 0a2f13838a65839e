"""A slow, lossy cable: joins two TAP devices in two network namespaces, delays and drops frames.

    relay.py BRIDGE_NETNS BRIDGE_TAP HOST_NETNS HOST_TAP PARAMETERS PID_FILE

PARAMETERS is a file with "MILLISECONDS LOSS_PERCENT", read again on SIGHUP; both hold for each
direction. The devices vanish with the process. Prints "ready" when both exist.
"""

import ctypes
import errno
import fcntl
import heapq
import os
import random
import selectors
import signal
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TAP_NO_PI = 0x0002 | 0x1000


def open_tap(netns, name):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(netns, os.O_RDONLY)
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"cannot enter {netns}")
    os.close(fd)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP_NO_PI))
    return tap


class Relay:
    """Frames wait in a heap ordered by the time they are due."""

    def __init__(self, taps, parameters):
        self.taps = taps
        self.parameters = parameters
        self.waiting = []
        self.count = 0
        self.random = random.Random(1)
        self.load()

    def load(self, *_):
        with open(self.parameters, encoding="ascii") as file:
            delay_ms, loss_percent = file.read().split()
        self.delay = float(delay_ms) / 1000
        self.loss = float(loss_percent) / 100

    def take(self, source, target):
        while True:
            try:
                frame = os.read(source, 65536)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EIO, errno.EBADFD):  # the device is down just now
                    return
                raise
            if self.random.random() >= self.loss:
                self.count += 1
                heapq.heappush(self.waiting,
                               (time.monotonic() + self.delay, self.count, target, frame))

    def deliver(self):
        """Writes what is due; says how long to wait for the next, None without one."""
        while self.waiting:
            left = self.waiting[0][0] - time.monotonic()
            if left > 0:
                return left
            _, _, target, frame = heapq.heappop(self.waiting)
            try:
                os.write(target, frame)
            except OSError:
                pass  # a device that is down or full loses frames, as cables do
        return None

    def run(self):
        selector = selectors.DefaultSelector()
        for source, target in (self.taps, self.taps[::-1]):
            selector.register(source, selectors.EVENT_READ, target)
        while True:
            for key, _ in selector.select(self.deliver()):
                self.take(key.fd, key.data)


def main():
    bridge_netns, bridge_tap, host_netns, host_tap, parameters, pid_file = sys.argv[1:]
    taps = [open_tap(bridge_netns, bridge_tap), open_tap(host_netns, host_tap)]
    relay = Relay(taps, parameters)
    signal.signal(signal.SIGHUP, relay.load)
    with open(pid_file, "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    print("ready", flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the caller closes its end
    relay.run()


if __name__ == "__main__":
    main()
