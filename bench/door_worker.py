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
        self.took, self.beats = [], []

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

    async def beat(self):
        """What a timer of a millisecond takes: whatever the loop is at delays it."""
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.001)
            self.beats.append(time.perf_counter() - start)

    async def fly(self, store, in_flight):
        beat = asyncio.ensure_future(self.beat())
        await asyncio.gather(*(self.go(store) for _ in range(in_flight)))
        beat.cancel()


def part_of(took, part):
    return sorted(took)[int(part * (len(took) - 1))] * 1e6


def main():
    store, loop = idem.open(sys.argv[1]), asyncio.new_event_loop()
    awaited = idem.open_async(sys.argv[1])
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
        got = {"wall_us": wall, "p50_us": part_of(work.took, 0.5), "p99_us": part_of(work.took, 0.99)}
        if work.beats:
            got["loop_us"] = part_of(work.beats, 0.99)
        print(json.dumps(got), flush=True)


main()
