"""What the ledger and the records must not show, whatever was killed when."""

import base64
import collections
import json
from typing import NamedTuple


class Event(NamedTuple):
    """A line of the ledger; see ledger.h."""

    what: str
    key: str
    fence: int
    rest: list


class Record(NamedTuple):
    """What the store has of a key."""

    status: str
    fence: int
    attempts: int
    result: bytes


def read_ledger(path):
    events = []
    with open(path, encoding="ascii") as f:
        for line in f:
            what, key, fence, *rest = line.split()
            events.append(Event(what, key, int(fence), rest))
    return events


def read_export(text):
    """{key: Record} of the lines of `idem export`."""
    records = {}
    for line in text.splitlines()[1:]:
        r = json.loads(line)
        result = base64.b64decode(r.get("result", ""))
        records[r["key"]] = Record(r["status"], r["fence"], r["attempts"], result)
    return records


def id_of(result):
    """The id of a product (product.h)."""
    return result.split(b" ", 1)[0].decode(errors="replace")


def stdout_of(result):
    """What a recorded output holds of stdout: all of it, or frames where the command
    wrote to stderr too. No product begins as a frame does."""
    if result[:1] not in (b"\1", b"\2"):
        return result
    out = b""
    while result:
        length = int.from_bytes(result[1:5], "big")
        if result[0] == 1:
            out += result[5 : 5 + length]
        result = result[5 + length :]
    return out


def by_key(events):
    found = collections.defaultdict(list)
    for event in events:
        found[event.key].append(event)
    return found


def _twice(key, events, what, name):
    """Of an attempt there is one start and one effect, by one process."""
    counts = collections.Counter(e.fence for e in events if e.what == what)
    return [f"{key}: {n} {name} with fence {f}" for f, n in counts.items() if n > 1]


def _completions(key, events, record):
    """Lost ones, stale ones, and replays of something else."""
    faults = []
    started = [e.fence for e in events if e.what in "SE"]
    acknowledged = {(e.fence, e.rest[1]) for e in events if e.what == "A"}
    replayed = {(e.fence, e.rest[1]) for e in events if e.what == "R"}
    outcome = None
    if record is not None and record.status == "completed":
        outcome = (record.fence, id_of(record.result))
    for fence, product in sorted(acknowledged):
        if outcome != (fence, product):
            faults.append(f"{key}: lost the acknowledged completion {fence} {product}")
        if started and fence < max(started):
            faults.append(f"{key}: completed by {fence} after {max(started)} started")
    for what in sorted(replayed - {outcome}):
        faults.append(f"{key}: replayed {what}, on record is {outcome}")
    if any(e.what == "X" for e in events):
        faults.append(f"{key}: a replay that nobody made")
    return faults


def judge_key(key, events, record):
    """What is wrong with one key whose record never expires."""
    faults = _twice(key, events, "S", "starts") + _twice(key, events, "E", "effects")
    effects = sum(e.what == "E" for e in events)
    started = [e.fence for e in events if e.what == "S"]
    faults += _completions(key, events, record)
    if started and record is None:
        return faults + [f"{key}: started, and nothing is on record"]
    if record is None:
        return faults
    if effects > record.attempts:
        faults.append(f"{key}: {effects} effects in {record.attempts} attempts")
    if started and max(started) > record.fence:
        faults.append(f"{key}: fence {max(started)} is not on record")
    if key[0] == "h" and effects > 1:
        faults.append(f"{key}: {effects} effects under hold")
    if key[0] == "r" and any(e.what == "U" for e in events):
        faults.append(f"{key}: unknown under rerun")
    for e in events:
        if e.what == "T" and record.fence <= e.fence:
            faults.append(f"{key}: {e.fence} was told LOST, but nobody followed")
    return faults


def judge_lives(key, events):
    """What is wrong with a key whose records expire: fences tell the lives apart."""
    faults = _twice(key, events, "S", "starts") + _twice(key, events, "E", "effects")
    products = collections.defaultdict(set)
    for e in events:
        if e.what in "AR":
            products[e.fence].add(e.rest[1])
        if e.what == "X":
            faults.append(f"{key}: a replay that nobody made")
    for fence, ids in products.items():
        if len(ids) > 1:
            faults.append(f"{key}: the fence {fence} has the outcomes {ids}")
    started = [e.fence for e in events if e.what == "S"]
    if started != sorted(started):
        faults.append(f"{key}: its fences do not grow: {started}")
    return faults


def judge_answers(answers, records):
    """@answers: (key, stdout) of every `idem run` that ended with 0."""
    faults = []
    for key, out in answers:
        record = records.get(key)
        if record is None or record.status != "completed":
            faults.append(f"{key}: lost the acknowledged run {id_of(out)}")
        elif stdout_of(record.result) != out:
            faults.append(f"{key}: printed {id_of(out)}, on record is another")
    return faults


def judge(events, records, answers=()):
    """All that is wrong; empty if nothing is."""
    faults = []
    for key, of_key in sorted(by_key(events).items()):
        if key[0] == "p":
            faults += judge_lives(key, of_key)
        else:
            faults += judge_key(key, of_key, records.get(key))
    return faults + judge_answers(answers, records)


def count(events, records, answers):
    """Print what there was to judge."""
    seen = collections.Counter(e.what for e in events)
    effects = collections.Counter(e.key for e in events if e.what == "E")
    again = sum(n - 1 for key, n in effects.items() if key[0] != "p" and n > 1)
    statuses = collections.Counter(r.status for r in records.values())
    print(f"# {seen['E']} effects, {again} of them again under rerun")
    print(f"# {seen['A']} completions acknowledged, {seen['T']} refused as LOST")
    print(f"# {seen['R']} replays, and {len(answers)} idem runs that ended with 0")
    print(f"# {len(records)} keys: {dict(statuses)}")
