"""The README and the docs: what they show works, and their links lead somewhere.

A block of console is a session; see tests/lib/session.py. A comment "test"
holds lines before those of the next session; "test: typed" before a block of sh
says that its lines are typed before it. A comment "test: compile (PARAMS)"
makes the next block the body of a function, which must compile. The blocks of a
document share a directory, and run in their order.
"""

import functools
import glob
import os
import re

import session
import files
from tap import TOP, equal, main, test

DOCS = sorted(glob.glob(TOP + "/docs/**/*.md", recursive=True))
DOCUMENTS = ["README.md", *(os.path.relpath(path, TOP) for path in DOCS)]


read = functools.partial(files.read, TOP)

def blocks_of(text):
    """Return [kind, argument, lines] of the tested blocks of a document."""
    found, before, params, typed = [], [], None, False
    part = r"<!-- test(?:: compile (\(.*?\)) -->|: typed -->|\n(.*?)-->)|^```(\w+)\n(.*?)^```$"
    for match in re.finditer(part, text, re.M | re.S):
        if "test: typed" in match[0]:
            typed = True
        elif match[3] == "sh" and typed:
            before += ["+ " + line for line in match[4].splitlines()]
            typed = False
        elif match[1]:
            params = match[1]
        elif match[2]:
            before = match[2].splitlines()
        elif params:
            found.append(["compile", params, match[4].splitlines()])
            params = None
        elif match[3] == "console":
            found.append(["session", "", before + match[4].splitlines()])
            before = []
    return found


def block_complaints(kind, argument, lines, env):
    """Try one block; return what is wrong with it."""
    if kind == "session":
        return session.complaints(lines, env)
    source = session.in_function(argument, "\n".join(lines))
    return session.compile_complaints(source)


for _name in DOCUMENTS:
    session.add_examples(_name, blocks_of(read(_name)), block_complaints)


def broken_links(name, text):
    """Return the links of a document to files that are not there."""
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    folder = os.path.join(TOP, os.path.dirname(name))
    return [link for link in links if not os.path.exists(os.path.join(folder, link))]


@test
def links_lead_somewhere():
    """Each link of a document to a file of ours leads to one."""
    equal([link for name in DOCUMENTS for link in broken_links(name, read(name))], [])


@test
def pages_exist():
    """Each `man NAME` of a document names a page that there is."""
    for name in DOCUMENTS:
        for section, page in re.findall(r"`man (?:(\d) )?([\w-]+)`", read(name)):
            found = glob.glob(f"{TOP}/man/{page}.{section or '[0-9]'}")
            assert found, f"{name}: man {section} {page}"


@test
def planted_defects_are_found():
    """Each check complains about a defect that was put there for it."""
    text = "<!-- test\n+ echo 1 >a\n-->\n```console\n$ cat a\n2\n```\n"
    (block,) = blocks_of(text)
    env = session.environment()
    assert block_complaints(*block, env)
    equal(block_complaints(*blocks_of(text.replace("\n2\n", "\n1\n"))[0], env), [])
    (block,) = blocks_of("<!-- test: compile (void) -->\n```c\nint a;\n```\n")
    assert block_complaints(*block, env)
    assert broken_links("docs/x.md", "[a](no-such.md)")
    assert len(blocks_of(read("README.md"))) > 6


if __name__ == "__main__":
    main()
