"""Shared by the tests of histories."""

import re
import subprocess
import tempfile
from pathlib import Path

import patches
import tap

CHECK_S = 3600 if tap.LONG else 200  # A longer search would never end.
TOP = Path(__file__).resolve().parents[2]


USUAL = {"policy": "rerun", "lease": "2000", "retention": "9000"}  # Of a begin.


def written(path):
    """Return the histories in the file @path as check reads them: {name: its lines}; and for
    those with a defect {name: the wrong answer}. A line is an operation (history.h):

        NAME [begun|held] [clock=none][: ID of the answer that is wrong]
          ID CALLED ANSWERED VERB [name=value ...] : ANSWER [name=value ...]

    ANSWERED is "-" if there is no answer, and the key is k unless key= names another. A history
    that is "begun" or "held" begins with a claim by a, under rerun or hold.
    """
    found, wrong = {}, {}
    text = Path(path).read_text(encoding="utf-8")
    for word, policy in (("begun", "rerun"), ("held", "hold")):
        claim = f"  a 0 1 begin policy={policy} : STARTED fence=100"
        text = re.sub(rf"^([^# ]\S*) {word}\b(.*)", rf"\1\2\n{claim}", text, flags=re.M)
    for line in text.splitlines():
        if line.startswith("  "):
            asked, _, told = line.partition(" : ")
            name, called, answered, verb, *fields = asked.split()
            fields = dict(field.split("=") for field in fields)
            key = "-" if verb == "purge" else fields.pop("key", "k")
            fields = {**(USUAL if verb == "begin" else {}), **fields}
            fields = " ".join(f"{name}={value}" for name, value in fields.items())
            lines.append(f"call {name} {called} {key} {verb} {fields}")
            lines += [f"ret {name} {answered} {told}"] if told else []
        elif not line.startswith("#"):
            head, _, answer = line.partition(": ")
            lines = found[head.split()[0]] = [f"history {head}"]
            wrong.update({head: answer} if answer else {})
    return found, wrong


def check(program, *args, text=None):
    """Run check; return (status, what it prints). @text is its stdin."""
    text = None if text is None else text.encode()
    done = tap.run([program, *map(str, args)], input=text, timeout=CHECK_S)
    assert done.status in (0, 1, 2, 64), done
    return done.status, (done.stdout + done.stderr).decode()


def summary(output):
    """Return the last line that check prints."""
    return output.rstrip().rsplit("\n", 1)[-1]


def bad_names(output):
    """Return the names of the histories that check refused."""
    return set(re.findall(r"^BAD history ([^,]+), key", output, re.M))


def explained(program, *args, undecided=0, text=None):
    """Fail unless check explains all histories but @undecided, which have too many orders
    to try. Return the numbers of histories and ops, and the longest time of one: the better
    of two runs, if the machine may have stood still in the first."""
    status, output = check(program, *args, text=text)
    assert status in (0, 2), output
    print(summary(output))
    counts = r"^(?:OK|TOO HARD (\d+) of) (\d+) histories, (\d+) ops"
    found = re.search(counts, output, re.M)
    assert int(found[1] or 0) <= undecided, output
    slowest = longest(output)
    if slowest >= 1:
        slowest = min(slowest, longest(check(program, *args, text=text)[1]))
    return int(found[2]), int(found[3]), slowest


def longest(output):
    """Return the seconds that check took for the longest history."""
    return float(re.search(r"([\d.]+) s of CPU for one$", output, re.M)[1])


def patched_object(patch, compiler, where):
    """Compile the one file of src/ or aws/ that @patch changes; return the object."""
    (source,) = patches.plant(patch, TOP, where)
    paths = [f"-I{TOP / part}" for part in ("include", "src", "")]
    flags = "-std=gnu11 -D_GNU_SOURCE -O0 -w -c".split()
    made = where / "mutant.o"
    command = [*compiler, *flags, *paths, where / source, "-o", made]
    subprocess.run(command, check=True)
    return made


def link_with(program, archives, mutant, compiler, flags, where):
    """Link @program anew, with the object @mutant in place of the archives' own."""
    objects = sorted(Path(f"{program}.p").glob("*.o"))
    assert objects, f"{program} has no objects beside it"
    made = where / Path(program).name
    libs = "-lsqlite3 -lcurl -lzstd -lcrypto -ljson-c -ldl -lpthread".split()
    libs += ["-lpq"] if any("postgres" in archive.name for archive in archives) else []
    command = [*compiler, *flags, *objects, mutant, *archives, "-o", made, *libs]
    subprocess.run(command, check=True)
    return made


def mutant_program(number, program, archives, compiler, flags=()):
    """Build @program with mutant @number of tests/sim/mutants in libidem."""
    (patch,) = (TOP / "tests/sim/mutants").glob(f"{number:02}-*.patch")
    where = Path(tempfile.mkdtemp(dir="."))
    mutant = patched_object(patch, compiler, where.resolve())
    return patch.stem, link_with(program, archives, mutant, compiler, flags, where)
