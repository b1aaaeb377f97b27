"""What the ledger and the records of a table must not show.

Lines of the ledger (owner.h) are in the order in which things happened: a line
is written after what it is about, and B and C before.
"""

import base64
import collections
import json
from typing import NamedTuple


class Event(NamedTuple):
    what: str
    key: str
    who: int
    fence: int
    id: str


class Record(NamedTuple):
    """What the store has of a key."""

    status: str
    fence: int
    attempts: int
    id: str  # Of its result.


def read_ledger(path):
    events = []
    with open(path, encoding="ascii") as f:
        for line in f:
            what, key, who, fence, *rest = line.split()
            events.append(Event(what, key, int(who), int(fence), *(rest or [""])))
    return events


def read_export(text):
    """{key: Record} of the lines of `idem export`."""
    records = {}
    for line in text.splitlines()[1:]:
        r = json.loads(line)
        result = base64.b64decode(r.get("result", ""))
        name = result.split(b" ", 1)[0].decode(errors="replace")
        records[r["key"]] = Record(r["status"], r["fence"], r["attempts"], name)
    return records


class Key:
    """What is seen of one key, line after line."""

    def __init__(self, key):
        self.key = key
        self.faults = []
        self.newest = 0  # The highest fence that was STARTED so far.
        self.asked = {}  # who: newest as it asked
        self.ends = {}  # fence: newest as it asked for its completion
        self.started = {}  # fence: who
        self.effects = collections.Counter()  # fence: number
        self.overtaken = {}  # fence of an effect: newest before it
        self.outcomes = collections.defaultdict(set)  # fence: ids that were seen
        self.acknowledged = set()  # (fence, id)
        self.lost = set()  # fences

    def fault(self, text):
        self.faults.append(f"{self.key}: {text}")

    def take(self, e):
        step = getattr(self, "take_" + e.what, None)
        if step:
            step(e)

    def take_B(self, e):
        self.asked[e.who] = self.newest

    def take_S(self, e):
        if e.fence in self.started:
            self.fault(f"fence {e.fence} was started twice")
        if e.fence <= self.asked[e.who]:
            self.fault(f"fence {e.fence} was started after {self.asked[e.who]}")
        self.started[e.fence] = e.who
        self.newest = max(self.newest, e.fence)

    def take_E(self, e):
        if self.started.get(e.fence) != e.who:
            self.fault(f"an effect without an attempt (fence {e.fence})")
        elif self.newest > e.fence:
            self.overtaken[e.fence] = self.newest
        self.effects[e.fence] += 1
        if self.effects[e.fence] > 1:
            self.fault(f"a second effect with fence {e.fence}")

    def take_Z(self, e):
        self.overtaken.pop(e.fence, None)

    def take_C(self, e):
        self.ends[e.fence] = self.newest

    def take_A(self, e):
        if self.ends.get(e.fence, 0) > e.fence:
            self.fault(f"completed by {e.fence} after {self.ends[e.fence]} started")
        self.acknowledged.add((e.fence, e.id))
        self.outcomes[e.fence].add(e.id)

    def take_W(self, e):
        self.fault(f"completed twice with fence {e.fence}")

    def take_R(self, e):
        self.outcomes[e.fence].add(e.id)

    def take_X(self, e):
        self.fault(f"a replay that nobody made (fence {e.fence})")

    def take_T(self, e):
        self.lost.add(e.fence)

    def take_V(self, e):
        self.fault(f"fence {e.fence} was LOST within its lease")

    # ---- At the end ----

    def check_outcomes(self):
        for fence, newest in self.overtaken.items():
            self.fault(f"an effect with fence {fence} after {newest} started")
        for fence, ids in self.outcomes.items():
            if len(ids) > 1:
                self.fault(f"fence {fence} has the outcomes {sorted(ids)}")
            if self.effects[fence] != 1:
                self.fault(f"fence {fence} is completed, with {self.effects[fence]} effects")

    def check_record(self, record):
        """For keys whose records are still there."""
        outcome = (record.fence, record.id) if record.status == "completed" else None
        for fence, ids in self.outcomes.items():
            for each in ids:
                if (fence, each) != outcome:
                    told = "acknowledged" if (fence, each) in self.acknowledged else "replayed"
                    self.fault(f"{told} {each}, on record is {record}")
        if outcome and self.effects[record.fence] != 1:
            self.fault(f"{self.effects[record.fence]} effects, on record is {record}")
        if self.newest > record.fence:
            self.fault(f"{self.newest} was started, on record is {record}")
        effects = self.effects.total()
        if effects > record.attempts:
            self.fault(f"{effects} effects in {record.attempts} attempts")
        if self.key[0] == "h" and effects > 1:
            self.fault(f"{effects} effects under hold")
        for fence in self.lost:
            if record.fence <= fence and record.status == "in_progress":
                self.fault(f"{fence} was told LOST, but nobody followed")


def judge(events, records):
    """All that is wrong; empty if nothing is."""
    keys = {}
    for e in events:
        keys.setdefault(e.key, Key(e.key)).take(e)
    faults = []
    for name, key in sorted(keys.items()):
        key.check_outcomes()
        if name[0] == "x":
            pass  # It has had many lives; fences tell them apart.
        elif name in records:
            key.check_record(records[name])
        elif key.started:
            key.fault("started, and nothing is on record")
        faults += key.faults
    return faults


def count(events, records):
    """Print what there was to judge."""
    seen = collections.Counter(e.what for e in events)
    effects = collections.Counter(e.key for e in events if e.what == "E")
    again = sum(n - 1 for key, n in effects.items() if key[0] == "r" and n > 1)
    statuses = collections.Counter(r.status for r in records.values())
    print(f"# {seen['S']} attempts, {seen['E']} effects, {again} of them again under rerun")
    print(f"# {seen['A']} completions acknowledged, {seen['T']} refused as LOST,", end=" ")
    print(f"{seen['R']} replays, {seen['Q']} claims without an answer")
    print(f"# {len(records)} keys: {dict(statuses)}")
