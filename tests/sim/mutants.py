"""Plant known mistakes in the library: the simulator must find each of them.

A mutant is a patch against src/, aws/ or postgres/, mutants/NN-name.patch, or, where a store breaks
what a store promises, against the simulated stores in tests/sim/. The lines above
the diff say what is wrong with it; the last of them names the invariants that may
kill it:

    Expect: I4 I22

One of the DynamoDB store is called NN-dynamodb-name, and runs in that mode, one of the
PostgreSQL store NN-postgres-name, and NN-embedded-name is for seeds of that mode alone.
One that only a late seed kills says "Seed: N": without --long the search starts there,
and goes through the others if that seed kills it no more. With --long those without a
mode are also planted below the PostgreSQL store, where what they break is reached
through its tasks.

Each is compiled alone, and linked with what the simulator itself is linked of.

Usage: mutants.py SIM ARCHIVE ... COMPILER [ARGUMENT ...]
"""

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
sys.path[:0] = [os.fspath(HERE), os.fspath(HERE.parent / "lib")]

import patches  # noqa: E402
import seeds  # noqa: E402
import tap  # noqa: E402

ARGUMENTS = tap.arguments()
SIM = Path(ARGUMENTS[0]).resolve()
ARCHIVES = [Path(arg).resolve() for arg in ARGUMENTS[1:] if arg.endswith(".a")]
COMPILER = ARGUMENTS[1 + len(ARCHIVES) :] or ["cc"]
HAS_POSTGRES = any("postgres" in archive.name for archive in ARCHIVES)

SCHEDULES = 100_000
# One file without optimizing is compiled in half the time, and runs hardly longer.
CFLAGS = "-std=gnu11 -D_GNU_SOURCE -O0 -w -isystem /usr/include/json-c".split()
CFLAGS += "-isystem /usr/include/postgresql".split()
# What the simulator was built with.
CFLAGS += [f"-fsanitize={tap.SANITIZER}"] if tap.SANITIZED else []
# gold, and without names, links in a fifth of the time.
LDFLAGS = "-s -Wl,--wrap=clock_gettime -Wl,--wrap=getpid".split()
LDFLAGS += ["-fuse-ld=gold"] if shutil.which("ld.gold") and not tap.SANITIZED else []
LIBS = "-lcurl -lzstd -lcrypto -ljson-c -ldl -lpthread".split()
LIBS += ["-lpq"] if HAS_POSTGRES else []
# Rooms that are simulated, and those that these need. Which store a URL names is not.
ROOMS = [f"src/{room}" for room in "api base core key limit queue".split()]
ROOMS += ["src/store/remote", "src/store/shared", "aws/client"]
ROOMS += [f"aws/dynamodb/{room}" for room in "layout limit task".split()]
LEFT_OUT = ["src/api/kind.c", "src/api/open.c"]
LEFT_OUT += ["src/base/no_loader.c"]
HELPERS = [f"src/http/{name}.c" for name in "form head header_policy key".split()]
HELPERS += [f"tests/lib/{name}.c" for name in "clone history_line table verbs wire".split()]
if HAS_POSTGRES:
    TASK = "limit record row task walk".split()
    HELPERS += ["tests/lib/pg_table.c", *(f"postgres/{name}.c" for name in TASK)]
else:
    LEFT_OUT += ["tests/sim/postgres.c", "tests/sim/server.c"]
MODES = ["dynamodb"] + (["postgres"] if HAS_POSTGRES else [])
PATCHES = sorted((HERE / "mutants").glob("*.patch"))

# Schedules that are run to their end with --long, for how often each class kills.
SAMPLE = 60_000
CLASSES = ("uniform", "priority", "swizzle")
# Fewer kills than this are chance.
KILLS_TO_COMPARE = 40

# What is explored completely, as a second net. Time alone finds nearly as many as a fault
# does, in a third of the executions.
BOUNDS = "--faults 1 --delays 0" if tap.LONG else "--faults 0 --delays 1 --mode embedded"
SMALL = ["--small", "all", *BOUNDS.split()]

KILLER = r"^violation: (\w+) in seed (\d+) \((\w+), (\w+)\)"
SMALL_KILLER = r"^violation: (\w+) in (\w+ \(\w+\)), execution (\d+)"

_scratch = tempfile.TemporaryDirectory(prefix="idem-mutants-")
samples = {}  # {mutant: counts of its sample}
found_small = {}  # {mutant: what found it in a small world, or None}


def compile_one(compiler, source, where, over=None):
    """Compile @source, a path from the top, into @where; return its object. What the
    folder @over has of it is taken from there."""
    made = (where / source.replace("/", "_")).with_suffix(".o")
    trees = [tree for tree in (over, TOP) if tree]
    paths = [f"-I{tree / part}" for tree in trees for part in ("include", "src", "")]
    paths += ["-iquote", (TOP / source).parent]
    command = [*compiler, *CFLAGS, *paths, "-c", trees[0] / source, "-o", made]
    subprocess.run(command, check=True)
    return made


def link(program, objects, compiler=COMPILER):
    """Link the simulator; return @program."""
    flags = [*LDFLAGS, *(f for f in CFLAGS if f.startswith("-fsanitize"))]
    subprocess.run([*compiler, *flags, *objects, "-o", program, *LIBS], check=True)
    return program


def compile_all(compiler):
    """Compile all that is simulated with another compiler; return the objects."""
    rooms = [TOP / "tests/sim", *(TOP / room for room in ROOMS)]
    sources = sorted(path for room in rooms for path in room.glob("*.c"))
    sources = [os.fspath(path.relative_to(TOP)) for path in sources]
    sources = [source for source in sources if source not in LEFT_OUT] + HELPERS
    where = Path(tempfile.mkdtemp(dir=_scratch.name))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        compile_source = functools.partial(compile_one, compiler, where=where)
        return list(pool.map(compile_source, sources))


def own_objects():
    """Return {source: object} of the simulator's own files, as the build made them."""
    folder = SIM.with_name(SIM.name + ".p")
    found = {f"tests/sim/{path.name[:-2]}": path for path in folder.glob("[a-z]*.c.o")}
    helpers = {f"tests/lib/{path.name[7:-2]}": path for path in folder.glob(".._lib_*.c.o")}
    assert found and helpers, f"{SIM} has no objects beside it"
    return {**found, **helpers}


@functools.cache
def mutate(patch):
    """Build the simulator with @patch applied; return the program."""
    tree = Path(_scratch.name) / patch.stem
    names = patches.plant(patch, TOP, tree)
    assert names and all(name.endswith(".c") for name in names), names
    # What is defined here is not taken from an archive.
    changed = {name: compile_one(COMPILER, name, tree, tree) for name in names}
    objects = {**own_objects(), **changed}
    return link(tree / "sim", [*objects.values(), *ARCHIVES])


def call(program, *options):
    """Return what @program prints."""
    return subprocess.run(
        [program, *map(str, options)], capture_output=True, text=True
    ).stdout


def run(program, schedules, *options):
    """Return (the first violation that it meets, its counts by kind)."""
    text = call(program, "--seed", 1, "--schedules", schedules, *options)
    said = re.search(r"^violation: .*?^# reproduce:.*?$", text, re.M | re.S)
    counts = {}
    for kind, what, n in re.findall(r"^(\w+) +(\S.*?) +(\d+)$", text, re.M):
        counts.setdefault(kind, {})[what] = int(n)
    return said[0] if said else "", counts


@tap.test
def the_original_lives():
    """Without a planted mistake the simulator finds none: sim/quick and those beside it
    go on for longer."""
    text = call(SIM, *SMALL)
    assert "violation" not in text, text
    for mode in ([], *(["--mode", mode] for mode in MODES)):
        said, counts = run(SIM, SCHEDULES // 100, *mode)
        tap.equal((said, counts["total"]["schedules"]), ("", SCHEDULES // 100))


@tap.test
def another_compiler_gives_the_same_traces():
    """A seed gives the same trace, whichever compiler built the simulator."""
    ours = subprocess.check_output([*COMPILER, "--version"], text=True)
    other = "gcc" if "clang" in ours else "clang"
    if shutil.which(other) is None:
        tap.skip(f"{other} is not installed")
    if tap.SANITIZED or not tap.LONG:
        tap.skip("all is compiled once more: only with --long, and no sanitizer")
    # What did not change since the last time need not be compiled again.
    cached = COMPILER[:1] if Path(COMPILER[0]).name == "ccache" else []
    objects = compile_all([*cached, other])
    program = link(Path(_scratch.name) / other, objects, [other])
    options = ("--seed", 1, "--schedules", 3000, "--hashes")
    for more in ([], *(["--mode", mode] for mode in MODES)):
        text = call(program, *options, *more)
        hashes = re.findall(r"^seed .*$", text, re.M)
        tap.equal(len(hashes), 3000)
        text = call(SIM, *options, *more)
        tap.equal(hashes, re.findall(r"^seed .*$", text, re.M))


@tap.test
def there_are_enough():
    """There are at least twenty mutants, and each says what may kill it."""
    assert len(PATCHES) >= 20, PATCHES


# ---- Killing ----


def mode_of(patch):
    """Return what makes sim run the mode that @patch is about."""
    mode = patch.stem.split("-")[1]
    return ["--mode", mode] if mode in ("dynamodb", "embedded", "postgres") else []


def seed_of(patch):
    """Return the seed that is known to kill @patch, where it is rare, or None."""
    seed = patches.fields(patch).get("Seed")
    return seed and int(seed)


def words_of(patch):
    """Return (what is wrong with @patch, the invariants that may kill it)."""
    expected = patches.fields(patch).get("Expect")
    assert expected, f"{patch.name} does not say what to expect"
    return patches.sentence(patch), expected.split()


def per_mille(counts, name):
    """Return how many of a thousand schedules of a class were killed."""
    return 1000 * counts["killed"][name] / max(counts["class"][name], 1)


def rate_words(counts):
    rates = (f"{name} {per_mille(counts, name):.3g}" for name in CLASSES)
    return "kills in 1000: " + ", ".join(rates)


def kill_small(patch, expected):
    """Return how a small world finds @patch, or None."""
    killer = re.search(SMALL_KILLER, call(mutate(patch), *SMALL), re.M)
    if killer is None:
        return None
    words = f"{killer[1]} in {killer[2]} at execution {killer[3]}"
    assert killer[1] in expected, f"a small world: {words}"
    return words


def kill(patch):
    wrong, expected = words_of(patch)
    mode = mode_of(patch)
    said, counts = "", {}
    if mode == ["--mode", "postgres"] and not HAS_POSTGRES:
        tap.skip("it was built without libpq")
    untried = 1
    if tap.LONG and not mode:
        said, counts = run(mutate(patch), SAMPLE, "--go-on")
        samples[patch.stem] = counts
        untried = SAMPLE + 1
    known = seed_of(patch) or untried
    last = max(SCHEDULES, known)
    for first in [untried] if tap.LONG else sorted({untried, known}, reverse=True):
        if not said:
            schedules = last - first + 1
            said, counts = run(mutate(patch), schedules, *mode, "--seed", first)
    killer = re.search(KILLER, said, re.M)
    assert killer, f"it lived through {counts['total']['schedules']} schedules"
    words = f"{killer[1]} killed it first at seed {killer[2]} ({killer[3]}, {killer[4]})"
    print(f"{patch.stem}: {words}")
    if not mode:
        found_small[patch.stem] = kill_small(patch, expected)
        if patch.stem in samples:
            print(f"  {rate_words(samples[patch.stem])}")
        print(f"  in a small world: {found_small[patch.stem] or 'not found'}")
    assert killer[1] in expected, f"{words}:\n{said}"
    if tap.LONG and not mode and HAS_POSTGRES:
        said, _ = run(mutate(patch), SCHEDULES, "--mode", "postgres", "--jobs", 2)
        killer = re.search(KILLER, said, re.M)
        lives = "not found"
        print(f"  postgres: {f'{killer[1]} at seed {killer[2]}' if killer else lives}")


def add_mutant(patch):
    def mutant_dies():
        kill(patch)

    mutant_dies.__name__ = patch.stem  # For --only.
    tap.add(f"{patch.stem}: {words_of(patch)[0]}", mutant_dies)


for path in PATCHES:
    add_mutant(path)


# ---- Worth ----


def best_of(counts):
    return max(CLASSES, key=lambda name: per_mille(counts, name))


@tap.test
def each_class_is_worth_it():
    """Each class of schedules kills some mutants more often than the others do."""
    if not tap.LONG:
        tap.skip("only with --long: no few kills can tell")
    compared = {
        mutant: counts
        for mutant, counts in samples.items()
        if sum(counts["killed"].values()) >= KILLS_TO_COMPARE
    }
    bests = [best_of(counts) for counts in compared.values()]
    for name in CLASSES:
        print(f"{name} kills most often {bests.count(name)} of {len(bests)} mutants")
    for name in CLASSES[1:]:
        gains = {
            mutant: per_mille(counts, name) / max(per_mille(counts, "uniform"), 0.1)
            for mutant, counts in compared.items()
        }
        for mutant in sorted(gains, key=gains.get, reverse=True)[:3]:
            print(f"{name} kills {mutant} {gains[mutant]:.1f} times as often as uniform")
        assert max(gains.values()) >= 1.4, gains
        assert name in bests, bests


@tap.test
def small_worlds_find_mutants():
    """Small worlds that are explored completely find mutants, too."""
    found = [mutant for mutant, words in found_small.items() if words]
    print(f"found in a small world: {len(found)} of {len(found_small)} mutants")
    assert len(found) >= len(found_small) // 3, found


# ---- Seeds that once failed ----


def meet_again(seed):
    """True if with its mistake @seed fails as it once did."""
    patch = next((HERE / "mutants").glob(f"{seed.mutant}-*.patch"))
    text = call(mutate(patch), *seed.options())
    killer = re.search(KILLER, text, re.M)
    return killer is not None and killer[1] in words_of(patch)[1]


@tap.test
def seeds_still_meet_their_mistakes():
    """With its mistake back in place each seed that once failed fails again."""
    lost = []
    for seed in seeds.read():
        if not meet_again(seed):
            lost.append(seed)
    print(f"{len(seeds.read()) - len(lost)} seeds meet their mistakes")
    if os.environ.get("IDEM_REGEN") == "1":
        seeds.replace({seed: first_killer(seed.mutant) for seed in lost})
    else:
        tap.equal(lost, [])


def first_killer(mutant):
    patch = next((HERE / "mutants").glob(f"{mutant}-*.patch"))
    said, _ = run(mutate(patch), SCHEDULES)
    killer = re.search(KILLER, said, re.M)
    return killer[2], killer[3], killer[4]


if __name__ == "__main__":
    tap.main()
