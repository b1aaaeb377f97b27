"""A proxy between clients and a DynamoDB server that does them wrong by a seed.

    with proxy.chaos(url, seed=1, rate=0.2) as between:
        ... work at between.url ...
        between.hits        # Counter: how often each class of faults was met
        between.requests    # how many requests came

Every class of faults is met equally often: they are dealt from a shuffled deck,
to whichever request the next one suits. A client is known by its access key; its
first answer has the right Date, because nobody can know better then.

With a rule instead, a function as in faults.py, each request meets that, but for looks
whether the store was moved, which are not counted.
"""

import asyncio
import collections
import contextlib
import random
import re
import socket
import struct
import threading
import time
import urllib.parse

import faults

LONGEST_ANSWER = 64 * 1024 * 1024
IDLE_S = 5


class Request:
    """One request of a client, as it came."""

    def __init__(self, head, body):
        # Whether a connection lasts is for each side of the proxy to say.
        head, self.last = re.subn(rb"\r\nconnection: *close(?=\r)", b"", head, flags=re.I)
        self.bytes = head + body
        found = re.search(rb"x-amz-target: *\S*?\.(\w+)", head, re.I)
        self.operation = found[1].decode() if found else ""
        found = re.search(rb"Credential=([^/]*)/", head)
        self.client = found[1].decode() if found else ""
        self.body = body

    @property
    def writes(self):
        writes = ("Put", "Update", "Delete", "BatchWrite", "TransactWrite")
        return self.operation.startswith(writes)

    @property
    def of_the_mark(self):
        """A look whether the store was moved, which goes before a client's first claim."""
        return self.operation == "GetItem" and b"idem#move" in self.body

    @property
    def conditional(self):
        return b"ReturnValuesOnConditionCheckFailure" in self.body


class Answer:
    """One answer of the server, which a fault may change before it goes on."""

    def __init__(self, head, body):
        self.status, *lines = head[:-4].split(b"\r\n")
        self.headers = [line.split(b": ", 1) for line in lines]
        self.body = body

    def get(self, name):
        return next((v for n, v in self.headers if n.lower() == name), None)

    def put(self, name, value):
        """Set a header, in the place of the one that is there."""
        for header in self.headers:
            if header[0].lower() == name:
                header[1] = value
                return
        self.headers.append([name, value])

    def bytes(self):
        lines = [self.status, *(b": ".join(header) for header in self.headers)]
        return b"\r\n".join([*lines, b"", b""]) + self.body


def length_of(head):
    found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
    return int(found[1]) if found else 0


class Client:
    """A connection of a client."""

    def __init__(self, proxy, reader, writer):
        self.proxy = proxy
        self.reader = reader
        self.writer = writer
        self.ended = False

    async def read(self):
        """The next Request."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        return Request(head, await self.reader.readexactly(length_of(head)))

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()

    def reset(self):
        """End it with RST."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        self.ended = True

    def close(self):
        """End it, once what was sent is on its way."""
        self.writer.close()
        self.ended = True

    def half_close(self):
        """Send nothing more, and say so."""
        self.writer.write_eof()

    async def hang_up(self):
        """Wait until the client does, and end it."""
        with contextlib.suppress(OSError):
            while await self.reader.read(65536):
                pass
        self.close()


async def passed_on(proxy, client, request):
    """What no fault happens to."""
    answer = await proxy.forward(request)
    await client.send(answer.bytes())
    proxy.known.add(request.client)


class Proxy:
    """The proxy's address, and what it has done."""

    def __init__(self, url, seed, rate, classes, rule):
        parts = urllib.parse.urlsplit(url)
        self.upstream = (parts.hostname, parts.port)
        self.url = None
        self.rate = rate
        self.random = random.Random(seed)
        self.classes = classes
        self.rule = rule
        self.hits = collections.Counter()
        self.requests = 0
        self.known = set()  # Clients that had an answer.
        self.deck = []
        self.idle = []  # Connections to the server.
        self.late = set()
        self.clients = set()  # What goes on after its client was answered.

    # ---- Which fault ----

    def deal(self, request):
        """The class of the fault that @request meets, or None."""
        if self.random.random() >= self.rate:
            return None
        if len(self.deck) < len(self.classes):
            fresh = list(self.classes)
            self.random.shuffle(fresh)
            self.deck = fresh + self.deck
        for at in range(len(self.deck) - 1, -1, -1):
            if faults.CLASSES[self.deck[at]].suits(self, request):
                return self.deck.pop(at)
        return None

    # ---- The server ----

    async def connect(self):
        """A connection to the server that it has not had the time to end."""
        while self.idle:
            used, reader, writer = self.idle.pop()
            if time.monotonic() - used < IDLE_S:
                return reader, writer
            writer.close()
        return await asyncio.open_connection(*self.upstream, limit=LONGEST_ANSWER)

    async def forward(self, request):
        """The server's Answer to @request."""
        reader, writer = await self.connect()
        try:
            writer.write(request.bytes)
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(length_of(head))
        except (OSError, asyncio.IncompleteReadError) as error:
            raise RuntimeError(f"the server went away: {error!r}") from None
        self.idle.append((time.monotonic(), reader, writer))
        return Answer(head, body)

    def forward_later(self, request, seconds):
        """Another copy of @request, that nobody waits for."""

        async def later():
            await asyncio.sleep(seconds)
            await self.forward(request)

        task = asyncio.ensure_future(later())
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    # ---- Clients ----

    def accept(self, reader, writer):
        """A task of ours, as asyncio 3.11 takes a cancelled one of its own for a
        mishap."""

        def ended(task):
            self.clients.discard(task)
            if not task.cancelled():
                task.result()

        task = asyncio.ensure_future(self.serve(reader, writer))
        self.clients.add(task)
        task.add_done_callback(ended)

    async def serve(self, reader, writer):
        client = Client(self, reader, writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while not client.ended:
                request = await client.read()
                await self.answer(client, request)
                client.ended = client.ended or request.last
        with contextlib.suppress(OSError):
            writer.close()

    async def answer(self, client, request):
        if self.rule and request.of_the_mark:
            await passed_on(self, client, request)
            return
        self.requests += 1
        if self.rule:
            await self.rule(self, client, request)
            return
        name = self.deal(request)
        if name is None:
            await passed_on(self, client, request)
        else:
            met = await faults.CLASSES[name].do(self, client, request)
            self.hits[name] += met
            if not met:
                self.deck.append(name)

    async def run(self, started, stop):
        server = await asyncio.start_server(
            self.accept, "127.0.0.1", 0, limit=LONGEST_ANSWER, backlog=512
        )
        self.url = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        server.close()
        if self.late:
            await asyncio.wait(self.late)


@contextlib.contextmanager
def chaos(url, seed=1, rate=0.2, classes=tuple(faults.CLASSES), rule=None):
    """Stand before the server at @url."""
    between = Proxy(url, seed, rate, classes, rule)
    started = threading.Event()
    loop = asyncio.new_event_loop()
    failed = []
    loop.set_exception_handler(lambda _, context: failed.append(context))
    stop = asyncio.Event()

    def run():
        asyncio.set_event_loop(loop)
        loop.run_until_complete(between.run(started, stop))
        while tasks := asyncio.all_tasks(loop):
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait()
    try:
        yield between
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
    assert not failed, failed[:3]
