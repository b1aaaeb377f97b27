"""Run the shell sessions of the documents, as a reader would type them.

A session is a list of lines:

    $ idem run -k a -- date        a command
    > | tee out                    more of it
    Sat Nov 21 ...                 what it prints, on stdout or stderr
    + touch file                   a step that readers do not see; it must succeed

In the output, "..." stands for anything within a line, a line of nothing but "..." for any
lines, and one space for any number of them. The commands run in one bash, in the current
directory. A session that exits with 77 is skipped: something that it needs is missing.
"""

import os
import re
import subprocess

import tap

BUILD = os.path.dirname(tap.PROGRAM)
INCLUDE = os.path.join(tap.TOP, "include")
MARK = "\036"


def environment():
    """Return an environment with the program, a compiler that finds libidem, and a private
    store."""
    os.makedirs("bin", exist_ok=True)
    link = "bin/idem"
    if not os.path.lexists(link):
        os.symlink(tap.PROGRAM, link)
    with open("bin/cc", "w", encoding="utf-8") as cc:
        cc.write(f'#!/bin/sh\nexec gcc {" ".join(sanitizers())} "$@"\n')
    os.chmod("bin/cc", 0o755)
    return tap.environment(
        {
            "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"],
            "IDEM_STORE": "sqlite:" + os.path.abspath("idem.db"),
            "PKG_CONFIG_PATH": os.path.join(BUILD, "meson-uninstalled"),
            "LD_LIBRARY_PATH": BUILD,
            "TEST_PROGRAM": tap.PROGRAM,
            "TEST_SANITIZED": int(tap.SANITIZED),
            "TEST_LIB": os.path.dirname(os.path.abspath(__file__)),
        }
    )


def sanitizers():
    """Return the flag that a program needs to link a library built with it."""
    return [f"-fsanitize={tap.SANITIZER}"] if tap.SANITIZED else []


def steps(lines):
    """Return [command, lines that are expected, must it succeed]."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append([line[2:], [], False])
        elif line.startswith("+ "):
            if found and found[-1][2]:
                found[-1][0] += "\n" + line[2:]
            else:
                found.append([line[2:], [], True])
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0] += "\n" + line[2:]
        else:
            assert found, f"a session does not begin with {line!r}"
            found[-1][1].append(line)
    return found


def pattern(expected):
    """Return a regular expression for the lines that are expected."""
    text = ""
    for line in expected:
        if line.strip() == "...":
            text += r"(?:.*\n)*"
            continue
        parts = (re.escape(squeeze(part)) for part in line.split("..."))
        text += ".*".join(parts) + r"\n"
    return text


def squeeze(text):
    return re.sub(" +", " ", text)


def bare(text):
    """Return @text for a comparison: with single spaces, and none at the end of a line."""
    return "".join(squeeze(line).rstrip() + "\n" for line in text.splitlines())


def script(found):
    """Return the bash script that runs @found and marks the end of each step."""
    text = "exec 2>&1\n"
    for command, _, must in found:
        text += command + "\n"
        text += "__status=$?\n"
        if must:
            text += '[ $__status = 0 ] || echo "exit status $__status"\n'
        text += f"printf '{MARK}'; (exit $__status)\n"
    return text


def complaints(lines, env):
    """Run a session; return the differences from its text."""
    found = steps(lines)
    done = tap.run(["bash", "-c", script(found)], env, timeout=60)
    if done.status == 77:
        tap.skip("a document shows what is not installed here: tools/deps test")
    if done.status == 78:
        tap.skip("nginx itself would have to be built with the sanitizer")
    got = done.stdout.decode(errors="replace").split(MARK)
    bad = []
    for number, (command, expected, _) in enumerate(found):
        if number >= len(got) - 1:
            bad.append(f"$ {command}\nended the session: {got[-1]!r}")
            break
        wanted = "\n".join(line.rstrip() for line in expected).splitlines()
        if not re.fullmatch(pattern(wanted), bare(got[number])):
            bad.append(f"$ {command}\ngot:\n{got[number]}wanted:\n" + "\n".join(wanted))
    return bad


def compile_complaints(source, flags=()):
    """Compile C from a document; return the messages of the compiler."""
    done = subprocess.run(
        ["gcc", "-fsyntax-only", "-xc", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]
        + [*flags, "-I", INCLUDE, "-"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    return [done.stderr] if done.returncode != 0 else []


def add_examples(name, blocks, complaints_of):
    """Register a case for each of @blocks, which fails if @complaints_of(*block, env) returns
    a text."""

    def case():
        env = environment()
        for block in blocks:
            bad = complaints_of(*block, env)
            assert not bad, "\n".join(bad)

    if blocks:
        tap.add(f"the examples of {name} work ({len(blocks)} blocks)", case)


HEADERS = """#include <idem.h>
#include <idem/operator.h>
#include <idem/outcome.h>
#include <idem/setting.h>
#include <idem/queue.h>
#include <idem/consume.h>
#include <idem/dynamodb.h>
#include <idem/form.h>
#include <idem/exchange.h>
#include <idem/http.h>
#include <idem/journal.h>
#include <idem/key.h>
#include <idem/limit.h>
#include <idem/memory.h>
#include <idem/metrics.h>
#include <idem/postgres.h>
#include <idem/renewer.h>
#include <idem/sqlite.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
"""


def in_function(parameters, body):
    """Return C source with @body as that of a function with @parameters."""
    return (
        f"{HEADERS}int example{parameters};\n"
        f"int example{parameters}\n{{\n{body}\n    return 0;\n}}\n"
    )
