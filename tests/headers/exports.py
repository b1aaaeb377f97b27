"""What each library exports: public names that stay, and private ones that are needed.

Usage: exports.py LIBRARY.so=NAMES... -- ARCHIVE.a...

The first LIBRARY is libidem. NAMES is the checked-in list of its public names. The
archives are those of the libraries that call private names of libidem.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
MAP = "src/libidem.map"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests" / "lib"))

import tap  # noqa: E402

split = sys.argv.index("--")
LIBRARIES = [pair.split("=") for pair in sys.argv[1:split]]
ARCHIVES = sys.argv[split + 1 :]
del sys.argv[1:]


def symbols(*args):
    done = subprocess.run(["nm", *args], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines() if " " in line}


def exported(library):
    """The functions and variables in @library's table, without their versions."""
    names = symbols("-D", "--defined-only", library)
    return {name.partition("@")[0] for name in names if not re.fullmatch(r"[A-Z_0-9]+(@.*)?", name)}


def needed(archive):
    """Private names that @archive calls and does not have."""
    missing = symbols("--undefined-only", archive) - symbols("--defined-only", archive)
    return {name for name in missing if name.startswith("idem__")}


def listed_privately():
    text = re.sub(r"/\*.*?\*/", "", (TOP / MAP).read_text(encoding="ascii"), flags=re.S)
    return re.findall(r"(\w+);", text.partition("IDEM_PRIVATE")[2])


def read_list(path):
    lines = Path(path).read_text(encoding="ascii").splitlines()
    return [line.split()[0] for line in lines if line != "" and not line.startswith("#")]


def about_private(needs, listed):
    """Complaints; @needs is {archive: names}, @listed what the map has."""
    everything = set().union(*needs.values())
    missing = [
        f'{archive} calls {name}: add the line "{name};" to IDEM_PRIVATE in {MAP}'
        for archive, names in needs.items()
        for name in sorted(names - set(listed))
    ]
    return missing + [
        f"no library needs {name}: remove its line from IDEM_PRIVATE in {MAP}"
        for name in sorted(set(listed) - everything)
    ]


def about_public(library, has, names, path):
    """Complaints; @library has the names @has, and the list in @path has @names."""
    gone = [
        f"{library} no longer exports {name}: programs built with an earlier release would "
        f"not start. Keep it, or raise the soversion and remove the line from {path}"
        for name in sorted(names - has)
    ]
    return gone + [
        f'{library} exports {name}, which is new: add the line "{name}" to {path}'
        for name in sorted(has - names)
    ]


def none(complaints):
    assert complaints == [], "\n" + "\n".join(complaints)


def check_order(path, names):
    bad = [b for a, b in zip(names, names[1:]) if a >= b]
    assert bad == [], f"{path}: {bad[0]} is not in order, or is there twice"


@tap.test
def private_names_are_needed():
    """IDEM_PRIVATE lists the names that other libraries call, and no others."""
    listed = listed_privately()
    check_order(MAP, listed)
    none(about_private({os.path.basename(a): needed(a) for a in ARCHIVES}, listed))
    lost = sorted(set(listed) - exported(LIBRARIES[0][0]))
    none([f"libidem.so has no {name}, which IDEM_PRIVATE in {MAP} lists" for name in lost])


def add_case(library, path):
    name = os.path.basename(library)
    short = os.path.relpath(path, TOP)

    def case():
        names = read_list(path)
        check_order(short, names)
        has = {n for n in exported(library) if not n.startswith(("idem__", "__"))}
        none(about_public(name, has, set(names), short))

    tap.add(f"{name} exports what {short} lists", case)


for pair in LIBRARIES:
    add_case(*pair)


@tap.test
def a_change_is_told():
    """A name that is missing, or too many, is told with the line to change."""
    tap.equal(about_private({"a.a": {"idem__x"}}, ["idem__x"]), [])
    (text,) = about_private({"a.a": {"idem__x", "idem__y"}}, ["idem__x"])
    tap.equal(text, f'a.a calls idem__y: add the line "idem__y;" to IDEM_PRIVATE in {MAP}')
    (text,) = about_private({"a.a": set()}, ["idem__x"])
    assert text.startswith("no library needs idem__x"), text
    tap.equal(about_public("l.so", {"idem_a"}, {"idem_a"}, "l"), [])
    (text,) = about_public("l.so", set(), {"idem_a"}, "l")
    assert text.startswith("l.so no longer exports idem_a"), text
    (text,) = about_public("l.so", {"idem_a"}, set(), "l")
    tap.equal(text, 'l.so exports idem_a, which is new: add the line "idem_a" to l')


if __name__ == "__main__":
    tap.main()
