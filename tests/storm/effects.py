"""What happened, in a ledger outside of the store, beside what is on record and what
callers were told: for the storms over work that is another program's.

A line of the ledger is "KEY FENCE TAKEOVER", written when the effect happens.
"""

import collections
import json
import os
from typing import NamedTuple

from tap import Idem


class Effect(NamedTuple):
    """One time that the work was done: under which fence, and told that it takes over."""

    fence: int
    takeover: bool


def read(path):
    """{key: [Effect, in order]} of the ledger; without idem the fences are 0."""
    found = collections.defaultdict(list)
    if os.path.exists(path):
        with open(path, encoding="ascii") as f:
            for line in f:
                key, fence, takeover = line.split()
                found[key].append(Effect(int(fence), takeover in ("1", "true")))
    return dict(found)


def records(store):
    """{key: what idem list tells of it}."""
    told = Idem(store)("list", "--json")
    assert told.status == 0, told
    return {r["key"]: r for r in map(json.loads, told.stdout.splitlines())}


def judge_key(policy, ends, effects, record, acknowledged):
    """Yield what is wrong with one key: @effects, what is on record or None, and whether
    a caller was told that it is done. @ends are the statuses that it may have."""
    status = record and record["status"]
    if status not in ends:
        yield f"{status} in the end"
        return
    if acknowledged and (status != "completed" or not effects):
        yield f"acknowledged, and {status} after {len(effects)} effects"
    if status == "completed" and not effects:
        yield "completed without an effect"
    if len(effects) > record["attempts"]:
        yield f"{len(effects)} effects in {record['attempts']} attempts"
    if policy == "hold" and len(effects) > 1:
        yield f"{len(effects)} effects under hold"
    if not all(effect.takeover for effect in effects[1:]):
        yield f"a second effect that was not told of the first: {effects}"
    fences = [effect.fence for effect in effects]
    if fences != sorted(set(fences)) or fences and fences[-1] > record["fence"]:
        yield f"fences {fences}, on record {record['fence']}"


def judge(policy, ends, effects, found, acknowledged):
    """All that is wrong, as lines; empty if nothing is."""
    return [
        f"{key}: {fault}"
        for key in sorted({*effects, *found, *acknowledged})
        for fault in judge_key(
            policy, ends, effects.get(key, []), found.get(key), key in acknowledged
        )
    ]


def again(effects):
    """How many keys had their effect more than once."""
    return sum(len(times) > 1 for times in effects.values())
