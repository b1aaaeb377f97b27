"""The man pages: there is one for everything, they say what is there, and what
they show works.

A block of a page that is tested has a comment above its .Bd:

    .\\" test: session           its lines are a session; see tests/lib/session.py
    .\\" test: file NAME         it is written to NAME; NAME.c is compiled too
    .\\" test: compile (PARAMS)  it compiles as the body of a function

Comments that follow a "test: session" are lines before those of the block. The
blocks of one page share a directory, and run in their order.
"""

import glob
import os
import re
import shutil

from files import read, write
import session
from tap import PROGRAM, TOP, add, equal, main, run, skip, test

MAN = os.path.join(TOP, "man")
LIBRARIES = [os.path.join(session.BUILD, f"lib{name}.so") for name in ("idem", "idem-aws", "idem-postgres")]


PAGES = {os.path.basename(path): read(path) for path in glob.glob(MAN + "/*.[0-9]")}


# ---- Names ----


def names_of(page):
    """Return the names in the NAME section of @page, as in idem_fail.3."""
    section = re.search(r"^\.Dt \S+ (\d)", PAGES[page], re.M)[1]
    part = re.search(r"^\.Sh NAME\n(.*?)^\.Nd", PAGES[page], re.M | re.S)[1]
    return {f"{name}.{section}" for name in re.findall(r"^\.Nm (\S+)", part, re.M)}


def names_in(section):
    """Return the names that the pages of @section document, without it."""
    found = set().union(*(names_of(page) for page in PAGES))
    return {name[:-2] for name in found if name.endswith(f".{section}")}


def exported():
    """Return the functions of the libraries, without what one has for the other alone."""
    done = run(["nm", "-D", "--defined-only", *LIBRARIES])
    equal(done.status, 0)
    found = re.findall(r" ([A-Z]) (\w+)(@*\w*)$", done.stdout.decode(), re.M)
    return {name for kind, name, version in found if kind == "T" and "PRIVATE" not in version}


ARCHIVES = [os.path.join(session.BUILD, f"lib{name}.a") for name in ("idem", "idem-aws", "idem-postgres")]


@test
def the_archive_has_no_names_of_others():
    """Every symbol of the archives begins with idem_: a program that is
    linked with them may use all others."""
    done = run(["nm", "-g", "--defined-only", *ARCHIVES])
    equal(done.status, 0)
    symbols = re.findall(r" [A-Z] (\w+)$", done.stdout.decode(), re.M)
    assert len(symbols) > 200, len(symbols)
    equal([name for name in symbols if not name.startswith("idem_")], [])


def declared_else():
    """Return the inline functions and structs of the public headers."""
    text = "".join(read(h) for h in glob.glob(TOP + "/include/**/*.h", recursive=True))
    return set(re.findall(r"^static inline [\w ]+ \**(idem_\w+)\(", text, re.M)) | set(
        re.findall(r"^struct (idem_\w+)", text, re.M)
    )


def name_complaints(symbols, names, others):
    """Compare exported @symbols with the @names of section 3."""
    bad = [f"{name}: exported, and has no page" for name in symbols - names]
    names = names - {"idem"} - symbols - others
    return bad + [f"{name}: has a page, and is not there" for name in names]


@test
def each_function_has_a_page():
    """Each exported function has a page in section 3, and each page a function."""
    symbols = {name for name in exported() if name.startswith("idem_")}
    assert len(symbols) > 50, symbols
    equal(name_complaints(symbols, names_in(3), declared_else()), [])


@test
def installed_pages_answer_to_their_names():
    """Each name of a page leads to it once the pages are installed."""
    install = ["meson", "install", "-C", session.BUILD, "--no-rebuild", "--quiet"]
    done = run([*install, "--tags", "man", "--destdir", os.path.abspath("root")])
    equal(done.status, 0)
    found = glob.glob("root/**/man/man[0-9]/*", recursive=True)
    installed = {os.path.basename(path): path for path in found}
    equal(set(installed), set().union(*(names_of(page) for page in PAGES)))
    for page in PAGES:
        for name in names_of(page):
            text = read(installed[name])
            assert text in (PAGES[page], f".so man{page[-1]}/{page}\n"), name


# ---- Lint ----


def lint_complaints(page):
    """Return what mandoc says about the file @page, and the lines that roff joins with
    the next one."""
    done = run(["mandoc", "-T", "lint", "-W", "warning", page])
    return done.stdout.decode().splitlines() + re.findall(r"^.*[^\\]\\$", read(page), re.M)


@test
def pages_are_well_formed():
    """mandoc finds nothing to warn of in any page."""
    if shutil.which("mandoc") is None:
        skip("mandoc is not installed")
    equal([line for page in PAGES for line in lint_complaints(f"{MAN}/{page}")], [])


@test
def the_first_page_leads_everywhere():
    """idem(1) names every page of a command and every page about a subject."""
    told = re.findall(r"^\.Xr (\S+) (\d)", PAGES["idem.1"].split("\n.Sh SEE ALSO\n")[1], re.M)
    wanted = {p for p in PAGES if re.fullmatch(r"idem-.*\.[17]", p)}
    equal(wanted - {f"{name}.{section}" for name, section in told}, set())


@test
def references_lead_somewhere():
    """Each .Xr to a name of ours names a page that there is."""
    names = set().union(*(names_of(page) for page in PAGES))
    for page, text in PAGES.items():
        for name, section in re.findall(r"Xr (\S+) (\d)", text):
            if name.startswith("idem"):
                assert f"{name}.{section}" in names, f"{page}: {name}({section})"


# ---- Commands ----


def help_of(*words):
    done = run([PROGRAM, *words])
    equal(done.status, 0)
    return done.stdout.decode()


def commands():
    """Return the commands that `idem help` lists, but itself."""
    groups = re.findall(r"^[A-Z].*:\n((?:  .+\n)+)", help_of("help"), re.M)
    assert len(groups) > 3, groups
    return set(re.findall(r"^  ([\w-]+) ", "".join(groups), re.M)) - {"help"}


def options_in_help(text):
    """Return the options of a --help text, as in -k and --key."""
    found = re.findall(r"^ +(?:(-\w), |    )(--[\w-]+)", text, re.M)
    return {option for pair in found for option in pair if option}


def options_in_page(text):
    """Return the options that the lists of a page explain."""
    items = "\n".join(re.findall(r"^\.It (Fl .*)", text, re.M))
    long = re.findall(r"Fl Fl ([\w-]+)", items)
    short = re.findall(r"(?<!Fl )Fl (\w)\b", items)
    return {"--" + name for name in long} | {"-" + name for name in short}


def option_complaints(told, explained):
    """Compare the options of --help with those of a page."""
    bad = [f"{option}: not explained" for option in sorted(told - explained)]
    return bad + [f"{option}: not there" for option in sorted(explained - told)]


@test
def each_command_has_a_page():
    """Each command has a page, is in idem(1), and each idem-* page is of one."""
    there = commands()
    assert "run" in there and len(there) >= 13, there
    equal({name[5:] for name in names_in(1) if name != "idem"}, there)
    for command in there:
        assert f".It Xr idem-{command} 1\n" in PAGES["idem.1"], command


def add_option_case(page):
    def case():
        of = [name[5:-2] for name in names_of(page)]
        told = set().union(*(options_in_help(help_of(c, "--help")) for c in of))
        equal(option_complaints(told, options_in_page(PAGES[page])), [])

    add(f"{page} explains the options of --help and no others", case)


for _page in sorted(PAGES):
    if _page.startswith("idem-") and _page.endswith(".1"):
        add_option_case(_page)


# ---- What the sources say ----


def sources(pattern):
    return "".join(read(path) for path in sorted(glob.glob(TOP + pattern, recursive=True)))


def all_in(words, text, macro):
    """Return those of @words that @text does not have behind @macro."""
    lines = "\n".join(re.findall(rf"^.*\b{macro} .*$", text, re.M))
    return sorted(w for w in set(words) if not re.search(rf"\b{w}\b", lines))


@test
def exit_statuses_are_complete():
    """Each exit status of the program is in EXIT STATUS of idem(1)."""
    words = re.findall(r"CLI_\w+ = (\d+),", read(f"{TOP}/cli/text/exit_status.h"))
    part = PAGES["idem.1"].split(".Sh EXIT STATUS")[1].split(".Sh ")[0]
    assert len(words) > 10, words
    equal(all_in(words, part, "It"), [])


@test
def variables_are_complete():
    """Each variable that the program reads or sets is in a page of section 1."""
    text = sources("/cli/**/*.c")
    words = re.findall(r'"((?:IDEM|XDG)_[A-Z_]*[A-Z])"', text)
    assert "IDEM_TOKEN" in words, words
    equal(all_in(words, PAGES["idem.1"] + PAGES["idem-run.1"], "Ev"), [])


@test
def json_members_are_complete():
    """Each member of a JSON answer is in the page of the command that gives it."""
    calls = r'(?:cli_json|some|add)_\w+\(\S+, "(\w+)"'
    records, counters = read(f"{TOP}/cli/record/record_json.c").split("void cli_json_counters(")
    words = re.findall(calls, records)
    assert "lease_end_ms" in words, words
    equal(all_in(words, PAGES["idem-show.1"] + PAGES["idem-begin.1"], "Va"), [])
    words = re.findall(calls, counters)
    assert "takeovers" in words, words
    equal(all_in(words, PAGES["idem-stats.1"], "Va"), [])
    words = re.findall(calls, read(f"{TOP}/cli/run/status_report.c"))
    assert "idem_status" in words, words
    equal(all_in(words, PAGES["idem-run.1"], "Va"), [])


# ---- Examples ----


def plain(line):
    """Return a line of a block without roff's escapes."""
    text = line.replace("\\&", "").replace("\\e", "\0").replace("\\-", "-")
    assert "\\" not in text, f"an escape that this test does not know: {line}"
    return text.replace("\0", "\\")


def blocks_of(text):
    """Return [kind, argument, lines] of the tested blocks of a page."""
    found = []
    where = None
    for line in text.splitlines():
        told = re.match(r'\.\\" test: (\w+) ?(.*)', line)
        more = re.match(r'\.\\" ?(.*)', line)
        if told:
            found.append([told[1], told[2], []])
            where = "comment"
        elif more and where == "comment":
            found[-1][2].append(more[1])
        elif line.startswith(".Bd") and where == "comment":
            where = "block"
        elif where == "block" and line != ".Ed":
            found[-1][2].append(plain(line))
        elif where != "block" or line == ".Ed":
            where = None
    return found


def block_complaints(kind, argument, lines, env):
    """Try one block; return what is wrong with it."""
    text = "\n".join(lines)
    if kind == "session":
        return session.complaints(lines, env)
    if kind == "compile":
        return session.compile_complaints(session.in_function(argument, text))
    assert kind == "file", kind
    write(argument, text + "\n")
    if argument.endswith(".c"):
        return session.compile_complaints(text + "\n")
    return []


for _page in sorted(PAGES):
    session.add_examples(_page, blocks_of(PAGES[_page]), block_complaints)


@test
def examples_are_there():
    """Each page of a command or function has EXAMPLES, and they are tested."""
    for page, text in PAGES.items():
        if not page.endswith(".7"):
            assert ".Sh EXAMPLES" in text, page
            assert blocks_of(text.split(".Sh EXAMPLES")[1]), page


# ---- Can these checks fail? ----


@test
def planted_defects_are_found():
    """Each check complains about a defect that was put there for it."""
    assert name_complaints({"idem_new"}, set(), set())
    assert name_complaints(set(), {"idem_gone"}, set())
    assert option_complaints({"--new"}, set())
    assert option_complaints(set(), {"--gone"})
    told = options_in_help("  -k, --key KEY  it\n      --max N  it\n")
    equal(told, {"-k", "--key", "--max"})
    equal(options_in_page(".It Fl k Ar KEY , Fl Fl key Ar KEY\n"), {"-k", "--key"})
    equal(all_in(["64", "65"], ".It 64\n65\n", "It"), ["65"])

    write("bad.1", PAGES["idem-key.1"] + ".Bogus\n")
    assert shutil.which("mandoc") is None or lint_complaints("bad.1")

    env = session.environment()
    for lines in (
        ["$ echo a", "b"],
        ["$ echo a"],
        ["$ true", "a"],
        ["+ false"],
        ["$ exit 3", "$ echo a", "a"],
        ["$ echo a b", "a...c"],
    ):
        assert block_complaints("session", "", lines, env), lines
    for lines in (
        ["$ echo a; echo b", "..."],
        ["$ echo a  b", "a ..."],
        ["$ false", "$ echo $?", "1"],
        ["+ true", "$ echo x", "x"],
    ):
        equal(block_complaints("session", "", lines, env), [])
    assert block_complaints("compile", "(void)", ["int x = idem_begin();"], env)
    assert block_complaints("compile", "(void)", ["int unused;"], env)
    assert block_complaints("file", "x.c", ["int f(void) { return idem_no(); }"], env)


if __name__ == "__main__":
    main()
