"""A client of agents that serve, without an hvdrun: connections from the network of any host, the bytes that a test
wants, and the frames of a job's stream (proto/resume_engine.h)."""

import contextlib
import ctypes
import os
import secrets
import socket
import ssl
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
HELLO, DATA, ACK, END = 1, 2, 3, 4
MARKER = "HVDCTL1-0123456789abcdef"


def _enter(namespace):
    if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def network_of(pid):
    """Sockets that this thread makes are of that process's network."""
    with open("/proc/thread-self/ns/net", "rb") as own, open(f"/proc/{pid}/ns/net", "rb") as other:
        _enter(other)
        try:
            yield
        finally:
            _enter(own)


def connect(pid, place, source=None):
    with network_of(pid):
        stream = socket.create_connection(place, 10, source and (source, 0))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def context(folder=None, authority=None):
    """Of a client with the files of `hvdctl ca issue --user`; without a folder it shows no certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.load_verify_locations(authority or os.path.join(folder, "ca.crt"))
    if folder:
        made.load_cert_chain(os.path.join(folder, "client.crt"), os.path.join(folder, "client.key"))
    return made


def read_all(stream):
    """Until the other end closes, however it does it."""
    data = bytearray()
    try:
        while block := stream.recv(1 << 16):
            data += block
    except (ssl.SSLError, ConnectionError):
        pass
    return bytes(data)


def read_line(stream):
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = stream.recv(1)
        if not byte:
            break
        line += byte
    return line.decode()


def ask_socket(path, *words):
    """The answer of the agent's unix socket to a control line, whole."""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(10)
        stream.connect(path)
        stream.sendall(" ".join([MARKER, "ctl", *words]).encode() + b"\n")
        return read_all(stream).decode()


def frame(kind, place, data=b"", size=None):
    return struct.pack(">BIQ", kind, len(data) if size is None else size, place) + data


class Job:
    """The words of a job, which nobody may know but who started it."""

    def __init__(self, job_id=None, node=0):
        self.job_id = job_id or secrets.token_hex(16)
        self.node = node
        self.key = secrets.token_hex(32)

    def line(self, kind, *words, **changed):
        all_words = {"job": self.job_id, "node": self.node, "key": self.key, **changed}
        told = [f"--{name} {value}" for name, value in all_words.items() if value is not None]
        return " ".join([MARKER, kind, *told, *words]).encode() + b"\n"
