"""A proxy before a DynamoDB server that logs each call: the client, the request, the answer
of the server, and the times. It passes a request on to the server, and logs it with the
answer, even if the client is killed meanwhile.

    with wiretap.before(url) as wire:
        ... work at wire.url ...
        wire.calls()            # [Call], in the order of their answers
        wire.hold("completed")  # Keeps the next request with these bytes from the server
        wire.wait_held()
        wire.release()          # ... until now.

It is a process of its own, so that a busy test does not delay calls. Times are those of
CLOCK_MONOTONIC, which all processes share.
"""

import asyncio
import collections
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

LONGEST_ANSWER = 64 * 1024 * 1024
LONGEST_KEPT = 64 * 1024  # Of a longer answer, such as that of a Scan, "" is kept.


class Call(collections.namedtuple(
        "Call", "client operation request status answer came answered")):
    """@client is the access key that signed it. @came is when the proxy had the whole request,
    @answered when it had the server's whole answer: the server acted in between, if at all."""

    @property
    def asked(self):
        return json.loads(self.request)

    @property
    def told(self):
        return json.loads(self.answer)


# ---- In the test ----


class Wire:
    """The proxy, and its log."""

    def __init__(self, process, log):
        self.process = process
        self.log = log
        self.found = []
        self.at = 0
        self.url = self._hear()

    def _hear(self):
        return self.process.stdout.readline().decode().strip()

    def _say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def calls(self):
        """Return all calls that were answered so far."""
        with open(self.log, "rb") as log:
            log.seek(self.at)
            for line in log:
                if line.endswith(b"\n"):
                    self.at += len(line)
                    self.found.append(Call(*json.loads(line)))
        return self.found

    def hold(self, text):
        """Hold the next request that has @text in its body."""
        self._say("hold " + text)
        assert self._hear() == "ready"

    def wait_held(self):
        """Wait until a request is held."""
        assert self._hear() == "held"

    def release(self):
        """Pass the held request on to the server."""
        self._say("release")


@contextlib.contextmanager
def before(url):
    """Run a wiretap before the server at @url."""
    with tempfile.TemporaryDirectory(prefix="idem-wiretap-") as directory:
        log = os.path.join(directory, "calls")
        with subprocess.Popen(
            [sys.executable, __file__, url, log],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            try:
                yield Wire(process, log)
            finally:
                process.stdin.close()  # It ends with us, however we end.
                process.wait()


# ---- Between ----


async def read_message(reader):
    """The head and the body of a request or an answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
    return head, await reader.readexactly(int(found[1]) if found else 0)


def field(pattern, head):
    found = re.search(pattern, head, re.I)
    return found[1].decode() if found else ""


class Proxy:
    def __init__(self, url, log):
        parts = urllib.parse.urlsplit(url)
        self.upstream = (parts.hostname, parts.port)
        self.log = log
        self.wanted = None  # The bytes of the request that is to be held.
        self.released = asyncio.Event()
        self.clients = set()  # asyncio itself may drop a task that only waits.

    def accept(self, reader, writer):
        task = asyncio.ensure_future(self.serve(reader, writer))
        self.clients.add(task)
        task.add_done_callback(self.clients.discard)

    async def serve(self, reader, writer):
        """One connection of a client, with one to the server."""
        back_reader, back_writer = await asyncio.open_connection(
            *self.upstream, limit=LONGEST_ANSWER)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head, body = await read_message(reader)
                await self.hold_up(body)
                came = time.monotonic()
                back_writer.write(head + body)
                answer_head, answer = await read_message(back_reader)
                self.take_down(head, body, answer_head, answer, came)
                writer.write(answer_head + answer)
                await writer.drain()
        back_writer.close()
        writer.close()

    async def hold_up(self, body):
        """Nothing of a request that is held has come yet, as the server sees it."""
        if self.wanted is not None and self.wanted in body:
            self.wanted = None
            print("held", flush=True)
            await self.released.wait()

    def take_down(self, head, body, answer_head, answer, came):
        """Log a call before the client has its answer, so that whatever follows from the
        answer finds the call in the log."""
        call = Call(
            field(rb"Credential=([^/]*)/", head),
            field(rb"x-amz-target: *\S*?\.(\w+)", head),
            body.decode(),
            int(answer_head.split(b" ", 2)[1]),
            answer.decode() if len(answer) <= LONGEST_KEPT else "",
            came,
            time.monotonic(),
        )
        self.log.write(json.dumps(call).encode() + b"\n")

    def hear(self, ended):
        """Obey the commands of the test, and end with it."""
        word, _, text = sys.stdin.readline().strip().partition(" ")
        if word == "hold":
            self.wanted = text.encode()
            self.released.clear()
            print("ready", flush=True)
        elif word == "release":
            self.released.set()
        else:
            ended.set()

    async def run(self):
        server = await asyncio.start_server(
            self.accept, "127.0.0.1", 0, limit=LONGEST_ANSWER, backlog=512)
        print("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin, self.hear, ended)
        await ended.wait()
        os._exit(0)  # The log is not buffered, and no client waits for an answer.


def main():
    url, log = sys.argv[1:]
    with open(log, "wb", buffering=0) as file:
        asyncio.run(Proxy(url, file).run())


if __name__ == "__main__":
    main()
