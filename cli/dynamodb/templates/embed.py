"""Write text files as lists of lines in C: embed.py FILE... >OUT.c"""

import sys
from pathlib import Path

print("/* Made from cli/dynamodb/templates. */")
print('#include "dynamodb/template.h"')
for path in map(Path, sys.argv[1:]):
    name = "cli_template_" + path.name.replace(".", "_")
    print(f"\nconst char *const {name}[] = {{")
    lines = path.read_text().splitlines()
    quoted = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    print("".join(f'    "{line}",\n' for line in quoted) + "    0,\n};")
