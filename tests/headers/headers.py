"""Compile each public header alone, and twice, as C and as C++; each is installed.

Usage: headers.py COMPILER [ARGUMENT ...]
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include"
sys.dont_write_bytecode = True
sys.path.insert(0, str(INCLUDE.parent / "tests" / "lib"))

import tap  # noqa: E402

COMPILER = sys.argv[1:] or ["cc"]
del sys.argv[1:]

BOTH = "-Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -Wundef".split()
C_ONLY = "-Wstrict-prototypes -Wmissing-prototypes -Wc++-compat".split()
CXX_ONLY = ["-Wold-style-cast"]


def compile_alone(header, command):
    """Compile a file that holds nothing but @header, included twice."""
    line = f"#include <{header}>\n"
    done = subprocess.run(
        [*command, "-fsyntax-only", "-I", str(INCLUDE), "-"],
        input=line + line + "extern int a_file_is_not_empty;\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def add_case(header, language, standard):
    compiler = COMPILER if language == "c" else ["g++"]
    warnings = BOTH + (C_ONLY if language == "c" else CXX_ONLY)
    command = [*compiler, "-x", language, f"-std={standard}", *warnings]

    def case():
        if shutil.which(compiler[0]) is None:
            tap.skip(f"{compiler[0]} is not installed")
        compile_alone(header, command)

    tap.add(f"<{header}> compiles alone and twice as {standard}", case)


@tap.test
def each_is_installed():
    """Each public header is in the list of those that are installed."""
    text = (INCLUDE / "meson.build").read_text(encoding="utf-8")
    listed = set(re.findall(r"'([\w/]+\.h)'", text))
    found = {os.fspath(p.relative_to(INCLUDE)) for p in INCLUDE.rglob("*.h")}
    tap.equal(listed, found)


for path in sorted(INCLUDE.rglob("*.h")):
    name = os.fspath(path.relative_to(INCLUDE))
    for std in ("c99", "c11"):
        add_case(name, "c", std)
    for std in ("c++11", "c++17"):
        add_case(name, "c++", std)

if __name__ == "__main__":
    tap.main()
