"""Run the simulator, and show that it runs what libidem ships; or run it with the store of
a service: its tasks, its codec, and a table.

Usage: sim.py SIM LIBIDEM_ARCHIVE [dynamodb|postgres]
"""

import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import seeds  # noqa: E402
import tap  # noqa: E402

SIM, ARCHIVE, *MODE = tap.arguments()
SIM, ARCHIVE = Path(SIM).resolve(), Path(ARCHIVE).resolve()

CLASSES = ("uniform", "priority", "swizzle")
JOBS = min(2, os.cpu_count() or 1)
# Where the objects of the shared libraries are, and some that have to be among ours.
SHIPPED = {
    "libidem": "libidem.so.*.p",
    "libidem-aws": "libidem-aws.a.p",
    "libidem-postgres": "libidem-postgres.a.p",
}
USED = {
    "libidem": [
        *("src_core_decide_begin", "src_core_decide_end", "src_core_record"),
        "src_store_remote_machine",
    ],
    "libidem-aws": ["aws_dynamodb_task_record"],
    "libidem-postgres": [f"postgres_{name}" for name in ("record", "task", "walk")],
}
# In 100,000 every mutant dies that is looked for without a mode. Of the services' mutants all
# do in a quarter of these but those that name a seed, in schedules that tools/test --long has.
EMBEDDED = 10**7 if tap.LONG else 10**4 if tap.SANITIZED else 100_000
USUAL = 25_000
SERVICE = 10**6 if tap.LONG else 2000 if tap.SANITIZED else USUAL
# What happens to the requests of each service: their lines.
FATES = {"dynamodb": "net", "postgres": "pg"}

# What belongs to the other stores.
FAULTS_OF_OTHERS = {
    "lost answer",
    "dropped, said unknown",
    "dropped, said unavailable",
    "doubled write",
    "failed commit reappeared",
    "disk full",
    "answer corrupted",
    "booted with a clock that is days ahead",
    "its time shown to be over, and kept",
    "clock put right in doubt",
    "clock never put right, and believed",
}
SCENES_OF_OTHERS = {"replayed from memory"}


def sim(*args):
    """Run it and return what it prints; a violation fails the test."""
    mode = ["--mode", *MODE] if MODE else []
    done = subprocess.run([SIM, *mode, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counts(text):
    """Return {kind: {what: number}} of the lines that sim ends with."""
    found = {}
    for kind, what, n in re.findall(r"^(\w+) +(\S.*?) +(\d+)$", text, re.M):
        found.setdefault(kind, {})[what] = int(n)
    return found


def hashes(*args):
    """Return the trace hash of each seed."""
    return dict(re.findall(r"^seed (\d+) (\w+)$", sim("--hashes", *args), re.M))


def objects_are_those_of_libidem():
    """All code of the library that is simulated comes from libidem itself."""
    text = SIM.with_suffix(".map").read_text()
    ours = [Path(line) for line in re.findall(r"^LOAD (.+\.o)$", text, re.M)]
    ours = sorted(p.name for p in ours if p.parent.name == "sim.p")
    sources = {p.name for p in HERE.glob("*.c")}
    libraries = ["libidem", "libidem-aws"]
    helpers = ["clone", "history_line", "table", "verbs", "wire"]
    if "server.c.o" in ours:
        libraries.append("libidem-postgres")
        helpers.append("pg_table")
    else:
        sources -= {"postgres.c", "server.c"}
    helpers = [f".._lib_{name}.c" for name in helpers]
    tap.equal(ours, sorted(name + ".o" for name in [*sources, *helpers]))

    for library in libraries:
        members = set(re.findall(rf"\b{library}\.a\((\w+)\.c\.o\)", text))
        for name in USED[library]:
            assert name in members, f"{name} is not from {library}.a"
        shared = next(ARCHIVE.parent.glob(SHIPPED[library]))
        for member in sorted(members):
            member += ".c.o"
            archive = ARCHIVE.with_name(f"{library}.a")
            archived = subprocess.check_output(["ar", "p", archive, member])
            assert archived == (shared / member).read_bytes(), f"{member} is another"


def same_seed_same_trace():
    """A seed gives the same trace in any process, whatever ran before it."""
    alone = hashes("--seed", 1000, "--schedules", 2000)
    tap.equal(len(alone), 2000)
    assert len(set(alone.values())) > 1990, "traces do not differ"
    tap.equal(hashes("--seed", 1000, "--schedules", 2000, "--jobs", 2), alone)
    later = hashes("--seed", 2000, "--schedules", 1000)
    tap.equal(later, {seed: alone[seed] for seed in later})
    for name in CLASSES:
        forced = hashes("--seed", 1000, "--schedules", 500, "--class", name)
        tap.equal(hashes("--seed", 1000, "--schedules", 500, "--class", name), forced)
        same = [seed for seed in forced if forced[seed] == alone[seed]]
        assert 100 < len(same) < 250, f"{len(same)} of 500 seeds are {name}"


def failing_seeds_pass():
    """Each seed that once failed passes."""
    for seed in seeds.read():
        sim(*seed.options())
    print(f"{len(seeds.read())} seeds replayed")


def schedules(number, missed):
    """So many: no invariant breaks, and each fault is met but @missed; what was met."""
    text = sim("--seed", 1, "--schedules", number, "--jobs", JOBS)
    print(text)
    found = counts(text)
    tap.equal(found["total"]["schedules"], number)
    scenes = SCENES_OF_OTHERS if MODE else set()
    for kind, wanted in (("fault", missed), ("scene", scenes), ("verdict", set())):
        never = {what for what, n in found[kind].items() if n == 0}
        few = MODE and tap.SANITIZED and kind != "fault"
        assert few or never == wanted, (kind, never)
    return found


def invariants_hold():
    """A hundred thousand schedules: no invariant breaks, and every fault is met."""
    found = schedules(EMBEDDED, set())
    tap.equal(sorted(found["class"]), sorted(CLASSES))
    assert min(found["class"].values()) > EMBEDDED / 4, found["class"]


def fates_are_met():
    """Every request goes its own way: no invariant breaks, every fate is met."""
    found = schedules(SERVICE, FAULTS_OF_OTHERS)[FATES[MODE[0]]]
    assert tap.SANITIZED or min(found.values()) > 0, found


def same_trace():
    """A seed gives the same trace in any process, whatever ran before it."""
    alone = hashes("--seed", 1000, "--schedules", 600)
    tap.equal(hashes("--seed", 1000, "--schedules", 600, "--jobs", 2), alone)
    tap.equal(len(set(alone.values())), 600)


if __name__ == "__main__":
    ALONE = (objects_are_those_of_libidem, same_seed_same_trace, failing_seeds_pass)
    for case in (fates_are_met, same_trace) if MODE else (*ALONE, invariants_hold):
        tap.test(case)
    tap.main()
