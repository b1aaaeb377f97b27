"""Check that no wake-up is lost in the three pieces of docs/model/wake.pml, with Spin.

In each the order of all steps is tried. Then each mistake that the model knows is made,
and somebody must sleep for ever. The model stands for accesses of one order for all
threads: the last test holds the words in the source to that.

Usage: wake.py COMPILER [ARGUMENT ...]
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

COMPILER = [*(tap.arguments() or ["cc"]), "-O0"]
if shutil.which("tcc"):  # It compiles a checker, which runs for a moment, the fastest.
    COMPILER = ["tcc"]

MODEL = TOP / "docs/model/wake.pml"
MISTAKES = {
    "LINE": ["STORES_LATE", "LOADS_SWAPPED", "NO_WAKE", "LOOK_LATE"],
    "QUEUE": ["NO_WAKE", "LOOK_LATE"],
    "WAIT": ["STORES_LATE", "LOADS_SWAPPED", "NO_WAKE"],
}

# The words that no mutex guards.
WORDS = {
    "src/store/sqlite/ticket_lock.c": r"page->(?:next|served|wake_words|at_head|head_bell)\b",
    "aws/client/transport.c": r"client->(?:due_ms|sleep_until_ms|wakes)\b",
}
# A flag of the waiter's own, which says only where it had better wait.
OTHER = "__atomic_load_n(ends, __ATOMIC_RELAXED)"
# The words of a client that no other thread knows yet.
FIRST = r"^    client->\w+ = (?:IDEM_NEVER|-1);$"


def search(part, *mistakes):
    """Return what Spin prints when it goes through @part with @mistakes."""
    if shutil.which("spin") is None:
        tap.skip("spin is not installed")
    where = "-".join([part, *mistakes])
    os.makedirs(where)
    options = [f"-DPART={part}", *(f"-D{name}" for name in mistakes)]
    made = subprocess.run(
        ["spin", *options, "-a", MODEL], cwd=where, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stdout + made.stderr
    flags = ["-w", "-DSAFETY", "-o", "pan", "pan.c"]
    subprocess.run([*COMPILER, *flags], cwd=where, check=True)
    done = subprocess.run(["./pan", "-m100000"], cwd=where, capture_output=True, text=True)
    assert "max search depth too small" not in done.stdout, done.stdout
    return done.stdout


def add_part(part):
    def holds():
        text = search(part)
        states = re.search(r"(\d+) states, stored", text)[1]
        print(f"{part}: {states} states")
        assert " errors: 0\n" in text, text

    tap.add(f"{part}: no wake-up is lost, in any order of the steps", holds)


def add_mistake(part, mistake):
    def is_found():
        text = search(part, mistake)
        assert "invalid end state" in text, text

    tap.add(f"{part}, {mistake}: somebody sleeps for ever", is_found)


for _part, _mistakes in MISTAKES.items():
    add_part(_part)
    for _mistake in _mistakes:
        add_mistake(_part, _mistake)


@tap.test
def every_mistake_is_made():
    """Each mistake that the model knows is tried in each part that has it."""
    text = MODEL.read_text(encoding="utf-8").split("#if PART == LINE")[1]
    parts = dict(zip(MISTAKES, re.split(r"#elif PART == \w+", text), strict=True))
    for part, body in parts.items():
        tap.equal(set(re.findall(r"^#ifn?def (\w+)", body, re.M)), set(MISTAKES[part]))


@tap.test
def accesses_have_one_order():
    """The words that the model has are accessed with __ATOMIC_SEQ_CST alone."""
    for path, words in WORDS.items():
        text = (TOP / path).read_text(encoding="utf-8").replace(OTHER, "")
        text = re.sub(FIRST, "", text, flags=re.M)
        tap.equal(re.findall(r"__ATOMIC_(?!SEQ_CST)\w+", text), [])
        # A word is given to a function of them by its address, and never read as it is.
        tap.equal(re.findall(rf".*(?<!&)(?<!&lock->)\b{words}.*", text), [])
        assert len(re.findall(rf"&(?:lock->)?{words}", text)) >= 8, path


if __name__ == "__main__":
    tap.main()
