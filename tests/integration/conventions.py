"""The thirty conventions of docs/conventions.md: each row is typed as it stands.

A row has a command and what it prints, at a terminal of 80 columns: all lines of it,
with "<br>" between them, or the first of them before "...". "..." stands for
anything within a line, a line of nothing but "..." for any lines, one space for any
number of them.
"""

import os
import re
import shutil

from files import read
import session
from records import line_of, write_export
from tap import PROGRAM, TOP, Skip, add, equal, main
from terminals import at_terminal

PAGE = os.path.join(TOP, "docs", "conventions.md")
CONVENTIONS = 30
NEEDS = {"man ": "man", "jq ": "jq"}


def read_page():
    return read(PAGE)


def code(cell):
    """The lines of a cell: each is in backticks."""
    found = []
    for part in cell.split("<br>"):
        match = re.fullmatch(r"(`+) ?(.*?) ?\1", part.strip())
        assert match or not part.strip(), part
        if match:
            found.append(match[2].replace(r"\|", "|"))
    return found


def rows_of(page):
    """[(number, convention, command, lines that it prints)] of the table."""
    found = []
    for line in page.splitlines():
        if re.match(r"\| *\d+ *\|", line):
            cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
            assert len(cells) == 4, line
            number, convention, command, printed = (cell.strip() for cell in cells)
            (typed,) = code(command)
            found.append((int(number), convention, typed, code(printed)))
    return found


def hidden_of(page):
    """What the page sets up before its table, unseen."""
    return re.findall(r"^\+ (.*)", page, re.M)


def write_big():
    """An export of 1,500 records, for what takes a while."""
    same = {"meta": b"exit 0\n", "result": b"x" * 2000}
    write_export("big.jsonl", (line_of(b"big", b"row-%d" % n, {"fence": n + 10, **same})
                               for n in range(1500)))  # fmt: skip


def shown(text):
    """The lines that a command left on its terminal, also what was drawn over."""
    text = re.sub("\r+\n", "\n", text).replace("\r", "\n")
    return [line.strip() for line in session.bare(text).splitlines()]


_printed = {}


def type_all():
    page = read_page()
    rows = rows_of(page)
    manual = os.path.abspath("man")
    os.makedirs(manual)
    for section in "157":
        os.symlink(os.path.join(TOP, "man"), os.path.join(manual, "man" + section))
    os.symlink(os.path.dirname(PROGRAM), "build")
    write_big()
    env = session.environment() | {
        "TERM": "xterm", "LC_ALL": "C.UTF-8", "MANPATH": manual, "MANPAGER": "cat",
        "IDEM_OWNER": "ann@host",
        "IDEM_JOURNAL_DIR": os.path.abspath("journal"),
    }  # fmt: skip
    script = "".join(f"{line}\n" for line in hidden_of(page))
    script += f"printf '{session.MARK}'\n"
    for _, _, command, _ in rows:
        script += f"{command}\nprintf '{session.MARK}'\n"
    streams = ("stdin", "stdout", "stderr")
    _, told = at_terminal(["bash", "--norc", "-c", script], env, own=streams)
    told = told.split(session.MARK)
    equal(shown(told[0]), [])
    equal(len(told), len(rows) + 2)
    for (number, *_), text in zip(rows, told[1:]):
        _printed[number] = shown(text)


def prints(wanted, got):
    """True if what is printed is what the page says."""
    pattern = session.pattern([line.strip() for line in wanted])
    return re.fullmatch(pattern, "".join(line + "\n" for line in got)) is not None


def add_row(number, convention, command, wanted):
    def case():
        if not _printed:
            type_all()
        for word, program in NEEDS.items():
            if word in command and not shutil.which(program):
                raise Skip(f"{program} is not installed")
        assert prints(wanted, _printed[number]), (command, _printed[number], wanted)

    case.__name__ = f"convention_{number}"
    add(f"convention {number}: {convention}", case)


def add_page():
    def the_page():
        numbers = [number for number, *_ in rows_of(read_page())]
        equal(numbers, list(range(1, CONVENTIONS + 1)))
        for number, _, command, wanted in rows_of(read_page()):
            assert command and wanted, number
            assert [line for line in wanted if line.strip(". ")], number

    add("the page has thirty rows, each with a command and what it prints", the_page)


def add_control():
    def control():
        assert prints(["STATUS KEY", "failed ... a"], ["STATUS KEY", "failed  x a"][:1] + ["failed x a"])
        assert prints(["a", "..."], ["a", "b", "c"])
        for wanted, got in ((["a"], ["b"]), (["a"], ["a", "b"]), (["a", "b"], ["a"]), (["a"], [])):
            assert not prints(wanted, got), (wanted, got)

    add("a row that prints something else is found out", control)


for _row in rows_of(read_page()):
    add_row(*_row)
add_page()
add_control()


if __name__ == "__main__":
    main()
