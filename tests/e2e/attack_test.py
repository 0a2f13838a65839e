"""Attacks on agents that serve: by strangers, by users of the cluster, by users of the node. Each is refused, logged
with who it was, and costs nobody else anything: the agent lives, runs the next job and has kept nothing of it."""

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest

import harness
import raw_client
from harness import LAUNCHER, lab, scaled
from on_tls import AGENT, FOLDER, PORT, OnTls
from raw_client import ACK, DATA, END, HELLO, MARKER, Job, frame

NODE = "node1"
NOBODY = 65534
MB = 1 << 20
KEPT = 8 * MB  # of memory, after whatever it was
# Of a client of the unix socket of another user: one line of words; what comes back, or why nothing does.
ASK = f"""import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(5)
try:
    s.connect(sys.argv[1])
    try:
        s.sendall(" ".join(sys.argv[2:]).encode() + b"\\n")
    except BrokenPipeError:
        pass  # there is an answer all the same
    for block in iter(lambda: s.recv(65536), b""):
        print(block.decode(), end="", flush=True)
except ConnectionResetError:
    pass  # what was not read here is no matter
except OSError as error:
    print(error)
"""
# Takes the place of a socket, as the user that runs it, and answers with what it was told, again and again.
TAKE_PLACE = """import os, socket, sys
path, words = sys.argv[1:]
s = socket.socket(socket.AF_UNIX)
s.bind(path + ".new")
s.listen(64)
os.chmod(path + ".new", 0o666)
os.rename(path + ".new", path)
print("there", flush=True)
while True:
    connection = s.accept()[0]
    try:
        while words:
            connection.sendall(words.encode() * 4096)
    except OSError:
        pass
"""


class Attack(OnTls):
    NODES = 1
    USERS = ("alice", "bob", "carol")
    CONFIG = "clients: {alice: {run_as: root}, bob: {run_as: root}}\nadmins: [carol]\n"

    def setUp(self):
        super().setUp()
        self.root = self.bed.root_of(NODE)
        self.socket = f"{self.root}{FOLDER}/agent.sock"
        self.assert_serving()
        lab.wait_until(lambda: not self.jobs(), 5, "the first job stays")

    @property
    def log(self):
        return self.agents[NODE].err

    # ---- what the agent says of itself --------------------------------------------------------

    def ask(self, *words):
        """The JSON that root is answered at the unix socket."""
        answer = raw_client.ask_socket(self.socket, *words)
        self.assertTrue(answer.startswith(f"{MARKER} ok "), answer)
        return json.loads(answer.removeprefix(f"{MARKER} ok "))

    def jobs(self):
        return {job["job"] for job in self.ask("status")["jobs"]}

    def wait_over(self, job_id, limit=5):
        lab.wait_until(lambda: job_id not in self.jobs(), limit, f"job {job_id} runs on")

    def assert_serving(self, who="alice"):
        run = self.start_by_tls("-H", f"{NODE}:1", "true", who=who)
        run.wait(30)
        self.assert_code(run, 0)

    @contextlib.contextmanager
    def attack(self, *logged):
        """What stands in the log of it afterwards, and that nothing else is left."""
        pid = self.agents[NODE].pid
        before = self.ask("counters")
        yield
        for pattern in logged:
            self.assertTrue(self.log.find(pattern, 5), f"no {pattern} in: {self.log.text[-5000:]}")
        self.assertEqual(self.agents[NODE].pid, pid)
        # The agents of jobs write there too: one that crashed would look like a job that was ended.
        self.assertNotRegex(self.log.text, "Sanitizer|runtime error|terminate called|Assertion")
        self.assert_serving()
        self.assert_serving("bob")
        lab.wait_until(lambda: self.ask("counters")["descriptors"] <= before["descriptors"], 5,
                       f"descriptors of the agent are left, {before['descriptors']} before: "
                       + " ".join(map(os.readlink, self.descriptors(pid))))
        grown = self.ask("counters")["rss_bytes"] - before["rss_bytes"]
        if "libasan" not in lab.read_text(f"/proc/{pid}/maps"):  # which keeps what was freed
            self.assertLess(grown, KEPT, "bytes of memory more than before")

    @staticmethod
    def descriptors(pid):
        return [entry.path for entry in os.scandir(f"/proc/{pid}/fd")]

    # ---- connections --------------------------------------------------------------------------

    def connect(self, source=None, host=None):
        """From the launching host, or from an address of the node itself: 127.x.y.z."""
        host = host or (NODE if source else LAUNCHER)
        stream = raw_client.connect(self.bed.inits[host], ("127.0.0.1" if source else "10.77.0.1", PORT), source)
        self.addCleanup(stream.close)
        return stream

    def tls(self, who="alice", source=None):
        stream = raw_client.context(self.at(who)).wrap_socket(self.connect(source))
        self.addCleanup(stream.close)
        return stream

    def say(self, line, who="alice", source=None):
        """All that is answered to a line."""
        with self.tls(who, source) as stream:
            try:
                stream.sendall(line)
            except (OSError, ssl.SSLError):
                pass  # refused before all of it was there
            return raw_client.read_all(stream).decode(errors="replace")

    def assert_error(self, answer, pattern):
        self.assertRegex(answer, rf"^{MARKER} error .*{pattern}.*\n$")

    def raw_job(self, who="alice", job=None):
        """A job whose launcher is this test: its words and its stream."""
        job = job or Job()
        stream = self.tls(who)
        stream.sendall(job.line("job"))
        self.assertEqual(raw_client.read_line(stream), f"{MARKER} claimed\n")
        self.assertRegex(raw_client.read_line(stream), f"^{MARKER} ready ")
        self.addCleanup(self.end_job, job.job_id)
        return job, stream

    def end_job(self, job_id):
        if self.agents[NODE].process.poll() is None and job_id in self.jobs():
            self.ask("kill", job_id)
            self.wait_over(job_id)

    def job_agent(self, job_id):
        """Its pid; what it starts has its words for a moment."""
        def find():
            found = [p.pid for p in self.state.processes(host=NODE) if p.words.split()[1:4] == ["job", "--job", job_id]]
            return found[0] if len(found) == 1 else None

        return lab.wait_until(find, 5, f"no agent of job {job_id}")

    def sleeper(self, who="bob"):
        """A job of somebody else, which must not notice."""
        run = self.start_by_tls("-H", f"{NODE}:1", "--grace", 1, "bash", "-c", "sleep 600 & wait", who=who)
        self.wait_workers(1, run)
        job_id, = self.jobs()
        return run, job_id

    def end_sleeper(self, run):
        self.assertIsNone(run.process.poll(), run.report())
        run.signal(signal.SIGINT)
        run.wait(10)

    def as_user(self, uid, *words):
        """What a program of that user on the node prints."""
        run = self.on_host(NODE, "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *words)
        run.wait(10)
        return run.out.text + run.err.text

    def ask_as(self, uid, *words, path=f"{FOLDER}/agent.sock"):
        return self.as_user(uid, harness.PYTHON, "-c", ASK, path, *words)


class Strangers(Attack):
    def refused(self, made, source, why):
        with self.attack(rf"refused {source}: {why}"):
            before = self.ask("counters")
            raw = self.connect(source)
            try:
                with made.wrap_socket(raw) as stream:
                    stream.sendall(Job().line("job"))
                    self.assertEqual(raw_client.read_all(stream), b"")
            except (ssl.SSLError, ConnectionError):
                pass
            after = self.ask("counters")
            self.assertEqual(after["connections_refused"], before["connections_refused"] + 1)
            self.assertEqual(after["jobs_started"], before["jobs_started"])

    def test_certificates_that_do_not_hold(self):
        self.refused(raw_client.context(authority=self.at("alice/ca.crt")), "127.0.0.2", "TLS: peer did not return")
        self.ca("init", folder="ca2")
        self.ca("issue", "--user", "alice", "--out", self.at("alien"), folder="ca2")
        lab.write_text(self.at("alien/ca.crt"), lab.read_text(self.at("ca/ca.crt")))
        self.refused(raw_client.context(self.at("alien")), "127.0.0.3",
                     r"TLS: its certificate \(it says: user alice\) does not hold: unable to get")
        self.make_expired("expired")
        self.refused(raw_client.context(self.at("expired")), "127.0.0.4", r".*\(it says: user alice\) .*: certificate has expired")
        self.ca("issue", "--user", "eve", "--out", self.at("eve"))
        self.ca("revoke", "--user", "eve")
        lab.write_text(self.at("node1/crl.pem"), lab.read_text(self.at("ca/crl.pem")))
        self.agents[NODE].signal(signal.SIGHUP)
        self.assertTrue(self.log.find("read .*node1.yaml again", 5))
        self.refused(raw_client.context(self.at("eve")), "127.0.0.5", r".*\(it says: user eve\) .*: certificate revoked")

    def make_expired(self, name):
        """Alice's, of the right authority, until yesterday."""
        os.makedirs(self.at(name))
        lab.write_text(self.at("names"), "subjectAltName=URI:spiffe://hvdrun/user/alice\n")
        lab.write_text(self.at(f"{name}/ca.crt"), lab.read_text(self.at("ca/ca.crt")))
        request = subprocess.run(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=alice",
                                  "-keyout", self.at(f"{name}/client.key")], capture_output=True, check=True, timeout=30)
        subprocess.run(["openssl", "x509", "-req", "-CA", self.at("ca/ca.crt"), "-CAkey", self.at("ca/ca.key"),
                        "-days", "-1", "-extfile", self.at("names"), "-out", self.at(f"{name}/client.crt")],
                       input=request.stdout, capture_output=True, check=True, timeout=30)

    def test_what_is_no_handshake(self):
        old = raw_client.context(self.at("alice"))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        self.refused(old, "127.0.0.2", "TLS: unsupported protocol")
        words = {"127.0.0.3": b"GET / HTTP/1.1\r\nHost: node1\r\n\r\n", "127.0.0.4": b"SSH-2.0-OpenSSH_9.2\r\n",
                 "127.0.0.5": os.urandom(MB), "127.0.0.6": b"\x16\x03\x01\xff\xff" + bytes(70000),
                 "127.0.0.7": Job().line("job")}
        with self.attack(*(f"refused {source}: TLS: " for source in words)):
            for source, said in words.items():
                stream = self.connect(source)
                with contextlib.suppress(ConnectionError):
                    stream.sendall(said)
                raw_client.read_all(stream)

    def test_a_first_line_without_an_end(self):
        refused = "what came is no line of an hvdrun"
        with self.attack(f"refused 127.0.0.2: {refused}", f"refused 127.0.0.3: {refused}",
                         f"refused 127.0.0.4: {refused}", f"refused 127.0.0.5: {refused}"):
            self.assertEqual(self.say(b"x" * 10 * MB, source="127.0.0.2"), "")
            self.assertEqual(self.say(b"x " * 5 * MB + b"\n", source="127.0.0.3"), "")
            self.assertEqual(self.say(bytes(10 * MB), source="127.0.0.4"), "")
            self.assertEqual(self.say(Job().line("job") + b"more", source="127.0.0.5"), "")


class Patience(Attack):
    NODES = 2
    LIMIT = 10

    def hello_of_tls(self):
        """The first bytes of a handshake."""
        out = ssl.MemoryBIO()
        handshake = raw_client.context(self.at("alice")).wrap_bio(ssl.MemoryBIO(), out)
        with contextlib.suppress(ssl.SSLWantReadError):
            handshake.do_handshake()
        return out.read()

    def connect_here(self):
        """To the unix socket, as root."""
        stream = socket.socket(socket.AF_UNIX)
        self.addCleanup(stream.close)
        stream.connect(self.socket)
        return stream

    @staticmethod
    def is_open(stream):
        stream.settimeout(0)
        try:
            while stream.recv(4096):
                pass  # why it is refused
            return False
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False

    def test_who_is_silent_or_slow_is_dropped_at_the_limit(self):
        with self.attack("refused 127.0.0.3: no TLS handshake in 10", "refused 127.0.1.1: no TLS handshake in 10",
                         "refused 127.0.0.2: too many connections", "refused 127.0.1.2: it has said nothing",
                         "refused 127.0.1.3: it has said nothing", "refused 10.77.0.2: no TLS handshake in 10"):
            began = time.monotonic()
            waiting = [self.connect(f"127.0.0.{2 + k // 16}") for k in range(48)]
            waiting += [self.connect_here() for _ in range(scaled(64, 1000))]
            slow = self.connect("127.0.1.1")
            mute = self.tls(source="127.0.1.2")
            half = self.tls(source="127.0.1.3")
            half.sendall(f"{MARKER} ctl sta".encode())
            lost = self.connect(host="node2")
            self.bed.set_link("node2", False)
            self.addCleanup(self.bed.set_link, "node2", True)
            many = [self.connect("127.0.0.2") for _ in range(scaled(32, 1000))]
            for stream in many:
                self.assertEqual(raw_client.read_all(stream), b"")  # at once
            self.assertLess(time.monotonic() - began, self.LIMIT - 4)
            self.assert_serving()
            waiting += [slow, mute, half]
            for byte in self.hello_of_tls():
                if time.monotonic() - began > self.LIMIT - 2:
                    break
                slow.sendall(bytes([byte]))
                time.sleep(1)
            self.assertEqual([s for s in waiting if not self.is_open(s)], [])
            lab.wait_until(lambda: not any(map(self.is_open, waiting)), 4, "somebody may stay")
            self.assert_within(time.monotonic() - began, self.LIMIT + 2, "end of the last of them")
            lost.close()


class Words(Attack):
    def tree(self):
        return sorted(os.path.join(folder, name) for folder, folders, files in os.walk(f"{self.root}{FOLDER}")
                      for name in folders + files)

    def test_names_of_jobs_that_are_paths(self):
        before = set(self.tree())
        names = ["../../etc", "..", "/etc/passwd", "%s%n%x", "%2e%2e%2f", "$(id)", "a" * 31, "a" * 33, "A" * 32,
                 "4" * 3900, "../" + "a" * 29, "a" * 30 + "%i", "a" * 31 + "\0", "\u0661" * 32, "a" * 16 + "-" * 16]
        with self.attack("refused alice \\(10.77.0.254\\): the job is named by 32 hexadecimal digits"):
            for name in names:
                for kind in "job", "resume", "reap":
                    self.assert_error(self.say(Job(name).line(kind)), "32 hexadecimal digits")
                self.assert_error(self.say(f"{MARKER} ctl kill {name}\n".encode()), "kill which job")
            self.assert_error(self.say(Job("a" * 16 + " " + "a" * 15).line("job")), "32 hexadecimal digits")
            self.assertEqual(self.say(Job("a" * 16 + "\n" + "a" * 15).line("job")), "")
            self.assertEqual(set(self.tree()) - before, set())

    def test_other_words_that_are_wrong(self):
        job = Job()
        with self.attack():
            for node in "-1", "../1", "4294967296", "1e3", "0x1", "":
                self.say(job.line("job", node=node))
            for key in "", "0" * 63, "0" * 65, "g" * 64, None:
                self.assertIn(" error ", self.say(job.line("job", key=key)))
            for word in ("--listen unix:/etc/x", "--job-dir /etc", "--cgroup-root", "--user ../root", "--user -root",
                         "--user bob", "--gpus 0,0x", "--uid 0", "\x1b[31m--red x"):
                self.assertIn(" error ", self.say(job.line("job", word)))
            for line in (b"\n", b" \n", b"\0\n", b"ctl\n", b" ctl status\n", b"x" * 65 + b" ctl status\n",
                         b"a/b ctl status\n", b"M\tjob ctl\n", f"{MARKER} ctl\n".encode(), f"{MARKER} root\n".encode()):
                self.assertNotIn(" ok ", self.say(line))
            self.assertEqual(self.jobs(), set())

    def test_words_reach_the_log_as_text(self):
        with self.attack(r"refused bob .*: --\\x1b\[31mred is not known here", r"there is no \\x1b\]0;x\\x07"):
            self.say(Job().line("job", "--\x1b[31mred x"), "bob")
            self.say(f"{MARKER} ctl \x1b]0;x\x07\n".encode(), "bob")
        self.assertNotIn("\x1b", self.log.text)

    def test_another_users_job(self):
        job, stream = self.raw_job()
        other, _ = self.raw_job("bob")
        none = "no such job of (alice|bob) is here"
        with self.attack("refused bob .*: no such job of bob", "refused alice .*: no such job of alice",
                         f"refused bob .*: job {job.job_id} is alice's, and bob is no admin"):
            for who, line in (("bob", job.line("resume")), ("alice", job.line("resume", key="0" * 64)),
                              ("alice", job.line("resume", key=other.key)), ("alice", job.line("resume", node=1)),
                              ("alice", Job().line("resume")), ("carol", job.line("resume")),
                              ("bob", job.line("reap", key=None)), ("carol", job.line("reap", key=None)),
                              ("bob", job.line("reap", "--grace-ms 0 --cgroup-root / --job-dir /", key=None))):
                self.assert_error(self.say(line, who), none if who != "carol" else "no such job of carol")
            self.assert_error(self.say(f"{MARKER} ctl kill {job.job_id}\n".encode(), "bob"), "bob is no admin")
            for who in "alice", "bob", "carol":  # the same words once more, and by others
                self.assert_error(self.say(job.line("job"), who), "is here already|none of the clients")
            self.assertEqual(self.jobs(), {job.job_id, other.job_id})
            # Its own launcher is still the one that it hears.
            stream.sendall(frame(HELLO, 0))
            self.assertEqual(stream.recv(13), frame(HELLO, 0))
            self.end_job(job.job_id)
            self.end_job(other.job_id)

    def test_drain_and_its_reason(self):
        with self.attack("refused bob .*: bob is no admin"):
            for verb in "drain", "undrain", "gpus":
                self.assert_error(self.say(f"{MARKER} ctl {verb} x\n".encode(), "bob"), "bob is no admin")
            reason = "x\x1b[2J\x07\x00%s%n\u202e \"}],\"jobs\":[]"
            answer = self.say(f"{MARKER} ctl drain {reason}\n".encode(), "carol")
            self.assertTrue(answer.startswith(f"{MARKER} ok "), answer)
            self.assertNotRegex(self.ask("status")["draining"], r"[\x00-\x1f]")
            refused = self.by_tls("-H", f"{NODE}:1", "true")
            self.assert_code(refused, 125)
            self.assertNotRegex(refused.err.text.replace("\n", ""), r"[\x00-\x1f]")
            self.ask("undrain")
        self.assertNotRegex(self.log.text.replace("\n", ""), r"[\x00-\x1f]")


class Streams(Attack):
    GREETING = frame(HELLO, 0)
    # Each ends its own job.
    WRONG = {
        "no greeting": frame(DATA, 0, b"x"),
        "two greetings": GREETING * 2,
        "a greeting from beyond": frame(HELLO, 1 << 40),
        "the greatest place": frame(HELLO, (1 << 64) - 1),
        "unknown kind": GREETING + frame(9, 0),
        "kind zero": bytes(13),
        "too long": GREETING + frame(DATA, 0, size=(1 << 16) + 1),
        "the greatest size": GREETING + frame(DATA, 0, size=(1 << 32) - 1) + bytes(MB),
        "bytes in a greeting": frame(HELLO, 0, b"x"),
        "a gap": GREETING + frame(DATA, 5, b"x"),
        "the same bytes twice": GREETING + frame(DATA, 0, b"x") * 2,
        "acknowledged what was never sent": GREETING + frame(ACK, 1 << 30),
        "after the end": GREETING + frame(END, 0) + frame(DATA, 1, b"x"),
        "two ends": GREETING + frame(END, 0) * 2,
        "an end elsewhere": GREETING + frame(END, 7),
        "a text": b"GET / HTTP/1.1\r\n\r\n",
        "no gRPC": GREETING + frame(DATA, 0, b"GET / HTTP/1.1\r\n\r\n" * 100),
    }

    def send(self, stream, data):
        with contextlib.suppress(OSError, ssl.SSLError):
            stream.sendall(data)
        stream.settimeout(5)
        raw_client.read_all(stream)

    def test_wrong_frames_end_their_own_job_only(self):
        others, sleeping = self.sleeper()
        with self.attack("the stream is damaged"):
            for name, wrong in self.WRONG.items():
                with self.subTest(name):
                    job, stream = self.raw_job()
                    self.send(stream, wrong)
                    self.wait_over(job.job_id)
            self.assertEqual(self.jobs(), {sleeping})
        self.end_sleeper(others)

    def test_a_replay_on_a_second_connection(self):
        first = frame(DATA, 0, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        others, sleeping = self.sleeper()
        with self.attack("the stream is damaged: bytes of place 0 came where 24 was next"):
            job, stream = self.raw_job()
            stream.sendall(self.GREETING + first)
            time.sleep(0.2)
            stream.close()
            again = self.tls()
            again.sendall(job.line("resume"))
            self.assertRegex(raw_client.read_line(again), f"^{MARKER} ready ")
            self.send(again, self.GREETING + first)
            self.wait_over(job.job_id)
            self.assert_error(self.say(job.line("resume")), "has gone|no such job")
            self.assertEqual(self.jobs(), {sleeping})
        self.end_sleeper(others)

    def test_who_floods_is_read_no_faster_than_his_job_takes_it(self):
        others, sleeping = self.sleeper()
        with self.attack():
            job, stream = self.raw_job()
            stream.settimeout(3)
            block = os.urandom(1 << 16)
            with contextlib.suppress(OSError, ssl.SSLError):
                stream.sendall(self.GREETING)
                for k in range(scaled(512, 4096)):
                    stream.sendall(frame(DATA, k << 16, block))
            stream.close()
            self.end_job(job.job_id)
            self.assertEqual(self.jobs(), {sleeping})
        self.end_sleeper(others)


class Places(Attack):
    """Links and strangers where the agent has its files and sockets."""

    def on_node(self, text):
        self.must(NODE, "sh", "-c", text)

    def refuses_to_start(self, why, *, plant, remove):
        self.on_node(plant)
        before = self.content_of("/run/target")
        agent = self.on_host(NODE, AGENT, "serve", "--config", self.at("node1.yaml"))
        self.assertEqual(agent.wait(10), 1, agent.report())
        self.assertRegex(agent.err.text, why)
        self.assertEqual(agent.err.text.count("\n"), 1, agent.report())
        self.assertEqual(self.content_of("/run/target"), before)
        self.on_node(remove)

    def content_of(self, folder):
        return sorted(os.listdir(self.root + folder))

    def test_folders_that_are_links_or_anothers(self):
        self.stop_agent(self.agents[NODE])
        self.on_node(f"rm -rf {FOLDER}/*; mkdir -p /run/target && echo x >/run/target/keep && chown -R {NOBODY} /run/target")
        self.addCleanup(self.on_node, "rm -rf /run/target")
        for name in "records", "jobs":
            self.refuses_to_start(f"{FOLDER}/{name} is a link or no folder", plant=f"ln -s /run/target {FOLDER}/{name}",
                                  remove=f"rm -rf {FOLDER}/*")
            self.refuses_to_start(f"{FOLDER}/{name} belongs to uid {NOBODY}", remove=f"rm -rf {FOLDER}/*",
                                  plant=f"mkdir {FOLDER}/{name} && chown {NOBODY} {FOLDER}/{name}")
            self.refuses_to_start("must be ours alone to write", remove=f"rm -rf {FOLDER}/*",
                                  plant=f"mkdir {FOLDER}/{name} && chmod 777 {FOLDER}/{name}")
        self.refuses_to_start(f"{FOLDER} (is a link|belongs to)|cannot serve at", plant=f"rmdir {FOLDER} && ln -s /run/target {FOLDER}",
                              remove=f"rm {FOLDER}; mkdir {FOLDER}")
        self.refuses_to_start("can be changed by others|must be ours", plant=f"chmod 777 {FOLDER}", remove=f"chmod 755 {FOLDER}")
        self.start_agent(NODE)
        self.assert_serving()

    def test_what_stands_where_the_agents_socket_is_to_be(self):
        self.stop_agent(self.agents[NODE])
        self.on_node("mkdir -p /run/target && echo x >/run/target/file")
        self.addCleanup(self.on_node, "rm -rf /run/target")
        at = f"{FOLDER}/agent.sock"
        for plant in f"ln -s /run/target/file {at}", f"ln -s /run/target/none {at}", f"echo 4711 >{at}", f"mkdir {at}":
            self.refuses_to_start("is there and no socket", plant=plant, remove=f"rm -rf {at}")
        listening = self.on_host(NODE, harness.PYTHON, "-c", TAKE_PLACE, at, "")
        self.assertTrue(listening.out.find("there", 5), listening.report())
        self.refuses_to_start("is served by a process that lives", plant="true", remove="true")
        self.refuses_to_start(f"belongs to user {NOBODY}", plant=f"chown -h {NOBODY} {at}", remove=f"chown -h 0 {at}")
        listening.signal(signal.SIGKILL)
        listening.process.wait(5)
        self.on_node("echo 1 >/run/hvdrun/agent.pid")  # and nobody believes it
        self.start_agent(NODE)  # takes the dead one's place
        self.assert_serving()
        self.assertEqual(os.lstat(self.socket).st_mode & 0o777, 0o600)

    def test_a_link_in_the_place_of_a_jobs_socket_is_replaced(self):
        job = Job()
        self.on_node(f"echo x >/run/target && ln -s /run/target {FOLDER}/jobs/{job.job_id}-0")
        self.addCleanup(self.on_node, "rm /run/target")
        with self.attack():
            _, stream = self.raw_job(job=job)
            self.on_node("grep -x x /run/target")
            stream.close()
            self.end_job(job.job_id)

    def test_a_job_that_talks_nonsense(self):
        others, sleeping = self.sleeper()
        with self.attack():
            for words in "nonsense\n", "\x01\xff\xff\xff", "":
                job, _ = self.raw_job()
                agent = self.job_agent(job.job_id)
                taken = self.on_host(NODE, harness.PYTHON, "-c", TAKE_PLACE,
                                     f"{FOLDER}/jobs/{job.job_id}-0", words)
                self.assertTrue(taken.out.find("there", 5), taken.report())
                stream = self.tls()
                stream.sendall(job.line("resume"))
                self.assertRegex(raw_client.read_line(stream), f"^{MARKER} ready ")
                time.sleep(0.3)  # nobody reads what it floods
                self.assertEqual(self.ask("kill", job.job_id), {"stopped": 1})
                self.assertIn(sleeping, self.jobs())
                taken.end()
                os.kill(agent, signal.SIGKILL)
                stream.close()
                self.wait_over(job.job_id)
                self.on_node(f"rm -rf {FOLDER}/jobs/{job.job_id}-0")
        self.end_sleeper(others)

    @unittest.skipUnless(harness.IS_LONG, "a long one")
    def test_who_takes_nothing_of_a_flood_leaves_nothing_once_it_has_ended(self):
        with self.attack():
            job, first = self.raw_job()
            agent = self.job_agent(job.job_id)
            flood = self.on_host(NODE, harness.PYTHON, "-c", TAKE_PLACE,
                                 f"{FOLDER}/jobs/{job.job_id}-0", "y\n")
            self.assertTrue(flood.out.find("there", 5), flood.report())
            stream = self.tls()
            stream.sendall(job.line("resume"))
            self.assertRegex(raw_client.read_line(stream), f"^{MARKER} ready ")
            first.close()
            time.sleep(1)
            self.end_process(agent)
            flood.end()
            self.wait_over(job.job_id)
            self.on_node(f"rm -rf {FOLDER}/jobs/{job.job_id}-0")
            self.assertEqual(len(self.connections()), 1)
            lab.wait_until(lambda: not self.connections(), 15, "the connection stays")

    def connections(self):
        """By TLS, of the agent that serves."""
        rows = [row.split() for row in lab.read_text(f"/proc/{self.bed.inits[NODE]}/net/tcp").splitlines()[1:]]
        held = set(map(os.readlink, self.descriptors(self.agents[NODE].pid)))
        return [row[2] for row in rows if row[1].endswith(f":{PORT:04X}") and f"socket:[{row[9]}]" in held
                and row[3] != "0A"]

    def test_two_agents_at_once(self):
        self.stop_agent(self.agents[NODE])
        for k in range(scaled(20, 100)):
            both = [self.on_host(NODE, AGENT, "serve", "--config", self.at("node1.yaml")) for _ in range(2)]
            lab.wait_until(lambda: any(a.process.poll() is not None for a in both), 10, "both live")
            loser, = [a for a in both if a.process.poll() is not None]
            winner, = [a for a in both if a is not loser]
            self.assertEqual(loser.wait(5), 1, loser.report())
            self.assertRegex(loser.err.text, "served by a process that lives|just been taken by another")
            self.assertTrue(winner.err.find("serving at", 5), winner.err.text)
            self.assertEqual(self.ask("status")["jobs"], [])
            winner.signal(signal.SIGKILL if k % 2 else signal.SIGTERM)  # the next ones find a dead socket
            winner.process.wait(10)
        self.assertEqual(self.content_of(FOLDER), ["agent.sock", "jobs", "records"])
        self.start_agent(NODE)
        self.assert_serving()

    def test_a_job_is_reaped_by_one_at_a_time(self):
        job, _ = self.raw_job()
        reap = f"{MARKER} reap --job {job.job_id} --node 0 --grace-ms 60000\n".encode()
        first = self.tls()
        first.sendall(reap)
        with self.attack("refused alice .*is being reaped already"):
            lab.wait_until(lambda: "is being reaped already" in self.first_line_of(reap), 5, "a second reap")
        self.end_job(job.job_id)
        first.close()

    def first_line_of(self, words):
        stream = self.tls()
        stream.sendall(words)
        try:
            return raw_client.read_line(stream)
        finally:
            stream.close()

    def test_a_second_agent_with_the_same_folder(self):
        job, _ = self.raw_job()
        lab.write_text(self.at("second.yaml"), f"listen: tls:0.0.0.0:{PORT + 1}\ntls: {self.at(NODE)}\n{self.CONFIG}")
        with self.attack():
            second = self.on_host(NODE, AGENT, "serve", "--config", self.at("second.yaml"))
            lab.wait_until(lambda: second.process.poll() is not None, 5, f"it serves: {second.err.text}")
            self.assertEqual(second.wait(5), 1, second.report())
            self.assertRegex(second.err.text, f"{FOLDER} is that of another agent, which lives")
            self.assertEqual(self.jobs(), {job.job_id})
            self.end_job(job.job_id)

    def test_a_jobs_agent_that_takes_no_more_connections_is_still_there(self):
        job, _ = self.raw_job()
        agent = self.job_agent(job.job_id)
        os.kill(agent, signal.SIGSTOP)
        self.addCleanup(self.end_process, agent)
        waiting = []
        with contextlib.suppress(BlockingIOError):
            while len(waiting) < 5000:
                waiting.append(socket.socket(socket.AF_UNIX))
                self.addCleanup(waiting[-1].close)
                waiting[-1].settimeout(0)
                waiting[-1].connect(f"{self.root}{FOLDER}/jobs/{job.job_id}-0")
        self.assertEqual(self.jobs(), {job.job_id})
        self.assert_error(self.say(job.line("job")), "is here already")
        self.end_process(agent)
        self.wait_over(job.job_id)

    @staticmethod
    def end_process(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def test_what_the_agent_keeps_is_private(self):
        job, _ = self.raw_job()
        kept = f"{FOLDER}/records/{job.job_id}-0.json"
        self.assertEqual(os.stat(f"{self.root}{FOLDER}/records").st_mode & 0o7777, 0o700)
        self.assertEqual(os.stat(self.root + kept).st_mode & 0o7777, 0o600)
        self.assertEqual(os.stat(f"{self.root}{FOLDER}/jobs").st_mode & 0o7777, 0o700)
        self.assertNotIn(job.key, lab.read_text(self.root + kept))
        for words in (["cat", kept], ["ls", f"{FOLDER}/records"], ["ls", f"{FOLDER}/jobs/{job.job_id}-0"]):
            self.assertIn("Permission denied", self.as_user(NOBODY, *words))
        self.assertIn("Permission denied", self.ask_as(NOBODY, "stop x", path=f"{FOLDER}/jobs/{job.job_id}-0"))
        self.assertEqual(self.jobs(), {job.job_id})


class Locals(Attack):
    """Other users of the node at the agent's unix socket."""

    def test_another_user(self):
        self.assertIn("Permission denied", self.ask_as(NOBODY, MARKER, "ctl", "status"))
        self.must(NODE, "chmod", "666", f"{FOLDER}/agent.sock")  # an administrator's mistake
        with self.attack(rf"refused pid \d+ \(uid {NOBODY}\): only user 0 and root are served"):
            for words in (["ctl", "status"], ["ctl", "kill", "0" * 32], ["--stdio", "--job", "0" * 32, "--node", "0"]):
                self.assertEqual(self.ask_as(NOBODY, MARKER, *words).strip(), "hvd-agent serves user 0 and root only")

    def test_one_who_may_only_look(self):
        self.must(NODE, "sh", "-c", "cp /etc/passwd /run/passwd && echo hvdrun:x:9977:9977::/:/bin/false >>/run/passwd "
                                    "&& mount --bind /run/passwd /etc/passwd")
        self.addCleanup(self.must, NODE, "sh", "-c", "umount /etc/passwd && rm /run/passwd")
        self.stop_agent(self.agents[NODE])
        self.start_agent(NODE)
        self.assertEqual(os.lstat(self.socket).st_mode & 0o777, 0o660)
        self.assertIn("Permission denied", self.ask_as(NOBODY, MARKER, "ctl", "status"))
        self.assert_serving()
        job, _ = self.raw_job()
        who = r"uid 9977 of this machine"
        with self.attack(rf"refused {who} \(pid \d+\): {who} is no admin", rf"refused {who} \(pid \d+\): job .* is alice's",
                         r"refused pid \d+ \(uid 9977\): it may only ask about the node"):
            self.assertIn(f"{MARKER} ok ", self.ask_as(9977, MARKER, "ctl", "status"))
            for words in ["drain"], ["undrain"], ["kill", job.job_id]:
                self.assert_error(self.ask_as(9977, MARKER, "ctl", *words).rstrip("\n") + "\n", "is no admin")
            for words in (["--stdio", "--job", "0" * 32, "--node", "0"], ["--reap", "--job", job.job_id, "--node", "0"],
                          ["job", "--job", "0" * 32, "--node", "0", "--key", "0" * 64],
                          ["resume", "--job", job.job_id, "--node", "0", "--key", job.key]):
                self.assertIn("may only ask about the node", self.ask_as(9977, MARKER, *words))
            self.assertEqual(self.jobs(), {job.job_id})
            self.assertEqual(self.ask("status")["draining"], "")
            self.end_job(job.job_id)

    def test_words_of_a_stop_end_no_line(self):
        run, job_id = self.sleeper()
        door = f"{self.root}{FOLDER}/jobs/{job_id}-0"
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(door)
            stream.sendall(b"stop it \x1b[2J\r\x07 hvdrun: all is well\n")
            self.assertEqual(stream.recv(10), b"ok\n")
        run.wait(10)
        self.assert_code(run, 125)
        self.assert_last_line(run, r"it \\x1b\[2J\\x0d\\x07 hvdrun: all is well")


class Queue(Attack):
    CONFIG = Attack.CONFIG + "busy_gpus: wait\nmax_jobs: 1\n"
    MOST = 64  # of one client

    def wait_in_line(self, who, job):
        stream = self.tls(who)
        stream.sendall(job.line("job"))
        return stream, raw_client.read_line(stream)

    def test_who_fills_the_queue(self):
        job, _ = self.raw_job()
        with self.attack(f"refused bob .*: {self.MOST} jobs of bob wait here already"):
            waiting = []
            for k in range(self.MOST):
                stream, answer = self.wait_in_line("bob", Job())
                self.assertRegex(answer, f"^{MARKER} wait ")
                waiting.append(stream)
            self.assert_error(self.wait_in_line("bob", Job())[1], "wait here already")
            last, answer = self.wait_in_line("alice", Job())
            self.assertRegex(answer, f"^{MARKER} wait ")
            for stream in [*waiting, last]:
                stream.close()
            self.end_job(job.job_id)
            lab.wait_until(lambda: not self.jobs(), 5, "somebody waits")


class Secrets(Attack):
    SENTINEL = "SENTINEL123"

    def setUp(self):
        super().setUp()
        self.seen = set()
        self.is_over = False
        self.sampler = threading.Thread(target=self.sample, daemon=True)
        self.sampler.start()
        self.addCleanup(self.stop_sampling)

    def sample(self):
        """Command lines of all processes on all hosts, as often as it goes."""
        while not self.is_over:
            self.seen.update(lab.read_text(f"/proc/{pid}/cmdline") for pid in filter(str.isdigit, os.listdir("/proc")))
            time.sleep(0.002)

    def stop_sampling(self):
        self.is_over = True
        self.sampler.join(5)

    def key_sums(self):
        records = f"{self.root}{FOLDER}/records"
        return {json.loads(lab.read_text(os.path.join(records, name)))["key_sum"] for name in os.listdir(records)}

    def test_keys_and_values_are_told_to_nobody(self):
        words = ("-vv", "-x", "WANDB_API_KEY", "-H", f"{NODE}:2", "--grace", 1)
        env = {"WANDB_API_KEY": self.SENTINEL}
        runs = [self.by_tls(*words, "sh", "-c", "test $WANDB_API_KEY = SENTINEL123", env=env),
                self.by_tls(*words, "no-such-program", env=env), self.by_tls(*words, "sh", "-c", "kill -SEGV $$", env=env)]
        self.assertEqual([run.code for run in runs], [0, 127, 139], runs[0].report())
        again = self.start_by_tls(*words, "sleep", 600, env=env)
        self.wait_workers(2, again)
        self.agents[NODE].signal(signal.SIGKILL)  # and the job is resumed by its key
        self.agents[NODE].process.wait(5)
        logs = [self.log.text]
        self.start_agent(NODE)
        self.assertTrue(self.log.find("is connected again", 10))
        worker = next(iter(self.workers(NODE)))
        inside = lab.read_text(f"/proc/{worker}/status").split("NSpid:")[1].split("\n")[0].split()[-1]
        self.assertIn("Permission denied", self.as_user(NOBODY, "cat", f"/proc/{inside}/environ"))
        for process in self.state.processes(host=NODE):
            if process.words.split()[1:2] == ["job"]:
                os.kill(process.pid, signal.SIGKILL)
        again.wait(10)
        self.assert_code(again, 125)
        self.stop_sampling()
        sums = self.key_sums()
        self.assertGreaterEqual(len(sums), 5)
        texts = [*self.seen, *logs, self.log.text, *(run.err.text + run.out.text for run in [*runs, again])]
        self.assertTrue(any("\0job\0--job\0" in text for text in texts), "no job's agent was seen")
        self.assertIn("WANDB_API_KEY", runs[0].err.text)  # its name is told
        for text in texts:
            self.assertNotIn(self.SENTINEL, text.replace("test $WANDB_API_KEY = SENTINEL123", ""))
            for word in re.findall("(?=([0-9a-f]{64}))", text):
                self.assertNotIn(hashlib.sha256(word.encode()).hexdigest(), sums)


if __name__ == "__main__":
    harness.main()
