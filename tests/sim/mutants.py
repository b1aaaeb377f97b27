"""Plant known mistakes in the library: the simulator must find each of them.

A mutant is a patch against src/, mutants/NN-name.patch. The lines above the diff
say what is wrong with it; the last of them names the invariants that may kill it:

    Expect: I4 I22

Usage: mutants.py COMPILER [ARGUMENT ...]
"""

import filecmp
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "lib"))

import tap  # noqa: E402

COMPILER = sys.argv[1:] or ["cc"]
del sys.argv[1:]

SCHEDULES = 100_000
CFLAGS = "-std=gnu11 -D_GNU_SOURCE -O1 -w".split()
LDFLAGS = "-Wl,--wrap=clock_gettime -Wl,--wrap=getpid".split()
LIBS = "-lsqlite3 -lcrypto -ljson-c -ldl -lpthread".split()
PATCHES = sorted((HERE / "mutants").glob("*.patch"))

_scratch = tempfile.TemporaryDirectory(prefix="idem-mutants-")


def compile_one(tree, source):
    """Compile @source of @tree; return its object."""
    object_file = (tree / "o" / source.replace("/", "_")).with_suffix(".o")
    paths = ["-I", tree / "include", "-I", tree / "src"]
    command = [*COMPILER, *CFLAGS, *paths, "-c", tree / source, "-o", object_file]
    subprocess.run(command, check=True)
    return object_file


def link(tree, objects):
    """Link the simulator of @tree; return the program."""
    program = tree / "sim"
    command = [*COMPILER, *LDFLAGS, *objects, "-o", program, *LIBS]
    subprocess.run(command, check=True)
    return program


@functools.cache
def original():
    """Compile the library as it is; return (its tree, {source: object})."""
    tree = Path(_scratch.name) / "original"
    for part in ("include", "src", "tests/sim"):
        shutil.copytree(TOP / part, tree / part)
    (tree / "o").mkdir()
    sources = [*(tree / "src").rglob("*.c"), *(tree / "tests/sim").glob("*.c")]
    sources = [os.fspath(s.relative_to(tree)) for s in sorted(sources)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(functools.partial(compile_one, tree), sources))
    return tree, dict(zip(sources, objects))


def mutate(patch):
    """Build the simulator with @patch applied; return the program."""
    base, objects = original()
    tree = Path(_scratch.name) / patch.stem
    for part in ("include", "src"):
        shutil.copytree(base / part, tree / part)
    (tree / "o").mkdir()
    command = ["patch", "-p1", "--batch", "--silent", "-d", tree, "-i", patch]
    applied = subprocess.run(command, capture_output=True, text=True)
    assert applied.returncode == 0, "it no longer applies:\n" + applied.stdout

    changed = {}
    for source in objects:
        mutant = tree / source
        if mutant.exists() and not filecmp.cmp(base / source, mutant, False):
            changed[source] = compile_one(tree, source)
    assert changed, "it changes no source file"
    return link(tree, {**objects, **changed}.values())


def run(program, schedules):
    """Return (what it says of a violation, how many schedules it ran)."""
    command = [program, "--seed", "1", "--schedules", str(schedules)]
    done = subprocess.run(command, capture_output=True, text=True)
    count = re.search(r"^total +schedules +(\d+)$", done.stdout, re.M)
    said = re.search(r"^violation: .*?^# reproduce:.*?$", done.stdout, re.M | re.S)
    return said[0] if said else "", int(count[1])


@tap.test
def the_original_lives():
    """Without a planted mistake the same build of the simulator finds none."""
    tree, objects = original()
    text, count = run(link(tree, objects.values()), SCHEDULES // 5)
    tap.equal(text, "")
    tap.equal(count, SCHEDULES // 5)


@tap.test
def there_are_enough():
    """There are at least ten mutants, and each says what may kill it."""
    assert len(PATCHES) >= 10, PATCHES


def add_mutant(patch):
    text = patch.read_text()
    expected = re.search(r"^Expect: (.+)$", text, re.M)
    wrong = " ".join(text.split("Expect:")[0].split())

    def mutant_dies():
        assert expected, "it does not say what to expect"
        text, count = run(mutate(patch), SCHEDULES)
        killer = re.search(r"^violation: (\w+) in seed (\d+) \((\w+)\)", text, re.M)
        assert killer, f"it lived through {count} schedules"
        words = f"{killer[1]} killed it after {count} schedules"
        print(f"{patch.stem}: {words} (seed {killer[2]}, {killer[3]})")
        assert killer[1] in expected[1].split(), f"{words}:\n{text}"

    tap.add(f"{patch.stem}: {wrong}", mutant_dies)


for path in PATCHES:
    add_mutant(path)

if __name__ == "__main__":
    tap.main()
