"""A storm of kills: programs on libidem, idem run and its supervisor, killed at every
named crash point and at random moments, over a few keys that all of them want.

What was done is in a ledger outside of the store, and so is what callers were
told. In the end nothing that was acknowledged may be lost, and so on: judge.py.
The control does the same work with a lock file.
"""

import atexit
import collections
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

import judge
import points
import procfs
from scenes import KILLS_PER_POINT, SIDE_BY_SIDE, STORM_IDEM, VICTIMS, Storm
from scenes import check_integrity
from patience import PATIENCE
from tap import LONG, PROGRAM, environment, equal, main, run, start, test

# ---- One storm, many questions ----

_storms = []


def weather():
    """The storm; the first who asks lives through it."""
    if not _storms:
        directory = tempfile.mkdtemp(prefix="idem-storm-")
        if os.environ.get("IDEM_STORM_KEEP") is None:
            atexit.register(shutil.rmtree, directory, ignore_errors=True)
        seed = int.from_bytes(os.urandom(4), "big")
        print(f"# seed {seed}, in {directory}")
        _storms.append(Storm(directory, seed))
        live_through(_storms[0])
    return _storms[0]


def live_through(storm):
    def timed(what, function, *args):
        begun = time.monotonic()
        function(*args)
        print(f"# {what}: {time.monotonic() - begun:.1f} s")

    storm.fill()
    storm.leave_open()
    timed("named points", storm.side_by_side, storm.kill_at_points)
    timed("random moments", storm.side_by_side, storm.kill_at_random)
    # All of the short form at once, for as long as they last processors are burnt.
    timed("pauses", storm.starved, storm.pause_at_points, 6 * SIDE_BY_SIDE)
    timed("settling", storm.settle)


@test(rows=[1, 2, 3, 4])
def every_point_kills():
    """Processes die at each named crash point, often enough."""
    storm = weather()
    for name in storm.names:
        kills, hits = storm.counters.kills(name), storm.counters.hits(name)
        print(f"#   {name:28} {kills:5} kills, {hits:7} hits")
    named, random = storm.counters.all_kills(), sum(storm.random_kills.values())
    print(f"# {named} kills at {len(storm.names)} points")
    print(f"# {random} at random moments: {dict(storm.random_kills)}")
    print(f"# {sum(storm.pauses.values())} pauses: {dict(storm.pauses)}")
    print(f"# idem run ended with {dict(sorted(storm.statuses.items()))}")
    equal(storm.targets.missing(), [])
    assert named + random >= (10_000 if LONG else 1_000)
    equal(sorted(storm.random_kills), sorted(VICTIMS))


@test(rows=[2, 3, 4, 8, 74])
def nothing_is_lost_stale_or_doubled():
    """No acknowledged completion is lost, none is by a stale fence, every replay
    is the first outcome, and what runs twice may."""
    storm = weather()
    events = judge.read_ledger(storm.ledger)
    events = [e for e in events if "-in-" not in e.key and "-open-" not in e.key]
    records = storm.records()
    judge.count(events, records, storm.answers)
    equal(judge.judge(events, records, storm.answers), [])
    equal(storm.complaints, [])
    assert any(e.what == "T" for e in events), "nobody was ever told LOST"


@test(rows=[14])
def what_was_kept_is_recorded():
    """An outcome that was in the journal when its runner died is on record, and
    nothing waits any more."""
    storm = weather()
    env = environment(storm.environment([]))
    told = run([PROGRAM, "reconcile", "--list", "--json"], env)
    states = collections.Counter(json.loads(line)["state"] for line in told.stdout.splitlines())
    print(f"# {len(storm.in_journal)} outcomes left to others; set aside: {dict(states)}")
    assert len(storm.in_journal) >= 3 * KILLS_PER_POINT
    equal((told.status, states["waiting"], states["in_use"]), (0, 0, 0))
    records = storm.records()
    equal({records[key].status for key in storm.in_journal}, {"completed"})
    attempts = {records[key].attempts for key in storm.in_journal}
    equal(attempts, {1})


@test
def effect_and_record_are_one():
    """In a transaction of the program's own, effect and record are both there, or
    neither."""
    storm = weather()
    db = sqlite3.connect(storm.file("in.db"))
    effects = collections.Counter(key for key, in db.execute("SELECT key FROM effect"))
    rows = db.execute("SELECT key FROM idem_operations WHERE status = 'completed'")
    completed = {key for key, in rows}
    db.close()
    acknowledged = {e.key for e in judge.read_ledger(storm.ledger)
                    if e.what == "A" and "-in-" in e.key}
    print(f"# {len(completed)} transactions, {len(acknowledged)} acknowledged")
    equal(effects, collections.Counter(completed))
    assert acknowledged and acknowledged <= completed


@test
def the_stores_are_sound():
    """Each store opens after the storm, and SQLite finds nothing wrong with it."""
    storm = weather()
    for name in ("idem.db", "purge.db", "in.db"):
        check_integrity(storm.file(name))
    print(f"# and {storm.fresh} stores that died while they were made")
    assert storm.fresh >= 5 * KILLS_PER_POINT


def marked_when(marker, enough):
    """The ids of the processes with @marker, once they are @enough."""
    deadline = time.monotonic() + PATIENCE
    while True:
        pids = procfs.marked(marker)
        if enough(pids) or time.monotonic() > deadline:
            return pids
        time.sleep(0.1)


@test(rows=[5])
def nobody_is_left():
    """No process of the storm lives on."""
    storm = weather()
    marker = f"IDEM_STORM_HITS={storm.counters.path}".encode()
    equal(marked_when(marker, lambda pids: not pids), [])
    sleeper = start(["sleep", "60"], storm.environment([]))
    try:
        # A program that was just started has no environment for a moment.
        equal(marked_when(marker, bool), [sleeper.pid])
    finally:
        sleeper.kill()
        sleeper.communicate()


# ---- The control ----


# As a careful script would do it: a lock that one caller at a time holds, and a file that
# says "done". Its first argument is where it dies.
PLAIN = """
exec 9>$2.lock; flock 9
if [ -e $2.done ]; then
    read -r made <$2.done
    [ "$made" = receipt ] && what=R || what=X
    echo "$what $2 0 $$" >>ledger
    exit
fi
echo "E $2 0 $$" >>ledger
[ $1 = after-effect ] && kill -9 $$
printf rece >$2.done
[ $1 = half-written ] && kill -9 $$
echo receipt >$2.done
"""


@test
def a_lock_file_does_not_do():
    """The control: the same work under a lock file has double effects, and
    answers that are lost."""
    keys = [f"r-plain-{n}" for n in range(60)]
    ends = collections.Counter(
        subprocess.run(["sh", "-c", PLAIN, "plain", point, key], check=False).returncode
        for at, key in enumerate(keys)
        for point in (("after-effect", "half-written")[at % 2], "nowhere", "nowhere")
    )
    events = judge.read_ledger("ledger")
    effects = collections.Counter(e.key for e in events if e.what == "E")
    doubled = sum(n > 1 for n in effects.values())
    lost = len({e.key for e in events if e.what == "X"})
    print(f"# {ends[-9]} kills: {doubled} double effects, {lost} answers lost")
    equal(ends[-9], len(keys))
    assert doubled and lost


# ---- The judge, and what is shipped ----

SOUND = [
    "S r-a 5 1 100", "E r-a 5 100", "S r-a 6 2 101", "E r-a 6 101",
    "A r-a 6 101 6.101.aa", "R r-a 6 102 6.101.aa", "S p-a 1 1 100", "S p-a 9 1 103",
]  # fmt: skip
PLANTED = {
    "lost the acknowledged": ["A r-a 6 101 6.101.bb"],
    "lost the acknowledged completion 7": ["S r-b 7 1 9", "A r-b 7 9 7.9.cc"],
    "after 7 started": ["S r-a 7 3 104"],
    "replayed": ["R r-a 5 102 5.100.dd"],
    "nobody made": ["X r-a 6 102"],
    "2 effects with fence": ["E r-a 6 105"],
    "2 starts with fence": ["S r-a 6 2 105"],
    "effects in": ["E r-a 4 99"],
    "nothing is on record": ["S h-c 3 1 9"],
    "under hold": ["E h-d 3 9", "E h-d 4 10"],
    "unknown under rerun": ["U r-a 6 101"],
    "told LOST": ["T r-a 6 101"],
    "do not grow": ["S p-a 8 1 103"],
    "has the outcomes": ["A p-a 9 103 9.103.ee", "R p-a 9 103 9.103.ff"],
}


@test
def the_judge_sees_what_is_planted():
    """A sound ledger is let pass, and each planted fault is found."""
    records = {
        "r-a": judge.Record("completed", 6, 2, b"6.101.aa 10\n"),
        "h-d": judge.Record("unknown", 4, 2, b""),
    }

    def judged(lines, answers=()):
        with open("planted", "w", encoding="ascii") as f:
            f.write("\n".join(lines))
        return judge.judge(judge.read_ledger("planted"), records, answers)

    equal(judged(SOUND), [])
    for words, lines in PLANTED.items():
        assert any(words in fault for fault in judged(SOUND + lines)), words
    assert judged(SOUND, [("r-a", b"another")]) and judged(SOUND, [("r-z", b"any")])
    print(f"# {len(PLANTED) + 2} faults planted and found")


@test
def nothing_of_it_is_shipped():
    """What is installed knows no crash point; the programs of the storm do."""
    names = points.names_in("src", "aws", "cli")
    library = os.path.join(os.path.dirname(PROGRAM), "libidem.so")
    archive = os.path.join(os.path.dirname(PROGRAM), "libidem.a")
    equal(points.files_compiled(), points.files_with_points("src", "aws", "cli"))
    words = [b"idem__crash_point", b"IDEM_STORM", *(n.encode() + b"\0" for n in names)]
    for path in (library, archive, PROGRAM, STORM_IDEM):
        with open(path, "rb") as f:
            content = f.read()
        found = [word for word in words if word in content]
        equal((path, found), (path, words if path == STORM_IDEM else []))


if __name__ == "__main__":
    sys.setswitchinterval(0.001)
    main()
