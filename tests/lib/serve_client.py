"""A stand-in for the clients of idem serve; and a worker that has one, to be killed.

    serve_client.py WORK KEY POLICY [ON_DEATH]    see work()
"""

import contextlib
import json
import os
import secrets
import select
import socket
import subprocess
import sys

PATIENCE = 60


class Refused(Exception):
    """Raised for an answer with an error: args[0] has code, message and data."""


class Client:
    """One connection. Answers come in any order; notifications are kept."""

    def __init__(self, read, write, process=None):
        self.read, self.write, self.process = read, write, process
        self.number, self.buffer = 0, b""
        self.answers, self.told = {}, []
        self.socket = None

    @classmethod
    def start(cls, *args, program=None, env=None, **popen):
        program = program or os.environ["IDEM_PROGRAM"]
        pipe = subprocess.PIPE
        argv = [program, "serve", "--stdio", *args]
        child = subprocess.Popen(argv, stdin=pipe, stdout=pipe, env=env, bufsize=0, **popen)
        ends = os.dup(child.stdout.fileno()), os.dup(child.stdin.fileno())
        child.stdout.close()
        child.stdin.close()
        return cls(*ends, child)

    @classmethod
    def connect(cls, path):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(path)
        client = cls(sock.fileno(), sock.fileno())
        client.socket = sock  # Closes both.
        return client

    @classmethod
    def reach(cls, path):
        """Do the same, or return None while nobody listens there."""
        with contextlib.suppress(OSError):
            return cls.connect(path)
        return None

    def hello(self, **params):
        return self("hello", protocol=1, **params)

    def raw(self, line):
        while line:
            line = line[os.write(self.write, line) :]

    def send(self, method, /, **params):
        """Send a request and return its id."""
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.raw(json.dumps(message).encode() + b"\n")
        return self.number

    def readable(self, seconds):
        return bool(select.select([self.read], [], [], seconds)[0])

    def line(self, seconds=PATIENCE):
        """Read the next line, or return None at the end."""
        while b"\n" not in self.buffer:
            assert self.readable(seconds), "no answer"
            more = os.read(self.read, 1 << 20)
            if not more:
                return None
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def take(self):
        """Read one line, and keep its message. Return False at the end."""
        line = self.line()
        if line is None:
            return False
        message = json.loads(line)
        if "method" in message:
            self.told.append(message["params"])
        else:
            self.answers[message["id"]] = message
        return True

    def answer(self, number):
        while number not in self.answers:
            assert self.take(), "the server has gone"
        answer = self.answers.pop(number)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def __call__(self, method, /, **params):
        return self.answer(self.send(method, **params))

    def begin(self, key, nonce=None, **params):
        return self("begin", key=key, nonce=nonce or secrets.token_hex(16), **params)

    def lost(self):
        """Wait for the next notification that an attempt was lost."""
        while not self.told:
            self("ping")
        return self.told.pop(0)

    def close(self):
        if self.socket:
            self.socket.close()
            return None
        with contextlib.suppress(OSError):
            os.close(self.write)
        status = self.process.wait(PATIENCE)
        with contextlib.suppress(OSError):
            os.close(self.read)
        return status


def say(word):
    print(word, flush=True)


def work(what, key, policy, on_death="lease"):
    params = {"on_expired_lease": policy, "on_death": on_death, "lease_ms": 600000}
    client = Client.start()
    say(f"child {client.process.pid}")
    client.hello(pid=os.getpid())
    got = client.begin(key, **params)
    say(f"attempt {got['attempt']}")
    if what == "leave-child":
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "600"])  # It keeps both pipes open.
    if what == "last-word":
        sys.stdin.readline()
        client.send("complete", attempt=got["attempt"], result={"text": "said"})
        say("said")
    sys.stdin.readline()


if __name__ == "__main__":
    work(*sys.argv[1:])
