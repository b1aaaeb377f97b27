"""Write text files as lists of lines in C: embed.py FILE... >OUT.c

A line "@include FILE" is replaced by the lines of that file, which lies beside its own.
"""

import sys
from pathlib import Path


def lines(path):
    """The lines of @path, and of those that it includes."""
    for line in path.read_text().splitlines():
        directive, _, name = line.partition(" ")
        if directive == "@include":
            yield from lines(path.with_name(name))
        else:
            yield line


print("/* Made from cli/dynamodb/templates. */")
print('#include "dynamodb/table.h"')
for template in map(Path, sys.argv[1:]):
    symbol = "cli_template_" + template.name.replace(".", "_")
    print(f"\nconst char *const {symbol}[] = {{")
    quoted = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines(template))
    print("".join(f'    "{line}",\n' for line in quoted) + "    0,\n};")
