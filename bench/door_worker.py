"""Operations from Python, for bench/door, as door.js does them: one at a time by the
blocking store, and more by that for asyncio."""

import asyncio
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "clients", "python"))

import idem  # noqa: E402

RESULT = "x" * 1024


def idle():
    raise RuntimeError("a duplicate was executed")


def new(store, key):
    return store.begin(key).complete(RESULT)


async def new_async(store, key):
    return await (await store.begin(key)).complete(RESULT)


OPERATIONS = {
    "new": (new, new_async),
    "once": (lambda store, key: store.once(key, lambda: RESULT),) * 2,
    "dup": (lambda store, key: store.once(key, idle),) * 2,
}


class Work:
    def __init__(self, what, first, keys, ops):
        self.what, self.keys = what, (f"python-{first + n % keys:039d}" for n in range(ops))
        self.took = []

    def end(self, start, seen):
        self.took.append(time.perf_counter() - start)
        if seen != RESULT:
            raise RuntimeError(f"{self.what}: another result")

    def block(self, store):
        for key in self.keys:
            start = time.perf_counter()
            self.end(start, OPERATIONS[self.what][0](store, key))

    async def go(self, store):
        for key in self.keys:
            start = time.perf_counter()
            self.end(start, await OPERATIONS[self.what][1](store, key))

    async def fly(self, store, in_flight):
        await asyncio.gather(*(self.go(store) for _ in range(in_flight)))


def main():
    store, loop = idem.open(sys.argv[2]), asyncio.new_event_loop()
    awaited = idem.open_async(sys.argv[2])
    for line in sys.stdin:
        what, *numbers = line.split()
        in_flight, first, keys, ops = map(int, numbers)
        work = Work(what, first, keys, ops)
        start = time.perf_counter()
        if in_flight == 1:
            work.block(store)
        else:
            loop.run_until_complete(work.fly(awaited, in_flight))
        wall = (time.perf_counter() - start) * 1e6
        took = sorted(work.took)
        p50, p99 = (took[int(part * (ops - 1))] * 1e6 for part in (0.5, 0.99))
        print(json.dumps({"wall_us": wall, "p50_us": p50, "p99_us": p99}), flush=True)


main()
