"""What the proxy does to a request or its answer: one function for each class.

A function gets the proxy, the client's connection and the request, and answers
True when the client has met the fault. False: the fault did not fit the server's
answer, which was passed on as it was.
"""

import asyncio
import json
import time
import zlib
from email.utils import formatdate
from typing import Callable, NamedTuple


class Class(NamedTuple):
    """A class of faults."""

    do: Callable
    suits: Callable  # Of the proxy and the request.


CLASSES = {}


def anything(_proxy, _request):
    return True


def a_write(_proxy, request):
    return request.writes


def fault(name, suits=anything):
    """Register a class of faults by its name."""

    def register(function):
        CLASSES[name] = Class(function, suits)
        return function

    return register


# ---- Time ----


@fault("latency")
async def latency(proxy, client, request):
    await asyncio.sleep(proxy.random.uniform(0.005, 0.1))
    answer = await proxy.forward(request)
    await asyncio.sleep(proxy.random.uniform(0.005, 0.1))
    await client.send(answer.bytes())
    return True


@fault("slow bytes")
async def slow_bytes(proxy, client, request):
    data = (await proxy.forward(request)).bytes()
    step = max(7, len(data) // 12)
    for at in range(0, len(data), step):
        await client.send(data[at : at + step])
        await asyncio.sleep(0.004)
    return True


# ---- Connections ----


@fault("reset before", a_write)
async def reset_before(_proxy, client, _request):
    client.reset()
    return True


@fault("reset after", a_write)
async def reset_after(proxy, client, request):
    await proxy.forward(request)
    client.reset()
    return True


@fault("no answer, not applied", a_write)
async def black_hole_before(_proxy, client, _request):
    await client.hang_up()
    return True


@fault("no answer, applied", a_write)
async def black_hole_after(proxy, client, request):
    await proxy.forward(request)
    await client.hang_up()
    return True


@fault("half closed, applied late", a_write)
async def half_closed(proxy, client, request):
    client.half_close()
    proxy.forward_later(request, proxy.random.uniform(0, 0.3))
    await client.hang_up()
    return True


# ---- Copies ----


@fault("twice", a_write)
async def twice(proxy, client, request):
    await proxy.forward(request)
    await client.send((await proxy.forward(request)).bytes())
    return True


@fault("a late copy", a_write)
async def late_copy(proxy, client, request):
    await client.send((await proxy.forward(request)).bytes())
    proxy.forward_later(request, proxy.random.uniform(0, 2))
    return True


# ---- Refusals ----


async def refuse(client, status, name, message):
    """Answer as the service does: with the name behind its prefix."""
    space = "com.amazon.coral.service" if "Throttling" in name else "com.amazonaws.dynamodb.v20120810"
    body = json.dumps({"__type": f"{space}#{name}", "message": message}).encode()
    lines = [
        f"HTTP/1.1 {status}",
        f"Date: {formatdate(time.time(), usegmt=True)}",
        "Content-Type: application/x-amz-json-1.0",
        f"x-amz-crc32: {zlib.crc32(body)}",
        f"Content-Length: {len(body)}",
    ]
    await client.send("\r\n".join([*lines, "", ""]).encode() + body)
    return True


SERVER_ERROR = ("500 Internal Server Error", "InternalServerError", "Internal server error")


def refusal(name, suits, *said):
    """Register a class of requests that are refused, and not applied."""

    @fault(name, suits)
    async def refused(_proxy, client, _request):
        return await refuse(client, *said)


BAD = "400 Bad Request"
refusal("500 before", a_write, *SERVER_ERROR)
refusal("throughput exceeded", anything, BAD, "ProvisionedThroughputExceededException",
        "The level of configured provisioned throughput for the table was exceeded.")
refusal("throttled", anything, BAD, "ThrottlingException", "Rate of requests exceeds the limit")
refusal("transaction conflict", a_write, BAD, "TransactionConflictException",
        "Transaction is ongoing for the item")
refusal("transaction in progress", a_write, BAD, "TransactionInProgressException",
        "Transaction is in progress")


@fault("500 after", a_write)
async def error_after(proxy, client, request):
    await proxy.forward(request)
    return await refuse(client, *SERVER_ERROR)


@fault("503")
async def unavailable(_proxy, client, _request):
    body = b"<html>Service Unavailable</html>"
    await client.send(
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return True


# ---- Answers that are not as they were ----


@fault("bad crc32")
async def bad_crc32(proxy, client, request):
    answer = await proxy.forward(request)
    answer.put(b"x-amz-crc32", b"%d" % (zlib.crc32(answer.body) ^ 1))
    await client.send(answer.bytes())
    return True


def new_body(answer, body):
    """Give @answer another body, whose length and checksum are right."""
    answer.body = body
    answer.put(b"content-length", b"%d" % len(body))
    if answer.get(b"x-amz-crc32") is not None:
        answer.put(b"x-amz-crc32", b"%d" % zlib.crc32(body))


@fault("cut JSON")
async def cut_json(proxy, client, request):
    answer = await proxy.forward(request)
    new_body(answer, answer.body[: proxy.random.randrange(len(answer.body))])
    await client.send(answer.bytes())
    return True


@fault("cut body")
async def cut_body(proxy, client, request):
    data = (await proxy.forward(request)).bytes()
    await client.send(data[: len(data) - 1 - proxy.random.randrange(2)])
    client.close()
    return True


def has_a_clock(proxy, request):
    return request.client in proxy.known


@fault("wrong Date", has_a_clock)
async def wrong_date(proxy, client, request):
    answer = await proxy.forward(request)
    off = proxy.random.choice((-1, 1)) * proxy.random.uniform(3, 20)
    answer.put(b"date", formatdate(time.time() + off, usegmt=True).encode())
    await client.send(answer.bytes())
    return True


def is_conditional(_proxy, request):
    return request.conditional


@fault("no old item", is_conditional)
async def no_old_item(proxy, client, request):
    answer = await proxy.forward(request)
    said = json.loads(answer.body)
    met = said.pop("Item", None) is not None
    if met:
        new_body(answer, json.dumps(said).encode())
    await client.send(answer.bytes())
    return met
