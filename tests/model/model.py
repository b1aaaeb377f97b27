"""Check the model of the protocol, docs/model/idem.pml, with Spin.

Every state of it is gone through, and no property may break. Then each mistake
that the model knows is made, and must break the property that it is about.

Usage: model.py COMPILER [ARGUMENT ...]
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "lib"))

import tap  # noqa: E402

# Where clang is there it is used: it makes as fast a checker in half the time.
COMPILER = tap.arguments() or ["cc"]
if clang := shutil.which("clang-14") or shutil.which("clang"):
    COMPILER = [clang]

# A checker that has to find a mistake runs for a moment: tcc makes it in a twentieth of
# the time.
QUICK = ["tcc"] if shutil.which("tcc") else [*COMPILER, "-O0"]

MODEL = TOP / "docs/model/idem.pml"
TEXT = MODEL.read_text(encoding="utf-8")
HOLD = TEXT.split("What must hold")[1].split("What really happened")[0]

# How far it is gone through. LATE: with requests that come late or twice.
SIZES = [
    ("budgets and pauses, three attempts", {"CLAIMS": 2, "FENCES": 3}),
    ("budgets, pauses and four attempts, one claim each", {"CLAIMS": 1, "FENCES": 4}),
    ("three workers and a slow network", {"CLAIMS": 1, "FENCES": 3, "LATE": 1}),
]
if tap.LONG:
    SIZES += [
        ("three workers, two claims each", {"CLAIMS": 2, "FENCES": 4, "NO_BUDGETS": 1}),
        ("budgets, pauses and four attempts", {"CLAIMS": 2, "FENCES": 4}),
        ("six attempts", {"CLAIMS": 2, "FENCES": 6}),
        ("two claims each, slow network", {"CLAIMS": 2, "FENCES": 3, "LATE": 1}),
    ]
SMALL = {"CLAIMS": 1, "FENCES": 3}

# Each mistake, and properties that must break with it.
MISTAKES = {
    "BUDGET_IGNORED": ["BUDGET_IS_EXACT"],
    "COMPLETE_UNCONDITIONAL": ["NO_STALE_OWNER", "COMPLETED_STAYS", "ACKNOWLEDGED"],
    "COMPLETION_OVERWRITES": ["COMPLETED_STAYS", "ACKNOWLEDGED"],
    "COPY_TAKES_BACK": ["TOLD_OF_NOTHING"],
    "COPY_COUNTS_TWICE": ["BUDGET_IS_EXACT"],
    "CORRECTION_KEEPS_FENCE": ["PERSON_HAS_SEEN"],
    "CORRECTS_OWNERS": ["COMPLETED_STAYS", "ACKNOWLEDGED"],
    "DEATH_FORGETS_FAILURES": ["BUDGET_IS_EXACT"],
    "EARLY_ACKNOWLEDGEMENT": ["ACKNOWLEDGED"],
    "HOLD_EXPIRES": ["MAYBE_IS_NOT_NO"],
    "HOLD_IS_TAKEN_OVER": ["MAYBE_IS_NOT_NO"],
    "LEASE_IGNORED": ["ONE_LIVE_OWNER"],
    "NO_FENCE": ["NO_STALE_OWNER", "PERSON_HAS_SEEN"],
    "NO_TAKEOVER": ["NO_WEDGE"],
    "OWNER_REOPENS": ["COMPLETED_STAYS"],
    "OWN_CLAIM_UNKNOWN": ["OWN_WRITE"],
    "OWN_LEASE_TURNS_AWAY": ["OWN_WRITE"],
    "OWN_END_UNKNOWN": ["OWN_WRITE"],
    "OWN_RETRY_IS_STARTED": ["RETRY_IS_THE_END"],
    "PAUSE_IGNORED": ["PAUSE_IS_KEPT"],
    "PERSON_KEEPS_FAILURES": ["BUDGET_IS_EXACT"],
    "PERSON_LEAVES_NONCE": ["PERSON_HAS_SEEN"],
    "PURGE_FORGETS_FENCE": ["FENCES_GROW"],
    "RELEASED_AFTER_HOLD": ["MAYBE_IS_NOT_NO"],
    "RELEASED_FORGETS": ["TAKEOVER_IS_TOLD"],
    "RELEASE_FORGETS_FAILURES": ["BUDGET_IS_EXACT"],
    "RELEASE_UNCONDITIONAL": ["NO_STALE_OWNER", "COMPLETED_STAYS"],
    "RENEW_UNFENCED": ["NO_STALE_OWNER", "ONE_LIVE_OWNER"],
    "REOPENED_EXPIRES": ["RETRY_IS_RUN"],
    "REOPEN_IGNORES_LEASE": ["ONE_LIVE_OWNER"],
    "REOPEN_UNFENCED": ["PERSON_HAS_SEEN"],
    "RESOLVE_IGNORES_LEASE": ["ONE_LIVE_OWNER"],
    "RESOLVE_UNFENCED": ["PERSON_HAS_SEEN"],
    "RETRY_IS_NOT_THE_END": ["RETRY_IS_THE_END"],
    "RETRY_IS_NO_TAKEOVER": ["TAKEOVER_IS_TOLD"],
    "RETRY_IS_RELEASE": ["TAKEOVER_IS_TOLD"],
    "RETRY_IS_RENEWED": ["RETRY_IS_THE_END"],
    "RETRY_OBEYS_HOLD": ["RETRY_IS_RUN"],
    "SWEEP_IGNORES_LEASE": ["ONE_LIVE_OWNER", "MAYBE_IS_NOT_NO"],
    "TAKEOVER_KEEPS_FENCE": ["FENCES_GROW"],
    "UNKNOWN_EXPIRES": ["MAYBE_IS_NOT_NO"],
    "UNKNOWN_IS_BEGUN": ["MAYBE_IS_NOT_NO"],
}
# The number of the property that is looked at: one checker serves for all of a mistake.
ONLY = 'atoi(getenv("ONLY"))'
PROPERTIES = dict(re.findall(r"^#define (\w+) (\d+) +/\*", HOLD, re.M))


def need_spin():
    if shutil.which("spin") is None:
        tap.skip("spin is not installed")


def build(where, defines, compiler):
    """Make the checker for the model with @defines in @where."""
    os.makedirs(where)
    options = [f"-D{name}={value}" for name, value in defines.items()]
    command = ["spin", *options, "-a", MODEL]
    made = subprocess.run(command, cwd=where, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    # Both ways go through the same states, one in less memory, one in less time. Each
    # step of the model touches what all share, so Spin could leave out no order of steps.
    memory = ["-DCOLLAPSE"] if tap.LONG else ["-DNOCOMP"]
    flags = ["-w", "-DSAFETY", "-DNOREDUCE", *memory, f"-Donly={ONLY}"]
    subprocess.run([*compiler, *flags, "-o", "pan", "pan.c"], cwd=where, check=True)


def search(where, *options, only=""):
    """Return what the checker in @where prints when it goes through all states."""
    done = subprocess.run(
        ["./pan", *options],
        cwd=where,
        env={**os.environ, "ONLY": only},
        capture_output=True,
        text=True,
    )
    assert "max search depth too small" not in done.stdout, done.stdout
    assert "Out of memory" not in done.stdout, done.stdout
    return done.stdout


def states(text):
    return int(re.search(r"(\d+) states, stored", text)[1])


def add_size(number, what, defines):
    def holds():
        need_spin()
        where = f"size-{number}"
        build(where, defines, [*COMPILER, "-O1"])
        text = search(where, "-m1000000", "-w22")
        seconds = re.search(r"elapsed time (\S+)", text)
        seconds = float(seconds[1]) if seconds else 0
        print(f"{what}: {states(text)} states in {seconds:.0f} s")
        assert " errors: 0\n" in text and "Search not completed" not in text, text
        lost = re.findall(r"^\t.*state \d+, \"(?!-end-)(.*)\"", text, re.M)
        tap.equal(lost if number == 0 else [], [])

    settings = ", ".join(f"{name} {value}" for name, value in defines.items())
    tap.add(f"{what}: no property breaks in any state ({settings})", holds)


def add_mistake(mistake, broken):
    def is_found():
        need_spin()
        build(mistake, {**SMALL, mistake: 1, "ONLY": "c_expr{only}"}, QUICK)
        for name in broken:
            text = search(mistake, "-m10000", "-w18", only=PROPERTIES[name])
            assert "assertion violated" in text, f"{name} holds:\n{text}"
            print(f"{mistake}: {name} breaks after {states(text)} states")

    tap.add(f"{mistake}: it breaks {', '.join(broken)}", is_found)


for _number, (_what, _defines) in enumerate(SIZES):
    add_size(_number, _what, _defines)
for _mistake, _broken in MISTAKES.items():
    add_mistake(_mistake, _broken)


@tap.test
def every_mistake_is_made():
    """Each mistake that the model knows is tried, and each property breaks once."""
    known = set(re.findall(r"^#ifn?def (\w+)", TEXT, re.M))
    known |= set(re.findall(r"^#elif defined\((\w+)\)", TEXT, re.M))
    tap.equal(known - {"CLAIMS", "FENCES", "ONLY", "LATE", "NO_BUDGETS"}, set(MISTAKES))
    broken = {name for names in MISTAKES.values() for name in names}
    tap.equal(broken, set(PROPERTIES))


if __name__ == "__main__":
    tap.main()
