#!/usr/bin/env python3
"""Fuzz the library and the program: libFuzzer targets with kept inputs.

Usage: fuzz.py FOLDER                       run every target (TAP)
       fuzz.py FOLDER --keep [TARGET ...]   put what was learned into corpus/
       fuzz.py FOLDER --only PATTERN        run some of them

FOLDER is where the targets are built, and where their inputs grow from run to run
and findings stay. Each target first runs every input that is kept, then goes on
for a second (an hour with IDEM_TEST_LONG=1; IDEM_FUZZ_SECONDS sets either). The
short run starts from one seed and ends after 20,000 executions, so that what
it does changes with the code and not with the day.

Defects are planted too, one for each target that must find it: mutants/TARGET-NAME.patch.
"""

import base64
import concurrent.futures
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "lib"))
sys.path.insert(0, str(HERE))

import fuzz_build  # noqa: E402
import patches  # noqa: E402
import seeds  # noqa: E402
import tap  # noqa: E402
from fuzz_build import must_run  # noqa: E402

FOLDER = Path(sys.argv.pop(1)).absolute() if len(sys.argv) > 1 else None
SECONDS = int(os.environ.get("IDEM_FUZZ_SECONDS") or (3600 if tap.LONG else 1))
BOUNDS = [f"-max_total_time={SECONDS}"]
if SECONDS <= 20:
    BOUNDS += ["-seed=1", "-runs=20000"]
MUTANT_SECONDS = 60  # It ends where it finds the defect.
JOBS = min(2, os.cpu_count() or 1)
TARGETS = sorted([*seeds.SEEDS, "life-sqlite"])
PATCHES = sorted((HERE / "mutants").glob("*.patch"))
OPTIONS = "-rss_limit_mb=2048 -timeout=25 -print_final_stats=1".split()
INPUT_MAX = 8192  # Of an input that is kept.
SANITIZE = {
    "ASAN_OPTIONS": "quarantine_size_mb=16:malloc_context_size=12",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
# Who planted a defect need not read its stack.
NO_NAMES = {name: f"{value}:symbolize=0" for name, value in SANITIZE.items()}


class Run(NamedTuple):
    """How a run of a target ended."""

    status: int
    output: str
    seconds: float

    def number(self, pattern):
        """The last number that @pattern found in what was printed; 0: none."""
        found = re.findall(pattern, self.output)
        return int(found[-1]) if found else 0

    def executions(self):
        return self.number(r"stat::number_of_executed_units: (\d+)")

    def said(self):
        """What broke, in the words of whoever noticed."""
        words = r"^(?:fuzz: .*|.*runtime error: .*|.*ERROR: .*|SUMMARY: .*)$"
        lines = re.findall(words, self.output, re.M)
        return "\n".join(lines[:4]) or self.output[-2000:]


# ---- Inputs


def name_of(target):
    """Two targets that read the same inputs share them."""
    return target.partition("-")[0]


def kept(target):
    """Return the inputs in corpus/."""
    path = HERE / "corpus" / f"{name_of(target)}.txt"
    if not path.exists():
        return []
    lines = path.read_text(encoding="ascii").splitlines()
    return [base64.b64decode(line) for line in lines if not line.startswith("#")]


def put_into(folder, inputs):
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (folder / f"{number:04}").write_bytes(data)
    return folder


# In memory, if there is room: some targets write files.
_shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_scratch = tempfile.TemporaryDirectory(prefix="idem-fuzz-", dir=_shm)
SCRATCH = _scratch.name


def run(program, target, folders, *options, sanitize=SANITIZE):
    """Run @program; the first of @folders grows."""
    name = program.name
    tmp = Path(tempfile.mkdtemp(prefix=name, dir=SCRATCH))
    dictionary = HERE / "dict" / f"{name_of(target)}.dict"
    if dictionary.exists():
        options = (f"-dict={dictionary}", *options)
    env = {**os.environ, **sanitize, "TMPDIR": str(tmp)}
    start = time.monotonic()
    done = subprocess.run(
        [program, *OPTIONS, *options, *folders],
        env=env,
        cwd=tmp,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=2 * SECONDS + 600,  # It keeps its own time; this is a net.
    )
    seconds = time.monotonic() - start
    shutil.rmtree(tmp, ignore_errors=True)
    return Run(done.returncode, done.stdout.decode(errors="replace"), seconds)


# ---- Building


@functools.cache
def build():
    """Build all targets in FOLDER, or only what has changed."""
    if fuzz_build.compiler() is None:
        tap.skip("clang with libFuzzer is not installed: tools/deps test")
    fuzz_build.build(FOLDER, lambda: ["fuzz"])


def program_of(target):
    return FOLDER / "tests/fuzz" / f"fuzz-{target}"


# ---- Targets


def fuzz(target):
    """Run @target: all that is kept, then what libFuzzer makes of it."""
    build()
    grown = FOLDER / "inputs" / target
    grown.mkdir(parents=True, exist_ok=True)
    (FOLDER / "findings").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as start:
        inputs = [*seeds.SEEDS[name_of(target)](), *kept(target)]
        put_into(Path(start), inputs)
        return run(
            program_of(target),
            target,
            [grown, start],
            *BOUNDS,
            f"-artifact_prefix={FOLDER}/findings/{target}-",
        )


def tell(target, done):
    """Print what a run came to, and where it met an end, how to meet it again."""
    covered = done.number(r"cov: (\d+)")
    edges = done.number(r"(\d+) inline 8-bit counters")
    features, inputs = done.number(r"ft: (\d+)"), done.number(r"corp: (\d+)")
    print(
        f"{target}: {done.executions()} executions in {done.seconds:.0f} s, "
        f"{covered} of {edges} edges, {features} features, {inputs} inputs"
    )
    found = re.search(r"Test unit written to (\S+)", done.output)
    if done.status != 0:
        log = FOLDER / "findings" / f"{target}.log"
        log.write_text(done.output)
        again = f"{program_of(target)} {found[1]}" if found else log
        raise AssertionError(f"{done.said()}\nagain: {again}")
    assert done.executions() > 0, done.output[-2000:]


# ---- Planted defects


def command_for(source):
    """Return the arguments that compile @source, relative to FOLDER."""
    commands = json.loads((FOLDER / "compile_commands.json").read_text())
    for entry in commands:
        if (FOLDER / entry["file"]).resolve() == source:
            return shlex.split(entry["command"])
    raise AssertionError(f"nothing compiles {source}")


def compile_changed(tree, source, output):
    """Compile @source of @tree as its original is compiled."""
    command = command_for(TOP / source)
    out = command.index("-o")
    plain, skip = [], False
    for arg in command[1:out]:
        if not skip and arg not in ("-MD", "-MQ", "-MF"):
            plain.append(arg)
        skip = arg in ("-MQ", "-MF")
    # A wrapper comes first, if there is one; what was not changed is found after these.
    paths = [f"-I{tree / part}" for part in ("include", "src", "cli", "")]
    at = 1 if plain and not plain[0].startswith("-") else 0
    command = [command[0], *plain[:at], *paths, *plain[at:], "-w"]
    must_run([*command, "-o", output, "-c", tree / source], cwd=FOLDER)


def link_with(target, objects, output):
    """Link @target anew; what @objects define is not taken from the archives."""
    text = must_run(["ninja", "-C", FOLDER, "-t", "commands", f"tests/fuzz/fuzz-{target}"])
    command = shlex.split(text.strip().splitlines()[-1])
    out = command.index("-o")
    command[out + 1 : out + 2] = [str(output), *map(str, objects)]
    must_run(command, cwd=FOLDER)


def mutate(patch, target, work):
    """Build @target with @patch applied; return the program."""
    tree = work / "tree"
    changed = patches.names(patch)
    for name in changed:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, tree / name)
    refusal = patches.apply(patch, tree)
    assert refusal is None, "it no longer applies:\n" + refusal
    names = [name for name in changed if name.endswith(".c")]
    assert names, "it changes no source file"
    objects = [work / f"{number}.o" for number in range(len(names))]
    for name, output in zip(names, objects):
        compile_changed(tree, name, output)
    program = work / f"fuzz-{target}"
    link_with(target, objects, program)
    return program


def hunt(patch, target):
    """Return the run in which @target meets the defect of @patch."""
    build()
    with tempfile.TemporaryDirectory(dir=SCRATCH) as work:
        program = mutate(patch, target, Path(work))
        inputs = [*seeds.SEEDS[name_of(target)](), *kept(target)]
        start = put_into(Path(work) / "start", inputs)
        grown = put_into(Path(work) / "grown", [])
        return run(
            program,
            target,
            [grown, start],
            f"-max_total_time={MUTANT_SECONDS}",
            "-seed=1",
            f"-artifact_prefix={work}/",
            sanitize=NO_NAMES,
        )


# ---- Tests


def chosen(name):
    """True unless --only asks for others."""
    if "--only" not in sys.argv:
        return True
    return sys.argv[sys.argv.index("--only") + 1] in name


class Side:
    """Work that runs beside the test that is reported at the moment."""

    def __init__(self):
        self.pool = None
        self.waiting = []

    def later(self, function, *args):
        """Return a function that gives the result; all start with the first."""
        self.waiting.append((function, args))
        number = len(self.waiting) - 1

        def result():
            build()
            if self.pool is None:
                self.pool = concurrent.futures.ThreadPoolExecutor(JOBS)
                self.waiting = [self.pool.submit(f, *a) for f, a in self.waiting]
            return self.waiting[number].result()

        return result


def add_target(side, target):
    result = side.later(fuzz, target)
    text = (HERE / f"{name_of(target)}.c").read_text(encoding="utf-8")
    sentence = re.match(r"/\* (?:ROW\(\d+\) )?(.+?)[.:](?=\s)", text, re.S)[1]

    def holds():
        tell(target, result())

    holds.__name__ = target
    tap.add(f"{target}: {' '.join(sentence.replace(' * ', ' ').split())}", holds)


def hunter(patch):
    """The target that must find @patch: life-sqlite-... is not for life."""
    return max((t for t in TARGETS if patch.stem.startswith(f"{t}-")), key=len)


def add_mutant(side, patch):
    target = hunter(patch)
    wrong = patches.sentence(patch)
    result = side.later(hunt, patch, target)

    def dies():
        done = result()
        found = f"{done.seconds:.1f} s and {done.executions()} executions"
        print(f"{patch.stem}: {target} met it after {found}")
        assert done.status != 0, f"{target} did not meet it in {found}"

    dies.__name__ = patch.stem
    tap.add(f"{patch.stem}: {wrong}", dies)


@tap.test
def each_target_has_a_defect_to_find():
    """For each target a defect is planted that it must find."""
    hunted = {hunter(patch) for patch in PATCHES}
    tap.equal(sorted(set(TARGETS) - hunted), [])


# ---- Keeping


def keep(name):
    """Write the fewest inputs that reach, after the seeds, every edge that was ever reached.

    How often an edge was passed does not count: the short run finds an input for each
    number anew."""
    how = "-set_cover_merge=1", "-use_counters=0", f"-max_len={INPUT_MAX}"
    with tempfile.TemporaryDirectory(dir=SCRATCH) as work:
        start = put_into(Path(work) / "start", kept(name))
        merged = put_into(Path(work) / "merged", seeds.SEEDS[name]())
        for target in TARGETS:
            if name_of(target) == name:
                grown = put_into(FOLDER / "inputs" / target, [])
                done = run(program_of(target), target, [merged, start, grown], *how)
                assert done.status == 0, done.output[-2000:]
        inputs = {path.read_bytes() for path in merged.iterdir()}
        inputs -= set(seeds.SEEDS[name]())
    path = HERE / "corpus" / f"{name}.txt"
    path.unlink(missing_ok=True)
    inputs.discard(b"")
    if inputs:
        shortest_first = sorted(inputs, key=lambda data: (len(data), data))
        lines = [base64.b64encode(data).decode() for data in shortest_first]
        title = f"# Inputs of the fuzz target {name}, in base64: fuzz.py --keep wrote them."
        path.write_text("\n".join([title, *lines]) + "\n", encoding="ascii")
    print(f"{name}: {len(inputs)} inputs")


def main():
    if sys.argv[1:2] == ["--keep"]:
        build()
        for target in sys.argv[2:] or sorted(seeds.SEEDS):
            keep(target)
        return
    side = Side()
    for target in filter(chosen, TARGETS):
        add_target(side, target)
    for patch in PATCHES:
        if chosen(patch.stem):
            add_mutant(side, patch)
    tap.main()


if __name__ == "__main__":
    main()
