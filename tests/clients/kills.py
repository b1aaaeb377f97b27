"""Workers of both packages that are killed with -9 at random moments while they charge.

    kills.py [KILLS]    in each language, of a worker under each policy; of the others some
"""

import collections
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from box import case, is_gone
from patience import in_time, until
from procfs import children, marked
from tap import LONG, PROGRAM, TOP, arguments, environment, equal, main, note, skip

PACKAGES = {name: os.path.join(TOP, "clients", name) for name in ("node", "python")}
sys.path[:0] = [PACKAGES["python"], os.path.join(TOP, "tests/storm")]

import idem  # noqa: E402
import judge  # noqa: E402

NODE = os.environ.get("NODE", "node")
SLOTS = 8
POLICIES = 3  # The first rows, one for each.
CONTROL = 3  # Seconds: the lease of the control. The others have 60.

# What stands before the keys of a row, as judge.py has it: who is killed, the claim, and if
# the next caller waits. A "parent" leaves a child that goes on with the work.
ROWS = {
    "h-worker": ("worker", {"on_expired_lease": "hold"}, True),
    "r-now": ("worker", {"on_expired_lease": "rerun", "on_death": "now"}, True),
    "r-lease": ("worker", {"on_expired_lease": "rerun", "lease": CONTROL}, False),
    "r-parent": ("parent", {"on_expired_lease": "rerun"}, False),
    "r-untrue": ("parent", {"on_expired_lease": "rerun", "on_death": "now"}, True),
    "h-server": ("server", {"on_expired_lease": "hold"}, True),
    "h-both": ("both", {"on_expired_lease": "hold"}, False),
}


def put(what, key, *words):
    """A line of the ledger, which no death takes back. Its length divides that of a page: a
    write that crosses into another can be cut in two by a kill."""
    fd = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, " ".join(map(str, (what, key, *words))).ljust(127).encode() + b"\n")
    os.fsync(fd)
    os.close(fd)


# ---- Workers -----------------------------------------------------------------


def child_of_work(key, fence):
    """A command that has the effect once somebody says so."""
    return f"until [ -e go-{key} ]; do sleep 0.01; done; printf '%-127s\\n' 'E {key} {fence}' >>ledger"


def charge(store, key, claim, says=lambda: None, of_child=False):
    """Once; the word for what came of it, and when that was known. "N": a machine is so late
    that a lease was over, or others held the store for too long."""
    asked, ran, told = time.monotonic(), [], []

    def work(attempt):
        ran.append(attempt.fence)
        told.append(time.monotonic())
        put("S", key, attempt.fence, int(attempt.takeover), asked, *told)
        says()
        if of_child:
            subprocess.run(["sh", "-c", child_of_work(key, attempt.fence)])
        else:
            put("E", key, attempt.fence)
        return f"{attempt.fence}-{os.getpid()}"

    try:
        receipt = store.once(key, work, **claim)
    except (idem.Busy, idem.Unknown) as error:
        return type(error).__name__, time.monotonic()
    except (idem.Lost, idem.NotRecorded, idem.Unavailable) as error:
        put("T" if ran and error.name == "IDEM_ELOST" else "N", key, *(ran or [0]))
        return type(error).__name__, *(told or [time.monotonic()])
    told.append(time.monotonic())
    put("A" if ran else "R", key, receipt.partition("-")[0], "-", receipt)
    return "ran" if ran else "replayed", told[0]


def python_worker(store, to, prefix, who, claim):
    """One key after another, for ever; it says its number before each and at work, and which
    server it has."""
    for n in range(10**9):

        def says(n=n):
            server = store.connected()
            os.write(to, f"{server.process.pid if server else 0} {n}\n".encode())

        says()
        charge(store, f"{prefix}-{n}", claim, says, who == "parent")


NODE_WORKER = """
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const idem = require(process.env.PACKAGE);
const [, , prefix, isParent, words, command] = process.argv;
const { on_expired_lease: onExpiredLease, on_death: onDeath, lease = 60 } = JSON.parse(words);
const claim = { onExpiredLease, onDeath, lease: lease * 1000 };
const store = idem.open(process.env.STORE);
const [door] = process[Symbol.for('idem.doors.1')].values();
function put(...words) {
    const fd = fs.openSync('ledger', 'a');
    fs.writeSync(fd, `${words.join(' ').padEnd(127)}\\n`);
    fs.fsyncSync(fd);
    fs.closeSync(fd);
}
const now = () => Number(process.hrtime.bigint()) / 1e9;
async function charge(key, says) {
    const asked = now();
    let ran;
    const work = (attempt) => {
        ran = attempt.fence;
        put('S', key, ran, +attempt.takeover, asked, now());
        says();
        if (isParent === 'parent') {
            execFileSync('sh', ['-c', command.replaceAll('KEY', key).replace('FENCE', ran)]);
        } else {
            put('E', key, ran);
        }
        return `${ran}-${process.pid}`;
    };
    try {
        const receipt = await store.once(key, work, claim);
        put(ran ? 'A' : 'R', key, receipt.split('-')[0], '-', receipt);
    } catch (error) {
        if (![idem.Lost, idem.NotRecorded, idem.Unavailable].some((Kind) => error instanceof Kind)) {
            throw error;
        }
        put(ran && error.code === 'IDEM_ELOST' ? 'T' : 'N', key, ran ?? 0);
    }
}
(async () => {
    for (let n = 0; ; n++) {
        const says = () => fs.writeSync(1, `${door.child?.pid ?? 0} ${n}\\n`);
        says();
        await charge(`${prefix}-${n}`, says);
    }
})();
"""


def started(store, language, prefix, who, claim):
    """The process of a worker, and what it says."""
    if language == "node":
        argv = [NODE, "worker.js", prefix, who, json.dumps(claim), child_of_work("KEY", "FENCE")]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        return process.pid, process.stdout
    from_, to = os.pipe()
    pid = os.fork()  # Of a process that has called already.
    if pid == 0:
        try:
            python_worker(store, to, prefix, who, claim)
        finally:
            os._exit(1)
    os.close(to)
    return pid, os.fdopen(from_, "rb")


# ---- Deaths ------------------------------------------------------------------


def kill_one(store, rng, language, prefix, row, is_at_work):
    """The worker's last key, how the next caller found it, how many seconds after the death,
    and when that was. The worker dies at its work, or at any moment."""
    who, claim, waits = ROWS[row]
    pid, says = started(store, language, prefix, who, claim)
    below, said = [], (0, 0)

    def hears(lines):
        for line in lines:
            yield tuple(map(int, line.split()))

    try:
        lines = 2 if is_at_work else rng.randrange(3 if who == "parent" else 6)
        for said in hears(says.readline() for _ in range(lines)):
            pass
        time.sleep(0 if is_at_work else rng.random() * 0.03)
        server = said[0]
        if who in ("server", "both") and server:
            os.kill(server, signal.SIGKILL)
        while who == "server" and said[0] in (0, server):  # It goes on with another.
            (said,) = hears([says.readline()])
        below = children(pid) if who == "parent" else []
    finally:
        os.kill(pid, signal.SIGKILL)
    equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGKILL)
    died = time.monotonic()
    with says:
        *_, said = said, *hears(says.readlines())
    key = f"{prefix}-{said[1]}"
    more = {"wait": 60, "wait_then_run": True} if waits else {}
    got, told = charge(store, key, {**claim, **more})
    if who == "parent":
        open(f"go-{key}", "w").close()
        until(lambda: all(map(is_gone, below)), "its children have gone")
    return key, got, told - died, died


def kill_many(language, seed, row, count):
    rng = random.Random(f"{language} {seed} {row}")
    with idem.open(os.environ["STORE"]) as store:
        store.limit("l", "s", "r", max=9, per=60)
        slot = int(seed.split(".")[1])
        return [kill_one(store, rng, language, f"{row}-{seed}-{n}", row, (slot + n) % 2) for n in range(count)]


def overtaken(events):
    """The attempts whose effect came after the start of a later one."""
    newest, found = collections.Counter(), []
    for e in events:
        if e.what == "S":
            newest[e.key] = max(newest[e.key], e.fence)
        elif e.what == "E" and e.fence < newest[e.key]:
            found.append(e.key)
    return found


def faults(events, records, deaths):
    """What judge.py does not ask: who is told of a takeover, and when there may be one; and
    that of all that a worker did before its last key it has the receipt."""
    found = judge.judge(events, records)
    by_key = judge.by_key(events)
    for key, of_key in by_key.items():
        _, claim, _ = ROWS["-".join(key.split("-")[:2])]
        starts = [[float(word) for word in e.rest] for e in of_key if e.what == "S"]
        for (_, asked, _), (takeover, _, began) in zip(starts, starts[1:]):
            found += [f"{key}: not told of a takeover"] * (not takeover)
            if "on_death" not in claim and began - asked < claim.get("lease", 60):
                found.append(f"{key}: taken over after {began - asked} s")
        found += [f"{key}: taken over under hold"] * (key[0] == "h" and len(starts) > 1)
    for key, *_ in deaths:
        prefix, _, last = key.rpartition("-")
        for n in range(int(last)):
            ends = {e.what for e in by_key[f"{prefix}-{n}"]}
            found += [f"{prefix}-{n}: {ends}"] * (not ends & {"A", "T", "N"})
    return found


def storm(b, language, kills):
    os.chdir(b.path)
    b.write("worker.js", NODE_WORKER)
    os.environ.update(environment({
        "IDEM_AUDIT_LOG": b.file("audit.log"), "IDEM_JOURNAL_DIR": b.file("journal"), "HOME": b.path,
        "IDEM_PROGRAM": PROGRAM, "STORE": b.idem.store, "PACKAGE": PACKAGES["node"],
    }))
    seed = int.from_bytes(os.urandom(3), "big")
    note(f"seed {seed}")
    jobs = []
    for n, row in enumerate(ROWS):
        of_slot = kills // SLOTS // (1 if n < POLICIES else 8)
        jobs += [(language, f"{seed}.{slot}", row, max(1, of_slot)) for slot in range(SLOTS)]
    with multiprocessing.get_context("fork").Pool(SLOTS) as pool:
        deaths = sum(pool.starmap(kill_many, jobs, chunksize=1), [])
    settle([death for death in deaths if death[0].startswith("r-lease") and death[1] == "Busy"])
    until(lambda: not marked(f"STORE={b.idem.store}".encode()), "no process is left")
    events = judge.read_ledger("ledger")
    records = judge.read_export(b("export", "-").stdout.decode())
    equal(faults([e for e in events if "untrue" not in e.key], records, deaths), [])
    count(events, deaths)


def settle(busy):
    """The control: nothing but the lease decides, and who takes over then is told so."""
    _, claim, _ = ROWS["r-lease"]
    more = {**claim, "wait": 60, "wait_then_run": True}

    def seconds(death):
        key, _, _, died = death
        got, told = charge(store, key, more)
        assert got != "Busy", key
        return told - died if got == "ran" else None

    with idem.open(os.environ["STORE"]) as store, ThreadPoolExecutor(32) as pool:
        took = list(filter(None, pool.map(seconds, busy)))
    note(f"by a lease of {CONTROL} s alone: {len(took)} taken over, the first {min(took, default=0):.1f} s after the death")


def count(events, deaths):
    for row, (_, _, waits) in ROWS.items():
        of = [death for death in deaths if death[0].startswith(row)]
        words = collections.Counter(got for _, got, *_ in of)
        took = sorted(seconds for _, _, seconds, _ in of)
        late = sum(seconds > 0.5 for seconds in took)
        note(f"{row}: {len(of)} kills: {dict(words)}; told within {took[len(took) // 2]:.3f} s, "
             f"99 of 100 within {took[len(took) * 99 // 100]:.3f} s, all within {took[-1]:.3f} s, {late} after 0.5 s")
        assert words["Busy"] == 0 or not waits, row
        in_time(took[-1], 30, f"{row}: to be told, with a lease of 60 s,")
    late = collections.Counter("-".join(key.split("-")[:2]) for key in overtaken(events))
    note(f"overtaken: {dict(late)}")
    equal(set(late), {"r-untrue"})


@case
def workers_in_python(b):
    """Nothing is doubled and nothing is lost; the next caller need not wait for a lease of
    60 s, unless under rerun, where a child of the worker may go on with the work."""
    storm(b, "python", KILLS)


@case
def workers_in_node(b):
    """The same in Node.js."""
    try:
        subprocess.run([NODE, "--version"], check=True, capture_output=True)
    except OSError:
        skip("there is no Node.js")
    storm(b, "node", KILLS)


if __name__ == "__main__":
    KILLS = int((arguments() or [2000 if LONG else SLOTS])[0])
    main()
