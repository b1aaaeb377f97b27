"""Long work shows on a terminal how far it has come, and nowhere else."""

import contextlib
import os
import re
import tempfile
import threading
import time

from box import case, locked
from files import read_bytes
from patience import PATIENCE, until
from procfs import descendants, until_it_waits
from records import NEVER, line_of, write_export
from tap import PROGRAM, Idem, equal, main, note, run, test
from terminals import at_terminal

MANY = 1500
LINE = re.compile(
    r"(?P<doing>[a-zA-Z, ]+?)"
    r"(?: +(?P<share>\d+)% (?P<of>\d+)/(?P<all>\d+)| (?P<done>\d+))"
    r"(?:  (?P<rate>\d+)/s)?(?:  (?P<time>\d\S*)(?P<left> left)?)? *"
)


def write(path, expires=NEVER, many=MANY):
    same = {"expires": expires, "meta": b"exit 0\n", "result": b"x" * 4000}
    write_export(path, (line_of(b"", b"order-%d" % n, {"fence": n + 10, **same}) for n in range(many)))


class Screen:
    """A terminal of so many columns; what a command shows on it as its stderr."""

    def __init__(self, columns=80):
        self.columns = columns
        self.text = ""

    def run(self, store, *args, own=("stderr",), stdin=None):
        """Its status and what went to a stdout that is not the terminal."""
        with tempfile.TemporaryFile() as out:
            rest = {"stdin": stdin} if "stdout" in own else {"stdin": stdin, "stdout": out}
            env = {"IDEM_STORE": store.store}
            status, self.text = at_terminal([PROGRAM, *args], env, self.columns, own, **rest)
            out.seek(0)
            return status, out.read()

    def lines(self):
        """What was drawn, one over the other; nothing of it stays."""
        *drawn, last = self.text.split("\r")
        equal(last.strip(), "")
        assert "\n" not in self.text and "\033" not in self.text, self.text
        found = []
        for line in drawn:
            assert len(line) < self.columns, (line, self.columns)
            if line.strip():
                match = LINE.fullmatch(line)
                assert match, line
                found.append(match.groupdict())
        return found


def shown(store, *args, columns=80, doing=None, all_known=True):
    """The lines of a command that succeeds; a pipe and --quiet show nothing."""
    screen = Screen(columns)
    begun = time.monotonic()
    status, _ = screen.run(store, *args)
    took = time.monotonic() - begun
    equal(status, 0)
    lines = [line for line in screen.lines() if line["doing"] == doing]
    assert lines, screen.text
    for line in lines:
        equal(line["all"] is not None, all_known)
    drawn = len(screen.lines())
    kinds = len({line["doing"] for line in screen.lines()})
    assert drawn <= took * 10 + kinds + 1, (drawn, took)
    note(f"{args[0]}: {drawn} lines in {took * 1000:.0f} ms, the last {lines[-1]}")
    return lines


def silent(store, *args):
    """Nothing is shown in a pipe, nor with --quiet on a terminal."""
    equal(run([PROGRAM, *args], {"IDEM_STORE": store.store}).stderr, b"")
    screen = Screen()
    equal(screen.run(store, *args, "--quiet")[0], 0)
    equal(screen.text, "")


def filled(many=MANY):
    store = Idem("sqlite:" + os.path.abspath("idem.db"))
    write("records.jsonl", many=many)
    equal(store("import", "records.jsonl").status, 0)
    return store


@test
def an_import_shows_its_file():
    """An import of a file shows a share of its bytes; one of a pipe counts its lines."""
    write("records.jsonl")
    lines = shown(Idem("sqlite:a.db"), "import", "records.jsonl", doing="importing KiB")
    silent(Idem("sqlite:b.db"), "import", "records.jsonl")

    text = read_bytes("records.jsonl")
    screen = Screen()
    taken, given = os.pipe()

    def feed():
        with os.fdopen(given, "wb") as f:
            f.write(text)

    feeder = threading.Thread(target=feed)
    feeder.start()
    with os.fdopen(taken, "rb") as f:
        equal(screen.run(Idem("sqlite:c.db"), "import", "-", stdin=f)[0], 0)
    feeder.join(PATIENCE)
    lines = screen.lines()
    assert lines and lines[0]["doing"] == "importing" and lines[0]["all"] is None, lines


@test
def an_export_shows_its_records():
    """An export shows its share; in a narrow terminal it stays on its line."""
    store = filled()
    lines = shown(store, "export", "a.jsonl", doing="exporting")
    equal({line["all"] for line in lines}, {str(MANY)})
    for columns in (24, 40, 200):
        screen = Screen(columns)
        equal(screen.run(store, "export", f"{columns}.jsonl")[0], 0)
        drawn = [line for line in screen.text.split("\r") if line.strip()]
        assert drawn and max(map(len, drawn)) < columns, drawn
    silent(store, "export", "b.jsonl")

    # Records that come by on the same terminal are not drawn over.
    screen = Screen(1000)
    equal(screen.run(store, "export", "-", own=("stdout", "stderr"))[0], 0)
    equal(len(screen.text.splitlines()), MANY + 1)
    assert "exporting" not in screen.text


@test
def what_looks_at_everything_counts():
    """A check counts pages; list says so where no index helps; a purge does not
    know how much there is, and shows a count and the time."""
    store = filled(8000)
    shown(store, "store", "check", doing="checking")
    for args, doing in ((("-s", "none"), "no index has the scope, looking at all records"),
                        (("--match", "none"), "looking at all records")):
        shown(store, "list", *args, doing=doing, all_known=False)
    for args in (("store", "check"), ("list", "-s", "none"), ("purge",)):
        silent(store, *args)
    expires = int(time.time() * 1000) + 15000
    write("old.jsonl", expires)
    old = Idem("sqlite:" + os.path.abspath("old.db"))
    assert b"added 1500," in old("import", "old.jsonl").stdout
    time.sleep(max(0, expires / 1000 - time.time()) + 0.5)
    shown(old, "purge", doing="purging", all_known=False)


WORK = "echo $$ > pid; read x < gate"


def is_reconcile(pid):
    with contextlib.suppress(OSError):
        return b"\0reconcile\0" in read_bytes(f"/proc/{pid}/cmdline")
    return False


@case(slow=True)
def reconcile_shows_how_many_wait(b):
    """reconcile shows how many of the outcomes that wait are recorded; whatever is
    printed meanwhile has lines of its own."""
    journal = {"IDEM_JOURNAL_DIR": b.file("journal")}
    for key in ("a", "b"):
        equal(b.run_refused(key, WORK, "--lease", "9s", env=journal).status, 80)
    screen = Screen()
    store = Idem(b.idem.store)
    with locked(b):
        running = threading.Thread(
            target=lambda: screen.run(store, "reconcile", b.file("journal")))
        running.start()
        (pid,) = until(lambda: [pid for pid in descendants(os.getpid()) if is_reconcile(pid)])
        until_it_waits(pid, "idem.db")
        time.sleep(3)  # It shows what it does after a while.
    running.join(PATIENCE)
    drawn = [line for line in screen.text.split("\r") if line.strip()]
    assert any(re.match(r"reconciling .*1/2", line) for line in drawn), screen.text
    equal(screen.text.rpartition("\r")[2].strip(), "")


@test
def a_message_has_its_own_line():
    """What is said while the line is shown does not share it."""
    write("records.jsonl")
    with open("records.jsonl", "a", encoding="ascii") as f:
        f.write("rubbish\n")
    screen = Screen()
    status, _ = screen.run(Idem("sqlite:a.db"), "import", "records.jsonl")
    equal(status, 74)
    parts = screen.text.split("\r")
    (at,) = [i for i, part in enumerate(parts) if "idem: line" in part]
    assert parts[at].lstrip("\n").startswith("idem: line"), parts[at]
    assert at == 0 or parts[at - 1].strip() == "", parts[at - 1]
    assert any(part.startswith("importing KiB") for part in parts), screen.text


if __name__ == "__main__":
    main()
