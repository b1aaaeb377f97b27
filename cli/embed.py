"""Write a text file as a string in C: embed.py NAME HEADER FILE >OUT.c"""

import sys
from pathlib import Path

name, header, path = sys.argv[1:]
text = ", ".join(map(str, Path(path).read_bytes() + b"\0"))
print(f'/* Made from {Path(path).name}. */\n#include "{header}"\n\nconst char {name}[] = {{{text}}};')
