"""A rank as Horovod's Gloo is at its start, without Horovod: it finds the others by the key-value store in its
environment, scope by scope, connects to each of them, and leaves the store as it found it.

Its requests are byte for byte those of the client inside Horovod: one connection each, no Connection header; of an answer it
understands "Content-Length" in these letters only, and without that it reads to the end. Repeats count as failures here.

    horovod_kv_client.py [--die-in-attempt N]   the ranks of attempt N end with 3 before they say that they have finished
"""

import fcntl
import os
import select
import socket
import struct
import sys
import time

ADDRESS_BYTES = 136  # a sockaddr_storage and a sequence number
SIOCGIFADDR = 0x8915
LIMIT = float(os.environ.get("HOROVOD_GLOO_TIMEOUT_SECONDS", 30))


def variable(name):
    return os.environ["HOROVOD_" + name]


class Store:
    """The client's side of the protocol."""

    def __init__(self):
        self.host = variable("GLOO_RENDEZVOUS_ADDR")
        self.port = int(variable("GLOO_RENDEZVOUS_PORT"))
        self.num_requests = 0

    def request(self, method, scope, key, body=b""):
        self.num_requests += 1
        with socket.create_connection((self.host, self.port), 10) as connection:
            connection.sendall(f"{method} /{scope}/{key} HTTP/1.1\r\nHost: {self.host}\r\n"
                               f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            return self.read_answer(connection)

    @staticmethod
    def read_answer(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            block = connection.recv(65536)
            assert block, f"the connection ended within the header {data!r}"
            data += block
        head, body = data.split(b"\r\n\r\n", 1)
        status, *headers = head.decode().split("\r\n")
        lengths = [int(line.split(": ")[1]) for line in headers if line.startswith("Content-Length: ")]
        assert len(lengths) == 1, f"no Content-Length in {headers}"
        while len(body) < lengths[0]:
            block = connection.recv(65536)
            assert block, "the connection ended within the body"
            body += block
        code = int(status.split()[1])
        assert code in (200, 404), status
        return code, body

    def put(self, scope, key, body):
        code, _ = self.request("PUT", scope, key, body)
        assert code == 200, code

    def get(self, scope, key):
        """None: absent."""
        code, body = self.request("GET", scope, key)
        return body if code == 200 else None

    def wait(self, scope, key):
        end = time.monotonic() + LIMIT
        while self.get(scope, key) is None:
            assert time.monotonic() < end, f"no {scope}/{key} in {LIMIT:g} s"
            time.sleep(0.01)
        return self.get(scope, key)

    def finish(self, scope, key):
        code, _ = self.request("DELETE", scope, key)
        assert code == 200, code


def own_address():
    """The first IPv4 address of the interface that the launcher has named."""
    name = variable("GLOO_IFACE").encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return socket.inet_ntoa(fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name))[20:24])


class Mesh:
    """Connections among the ranks of one scope, found by the store. Of a pair the lower rank is connected to."""

    def __init__(self, store, scope, rank, size):
        self.store, self.scope, self.rank, self.size = store, scope, rank, size
        self.pairs = {}
        store.put(scope, f"rank_{rank}", socket.gethostname().encode())
        for other in range(rank):
            store.get(scope, f"rank_{other}")
        with socket.socket() as listener:
            listener.bind((own_address(), 0))
            listener.listen(size)
            listener.settimeout(LIMIT)
            store.put(scope, str(rank), self.pair_addresses(listener))
            for other in self.others():
                self.connect(other, store.wait(scope, str(other)))
            while len(self.pairs) < size - 1:
                self.accept(listener)

    def others(self):
        return [other for other in range(self.size) if other != self.rank]

    def pair_addresses(self, listener):
        """One for each other rank, in order; the sequence number tells this rank who has come by it."""
        address, port = listener.getsockname()
        place = struct.pack("=HH4s", socket.AF_INET, socket.htons(port), socket.inet_aton(address)).ljust(128, b"\0")
        return b"".join(place + struct.pack("=q", self.sequence_of(other)) for other in self.others())

    def sequence_of(self, other):
        return 1000 * (self.rank + 1) + other

    def connect(self, other, theirs):
        assert len(theirs) == ADDRESS_BYTES * (self.size - 1), (self.scope, other, len(theirs))
        if other > self.rank:
            return
        mine = ADDRESS_BYTES * (self.rank if self.rank < other else self.rank - 1)
        _, port, address = struct.unpack_from("=HH4s", theirs, mine)
        sequence, = struct.unpack_from("=q", theirs, mine + 128)
        pair = socket.create_connection((socket.inet_ntoa(address), socket.ntohs(port)), LIMIT)
        pair.sendall(struct.pack("=qq", sequence, self.rank))
        self.pairs[other] = pair

    def accept(self, listener):
        pair, _ = listener.accept()
        sequence, other = struct.unpack("=qq", read_exactly(pair, 16))
        assert sequence == self.sequence_of(other) and other > self.rank, (sequence, other)
        self.pairs[other] = pair

    def gather(self, text):
        """Every rank's text, in order of ranks. Small: it fits into the sockets' buffers."""
        data = text.encode()
        for pair in self.pairs.values():
            pair.sendall(struct.pack("=q", len(data)) + data)
        texts = {self.rank: text}
        for other, pair in self.pairs.items():
            length, = struct.unpack("=q", read_exactly(pair, 8))
            texts[other] = read_exactly(pair, length).decode()
        return [texts[rank] for rank in range(self.size)]

    def finish(self):
        self.gather("here")
        self.store.finish(self.scope, str(self.rank))

    def close(self):
        for pair in self.pairs.values():
            pair.close()


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        assert select.select([connection], [], [], LIMIT)[0], "a rank says nothing"
        block = connection.recv(count - len(data))
        assert block, "a rank has gone"
        data += block
    return data


def scopes(suffix=""):
    """Horovod's three, with this rank's place in each."""
    local = int(variable("LOCAL_RANK"))
    return [("global" + suffix, int(variable("RANK")), int(variable("SIZE"))),
            (f"local_{variable('HOSTNAME')}{suffix}", local, int(variable("LOCAL_SIZE"))),
            (f"cross_{local}{suffix}", int(variable("CROSS_RANK")), int(variable("CROSS_SIZE")))]


def initialise(store, dies):
    """As hvd.init() does; the mesh of all ranks comes back."""
    meshes = [Mesh(store, *scopes()[0])]
    if dies:
        meshes[0].gather("here")  # all values stand in the store, nobody has finished
        sys.exit(3)
    meshes[0].finish()
    for scope, rank, size in scopes()[1:]:
        meshes.append(Mesh(store, scope, rank, size))
        meshes[-1].finish()
    meshes[0].gather("all have finished")
    for scope, rank, _ in scopes():
        assert store.get(scope, str(rank)) is None, f"{scope} was not emptied"
    for mesh in meshes[1:]:
        mesh.close()
    return meshes[0]


def add_process_set(store, world):
    """The ranks with an even number, as hvd.add_process_set() makes them a group later on; nobody has declared it."""
    rank = int(variable("RANK"))
    places = [text.split() for text in world.gather(f"{variable('HOSTNAME')} {variable('LOCAL_RANK')}")]
    members = [other for other in range(len(places)) if other % 2 == 0]
    if rank in members:
        suffix = f"_process_set_hash_{0x9E3779B97F4A7C15:x}"
        names = [scope + suffix for scope, _, _ in scopes()]
        kept = [members, [m for m in members if places[m][0] == places[rank][0]],
                [m for m in members if places[m][1] == places[rank][1]]]
        for scope, ranks in zip(names, kept):
            mesh = Mesh(store, scope, ranks.index(rank), len(ranks))
            assert mesh.gather(str(rank)) == [str(other) for other in ranks]
            mesh.finish()
            assert store.get(scope, str(mesh.rank)) is None
            mesh.close()
    world.gather("the set is done")


def main():
    dies = sys.argv[1:2] == ["--die-in-attempt"] and os.environ["TORCHELASTIC_RESTART_COUNT"] == sys.argv[2]
    assert variable("CONTROLLER") == "gloo" and variable("CPU_OPERATIONS") == "gloo"
    store = Store()
    began = time.monotonic()
    for _ in range(2):  # hvd.init(), hvd.shutdown(), hvd.init()
        world = initialise(store, dies)
        ranks = world.gather(variable("RANK"))
        assert ranks == [str(rank) for rank in range(int(variable("SIZE")))], ranks
        add_process_set(store, world)
        world.close()
    print(f"rank {variable('RANK')} of {variable('SIZE')} met all on {variable('GLOO_IFACE')} at {store.host} "
          f"{store.num_requests} requests {time.monotonic() - began:.2f} s", flush=True)


main()
